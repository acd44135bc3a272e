"""Which parts of our model a format can say. What it doesn't declare is counted and reported as lost."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np

from cosim.engine.records import JobInfo
from cosim.translation.loss_report import LossReport
from cosim.translation.source import Source
from cosim.workload.program import COMM_STREAM, COMPUTE_STREAM, NO_STREAM, Operation, OpKind


class Says(Enum):
    """A part of the model: declared by a format in ``says``, or reported as lost where it is used."""

    DEPENDENCIES = "dependencies"
    COMPUTE = "computations"
    MEMORY = "memory accesses"
    SHARED_MEMORY = "accesses that wait for others at a shared memory"
    COLLECTIVES = "collectives"
    ALGORITHMS = "algorithms of collectives"
    GROUPS = "groups of less than all ranks"
    ROOTS = "roots other than the first rank"
    MESSAGES = "sends and receives"
    OFFSETS = "peers by mesh offset"
    TAGS = "tags"
    CHANNELS = "channels"
    STREAMS = "streams of other names"
    RENDEZVOUS = "rendezvous"
    ENDPOINT_DELAY = "endpoint delay"
    REDUCTION = "time of reductions"
    SEVERAL_JOBS = "jobs beside the first"
    ITERATIONS = "iterations after the first"
    START = "later starts of jobs"
    PRIORITY = "priorities"
    WEIGHT = "weights"
    PLACEMENT = "ranks on another endpoint than their number"
    TOPOLOGY = "topology"
    NETWORK = "network model"
    NAMES = "names"
    PHASES = "phases"
    FLOPS = "FLOPs and bytes behind computations"
    MESH = "mesh axes"


LABELS = frozenset({Says.NAMES, Says.PHASES, Says.FLOPS, Says.MESH})
"""No result depends on these: without them the files are short of labels, not wrong."""

OUTSIDE = frozenset({Says.TOPOLOGY, Says.NETWORK})
"""Not traffic: most targets are given their own."""

_USUAL = {COMPUTE_STREAM, COMM_STREAM, NO_STREAM}

_OF_OPERATION: dict[Says, Callable[[Operation], bool]] = {
    Says.DEPENDENCIES: lambda op: bool(op.deps),
    Says.COMPUTE: lambda op: op.kind is OpKind.COMPUTE,
    Says.MEMORY: lambda op: op.kind is OpKind.MEMORY,
    Says.COLLECTIVES: lambda op: op.kind is OpKind.COLLECTIVE,
    Says.ALGORITHMS: lambda op: op.kind is OpKind.COLLECTIVE,
    Says.GROUPS: lambda op: op.kind is OpKind.COLLECTIVE and (op.ranks is not None or bool(op.axes)),
    Says.ROOTS: lambda op: op.kind is OpKind.COLLECTIVE and op.root != 0,
    Says.MESSAGES: lambda op: op.kind in (OpKind.SEND, OpKind.RECV),
    Says.OFFSETS: lambda op: op.peer is not None and op.peer.axis is not None,
    Says.CHANNELS: lambda op: op.channel != 0,
    Says.TAGS: lambda op: op.kind in (OpKind.SEND, OpKind.RECV) and op.tag != 0,
    Says.STREAMS: lambda op: op.stream not in _USUAL,
    Says.NAMES: lambda op: bool(op.name),
    Says.PHASES: lambda op: bool(op.phase),
    Says.FLOPS: lambda op: bool(op.flops or op.bytes_moved),
}


def _of_job(part: Says, job: JobInfo, source: Source) -> int:
    collectives = _count(job, _OF_OPERATION[Says.COLLECTIVES])
    config = source.planner.config
    match part:
        case Says.RENDEZVOUS:
            return _count(job, lambda op: op.kind is OpKind.SEND) if job.workload.rendezvous else 0
        case Says.SHARED_MEMORY:
            shared = job.devices is not None and bool((job.devices[job.endpoints] >= 0).any())
            shared |= job.memory_nodes is not None
            return _count(job, lambda op: op.access != "") if shared else 0
        case Says.ENDPOINT_DELAY:
            return collectives if config.endpoint_delay else 0
        case Says.REDUCTION:
            reducing = ("all_reduce", "reduce_scatter")
            return (
                _count(job, lambda op: op.collective in reducing) if config.reduction_rate is not None else 0
            )
        case Says.ITERATIONS:
            return job.iterations - 1
        case Says.START:
            return int(job.start_ps > 0)
        case Says.PRIORITY:
            return int(job.priority != 0)
        case Says.WEIGHT:
            return int(job.weight != 1)
        case Says.PLACEMENT:
            return int((job.endpoints != np.arange(len(job.endpoints))).sum())
        case Says.MESH:
            return len(job.workload.mesh.axes) if len(job.workload.mesh.axes) > 1 else 0
    return 0


def count(part: Says, source: Source) -> int:
    """How often the scenario uses a part: operations (each rank counted), jobs, ranks or iterations."""
    if part in _OF_OPERATION:
        return count_operations(source, _OF_OPERATION[part])
    match part:
        case Says.SEVERAL_JOBS:
            return len(source.jobs) - 1
        case Says.TOPOLOGY | Says.NETWORK:
            return 1
    return sum(_of_job(part, job, source) for job in source.jobs)


def count_operations(source: Source, chosen: Callable[[Operation], bool]) -> int:
    """How many operations of one iteration are ``chosen``, each rank counted."""
    return sum(_count(job, chosen) for job in source.jobs)


def _count(job: JobInfo, uses: Callable[[Operation], bool]) -> int:
    ranks = np.bincount(job.workload.program_of, minlength=len(job.workload.programs))
    return sum(
        int(number) * sum(map(uses, program.operations))
        for program, number in zip(job.workload.programs, ranks, strict=True)
    )


def report_unsaid(source: Source, says: frozenset[Says], report: LossReport) -> None:
    """Report every part that is used and not in ``says``, with how often."""
    for part in Says:
        used = 0 if part in says else count(part, source)
        if used and part in OUTSIDE:
            report.left_out(part.value, used, "the target has its own")
        elif used and part in LABELS:
            report.left_out(part.value, used)
        elif used:
            report.lost(part.value, used)
