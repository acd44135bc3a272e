"""Nothing that a command wrote is lost; ``python -m tests.lab.fuzz.losses`` tries more."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_no_older_result_is_lost_to_a_command_that_dies() -> None:
    command = [sys.executable, "-m", "tests.lab.fuzz.losses", "--tries", "140", "--seed", "3"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lost: 0 of 140" in done.stdout
