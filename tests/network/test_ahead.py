"""A loop compiled by a second process: it is in the cache afterwards, and no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import PATIENCE_S, is_gone, wait_for

_PROGRAM = """
import os, subprocess, sys, time
from numba import int64, types, typeof
from cosim.network import ahead, jit
from cosim.network.dependencies import close_group
from cosim.network.store import FlowStore

ahead._num_cores = lambda: 2
wanted = types.void(typeof(FlowStore().view()), int64)
started = []
begin = subprocess.Popen.__init__
def noted(self, *given, **named):
    begin(self, *given, **named)
    started.append(self)
subprocess.Popen.__init__ = noted
"""
_TWICE = """
for turn in range(2):
    print(jit.is_missing(close_group, wanted), end=" ")
    with ahead.compiling(close_group, wanted):
        pass
    print(len(started), started[0].returncode)
"""
_BROKEN = """
from pathlib import Path
endless = Path(sys.argv[1])
endless.write_text("#!/bin/sh\\nexec sleep 600\\n")
endless.chmod(0o755)
sys.executable = str(endless)
try:
    with ahead.compiling(close_group, wanted):
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print(started[0].returncode)
"""
_DEAF = """
sys.executable = "/bin/false"
with ahead.compiling(close_group, wanted):
    pass
print(jit.is_missing(close_group, wanted), jit.compiled_for(close_group, wanted).address != 0)
"""
_KILLED = """
with ahead.compiling(close_group, wanted):
    print(started[0].pid, flush=True)
    time.sleep(60)
"""
_IN_TURN = """
from pathlib import Path
from cosim.network.pipeline import Pipeline

compile_core = Pipeline._compile_core
def noted(self):
    print("compiles", flush=True)
    while not Path(sys.argv[1]).exists():
        time.sleep(0.01)
    return compile_core(self)
Pipeline._compile_core = noted
print("begins", flush=True)
jit.compiled_for(close_group, wanted)
print("ends")
"""


def _start(program: str, cache: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _PROGRAM + program, *arguments]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        pytest.param(_TWICE, "True 1 0\nFalse 1 0\n", id="once, then it is in the cache"),
        pytest.param(_BROKEN, "-9\n", id="an error ends it"),
        pytest.param(_DEAF, "True True\n", id="where it fails, it is compiled here"),
    ],
)
def test_a_second_process_compiles(program: str, said: str, tmp_path: Path) -> None:
    """See the cases' names."""
    with _start(program, tmp_path / "cache", str(tmp_path / "endless")) as running:
        assert running.communicate(timeout=PATIENCE_S)[0] == said


def test_what_one_process_compiles_another_waits_for(tmp_path: Path) -> None:
    """The second one begins while the first compiles, and would say so if it compiled, too."""
    go = tmp_path / "go"
    with _start(_IN_TURN, tmp_path / "cache", str(go)) as first:
        assert first.stdout is not None
        assert [first.stdout.readline() for _ in range(2)] == ["begins\n", "compiles\n"]
        with _start(_IN_TURN, tmp_path / "cache", str(go)) as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "begins\n"
            go.touch()
            assert second.communicate(timeout=PATIENCE_S)[0] == "ends\n"
        assert first.communicate(timeout=PATIENCE_S)[0].splitlines()[-1] == "ends"


def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    """Also where that is killed and can't say goodbye."""
    with _start(_KILLED, tmp_path) as running:
        assert running.stdout is not None
        child = int(running.stdout.readline())
        running.send_signal(signal.SIGKILL)
    wait_for("its end", lambda: is_gone(child))
