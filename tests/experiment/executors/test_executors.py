"""Wherever runs are run, the results are the same; what is lost is run again, what can't be is said."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

import cosim
from cosim.errors import InputError, SimulationError
from cosim.experiment.executors import dask, worker
from cosim.experiment.executors.call import Limits, RunCall
from cosim.experiment.executors.contract import Executor, read_executor, run_all
from cosim.experiment.executors.local import LocalExecutor
from cosim.protocol import adapters
from tests.cli.processes import PATIENCE_S, wait_for
from tests.experiment.executors.cluster import DaskCluster, computed, dask_cluster, write_sweep


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with dask_cluster(tmp_path_factory.mktemp("dask")) as made:
        yield made


def test_the_same_bytes_wherever_runs_are_run(tmp_path: Path, cluster: DaskCluster) -> None:
    sweep = cosim.Sweep.load(write_sweep(tmp_path, runs=6))
    plain = cosim.sweep(sweep).trials_csv()
    there = cosim.sweep(sweep, executor=cluster.settings, store=tmp_path / "store")
    beside = cosim.sweep(sweep, executor={"kind": "local", "workers": 2})
    again = cosim.sweep(sweep, executor=cluster.settings, store=tmp_path / "store")
    assert there.trials_csv() == beside.trials_csv() == again.trials_csv() == plain
    assert computed(tmp_path) == 3 * 6


@pytest.mark.slow
def test_the_same_bytes_from_jobs_and_with_four_workers(tmp_path: Path) -> None:
    sweep = cosim.Sweep.load(write_sweep(tmp_path, runs=6))
    plain = cosim.sweep(sweep).trials_csv()
    jobs = {"kind": "slurm", "cluster": "local", "folder": str(tmp_path / "jobs"), "runs_per_job": 4}
    assert cosim.sweep(sweep, executor=jobs).trials_csv() == plain
    with dask_cluster(tmp_path, workers=4) as cluster:
        assert cosim.sweep(sweep, executor=cluster.settings).trials_csv() == plain


@pytest.mark.parametrize(
    ("settings", "limits", "reason"),
    [
        ({"take": 2_000_000_000}, {"memory": "500MB"}, "needs more memory than it may have"),
        pytest.param(
            {"kill": "always"}, {"retries": 1}, "its process was killed by SIGKILL", marks=pytest.mark.slow
        ),
    ],
)
def test_a_run_beyond_its_limits_is_in_the_table_and_the_others_go_on(
    tmp_path: Path, settings: dict[str, Any], limits: dict[str, Any], reason: str
) -> None:
    sweep = cosim.Sweep.load(
        write_sweep(tmp_path, runs=2),
        {"axes": {"what": {"bad": {}, "good": {"jobs.0.placement": "packed"}}}, "seeds": 1},
    ).with_settings({f"scenario.jobs[0].placement.{name}": value for name, value in settings.items()})
    done = cosim.sweep(sweep, executor={"kind": "local", "workers": 2, **limits}, store=tmp_path / "store")
    assert [trial.error for trial in done.runs] == [reason, ""]
    assert reason in done.trials_csv()
    assert computed(tmp_path) == (limits.get("retries", 0) + 1 if "kill" in settings else "take" in settings)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["dask", "slurm"])
def test_limits_hold_wherever_runs_are_run(tmp_path: Path, cluster: DaskCluster, where: str) -> None:
    """Memory, time, and a process that is killed once; of Slurm's, submitit's own jobs of this machine."""
    jobs = {"kind": "slurm", "cluster": "local", "folder": str(tmp_path / "jobs")}
    executor = cluster.settings if where == "dask" else jobs
    cases: dict[str, dict[str, object]] = {
        "all well": {},
        "too large": {"take": 2_000_000_000},
        "killed once": {"kill": str(tmp_path / "once")},
    }
    axis = {
        name: {f"jobs.0.placement.{key}": value for key, value in settings.items()}
        for name, settings in cases.items()
    }
    sweep = cosim.Sweep.load(write_sweep(tmp_path, runs=2), {"axes": {"what": axis}, "seeds": 1})
    done = cosim.sweep(sweep, executor={**executor, "memory": "500MB", "retries": 1})
    assert {trial.labels[0]: trial.error for trial in done.runs} == {
        "all well": "",
        "too large": "needs more memory than it may have",
        "killed once": "",
    }
    # Alone: on a busy machine whatever has to be done may take longer than a test waits in vain.
    sweep = cosim.Sweep.load(write_sweep(tmp_path, runs=2, sleep=3600), {"seeds": 1})
    done = cosim.sweep(sweep, executor={**executor, "timeout": "2s"})
    assert {trial.error for trial in done.runs} == {"takes longer than the 2 s it may"}


def build_adapter(folder: str) -> str:
    """As a run over ns-3 has it, but that a compiler is stood in for. It isn't through before another process
    has come for the same, where one comes (``several``).
    """
    os.environ["XDG_CACHE_HOME"] = folder
    with Path(folder, "came").open("a") as log:
        log.write(f"{os.getpid()}\n")

    def make(name: str, place: Path) -> None:
        with Path(folder, "builds").open("a") as log:
            log.write(f"{os.getpid()}\n")
        if Path(folder, "several").exists():
            wait_for("another process", lambda: len({*Path(folder, "came").read_text().split()}) > 1)
        made = place / adapters.executable(name).name
        made.parent.mkdir(exist_ok=True)
        made.write_text("")
        made.chmod(0o755)

    with mock.patch.multiple(adapters, missing_packages=lambda _: (), _make=make):
        return str(adapters.build("ns3"))


@pytest.mark.parametrize("where", ["local", "dask"])
def test_an_adapter_is_built_once_a_machine(
    tmp_path: Path, cluster: DaskCluster, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    left = adapters.executable("ns3").parent / "build"  # by a build that was killed
    left.mkdir(parents=True)
    executor: Executor | None = LocalExecutor(workers=2) if where == "local" else None  # runs the first alone
    if where == "dask":
        (tmp_path / "several").touch()
    executor = executor or read_executor(cluster.settings)
    assert executor is not None
    found = dict(run_all(executor, build_adapter, [str(tmp_path)] * 4))
    assert len({result.value for result in found.values()}) == 1
    assert len(found) == 4
    assert len((tmp_path / "builds").read_text().splitlines()) == 1
    assert not left.exists()


def test_a_call_that_takes_too_long_is_ended() -> None:
    result = RunCall(time.sleep, 3600, Limits(0.2, "200 ms"))()
    assert result.failed == "takes longer than the 200 ms it may"
    assert not result.is_lost
    assert RunCall(len, "four", Limits(PATIENCE_S))().value == 4


def test_a_run_whose_process_was_lost_is_run_again(tmp_path: Path) -> None:
    sweep = cosim.Sweep.load(write_sweep(tmp_path, runs=4, kill=str(tmp_path / "once")))
    done = cosim.sweep(sweep, executor={"kind": "local", "workers": 2})
    assert not done.failed
    assert computed(tmp_path) == 5


def start(folder: Path, executor: dict[str, object]) -> subprocess.Popen[bytes]:
    command = [
        *(sys.executable, "-c", "from cosim.cli import main; main()", "run", "sweep.yaml", "-q"),
        *("--store", "store", "--out", "out", "--executor", json.dumps(executor)),
    ]
    with (folder / "said").open("w") as said:
        return subprocess.Popen(command, cwd=folder, stderr=said)


def killed_once(folder: Path, cluster: DaskCluster, who: str, after: int) -> tuple[int, str]:
    """The exit code of a sweep, and what it says, when a process is killed after some runs have begun."""
    client = start(folder, cluster.settings)
    try:
        wait_for("runs", lambda: computed(folder) >= after or client.poll() is not None)
        victim = {"client": client, "worker": cluster.workers[0], "scheduler": cluster.scheduler}[who]
        victim.send_signal(signal.SIGKILL)
        client.wait(PATIENCE_S)
    finally:
        client.kill()
        client.wait()
    return client.returncode, (folder / "said").read_text()


def stored(folder: Path) -> int:
    return len([*folder.glob("store/runs/*/*.json")])


@pytest.mark.slow
@pytest.mark.parametrize(("who", "after"), [("worker", 3), ("scheduler", 2), ("client", 3)])
def test_whoever_is_killed_nothing_computed_is_lost_or_wrong(tmp_path: Path, who: str, after: int) -> None:
    check_killed(tmp_path, who, after)


def check_killed(folder: Path, who: str, after: int) -> int:
    """Kill a worker, the scheduler or the client after some of 12 runs have begun, and go on: how many runs
    were kept when all had ended.
    """
    sweep = cosim.Sweep.load(write_sweep(folder, sleep=0.2))
    plain = cosim.sweep(sweep.with_settings({"scenario.jobs[0].placement.sleep": 0.0})).trials_csv()
    (folder / "log").unlink()
    (folder / "dask").mkdir()
    with dask_cluster(folder / "dask") as cluster:
        code, said = killed_once(folder, cluster, who, after)
        if who == "worker":
            assert code == 0, said
        elif who == "scheduler" and code:
            assert "the same command goes on from there" in said
            assert "Traceback" not in said
        kept = stored(folder)
        assert kept >= after - 2  # of those begun, two may not have ended
    if code:
        (folder / "log").unlink()
        assert start(folder, {"kind": "local", "workers": 1}).wait(PATIENCE_S) == 0
        assert computed(folder) <= 12 - kept, (folder / "log").read_text()
    assert (folder / "out" / "trials.csv").read_text() == plain
    assert stored(folder) == 12
    return kept


@pytest.mark.parametrize(
    ("executor", "message"),
    [
        ("dusk", "there is no executor 'dusk'; did you mean 'dask'"),
        ("dask://10.1.2.3:8786", "not on this machine, and without TLS"),
        ("dask://nowhere", "'nowhere' is not an address"),
        ("{kind: dask, address: '127.0.0.1:1', patience: 1s}", "no Dask scheduler at tcp://127.0.0.1:1"),
        ("{kind: local, timeout: soon}", "timeout"),
        ("{kind: slurm, options: {no_such_option: 1}}", "Slurm"),
    ],
)
def test_mistakes_are_said(tmp_path: Path, executor: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cosim.sweep(cosim.Sweep.load(write_sweep(tmp_path, runs=2)), executor=executor)


def test_workers_without_a_worker_are_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "time", SimpleNamespace(monotonic=count(0, 200).__next__))
    folder = tmp_path / "dask"
    folder.mkdir()
    with (
        dask_cluster(folder, workers=0) as cluster,
        pytest.raises(SimulationError, match="there is no worker"),
    ):
        cosim.sweep(
            cosim.Sweep.load(write_sweep(tmp_path, runs=2)),
            executor={**cluster.settings, "patience": "300s"},
        )


def test_a_worker_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "version", lambda: "0.0.0")
    worker._setup.cache_clear()
    result = RunCall(len, "four", Limits())()
    worker._setup.cache_clear()
    assert "0.0.0 where it was asked" in str(result.error)


@pytest.mark.slow
def test_what_a_call_raises_is_raised_where_it_was_asked_for() -> None:
    result = RunCall(int, "four", Limits())()
    assert isinstance(result.error, ValueError)
    assert "in a worker:" in result.error.__notes__[0]
    assert RunCall(len, "four", Limits())().value == 4
