"""What is kept when a command is ended, and who is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

OWN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from cosim.cli import main
main()
"""
"""What runs the tests may have been told to ignore signals (``nohup``, ``&``), and its children with it."""
COSIM = [sys.executable, "-c", OWN]
LONG = """
topology: {kind: ring, endpoints: 8, rate: 80Gbps, latency: 1us}
network: fair_share
jobs:
  - workload: {kind: collective, collective: all_to_all, ranks: 8, size: 4MB}
    iterations: 200000
"""


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    (folder / "long.yaml").write_text(LONG)
    process = subprocess.Popen(
        [*COSIM, "run", *arguments], cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(one) for one in found.read_text().split()] if found.exists() else []


def wait_for(what: str, condition: object) -> None:
    assert callable(condition)
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_run_that_is_ended_keeps_what_was_computed(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path, "long.yaml", "--out", "out") as process:
        wait_for("the folder", (tmp_path / "out").exists)
        time.sleep(1.5)  # it compiles, or is under way: both are to end well
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted" in err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert 0 <= len(summary["jobs"][0]["iteration_ps"]) < 200_000
    assert not [*(tmp_path / "out").glob(".*")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_worker_of_a_sweep_outlives_it(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "script.py").write_text(f"""
import cosim
if __name__ == "__main__":
    axes = {{"much": {{"jobs.0.iterations": [1, 200000, 200001, 200002]}}}}
    cosim.sweep({LONG!r}, axes, workers=3)
""")
    process = subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path)
    try:
        wait_for("workers", lambda: len(children(process.pid)) >= 3)
        time.sleep(1.0)
        workers = children(process.pid)
        os.kill(process.pid, number)
        process.wait(timeout=60)
        wait_for("the end of the workers", lambda: all(map(is_gone, workers)))
    finally:
        process.kill()
        process.wait()
