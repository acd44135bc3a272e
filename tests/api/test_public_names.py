"""The public names: ``names/MODULE.txt`` lists those of a module; a change of them is decided there."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import cosim

LISTS = sorted(Path(__file__).with_name("names").glob("*.txt"))


@pytest.mark.parametrize("listed", LISTS, ids=lambda path: path.stem)
def test_a_public_module_has_exactly_the_names_listed(listed: Path) -> None:
    module = import_module(listed.stem)
    assert sorted(module.__all__) == listed.read_text(encoding="utf-8").split()
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_names_are_what_they_are_called() -> None:
    for name in cosim.__all__:
        assert getattr(cosim, name).__name__ == name, name


def test_completion_offers_the_public_names_only() -> None:
    assert {*dir(cosim)} == {*cosim.__all__, "__version__", "plugins", "testing"}


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulate'"):
        cosim.simulate  # type: ignore[attr-defined]  # noqa: B018


def test_importing_cosim_brings_nothing_else() -> None:
    code = "import sys; before = {*sys.modules}; import cosim; dir(cosim); print(*{*sys.modules} - before)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    brought = {name for name in found.stdout.split() if name.split(".")[0] not in sys.stdlib_module_names}
    assert brought == {"cosim"}
