"""One class name, one meaning."""

import ast
from collections import defaultdict
from pathlib import Path

import cosim

PACKAGE = Path(cosim.__file__).parent


def class_names() -> dict[str, list[str]]:
    """Where each class is defined, by name without leading underscores; generated files apart."""
    found = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.stem.endswith("_pb2"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    found[node.name.lstrip("_")].append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    return found


def test_no_two_classes_share_a_name() -> None:
    assert {name: places for name, places in class_names().items() if len(places) > 1} == {}
