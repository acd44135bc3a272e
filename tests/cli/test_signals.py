"""What is kept when a command is ended, and who is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cosim import cli
from cosim.experiment import run as experiment
from cosim.files.folder import MANIFEST
from tests.cli.processes import OWN, PATIENCE_S, all_gone, children, cpu_s, wait_for, wait_until_it_worked

COSIM = [sys.executable, "-c", OWN]
LONG = """
topology: {kind: switch, endpoints: 256, rate: 80Gbps, latency: 1us}
network: fair_share
jobs:
  - workload: {kind: collective, collective: all_to_all, ranks: 256, size: 4MB}
    iterations: 200000
"""
"""65,280 messages an iteration: of what is interrupted, little is to be written."""


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


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, *(pytest.param(one, marks=pytest.mark.slow) for one in (signal.SIGINT, signal.SIGHUP))],
)
def test_a_run_that_is_ended_keeps_what_was_computed(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path, "long.yaml", "--out", "out") as process:
        wait_for("the folder", (tmp_path / "out").exists)
        wait_until_it_worked(process.pid, 0.5)
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, err
    assert "interrupted" in err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert len(summary["jobs"][0]["iteration_ps"]) < 200_000
    assert [file.name for file in (tmp_path / "out").glob(".*")] == [MANIFEST]


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
        wait_for("workers", lambda: sum(cpu_s(one) > 1.0 for one in children(process.pid)) >= 3)
        workers = children(process.pid)
        os.kill(process.pid, number)
        process.wait(timeout=PATIENCE_S)
        wait_for("the end of the workers", lambda: all_gone(workers))
    finally:
        process.kill()
        process.wait()


def test_an_interrupt_while_the_command_is_being_imported_is_one() -> None:
    code = """
import builtins, sys
from cosim.__main__ import main
plain = builtins.__import__
def interrupted(name, *rest, **more):
    if name == "typer":
        raise KeyboardInterrupt
    return plain(name, *rest, **more)
builtins.__import__ = interrupted
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("where", ["app", "run"])
def test_an_interrupt_that_leaves_nothing_is_said_in_a_line(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While the command line is being read, and in a run that has computed nothing."""
    (tmp_path / "long.yaml").write_text(LONG)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(*{"app": (cli, "app"), "run": (experiment, "run")}[where], interrupted)
    monkeypatch.setattr(cli, "keep_when_ended", lambda: None)
    monkeypatch.setattr(sys, "argv", ["cosim", "run", str(tmp_path / "long.yaml")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupt_that_a_finalizer_would_drop_comes_again(number: signal.Signals) -> None:
    """And again: the first of them sends it in the midst of a second one, and that in a weak reference's
    callback. Python drops what is raised in each.
    """
    code = f"""
import os, signal, time, weakref
from cosim.cli.interrupts import keep_when_ended
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
keep_when_ended()
class Thing:
    def __init__(self, end):
        self.end = end
    def __del__(self):
        self.end()
def comes():
    os.kill(os.getpid(), {number.value})
def is_waited_for():
    time.sleep({PATIENCE_S})
try:
    for end in (comes, is_waited_for):
        Thing(end)
    thing = Thing(lambda: None)
    watch = weakref.ref(thing, lambda _: is_waited_for())
    del thing
    is_waited_for()
except KeyboardInterrupt:
    print("ended")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=2 * PATIENCE_S
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_a_plug_in_forks_is_ended_as_without_cosim(number: signal.Signals) -> None:
    """It would go up through the calls that its parent is in, and write what is the parent's."""
    code = f"""
import os, signal, time
from cosim.cli.interrupts import keep_when_ended
signal.signal({number.value}, signal.SIG_DFL)
keep_when_ended()
child = os.fork()
if child == 0:
    time.sleep({PATIENCE_S})
    os._exit(0)
os.kill(child, {number.value})
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.stdout, done.stderr) == (f"{-number}\n", "")
