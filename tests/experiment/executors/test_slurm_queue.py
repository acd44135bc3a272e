"""Slurm's commands, played by a script: what waits for them has an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.errors import SimulationError
from cosim.experiment.executors import slurm_queue
from cosim.experiment.executors.slurm_queue import SlurmQueue


def test_commands_that_never_answer_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("squeue", "scancel"):
        (tmp_path / name).write_text("#!/bin/sh\nexec sleep 1000\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(slurm_queue, "_ANSWER_S", 0.1)
    monkeypatch.setattr(slurm_queue, "_ASK_S", 0.0)

    class Job:
        job_id = "1"

        class paths:  # noqa: N801 - submitit's
            result_pickle = tmp_path / "none"

    queue = SlurmQueue(patience_s=0.0)
    queue.cancel([Job()])
    with pytest.raises(SimulationError, match=r"Slurm doesn't answer: squeue: no answer in 0\.1 s"):
        queue.ended([Job()])
