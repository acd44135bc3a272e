"""A machine where the kernel could not be built: a run says so in a line, and has the kernel's digest."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.examples.answers import answer_file
from tests.inputs import ROOT

DEAR = ("quickstart", "link-failure")


@pytest.mark.parametrize(
    "scenario",
    ["direct-connect", "planes", *(pytest.param(one, marks=pytest.mark.slow) for one in DEAR)],
)
def test_a_run_without_a_kernel_has_its_digest(scenario: str) -> None:
    environment = {**os.environ, "COSIM_KERNEL": "none"}
    file = ROOT / "scenarios" / f"{scenario}.yaml"
    command = [sys.executable, "-m", "cosim", "run", str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr.count("the reference engine runs meanwhile") == 1
    found = re.search(r"digest [0-9a-f]{16}", done.stdout)
    assert found is not None
    assert found[0] in answer_file(file).read_text(encoding="utf-8")
