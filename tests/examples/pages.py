"""Pages of README and ``docs/``: their blocks, what each needs, and how each is run.

``console``
    Lines after ``$ cosim ...`` or ``$ python ...`` are what it prints; a line ``...`` stands for any lines,
    and times on the wall may differ. A command without output has to end well.
``sh``
    Commands that have to end well.
``python``
    Is run; blocks of a page share their names. A ``text`` block right after one is what it prints.

A comment before a block says more, as Markdown shows it to nobody:

``<!-- file: my_cc.py -->``
    The block is not run but written to this file, for the blocks after it.
``<!-- needs: ns-3, torch -->``
    What must be there (:data:`NEEDS`); where it is not, the block is skipped, and the skip says what to
    install.
``<!-- takes: 15 minutes -->``
    Is marked slow: README's test command leaves it out, CI runs it.
``<!-- run -->``, ``<!-- test -->``
    README's two commands: ``.ci/run`` runs them in a fresh copy.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosim.cli import main
from cosim.profiler.inside.shim import compiler
from cosim.protocol.adapters import missing_packages
from tests.examples.answers import without_wall_time
from tests.inputs import ROOT

DOCS = ROOT / "docs"
MADE = ("_build", "changes", "gallery", "names")
"""Folders of what a build makes pages of, or of no pages."""
PAGES = [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if not {*MADE} & {*path.parts})]

_FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^(?P<fence>```+)(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)


def _lacks_module(name: str, extra: str) -> str:
    return "" if importlib.util.find_spec(name) else f"pip install '.[{extra}]'"


def _lacks_ns3() -> str:
    packages = missing_packages("ns3")
    return f"apt-get install -y {' '.join(packages)}" if packages else ""


NEEDS: dict[str, Callable[[], str]] = {
    "ns-3": _lacks_ns3,
    "torch": lambda: _lacks_module("torch", "profile") or ("" if compiler() else "install a C++ compiler"),
    "figures": lambda: _lacks_module("matplotlib", "plot"),
    "numba": lambda: _lacks_module("numba", "numba"),
    "gymnasium": lambda: _lacks_module("gymnasium", "rl"),
    "pandas": lambda: "" if importlib.util.find_spec("pandas") else "pip install pandas",
    "a GPU": lambda: "" if shutil.which("nvidia-smi") else "run it on a machine with an NVIDIA GPU",
    "ASTRA-sim": lambda: "" if os.environ.get("ASTRASIM_ROOT") else "build ASTRA-sim and set ASTRASIM_ROOT",
    "transformers": lambda: "" if importlib.util.find_spec("transformers") else "pip install transformers",
    "torchtitan": lambda: "" if importlib.util.find_spec("torchtitan") else "pip install torchtitan",
    "vllm": lambda: (
        "" if importlib.util.find_spec("vllm") else "VLLM_TARGET_DEVICE=empty pip install --no-deps vllm"
    ),
    "the site": lambda: _lacks_module("sphinx", "docs"),
}
"""What a block may need: a function that says what to install, or nothing where it is there."""


@dataclass(frozen=True)
class Block:
    """One fenced block: where it begins, and what its mark says."""

    page: Path
    line: int
    language: str
    text: str
    prints: str | None
    file: str = ""
    needs: tuple[str, ...] = ()
    takes: str = ""
    fresh: bool = False

    @property
    def place(self) -> str:
        """``docs/howto/network.md:12``."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs(self) -> bool:
        """Something is to be run."""
        return not self.file and not self.fresh and self.language in ("python", "console", "sh")

    @property
    def special(self) -> bool:
        """It is run by itself, because of what it needs."""
        return bool(self.needs or self.takes)

    def missing(self) -> str:
        """Why it can't be run here, and what to do about it; nothing where it can."""
        return "; ".join(lacks for lacks in (NEEDS[name]() for name in self.needs) if lacks)


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = list(_FENCE.finditer(text))
    following = [*found[1:], None][: len(found)]
    return [
        Block(
            page,
            text[: match.start("fence")].count("\n") + 1,
            match["language"],
            match["text"],
            after["text"]
            if after is not None and match["language"] == "python" and after["language"] == "text"
            else None,
            **_mark(match["mark"] or ""),
        )
        for match, after in zip(found, following, strict=True)
    ]


def _mark(mark: str) -> dict[str, Any]:
    said: dict[str, Any] = {"fresh": mark in ("run", "test")}
    for part in mark.split(";"):
        key, colon, value = (piece.strip() for piece in part.partition(":"))
        if colon:
            said[key] = tuple(one.strip() for one in value.split(",")) if key == "needs" else value
    return said


def prepare(page: Path, folder: Path) -> None:
    """Make ``folder`` what a reader works in: the checkout, the files of the how-tos, those of the page.

    Without ``cosim``, which would be another one than that of the tests, and compile all of its loops anew.
    """
    for name in ("scenarios", "tests", "adapters", "proto", "docs"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(DOCS / "howto" / "files", folder, dirs_exist_ok=True)
    for block in blocks(page):
        if block.file:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")


def run_block(block: Block, names: dict[str, Any]) -> Iterator[str]:
    """Run it in the working folder; yields what went otherwise than the page says.

    ``names`` are those of the page's Python blocks.
    """
    if block.language == "python":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.text, block.place, "exec"), names)
        if block.prints is not None and not matches(block.prints, printed.getvalue()):
            yield f"{block.place} printed\n{printed.getvalue()}"
        return
    for command, expected in commands(block):
        code, printed_text = run_command(command)
        if expected.strip():
            if not matches(expected, printed_text):
                yield f"{block.place}: {command} printed\n{printed_text}"
        elif code:
            yield f"{block.place}: {command} ended with {code}:\n{printed_text}"


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Each command of a ``console`` or ``sh`` block, and what the page says that it prints."""
    if block.language == "console":
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.replace("\\\n", " ").partition("\n")
            yield command, output
        return
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line, ""


def run_command(command: str) -> tuple[int, str]:
    """Exit code and what it printed; ``cosim`` runs in this process, ``python`` in another."""
    name, *arguments = shlex.split(command, comments=True)
    if name == "python":
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr
    if name != "cosim":
        raise ValueError(f"{command}: only cosim and python are run")
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["cosim", *arguments]
    code: Any = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = before
    return int(code or 0), out.getvalue() + err.getvalue()


def matches(expected: str, printed: str) -> bool:
    """Equal, where a line ``...`` stands for any lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + r"\s*?\n"
        for line in without_wall_time(expected).splitlines()
    )
    return re.fullmatch(pattern + r"\s*", without_wall_time(printed)) is not None
