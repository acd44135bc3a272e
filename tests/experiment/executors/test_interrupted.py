"""Ctrl-C in a terminal reaches all processes there: a sweep on Dask ends without a word of theirs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import OWN, PATIENCE_S, all_gone, children, descendants, is_gone, wait_for
from tests.experiment.executors.cluster import write_sweep

pytest.importorskip("distributed", reason="pip install '.[dask]'")
COMMAND = [sys.executable, "-c", OWN, "run"]
DASK = ["--executor", "{kind: dask, workers: 2}"]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "started"), [(signal.SIGTERM, 1), (signal.SIGINT, 5)])
def test_it_ends_without_a_traceback_and_nobody_is_left(
    tmp_path: Path, number: signal.Signals, started: int
) -> None:
    """Of five processes four are workers and their runs: the sweep is in the midst of it."""
    sweep = write_sweep(tmp_path, runs=200)
    process = subprocess.Popen(
        [*COMMAND, str(sweep), "-q", *DASK], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        wait_for("processes", lambda: is_gone(process.pid) or len(descendants(process.pid)) >= started)
        below = descendants(process.pid)
        assert children(process.pid), "it ended before it was ended"
        os.killpg(process.pid, number)
        _, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, err
    assert "Traceback" not in err, err
    assert "distributed" not in err, err
    assert err.startswith("interrupted"), err
    assert err.count("\n") == 1, err
    wait_for("the end of those that it started", lambda: all_gone(below))
