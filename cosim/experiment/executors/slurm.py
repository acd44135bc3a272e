"""Jobs of Slurm, as arrays; submitit submits them and brings back what they give."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from cosim.errors import InputError
from cosim.experiment.executors.call import RunCall, RunResult
from cosim.experiment.executors.contract import Executor

_LOOK_S = 1.0
"""How often it is looked what has ended."""


class SlurmExecutor(Executor):
    """Job arrays of Slurm, by submitit

    A job needs the same cosim, and the files of the scenario at the same paths.
    """

    folder: Path = Field(
        Path("slurm"), description="what submitit writes for its jobs and they for it; seen by all machines"
    )
    runs_per_job: int = Field(1, ge=1, description="runs that a job does one after the other")
    at_once: int = Field(256, ge=1, description="jobs of an array that run at a time")
    options: dict[str, Any] = Field(
        {}, description="submitit's parameters: slurm_partition, timeout_min, mem_gb, cpus_per_task ..."
    )
    cluster: Literal["slurm", "local"] = Field(
        "slurm", description="local: jobs are processes of this machine, to try settings without Slurm"
    )

    def run(self, calls: Sequence[RunCall]) -> Iterator[tuple[int, RunResult]]:
        """See :class:`Executor`."""
        numbers = range(len(calls))
        parts = [numbers[k : k + self.runs_per_job] for k in range(0, len(calls), self.runs_per_job)]
        jobs = self._submit([[calls[number] for number in part] for part in parts])
        left = dict(zip(jobs, parts, strict=True))
        try:
            while left:
                ended = [job for job in left if job.done()]
                for job in ended:
                    yield from zip(left.pop(job), _results(job, len(calls)), strict=False)
                if not ended:
                    time.sleep(_LOOK_S)
        finally:
            for job in left:
                job.cancel()

    def _submit(self, parts: list[list[RunCall]]) -> list[Any]:
        try:
            import submitit
        except ImportError as error:
            raise InputError("submitit is not installed", hint="pip install 'cosim-net[slurm]'") from error
        try:
            executor = submitit.AutoExecutor(str(self.folder), cluster=self.cluster)
            limits = {"slurm_array_parallelism": self.at_once} if self.cluster == "slurm" else {}
            executor.update_parameters(name="cosim", **limits, **self.options)
            jobs: list[Any] = executor.map_array(_run_calls, parts)
        except (RuntimeError, ValueError, TypeError, NameError, OSError) as error:
            raise InputError(f"Slurm: {error}", hint="executor: {kind: slurm, options: {...}}") from error
        return jobs


def _results(job: Any, count: int) -> list[RunResult]:
    """What a job's calls gave."""
    try:
        error = job.exception()
    except Exception as lost:  # submitit's own, of a job that ended without a word
        error = lost
    if error is None:
        results: list[RunResult] = job.result()
        return results
    return [RunResult.lost_to(f"its job {job.job_id} failed: {str(error).splitlines()[0]}")] * count


def _run_calls(calls: list[RunCall]) -> list[RunResult]:
    return [call() for call in calls]
