"""What a run takes at least, known without running it: what its ranks compute and wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

import numpy as np

from cosim.engine.records import JobInfo
from cosim.experiment.build import build
from cosim.experiment.scenario import Scenario
from cosim.experiment.search.path import earliest_ends
from cosim.results.summary import BACKGROUND
from cosim.workload.program import NO_STREAM, OpKind
from cosim.workload.table import I64, OperationTable


def lower_bound(scenario: Scenario, objective: str) -> float:
    """No run has less of the objective; 0 where nothing is known of it.

    Communication takes no time here: computations of a rank in their order, and stages of a pipeline that
    wait for each other (:mod:`.path`).

    Raises
    ------
    InputError
        The scenario can't be built: it does not fit.
    """
    built = build(scenario)
    with closing(built.network):
        jobs = [job for job in built.jobs if job.workload.name != BACKGROUND] or [*built.jobs]
    if objective not in _OF or not all(
        _never_faster(scenario, number) for number in range(len(scenario.jobs))
    ):
        return 0.0
    return _OF[objective](jobs)


_UNROLLED = 2
"""Iterations that are worked out; of those after them, each program computes what it computes."""


def _iteration(job: JobInfo) -> float:
    """Picoseconds that an iteration takes on average at least."""
    table = job.workload.table
    if table.longest_lag:  # its iterations overlap
        return 0.0
    busy = _busy_ps(table)
    unrolled = min(job.iterations, _UNROLLED)
    ends = earliest_ends(job.workload, unrolled)
    if ends is None:
        return float(busy.max(initial=0))
    return float((np.array(ends) + busy * (job.iterations - unrolled)).max(initial=0)) / job.iterations


def _busy_ps(table: OperationTable) -> I64:
    """The most that one stream of each program computes and reads: those come one after the other."""
    takes_time = table.is_kind(OpKind.COMPUTE, OpKind.MEMORY)
    in_order = np.array([name != NO_STREAM for name in table.streams], np.bool_)[table.stream]
    rows = np.flatnonzero(takes_time & in_order)
    sums = np.zeros((table.num_programs, max(1, len(table.streams))), np.int64)
    np.add.at(sums, (table.program[rows], table.stream[rows]), table.duration_ps[rows])
    most: I64 = sums.max(axis=1)
    return most


def _never_faster(scenario: Scenario, number: int) -> bool:
    """Whether no computation takes less than the workload says."""
    job = scenario.jobs[number]
    return job.jitter == 0 and all(one.factor >= 1 for one in job.stragglers) and not scenario.events


def _mean(jobs: Sequence[JobInfo]) -> float:
    return float(np.mean([_iteration(job) for job in jobs]))


def _slowest(jobs: Sequence[JobInfo]) -> float:
    return float(max(_iteration(job) for job in jobs))


def _makespan(jobs: Sequence[JobInfo]) -> float:
    return float(max(job.start_ps + job.iterations * _iteration(job) for job in jobs))


_OF: dict[str, Callable[[Sequence[JobInfo]], float]] = {
    "iteration": _mean,
    "slowest": _slowest,
    "makespan": _makespan,
}
