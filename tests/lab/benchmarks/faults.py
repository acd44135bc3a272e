"""Faults tried, and how each ended: the table that the test run prints, of the tests that make it."""

from __future__ import annotations

import subprocess
import sys

TESTS = (
    "tests/protocol/test_faulty_runs.py",
    "tests/protocol/test_faults.py",
    "tests/protocol/test_tls.py",
    "tests/adapters/test_ns3_session.py",
)
TITLE = "faults tried and how they ended"


def section() -> str:
    """See :mod:`tests.lab.benchmarks.cosim`. Runs the tests."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    begin = next((k for k, line in enumerate(lines) if TITLE in line), None)
    if begin is None:
        return done.stdout + done.stderr
    table = []
    for line in lines[begin + 1 :]:
        table.append(line)
        if "ended as they should" in line:
            break
    return "\n".join([*table, lines[-1]])
