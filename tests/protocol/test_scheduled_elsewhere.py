"""Jobs that a scheduler directs, over a network elsewhere: the same as over one of this process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import cosim
from cosim.errors import ScenarioError
from cosim.protocol.server import Server
from tests.inputs import ROOT
from tests.protocol.small_run import SCENARIO

Serve = Callable[..., Server]
QUEUED = f"{SCENARIO}scheduler: cassini\nqueue: {{backfill: true}}\nrelease: engine\n"


def over(server: Server, text: str = QUEUED) -> str:
    return text.replace("network: congestion_aware", f"network: {{address: '{server.address}'}}")


def test_shifts_and_a_queue_need_nothing_of_the_network(serve: Serve) -> None:
    assert cosim.run(over(serve())).digest == cosim.run(QUEUED).digest


def test_paths_are_refused_by_name(serve: Serve) -> None:
    with pytest.raises(ScenarioError, match="Crux pins paths, which") as refused:
        cosim.run(over(serve(), QUEUED.replace("cassini", "crux")))
    assert refused.value.location is not None
    assert refused.value.location.key == "scheduler"


@pytest.mark.slow
def test_a_run_that_broke_off_goes_on_as_it_was_scheduled(serve: Serve, tmp_path: Path) -> None:
    scenario, out = tmp_path / "run.yaml", tmp_path / "out"
    scenario.write_text(over(serve()))
    begin, go_on = ["run", str(scenario), "--out", str(out)], ["run", "--resume", str(out)]
    for moment, what in (("20", begin), ("150", go_on), ("-1", go_on)):
        command = [sys.executable, "-m", "tests.protocol.small_run", moment, *what]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == (0 if moment == "-1" else -signal.SIGKILL), done.stderr
    assert json.loads((out / "summary.json").read_text())["digest"] == cosim.run(QUEUED).digest
