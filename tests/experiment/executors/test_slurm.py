"""Sweeps through a Slurm that runs: nothing is lost with a job that is killed, or with who asked."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import cosim
from tests.cli.processes import PATIENCE_S, wait_for
from tests.experiment.executors.cluster import computed, write_sweep
from tests.experiment.executors.slurm_cluster import jobs as queued
from tests.experiment.executors.slurm_cluster import needs_slurm, slurm_cluster
from tests.experiment.executors.test_executors import start, stored

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    needs_slurm()
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


@pytest.fixture
def jobs(tmp_path: Path, slurm: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.setenv("SLURM_CONF", slurm["SLURM_CONF"])
    return {"kind": "slurm", "folder": str(tmp_path / "jobs")}


WAIT = "while kill -0 $PPID; do sleep 1; done"
CANCEL = (
    f"scancel ${{SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}}${{SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}}; {WAIT}"
)
"""Has a run's own job cancelled."""
KILL = f"kill -9 $(ps -o ppid= -p $PPID); {WAIT}"
"""Kills the process of a run's own job, as the system does where memory runs out."""


def test_a_run_that_ends_its_job_ends_no_other(
    tmp_path: Path, jobs: dict[str, object], slurm: dict[str, str]
) -> None:
    """A job of four runs is cancelled in one, without a store: what was lost is run by itself."""
    sweep = cosim.Sweep.load(write_sweep(tmp_path, runs=4))
    plain = cosim.sweep(sweep).trials_csv()
    once = tmp_path / "once"
    cancel = f"test -e {once} || (touch {once}; {CANCEL})"
    fatal = sweep.with_settings({"scenario.jobs[0].placement.command": cancel})
    done = cosim.sweep(fatal, executor={**jobs, "runs_per_job": 4, "retries": 0})
    assert once.exists()
    assert done.trials_csv() == plain
    wait_for("jobs", lambda: not queued(slurm))


def test_a_run_whose_job_is_ended_each_time_stands_in_the_table(
    tmp_path: Path, jobs: dict[str, object]
) -> None:
    what = {"bad": {"jobs.0.placement.command": KILL}, "good": {}}
    sweep = cosim.Sweep.load(write_sweep(tmp_path, runs=2), {"axes": {"what": what}, "seeds": 1})
    done = cosim.sweep(sweep, executor={**jobs, "retries": 0})
    bad, good = done.runs
    assert bad.error.startswith("its job "), bad.error
    assert "FAILED" in bad.error
    assert not good.error


def test_a_run_beyond_its_jobs_time_stands_in_the_table(
    tmp_path: Path, jobs: dict[str, object], slurm: dict[str, str]
) -> None:
    """Its job is warned 100 s before its two minutes are over; what the run started ends with it."""
    what = {"bad": {"jobs.0.placement.command": "sleep 3600"}, "good": {}}
    sweep = cosim.Sweep.load(write_sweep(tmp_path, runs=2), {"axes": {"what": what}, "seeds": 1})
    options = {"timeout_min": 2, "slurm_signal_delay_s": 100}
    done = cosim.sweep(sweep, executor={**jobs, "runs_per_job": 2, "retries": 0, "options": options})
    bad, good = done.runs
    assert "timed-out" in bad.error, bad.error
    assert not good.error
    wait_for("jobs", lambda: not queued(slurm))


def test_a_sweep_goes_on_after_its_client_was_killed(
    tmp_path: Path, jobs: dict[str, object], slurm: dict[str, str]
) -> None:
    sweep = cosim.Sweep.load(write_sweep(tmp_path, runs=6))
    plain = cosim.sweep(sweep).trials_csv()
    (tmp_path / "log").unlink()
    client = start(tmp_path, {**jobs, "runs_per_job": 2})
    wait_for("runs", lambda: computed(tmp_path) >= 1 or client.poll() is not None)
    client.send_signal(signal.SIGKILL)
    client.wait(PATIENCE_S)
    wait_for("jobs", lambda: not queued(slurm))
    assert stored(tmp_path) == 6  # jobs write to the store themselves
    assert start(tmp_path, {**jobs, "runs_per_job": 2}).wait(PATIENCE_S) == 0
    assert computed(tmp_path) == 6
    assert (tmp_path / "out" / "trials.csv").read_text() == plain
