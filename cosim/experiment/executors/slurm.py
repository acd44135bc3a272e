"""Jobs of Slurm, as arrays; submitit submits them and brings back what they give."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from cosim.errors import InputError, install_extra
from cosim.experiment.executors.call import RunCall, RunResult
from cosim.experiment.executors.contract import Executor
from cosim.experiment.executors.slurm_queue import LocalQueue, SlurmQueue
from cosim.spec import LongPs
from cosim.units import PS_PER_S

_LOOK_S = 1.0
"""How often it is looked what has ended."""
_ARRAY = 1000
"""Jobs of an array: more of them Slurm refuses, where its MaxArraySize is as it comes."""
_HOUR_MIN = 60
"""A job's limit where no other was said. submitit's is five minutes, which ends jobs that are well."""
_DASHES = "-" * 22
"""Around the traceback of what submitit calls a failed job."""


class SlurmExecutor(Executor):
    """Job arrays of Slurm, by submitit

    A job needs the same cosim, and the files of the scenario at the same paths.
    """

    folder: Path = Field(
        Path("slurm"), description="what submitit writes for its jobs and they for it; seen by all machines"
    )
    runs_per_job: int = Field(
        1, ge=1, description="runs that a job does one after the other; more where it takes over 1,000 jobs"
    )
    at_once: int = Field(256, ge=1, description="jobs of an array that run at a time")
    options: dict[str, Any] = Field(
        {}, description="submitit's parameters: slurm_partition, timeout_min (60), mem_gb, cpus_per_task ..."
    )
    patience: LongPs = Field(
        600 * PS_PER_S, gt=0, description="how long Slurm may not answer until it is given up"
    )
    cluster: Literal["slurm", "local"] = Field(
        "slurm", description="local: jobs are processes of this machine, to try settings without Slurm"
    )

    def run(self, calls: Sequence[RunCall]) -> Iterator[tuple[int, RunResult]]:
        """See :class:`Executor`. What was lost with the job of several has a job of its own: one run that
        ends its job ends no other's twice.
        """
        numbers, size = range(len(calls)), max(self.runs_per_job, math.ceil(len(calls) / _ARRAY))
        left = self._submit(calls, [numbers[k : k + size] for k in range(0, len(calls), size)])
        queue = SlurmQueue(self.patience / PS_PER_S) if self.cluster == "slurm" else LocalQueue()
        try:
            while left:
                ended, alone = queue.ended(left), list[Sequence[int]]()
                for job, state in ended.items():
                    part = left.pop(job)
                    for number, result in zip(part, _results(job, state, len(part)), strict=True):
                        if result.is_lost and len(part) > 1:
                            alone.append([number])
                        else:
                            yield number, result
                if alone:
                    left |= self._submit(calls, alone)
                if not ended:
                    time.sleep(_LOOK_S)
        finally:
            queue.cancel(left)

    def _submit(self, calls: Sequence[RunCall], parts: Sequence[Sequence[int]]) -> dict[Any, Sequence[int]]:
        """A job for each part of the calls' numbers."""
        try:
            import submitit
        except ImportError as error:
            raise InputError("submitit is not installed", hint=install_extra("slurm")) from error
        try:
            executor = submitit.AutoExecutor(str(self.folder), cluster=self.cluster)
            limits = {"slurm_array_parallelism": self.at_once} if self.cluster == "slurm" else {}
            options = {"timeout_min": _HOUR_MIN, **limits, **self.options}
            executor.update_parameters(name="cosim", **options)
            jobs = executor.map_array(_run_calls, [[calls[number] for number in part] for part in parts])
        except (RuntimeError, ValueError, TypeError, NameError, OSError) as error:
            raise InputError(f"Slurm: {error}", hint="executor: {kind: slurm, options: {...}}") from error
        return dict(zip(jobs, parts, strict=True))


def _results(job: Any, state: str, count: int) -> list[RunResult]:
    """What a job's calls gave; ``state``: what became of it, if it left nothing."""
    if not state and (error := job.exception()) is None:
        results: list[RunResult] = job.result()
        for file in ("submitted_pickle", "result_pickle", "stdout", "stderr"):
            getattr(job.paths, file).unlink(missing_ok=True)
        return results
    # What the job raised ends a traceback between dashes; one that was ended may have been told why.
    said = (job.stderr() or "") if state else str(error).split(_DASHES)[1]
    last = (said.strip().splitlines() or [""])[-1]
    return [RunResult.lost_to(f"its job {job.job_id} failed: {state} {last}".rstrip())] * count


def _run_calls(calls: list[RunCall]) -> list[RunResult]:
    """Call one after the other. Near the end of its job's time submitit raises in the midst of one."""
    results: list[RunResult] = []
    try:
        results.extend(call() for call in calls)
    except Exception as error:
        lost = RunResult.lost_to(f"its job ended: {error}")
        return results + [lost] * (len(calls) - len(results))
    return results
