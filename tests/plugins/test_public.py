"""``cosim.plugins``: what plug-ins may rely on says what it is, and is enough to write one."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cosim.plugins
from cosim.registry import GROUPS

BASES = [group.load_base() for group in GROUPS.values()]


def test_a_type_checker_sees_the_names_that_there_are() -> None:
    tree = ast.parse(Path(cosim.plugins.__file__).read_text())
    seen = {name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names}
    assert seen - {"annotations", "import_module", "TYPE_CHECKING", "Any"} == {*cosim.plugins.__all__}


@pytest.mark.parametrize("name", cosim.plugins.__all__)
def test_each_is_there_and_says_what_it_is(name: str) -> None:
    found = getattr(cosim.plugins, name)
    if inspect.isclass(found) or inspect.isfunction(found):
        assert inspect.getdoc(found)
        assert found.__doc__ != getattr(found.__base__, "__doc__", None) if inspect.isclass(found) else True


def test_every_group_has_its_base_here() -> None:
    assert {base.__name__ for base in BASES} <= {*cosim.plugins.__all__}
    assert {getattr(cosim.plugins, base.__name__) for base in BASES} == {*BASES}


@pytest.mark.parametrize(
    "base", [*BASES, cosim.plugins.NetworkSimulator, cosim.plugins.Paths], ids=lambda base: base.__name__
)
def test_the_types_that_methods_are_given_and_give_are_here(base: type) -> None:
    own = {n: m for n, m in vars(base).items() if inspect.isfunction(m) and not n.startswith("_")}
    named = {
        word
        for method in own.values()
        for word in re.findall(r"[A-Z]\w+", " ".join(map(str, inspect.get_annotations(method).values())))
    }
    usual = {"None", "Any", "Callable", "Mapping", "Path", "Sequence", "Iterator", "Generator", "Event"}
    arrays = {"I32", "I64", "F64", "NDArray"}  # numpy's, under short names and its own
    assert named - usual - arrays <= {*cosim.plugins.__all__, *cosim.__all__}


def test_a_name_costs_only_its_own_room() -> None:
    code = "import sys; from cosim.plugins import Placement; print(*sorted(sys.modules))"
    modules = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "cosim.cluster.contract" in modules
    assert not {m for m in modules if m.startswith(("cosim.network", "cosim.pattern", "cosim.models"))}
