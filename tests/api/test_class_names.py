"""One class name, one meaning."""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import cosim

PACKAGE = Path(cosim.__file__).parent


def class_names() -> dict[str, list[str]]:
    """Where classes are defined whose names are read twice, without leading underscores."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    said = {path: re.findall(r"^ *class _*(\w+)", text, re.MULTILINE) for path, text in texts.items()}
    often = Counter(name for names in said.values() for name in names)
    found = defaultdict(list)
    for path, names in said.items():
        if not path.stem.endswith("_pb2") and any(often[name] > 1 for name in names):  # or only an example's
            for node in ast.walk(ast.parse(texts[path])):
                if isinstance(node, ast.ClassDef):
                    found[node.name.lstrip("_")].append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    return found


def test_no_two_classes_share_a_name() -> None:
    assert {name: places for name, places in class_names().items() if len(places) > 1} == {}
