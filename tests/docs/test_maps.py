"""Each room's docstring names the modules that are there, and none that are gone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.inputs import ROOT

ROOMS = sorted((ROOT / "cosim").rglob("__init__.py"))


def _modules(room: Path) -> set[str]:
    """Python modules and rooms; not what protoc wrote."""
    files = {file.stem for file in room.glob("*.py") if not file.stem.startswith("__")}
    rooms = {each.parent.name for each in room.glob("*/__init__.py")}
    return {name for name in files | rooms if not name.endswith(("_pb2", "_pb2_grpc"))}


def _imported(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    found = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {alias.name for node in found for alias in node.names}


@pytest.mark.parametrize("file", ROOMS, ids=lambda file: str(file.parent.relative_to(ROOT)))
def test_a_room_names_its_modules(file: Path) -> None:
    modules = _modules(file.parent)
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    if len(modules) > 1:
        lacking = sorted(name for name in modules if not re.search(rf"\b{name}\b", text))
        assert lacking == [], f"{file.parent} doesn't name them in its docstring"
    rows = re.findall(r"^((?:``\w+/?``(?:, )?)+)  ", text, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"``(\w+)/?``", row)}
    there = {each.stem for each in file.parent.glob("*.py")} | modules | _imported(file)
    assert named <= there, f"{file.parent} names what is gone"
