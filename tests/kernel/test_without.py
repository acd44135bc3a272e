"""A machine where the kernel could not be built: a run says so in a line, and has the kernel's digest."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.inputs import ROOT


def said(scenario: str, kernel: str | None) -> tuple[str, str]:
    """The digest, and what was said beside the page."""
    environment = {**os.environ, **({} if kernel is None else {"COSIM_KERNEL": kernel})}
    command = [sys.executable, "-m", "cosim", "run", f"scenarios/{scenario}.yaml"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    found = re.search(r"digest ([0-9a-f]{16})", done.stdout)
    assert found is not None
    return found[1], done.stderr


@pytest.mark.parametrize("scenario", ["quickstart", "link-failure", "direct-connect", "planes"])
def test_a_run_without_a_kernel_has_its_digest(scenario: str) -> None:
    digest, errors = said(scenario, "none")
    assert errors.count("the reference engine runs meanwhile") == 1
    assert digest == said(scenario, None)[0]
