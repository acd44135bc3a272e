"""A store that processes share, and processes that die."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cosim
from cosim.experiment.store.runs import open_store
from tests.cli.processes import PATIENCE_S, wait_for
from tests.experiment.store.questions import Count

SWEEP = """
scenario:
  topology: {kind: ring, endpoints: 8, rate: 80Gbps, latency: 1us}
  network: fair_share
  jobs: [{workload: {kind: collective, collective: all_to_all, ranks: 8, size: 4MB}, jitter: 0.1}]
axes: {iterations: {"jobs.0.iterations": [1, 2, 3, 4, 5, 6]}}
seeds: 2
"""


COUNTING = """
from cosim.experiment.store import trials
inner = trials._simulated
def counted(task):
    with open('simulated', 'a') as file:
        file.write('x')
    return inner(task)
trials._simulated = counted
"""


def start(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    code = f"{COUNTING}from cosim.cli import main; main()"
    command = [sys.executable, "-c", code, "run", "sweep.yaml", "-q", "--store", "store", *arguments]
    return subprocess.Popen(command, cwd=folder, env=os.environ | environment)


def stored(folder: Path) -> list[Path]:
    return [path for path in folder.glob("store/runs/*/*.json") if not path.name.startswith(".")]


def test_two_clients_at_once_have_the_same_and_nothing_is_half_there(tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    clients = [start(tmp_path, "--workers", "1", "--out", name) for name in ("a", "b")]
    for client in clients:
        assert client.wait(PATIENCE_S) == 0
    text = cosim.sweep(cosim.Sweep.load(tmp_path / "sweep.yaml")).trials_csv()
    assert (tmp_path / "a" / "trials.csv").read_text() == (tmp_path / "b" / "trials.csv").read_text() == text
    entries, broken = open_store(tmp_path / "store").entries()
    assert len(entries) == 12
    assert (tmp_path / "simulated").read_text() == "x" * 12  # each by one of them
    assert not broken
    assert open_store(tmp_path / "store").clear() == 0


@pytest.mark.parametrize("after", [1, pytest.param(7, marks=pytest.mark.slow)])
def test_what_was_computed_when_a_client_is_killed_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    client = start(tmp_path, "--workers", "1")
    try:
        wait_for("runs in the store", lambda: len(stored(tmp_path)) >= after or client.poll() is not None)
    finally:
        client.kill()
        client.wait()
    sweep = cosim.Sweep.load(tmp_path / "sweep.yaml")
    whole = cosim.sweep(sweep).trials_csv()
    before = len(stored(tmp_path))
    count = Count(monkeypatch)
    assert cosim.sweep(sweep, store=tmp_path / "store").trials_csv() == whole
    assert count.runs == 12 - before
