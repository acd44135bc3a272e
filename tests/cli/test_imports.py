"""What commands import: a run imports what it is about, and what says a mistake next to nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.inputs import ROOT

_PROGRAM = """
import sys
from cosim.cli import main
sys.argv[0] = "cosim"
try:
    main()
except SystemExit:
    pass
ours = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "cosim"}
found = [name for name, module in ours.items() if getattr(module, "__file__", "")]
print("\\nmodules", *sorted(found))
"""


def _imported(*words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *words], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return {*done.stdout.rsplit("\nmodules ", 1)[1].split()}


def test_the_quickstart_imports_200_modules_at_most() -> None:
    found = _imported("run", "scenarios/quickstart.yaml", "-q")
    assert len(found) <= 200, sorted(found)


@pytest.mark.parametrize(("words", "most"), [(["--version"], 6), (["run", "nowhere.yaml"], 24)])
def test_what_simulates_nothing_imports_next_to_nothing(words: list[str], most: int) -> None:
    found = _imported(*words)
    assert len(found) <= most, sorted(found)


def test_a_command_imports_no_other() -> None:
    commands = {name for name in _imported("schema") if name.startswith("cosim.cli.")}
    assert commands == {f"cosim.cli.{name}" for name in ("answers", "interrupts", "options", "say")}
