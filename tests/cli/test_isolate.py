"""What a plug-in does to its process is said, and never looks like success."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cosim.cli import app
from cosim.errors import InputError
from cosim.experiment import run as experiment
from tests.cli.processes import OWN, PATIENCE_S, all_gone, descendants, wait_for

PLACEMENT = """
import os
from pathlib import Path
import numpy as np
from cosim.plugins import Placement

class Mine(Placement):
    '''Does what it is told'''
    how: str
    def choose(self, wanted):
        if self.how == "exit":
            os._exit(0)
        if self.how == "fault":
            os.kill(os.getpid(), 11)
        if self.how == "memory":
            np.ones(1 << 33)
        if self.how == "loop":
            Path("began").touch()
            while True:
                pass
        return np.arange(4, dtype=np.int32)
"""
SCENARIO = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs:
  - workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}
    placement: {plugin: mine.py:Mine, how: fine}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(PLACEMENT)
    (tmp_path / "s.yaml").write_text(SCENARIO)
    return tmp_path


def command(how: str, *more: str) -> list[str]:
    return [
        sys.executable, "-c", OWN, "run", "s.yaml", "--json", "--set", f"jobs.0.placement.how={how}", *more
    ]  # fmt: skip


def ended(folder: Path, how: str, *more: str) -> tuple[int, str, str]:
    done = subprocess.run(
        command(how, *more), cwd=folder, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    return done.returncode, done.stdout, done.stderr


def test_os_exit_in_a_plug_in_is_named_and_no_success(folder: Path) -> None:
    code, out, err = ended(folder, "exit")
    assert (code, out) == (1, "")
    assert (
        err == f"error: {folder}/mine.py:12: calls os._exit(0), which ended cosim; nothing more is written\n"
    )


@pytest.mark.parametrize(
    ("how", "limits", "said"),
    [
        pytest.param("exit", "{}", "before it came to its end", marks=pytest.mark.slow),
        ("fault", "{}", "error: its process was ended by SIGSEGV before it came to its end"),
        pytest.param("memory", "{memory: 2GB}", "mine.py:16: choose: MemoryError", marks=pytest.mark.slow),
        pytest.param(
            "loop", "{timeout: 5s}", "error: takes longer than the 5 s it may", marks=pytest.mark.slow
        ),
    ],
)
def test_what_ends_a_process_beside_is_said(folder: Path, how: str, limits: str, said: str) -> None:
    code, out, err = ended(folder, how, "--isolate", limits, "--out", "out")
    assert code in (1, 2)
    assert out == ""
    assert said in err
    assert "Traceback" not in err
    assert not (folder / "out" / "summary.json").exists()


def test_a_run_beside_is_the_same_run(folder: Path) -> None:
    code, out, _ = ended(folder, "fine", "--isolate", "{}")
    assert code == 0
    assert json.loads(out)["digest"] == experiment.run(folder / "s.yaml").digest


def test_limits_that_are_wrong_are_refused(folder: Path) -> None:
    done = CliRunner().invoke(app, ["run", str(folder / "s.yaml"), "--isolate", "{timeot: 5s}"])
    assert isinstance(done.exception, InputError)
    assert "did you mean 'timeout'?" in str(done.exception)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_who_started_it(folder: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        command("loop", "--isolate", "{}"), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        wait_for("the plug-in", (folder / "began").exists)
        beside = descendants(process.pid)
        assert beside
        os.kill(process.pid, number)
        assert process.wait(PATIENCE_S) in (130, -number)
        wait_for("the other process's end", lambda: all_gone(beside))
