"""Random jobs to translate, and when their operations end if only their messages are replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cosim.engine.records import JobInfo, Records
from cosim.engine.replay import replay
from cosim.network.simulator import NetworkSimulator
from cosim.pattern.planner import Planner
from cosim.testing.strategies.jobs import JobMix as World
from cosim.testing.strategies.jobs import job_mixes as worlds
from cosim.testing.strategies.jobs import workloads
from cosim.topology.graph import Topology
from cosim.translation.flat.view import FlatView, StreamOrder
from cosim.translation.loss_report import LossReport
from cosim.translation.source import Source
from tests.engine.worlds import (
    NETWORKS,
    collective,
    compute,
    config,
    job,
    one_dimension,
    recv,
    send,
    workload,
)
from tests.translation.flat_workload import flat_workload

__all__ = [
    "NETWORKS", "Ends", "Model", "World", "collective", "compute", "config", "engine_ends", "fixed",
    "flat_ends", "job", "one_dimension", "recv", "send", "source_of", "workload", "workloads", "world_source",
    "worlds",
]  # fmt: skip

Model = Callable[[], NetworkSimulator]
Ends = dict[tuple[int, int, int, int], int]
"""(job, iteration, rank, operation) -> when it ended."""


def source_of(topology: Topology, jobs: tuple[JobInfo, ...], planner: Planner, model: Model) -> Source:
    def run() -> Records:
        return replay(topology, model(), jobs, planner, record_messages=True)

    return Source("world", topology, jobs, planner, run)


def world_source(world: World, model: Model) -> Source:
    return source_of(world.topology, world.jobs, world.planner, model)


def engine_ends(source: Source, model: Model) -> Ends:
    ops = replay(source.topology, model(), source.jobs, source.planner).ops
    columns = (ops.job, ops.iteration, ops.rank, ops.op, ops.end_ps)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {(job, iteration, rank, op): end for job, iteration, rank, op, end in rows}


def flat_ends(source: Source, model: Model, order: StreamOrder = "program") -> Ends:
    """The same from the message level: computations, sends and receives only, no streams, no iterations."""
    view = FlatView(source, order)
    jobs = [
        replace(info, workload=flat_workload(view, number), iterations=1, start_ps=0)
        for number, info in enumerate(source.jobs)
    ]
    ops = replay(source.topology, model(), jobs, Planner()).ops
    ended = [np.zeros((0, 0), np.int64)] * len(jobs)
    for number, info in enumerate(jobs):
        mine = ops.job == number
        longest = max(len(program.operations) for program in info.workload.programs)
        ended[number] = np.zeros((info.workload.world_size, longest), np.int64)
        ended[number][ops.rank[mine], ops.op[mine]] = ops.end_ps[mine]
    return {
        (number, part.iteration, rank, op): max((int(ended[number][rank, end]) for end in ends), default=0)
        for number, info in enumerate(source.jobs)
        for rank in range(info.workload.world_size)
        for part in view.parts(number, rank)
        for op, ends in enumerate(part.ends)
    }


def fixed(source: Source) -> LossReport:
    """What the message level had to fix."""
    report = LossReport("flat")
    FlatView(source).report_fixed(report)
    return report
