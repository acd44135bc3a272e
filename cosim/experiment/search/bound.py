"""What a run takes at least, known without running it: a closed form of what its ranks compute and send, each
message alone on the quickest links there are, and of what they wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cosim.engine.programs import COLLECTIVES, grid_dims
from cosim.engine.records import JobInfo
from cosim.errors import AlgorithmError
from cosim.experiment.build import Built, build
from cosim.experiment.scenario import Job, Scenario
from cosim.experiment.search.collective_time import least_time_ps
from cosim.experiment.search.path import Chart, chart_of, earliest_ends
from cosim.experiment.search.quickest import Quickest, quickest_of
from cosim.experiment.workloads import KEPT
from cosim.pattern.planner import Planner
from cosim.pattern.template import Collective
from cosim.results.summary import BACKGROUND
from cosim.topology.graph import I32, Topology
from cosim.workload.match_messages import peers
from cosim.workload.program import NO_STREAM, Operation, OpKind, Workload
from cosim.workload.table import I64, OperationTable


class Bounds:
    """Computes bounds, keeping what points of a design have in common: workloads, their charts, plans."""

    def __init__(self) -> None:
        self._charts: dict[int, tuple[Workload, Chart | None]] = {}
        self._planners: dict[str, Planner] = {}
        self._collectives: dict[tuple[object, ...], int] = {}

    def build(self, scenario: Scenario) -> Built:
        """The scenario as a run has it, workloads made once.

        Raises
        ------
        InputError
            It can't be built: it does not fit.
        """
        built = build(scenario, KEPT)
        built.network.close()
        return built

    def lower_bound(self, scenario: Scenario, built: Built, measure: str) -> float:
        """No run has less of the measure; 0 where nothing is known of it."""
        if measure not in _OF or scenario.events or not all(map(_never_faster, scenario.jobs)):
            return 0.0
        jobs = [job for job in built.jobs if job.workload.name != BACKGROUND] or [*built.jobs]
        quickest = quickest_of(built.topology) if scenario.network.shares_links() else None
        planner = self._planner(built.planner)
        return _OF[measure]([(job, self._iteration(job, built, planner, quickest)) for job in jobs])

    def _planner(self, planner: Planner) -> Planner:
        """The planner of an equal configuration: it has made plans already."""
        return self._planners.setdefault(repr((planner.config, planner.context)), planner)

    def _iteration(self, job: JobInfo, built: Built, planner: Planner, quickest: Quickest | None) -> float:
        """Picoseconds that an iteration takes on average at least."""
        workload = job.workload
        if id(workload) not in self._charts:
            self._charts[id(workload)] = workload, chart_of(workload)
        chart = self._charts[id(workload)][1]
        if chart is None:  # its iterations overlap
            return 0.0
        table = workload.table
        takes = np.where(table.is_kind(OpKind.COMPUTE, OpKind.MEMORY), table.duration_ps, 0)
        busy = _busy_ps(table, takes)
        arrives = np.zeros(len(table), np.int64)
        if quickest is not None:
            takes = takes + self._collectives_ps(job, built.topology, planner, quickest)
            arrives = _arrives_ps(job, quickest)
        unrolled = min(job.iterations, _UNROLLED)
        ends = earliest_ends(chart, takes, arrives, unrolled)
        if ends is None:
            return float(busy.max(initial=0))
        return float((ends + busy * (job.iterations - unrolled)).max(initial=0)) / job.iterations

    def _collectives_ps(self, job: JobInfo, topology: Topology, planner: Planner, quickest: Quickest) -> I64:
        """What each row that is a collective takes at least: int64[rows]."""
        table, workload = job.workload.table, job.workload
        least = np.zeros(len(table), np.int64)
        rows = np.flatnonzero(table.is_kind(OpKind.COLLECTIVE))
        kinds = np.stack([table.program[rows], table.like[rows], table.size_bytes[rows]], axis=1)
        every, which = np.unique(kinds.astype(np.int64), axis=0, return_inverse=True)
        times = np.zeros(len(every), np.int64)
        groups: dict[tuple[int, Any], list[_Layout]] = {}
        for number, (program, like, size) in enumerate(every.tolist()):
            one = table.prototypes[like]
            named = program, one.axes if one.ranks is None else one.ranks
            if named not in groups:
                ranks = _groups(workload, program, one)
                groups[named] = [] if ranks is None else _layouts(job.endpoints[ranks], topology, quickest)
            found = [
                self._least_ps(planner, quickest, COLLECTIVES.get(one.collective), size, one.root, layout)
                for layout in groups[named]
            ]
            times[number] = min(found, default=0)
        least[rows] = times[which.ravel()]
        return least

    def _least_ps(
        self,
        planner: Planner,
        quickest: Quickest,
        collective: Collective | None,
        size: int,
        root: int,
        layout: _Layout,
    ) -> int:
        key = id(planner), collective, size, root, layout, quickest.rate_bps, quickest.latency_ps
        if collective is None:
            return 0
        if key not in self._collectives:
            try:
                count = len(layout.domain)
                plan = planner.plan(collective, count, size, root=root, dims=layout.dims)
                self._collectives[key] = least_time_ps(plan, np.array(layout.domain), quickest)
            except AlgorithmError:  # the run says so
                self._collectives[key] = 0
        return self._collectives[key]


class _Layout(NamedTuple):
    """How a group lies: for each rank the first one in its scale-up domain, and the grid it fills, if any."""

    domain: tuple[int, ...]
    dims: tuple[int, ...] | None


def _groups(workload: Workload, program: int, operation: Operation) -> I64 | None:
    """The groups that ranks of a program are in for a collective: int64[groups, ranks]; None where some of
    their ranks run another program: those may be there earlier.
    """
    if operation.ranks is not None:
        groups = np.array([operation.ranks], np.int64)
    else:
        groups = workload.mesh.groups(np.flatnonzero(workload.program_of == program), operation.axes)
    return groups if (workload.program_of[groups] == program).all() else None


def _layouts(endpoints: I32, topology: Topology, quickest: Quickest) -> list[_Layout]:
    """The different layouts of groups on endpoints, int32[groups, ranks]."""
    where, found = np.array(quickest.domain)[endpoints], set()
    for row, domain in zip(endpoints, where, strict=True):
        _, first, which = np.unique(domain, return_index=True, return_inverse=True)
        found.add(_Layout(tuple(first[which.ravel()].tolist()), grid_dims(row, topology.dims)))
    return sorted(found, key=repr)


def _arrives_ps(job: JobInfo, quickest: Quickest) -> I64:
    """From when a SEND starts until its message is there, at least: int64[rows]."""
    table, workload = job.workload.table, job.workload
    arrives = np.zeros(len(table), np.int64)
    rows = np.flatnonzero(table.is_kind(OpKind.SEND) & (table.peer < 0))
    for program, like in {*zip(table.program[rows].tolist(), table.like[rows].tolist(), strict=True)}:
        peer = table.prototypes[like].peer
        ranks = np.flatnonzero(workload.program_of == program)
        others = ranks[:0] if peer is None else peers(workload, ranks, peer)
        there = others >= 0
        if there.any():
            sides = quickest.sides(job.endpoints[ranks[there]], job.endpoints[others[there]])
            mine = rows[(table.program[rows] == program) & (table.like[rows] == like)]
            sizes = table.size_bytes[mine]
            arrives[mine] = np.min([quickest.least_ps(sizes, side) for side in np.unique(sides)], axis=0)
    return arrives


_UNROLLED = 2
"""Iterations that are computed; of those after them, each program computes what it computes."""


def _busy_ps(table: OperationTable, takes_ps: I64) -> I64:
    """The most that one stream of each program computes and reads: those come one after the other."""
    in_order = np.array([name != NO_STREAM for name in table.streams], np.bool_)[table.stream]
    rows = np.flatnonzero(in_order)
    sums = np.zeros((table.num_programs, max(1, len(table.streams))), np.int64)
    np.add.at(sums, (table.program[rows], table.stream[rows]), takes_ps[rows])
    most: I64 = sums.max(axis=1)
    return most


def _never_faster(job: Job) -> bool:
    """Whether no computation takes less than the workload says."""
    return job.jitter == 0 and all(one.factor >= 1 for one in job.stragglers)


_Times = Sequence[tuple[JobInfo, float]]
"""Each job, and what its iteration takes."""


def _mean(jobs: _Times) -> float:
    return float(np.mean([time for _, time in jobs]))


def _slowest(jobs: _Times) -> float:
    return max(time for _, time in jobs)


def _makespan(jobs: _Times) -> float:
    return max(job.start_ps + job.iterations * time for job, time in jobs)


_OF: dict[str, Callable[[_Times], float]] = {"iteration": _mean, "slowest": _slowest, "makespan": _makespan}
