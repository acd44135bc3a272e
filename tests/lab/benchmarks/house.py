"""The house in figures: files, lines, long functions, comments, files met by a run, for each checkout given.

::

    python -m tests.lab.benchmarks.house                  # this checkout
    python -m tests.lab.benchmarks.house ../before .      # two of them, side by side

Generated files (``*_pb2``) don't count. *Code* is a line that is neither blank, nor comment, nor docstring;
*comments* are per 100 lines of code, docstrings apart; a function's length includes its docstring, and
stands without it beside. *Names of several classes* don't count leading underscores.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

_LONG = 50
_SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_MET = """
import sys
from cosim.cli import main
try:
    sys.argv = ["cosim", "run", "scenarios/quickstart.yaml"]
    main()
except SystemExit:
    pass
names = {n for n, m in sys.modules.items() if n.split(".")[0] == "cosim" and getattr(m, "__file__", None)}
print("met", len(names))
"""


@dataclass
class House:
    """Of one checkout."""

    files: list[int] = field(default_factory=list)  # lines of each
    code: int = 0
    comments: int = 0
    long: list[tuple[int, int, str]] = field(default_factory=list)  # lines, lines without docstring, where
    classes: Counter[str] = field(default_factory=Counter)
    rooms: dict[str, int] = field(default_factory=dict)
    met: int = 0


def measure(checkout: Path) -> House:
    """Read every Python file of the package; run the quickstart once to see which files it imports."""
    house = House()
    for path in sorted((checkout / "cosim").rglob("*.py")):
        if path.stem.endswith("_pb2"):
            continue
        text = path.read_text(encoding="utf-8")
        lines = text.count("\n")
        house.files.append(lines)
        room = path.relative_to(checkout / "cosim").parts[0].removesuffix(".py")
        house.rooms[room] = house.rooms.get(room, 0) + lines
        _count(text, house)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > _LONG:
                    plain = length - len(_docstring(node))
                    house.long.append((length, plain, f"{path.relative_to(checkout)}:{node.name}"))
            elif isinstance(node, ast.ClassDef):
                house.classes[node.name.lstrip("_")] += 1
    own = (
        checkout / ".venv/bin/python"
    )  # where cosim is installed from this checkout: names come by entry point
    python = str(own) if own.exists() else sys.executable
    done = subprocess.run([python, "-c", _MET], cwd=checkout, capture_output=True, text=True, check=True)
    house.met = int(done.stdout.rsplit("met", 1)[1])
    return house


def _docstring(node: ast.AST) -> range:
    """The lines of a node's docstring."""
    body = getattr(node, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
        value = body[0].value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return range(value.lineno, (value.end_lineno or value.lineno) + 1)
    return range(0)


def _count(text: str, house: House) -> None:
    doc = {line for node in ast.walk(ast.parse(text)) for line in _docstring(node)}
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            house.comments += 1
        elif token.type not in _SKIPPED:
            code |= set(range(token.start[0], token.end[0] + 1))
    house.code += len(code - doc)


def main(checkouts: list[str]) -> None:
    """Print a column for each checkout."""
    houses = [measure(Path(path).resolve()) for path in checkouts]
    rows: list[tuple[str, list[object]]] = [
        ("files", [len(h.files) for h in houses]),
        ("lines", [sum(h.files) for h in houses]),
        ("lines of code", [h.code for h in houses]),
        ("median lines a file", [int(median(h.files)) for h in houses]),
        ("files over 400 lines", [sum(n > 400 for n in h.files) for h in houses]),
        (f"functions over {_LONG} lines", [len(h.long) for h in houses]),
        ("  ... without their docstrings", [sum(plain > _LONG for _, plain, _ in h.long) for h in houses]),
        ("longest function", [max(h.long)[0] if h.long else 0 for h in houses]),
        ("names of several classes", [sum(n > 1 for n in h.classes.values()) for h in houses]),
        ("comments per 100 lines of code", [f"{100 * h.comments / h.code:.1f}" for h in houses]),
        ("files met by the quickstart", [h.met for h in houses]),
    ]
    rooms = sorted({room for h in houses for room in h.rooms})
    rows += [(f"  {room}", [h.rooms.get(room, 0) for h in houses]) for room in rooms]
    for name, values in rows:
        print(f"{name:32}" + "".join(f"{value!s:>10}" for value in values))
    for length, plain, where in sorted(houses[-1].long, reverse=True):
        print(f"{length:6}{plain:6}  {where}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["."])
