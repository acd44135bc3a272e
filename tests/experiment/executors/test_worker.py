"""A process beside this one that runs calls: what it started ends with it."""

from __future__ import annotations

import pickle
import subprocess

import pytest

from cosim.experiment.executors.worker import WorkerProcess, current_setup
from tests.cli.processes import all_gone, wait_for


def sleeper(seconds: str) -> int:
    """Start a process that nobody waits for; its number."""
    return subprocess.Popen(["sleep", seconds]).pid


@pytest.mark.parametrize("how", ["ended", "let go of"])
def test_what_a_call_started_ends_with_the_worker(how: str) -> None:
    worker = WorkerProcess(current_setup())
    try:
        answer = worker.ask(pickle.dumps((sleeper, "3600")), None)
        assert answer.kind == "value"
        if how == "ended":
            worker.end()
        else:  # as if this process had died
            worker._connection.close()
        wait_for("the sleeper's end", lambda: all_gone([answer.value]))
    finally:
        worker.end()
