"""Operations that wait for earlier iterations, over a network elsewhere: as over one of this process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import cosim
from cosim.protocol.server import Server
from tests.inputs import ROOT

Serve = Callable[..., Server]
LATE = """
topology: {kind: switch, endpoints: 4, rate: 10Gbps, latency: 1us}
network: congestion_aware
release: engine
jobs:
  - iterations: 20
    workload:
      kind: layers
      workers: 4
      plan: data_parallel
      staleness: {first: 1}
      layers:
        - {forward: 1ms, backward: 2ms, parameters: 2MB}
        - {forward: 1ms, backward: 2ms, parameters: 3MB}
"""


def over(server: Server) -> str:
    return LATE.replace("network: congestion_aware", f"network: {{address: '{server.address}'}}")


def test_lags_need_nothing_of_the_network(serve: Serve) -> None:
    assert cosim.run(over(serve())).digest == cosim.run(LATE).digest


@pytest.mark.slow
def test_a_run_with_lags_that_broke_off_goes_on(serve: Serve, tmp_path: Path) -> None:
    scenario, out = tmp_path / "run.yaml", tmp_path / "out"
    scenario.write_text(over(serve()))
    begin, go_on = ["run", str(scenario), "--out", str(out)], ["run", "--resume", str(out)]
    for moment, what in (("20", begin), ("-1", go_on)):
        command = [sys.executable, "-m", "tests.protocol.small_run", moment, *what]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == (0 if moment == "-1" else -signal.SIGKILL), done.stderr
    assert json.loads((out / "summary.json").read_text())["digest"] == cosim.run(LATE).digest
