"""Random jobs that can end: workloads, the fabrics that they run on, algorithms for their collectives.

A job is a list of steps that all its ranks know; each rank runs those that concern it. Operations of a
communication stream are chained, so that all ranks have their collectives in the same order, and a
message has a tag of its own; so nothing waits in a circle, whatever the times. Sizes, rates and durations
come from small sets: ties are the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cosim.context import Context
from cosim.engine.programs import COLLECTIVES, grid_dims
from cosim.engine.records import CollectiveRecord, JobInfo
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.planner import Planner
from cosim.topology.graph import Topology
from cosim.topology.grid import Dimension, grid_topology
from cosim.topology.leaf_spine import LeafSpine
from cosim.units import PS_PER_NS, PS_PER_US
from cosim.workload.program import (
    COMPUTE_STREAM,
    NO_STREAM,
    DeviceMesh,
    Operation,
    OpKind,
    Peer,
    Program,
    Workload,
)

RATES = (400e9, 400e9, 8e9)
LATENCIES = (0, 500 * PS_PER_NS, PS_PER_US)
DURATIONS = (0, 0, 1, PS_PER_NS, PS_PER_US, PS_PER_US, 3 * PS_PER_US)
SIZES = (0, 1, 7, 4096, 65536, 65536, 1 << 20)
FLAT = ("ring", "ring", "direct", "halving_doubling", "double_binary_tree")
FABRICS = ("Ring", "Switch", "leaf_spine", "grid", "grid")
KINDS = ("all_reduce", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "barrier")


@dataclass(frozen=True, eq=False, repr=False)
class JobMix:
    """What :func:`cosim.engine.replay.replay` needs, but for the network: ``repr`` shows every operation."""

    topology: Topology
    jobs: tuple[JobInfo, ...]
    planner: Planner

    def planned_bytes(self, record: CollectiveRecord) -> int:
        """Bytes that a collective of one of the jobs moves, by its plan; any turn moves as many."""
        one = self.jobs[record.job]
        operation = next(
            operation
            for operation in one.workload.program(min(record.ranks)).operations
            if operation.name == record.name
        )
        dims = grid_dims(one.endpoints[list(record.ranks)], self.topology.dims)
        kind = COLLECTIVES[record.collective]
        size = record.size_bytes
        return self.planner.plan(kind, len(record.ranks), size, root=operation.root, dims=dims).total_bytes

    def __repr__(self) -> str:
        lines = [f"{self.topology.name}; {self.planner.config!r}"]
        for one in self.jobs:
            head = (
                f"{one.workload.mesh} on {one.endpoints.tolist()} x {one.iterations} from {one.start_ps} ps"
            )
            lines.append(f"{head}, weight {one.weight}, rendezvous {one.workload.rendezvous}")
            lines += [
                f"  rank {rank}: {operation}"
                for rank in range(one.workload.world_size)
                for operation in one.workload.program(rank).operations
            ]
        return "\n".join(lines)


@st.composite
def fabrics(draw: st.DrawFn, kinds: Sequence[str] = FABRICS) -> Topology:
    """8 endpoints of a kind: a grid is 4 x 2, ``hosts`` are two of 4 GPUs behind a leaf-spine."""
    rate, latency = draw(st.sampled_from(RATES)), draw(st.sampled_from(LATENCIES))
    kind = draw(st.sampled_from(kinds))
    if kind == "hosts":
        hosts = {
            "gpus": 4, "nvlink_rate": "1600Gbps", "nvlink_latency": f"{draw(st.sampled_from(LATENCIES))}ps",
            "nics": draw(st.sampled_from((1, 4))), "nic_rate": f"{rate} bps",
        }  # fmt: skip
        tree = {"leaves": 2, "spines": 2, "endpoints_per_leaf": 4, "latency": f"{latency}ps", "hosts": hosts}
        return LeafSpine.model_validate(tree).build(Context(seed=draw(st.integers(0, 3))))
    if kind == "leaf_spine":
        settings: dict[str, Any] = {
            "leaves": 4, "spines": 2, "endpoints_per_leaf": 2, "rate": f"{rate} bps",
            "latency": f"{latency}ps", "oversubscription": 2,
            "routing": draw(st.sampled_from(("ecmp", "shortest"))),
        }  # fmt: skip
        return LeafSpine.model_validate(settings).build(Context(seed=draw(st.integers(0, 3))))
    if kind == "Ring":
        return grid_topology([Dimension("Ring", 8, rate, latency)])
    if kind == "Switch":
        return grid_topology([Dimension("Switch", 8, rate, latency)])
    return grid_topology([Dimension("Ring", 4, rate, latency), Dimension("Switch", 2, rate / 2, latency)])


@st.composite
def collective_configs(draw: st.DrawFn, grid: bool) -> CollectiveConfig:
    """Algorithms for groups of 1, 2, 4 or 8 ranks; by dimension where all groups are grids."""
    some = tuple(name for name in FLAT if name != "double_binary_tree")  # that one knows all-reduce only

    def choice(*names: str) -> Any:
        if grid and draw(st.booleans()):
            return [draw(st.sampled_from([n for n in names if n in some])) for _ in range(2)]
        return draw(st.sampled_from(names))

    settings: dict[str, Any] = {
        "all_reduce": choice(*FLAT),
        "all_gather": choice(*some),
        "reduce_scatter": choice(*some),
        "all_to_all": choice("direct", "ring"),
        "endpoint_delay": draw(st.sampled_from(("0", "10ns"))),
        "splits": draw(st.integers(1, 4)),
        "active_chunks": draw(st.integers(1, 3)),
        "queues": draw(st.integers(1, 2)),
        "sizing": draw(st.sampled_from(("exact", "floor"))),
        "optimization": draw(st.sampled_from(("local_bw_aware", "baseline"))),
    }
    if draw(st.booleans()):
        settings["reduction_rate"] = "1600GB/s"
    return CollectiveConfig.model_validate(settings)


@st.composite
def workloads(draw: st.DrawFn, world_size: int) -> Workload:
    """Up to seven steps: computations, collectives over axes of a dp x tp mesh, messages along an axis."""
    steps = _Steps(draw, world_size)
    for number in range(draw(st.integers(1, 7))):
        what = draw(st.sampled_from((steps.compute, steps.collective, steps.collective, steps.message)))
        what(number, draw(st.sampled_from(("comm", "comm", "other"))))
    programs = tuple(Program(f"program {rank}", tuple(ops)) for rank, ops in enumerate(steps.programs))
    program_of = np.arange(world_size, dtype=np.int32)
    return Workload("work", steps.mesh, programs, program_of, rendezvous=draw(st.booleans()))


class _Steps:
    """Programs of ranks, to which steps are added one after another."""

    def __init__(self, draw: st.DrawFn, world_size: int) -> None:
        tp = draw(st.sampled_from([n for n in (1, 2, 4) if n <= world_size]))
        self.mesh = DeviceMesh({"dp": world_size // tp, "tp": tp})
        self.programs: list[list[Operation]] = [[] for _ in range(world_size)]
        self._draw = draw
        self._last: list[dict[str, int]] = [{} for _ in range(world_size)]

    def _free(self, rank: int) -> tuple[int, ...]:
        """Any operations that the rank has so far."""
        return tuple(d for d in range(len(self.programs[rank])) if self._draw(st.integers(0, 3)) == 0)

    def _chained(self, rank: int, stream: str) -> tuple[int, ...]:
        """The same, and the last of the stream: all ranks have its operations in one order."""
        chosen = {*self._free(rank)}
        if stream in self._last[rank]:
            chosen.add(self._last[rank][stream])
        self._last[rank][stream] = len(self.programs[rank])
        return tuple(sorted(chosen))

    def compute(self, step: int, _stream: str) -> None:
        """Every rank computes, some for longer."""
        base = self._draw(st.sampled_from(DURATIONS))
        skew = self._draw(st.sampled_from((0, 0, 1, PS_PER_US)))
        for rank, program in enumerate(self.programs):
            duration, before = base + skew * (rank % 3), self._free(rank)
            program.append(
                Operation(f"compute {step}", OpKind.COMPUTE, COMPUTE_STREAM, before, duration_ps=duration)
            )

    def collective(self, step: int, stream: str) -> None:
        """Every group of some axes has a collective; no axes: all ranks."""
        axes = self._draw(st.sampled_from(((), ("dp",), ("tp",), ("dp", "tp"))))
        kind, size = self._draw(st.sampled_from(KINDS)), self._draw(st.sampled_from(SIZES))
        size = 0 if kind == "barrier" else size
        if kind == "all_gather" and size:
            size = max(size, 4)  # floor sizing wants a byte for each of at most four chunks
        shared: dict[str, Any] = {"collective": kind, "axes": axes, "size_bytes": size}
        for rank, program in enumerate(self.programs):
            before = self._chained(rank, stream)
            program.append(Operation(f"{kind} {step}", OpKind.COLLECTIVE, stream, before, **shared))

    def message(self, step: int, stream: str) -> None:
        """Every rank sends to the one so many places on along an axis, where there is one."""
        axis = self._draw(st.sampled_from(("dp", "tp")))
        shared: dict[str, Any] = {"size_bytes": self._draw(st.sampled_from(SIZES)), "tag": step}
        hop = self._draw(st.sampled_from((1, -1, 2)))
        for rank, program in enumerate(self.programs):
            there = self.mesh.coordinates(rank)
            there[axis] += hop
            if not 0 <= there[axis] < self.mesh.axes[axis]:
                continue
            other = self.mesh.rank(there)
            before = self._chained(rank, stream)
            program.append(Operation(f"send {step}", OpKind.SEND, stream, before, peer=Peer(other), **shared))
            before = self._free(other)
            self.programs[other].append(
                Operation(f"recv {step}", OpKind.RECV, NO_STREAM, before, peer=Peer(rank), **shared)
            )


@st.composite
def job_mixes(draw: st.DrawFn, kinds: Sequence[str] = FABRICS) -> JobMix:
    """One to three jobs, on any endpoints, several of them on the same ones too."""
    topology = draw(fabrics(kinds))
    grid = len(topology.dims) == 2 and draw(st.booleans())
    jobs = []
    for number in range(draw(st.integers(1, 3))):
        size = 8 if grid else draw(st.sampled_from((2, 4, 8)))
        work = draw(workloads(size))
        endpoints = np.arange(8) if grid else np.array(draw(st.permutations(range(8))))[:size]
        if grid:  # so that every group is a full grid of the topology's dimensions
            tp = work.mesh.axes["tp"]
            grid = tp in (1, 4)
        jobs.append(
            JobInfo(
                name=f"job {number}",
                workload=work,
                endpoints=endpoints.astype(np.int32),
                iterations=draw(st.integers(1, 3)),
                start_ps=draw(st.sampled_from((0, 0, PS_PER_US, 17 * PS_PER_NS))),
                weight=draw(st.sampled_from((1.0, 1.0, 2.0))),
                priority=draw(st.integers(0, 1)),
            )
        )
    return JobMix(topology, tuple(jobs), Planner(draw(collective_configs(grid))))
