"""Small workloads for the engine, and networks that stand in front of another to watch or to vary it."""

from __future__ import annotations

import faulthandler
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from cosim.engine.records import JobInfo, Records
from cosim.engine.replay import Replay, replay
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowBatch, FlowGroup, FlowTable
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.simulator import Advance, NetworkSimulator
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.planner import Planner
from cosim.testing.recorder import Recording
from cosim.topology.graph import Topology
from cosim.topology.grid import Dimension, Kind, grid_topology
from cosim.units import NEVER, PS_PER_NS
from cosim.workload.program import (
    COMM_STREAM,
    COMPUTE_STREAM,
    NO_STREAM,
    DeviceMesh,
    Operation,
    OpKind,
    Peer,
    Program,
    Workload,
)

NETWORKS: dict[str, type[NetworkSimulator]] = {
    "congestion_unaware": CongestionUnawareNetwork,
    "congestion_aware": CongestionAwareNetwork,
    "fair_share": FairShareNetwork,
}
RATE_BPS = 400e9
"""50 bytes per ns."""
LATENCY_PS = 500 * PS_PER_NS


@pytest.fixture(autouse=True)
def never_hangs() -> Iterator[None]:
    """End the test process, with a traceback, if a test takes two minutes: compiled loops included."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def one_dimension(
    kind: Kind, size: int, rate_bps: float = RATE_BPS, latency_ps: int = LATENCY_PS
) -> Topology:
    """``kind`` is Ring, FullyConnected or Switch."""
    return grid_topology([Dimension(kind, size, rate_bps, latency_ps)])


def compute(duration_ps: int, *deps: int, stream: str = COMPUTE_STREAM, name: str = "compute") -> Operation:
    return Operation(name, OpKind.COMPUTE, stream, deps, duration_ps=duration_ps)


def collective(
    size_bytes: int,
    *deps: int,
    kind: str = "all_reduce",
    axes: tuple[str, ...] = (),
    ranks: tuple[int, ...] | None = None,
    stream: str = COMM_STREAM,
    name: str = "collective",
    root: int = 0,
) -> Operation:
    return Operation(
        name, OpKind.COLLECTIVE, stream, deps, collective=kind, axes=axes, ranks=ranks,
        size_bytes=size_bytes, root=root,
    )  # fmt: skip


def send(
    to: int, size_bytes: int, *deps: int, tag: int = 0, stream: str = COMM_STREAM, name: str = "send"
) -> Operation:
    return Operation(name, OpKind.SEND, stream, deps, size_bytes=size_bytes, peer=Peer(to), tag=tag)


def recv(source: int, size_bytes: int, *deps: int, tag: int = 0, name: str = "recv") -> Operation:
    return Operation(name, OpKind.RECV, NO_STREAM, deps, size_bytes=size_bytes, peer=Peer(source), tag=tag)


def workload(
    *operations: Sequence[Operation], mesh: Mapping[str, int] | None = None, rendezvous: bool = False
) -> Workload:
    """Rank r runs ``operations[r]``; with a mesh and one list, every rank runs that."""
    world = DeviceMesh(mesh if mesh is not None else {"rank": len(operations)})
    programs = tuple(Program(f"program {number}", tuple(ops)) for number, ops in enumerate(operations))
    alike = len(programs) == 1
    program_of = np.zeros(world.world_size, np.int32) if alike else np.arange(len(programs), dtype=np.int32)
    return Workload("work", world, programs, program_of, rendezvous=rendezvous)


def job(work: Workload, endpoints: Sequence[int] | None = None, **settings: Any) -> JobInfo:
    """On endpoints 0, 1, ... unless told; one iteration from 0 unless told."""
    places = np.arange(work.world_size) if endpoints is None else np.array(endpoints)
    return JobInfo(**{
        "name": "job", "workload": work, "endpoints": places.astype(np.int32), "iterations": 1,
        "start_ps": 0, **settings,
    })  # fmt: skip


def config(**settings: Any) -> CollectiveConfig:
    return CollectiveConfig.model_validate(settings)


def run(
    topology: Topology,
    *jobs: JobInfo,
    network: NetworkSimulator | None = None,
    collectives: CollectiveConfig | Planner | None = None,
    **settings: Any,
) -> Records:
    """A replay, on ``congestion_aware`` unless told."""
    planner = collectives if isinstance(collectives, Planner) else Planner(collectives)
    return replay(topology, network or CongestionAwareNetwork(), jobs, planner, **settings)


def times(records: Records) -> dict[tuple[int, int, int, int], tuple[int, int]]:
    """(job, iteration, rank, op) -> (start, end)."""
    ops = records.ops
    columns = (ops.job, ops.iteration, ops.rank, ops.op, ops.start_ps, ops.end_ps)
    return {(j, i, r, o): (s, e) for j, i, r, o, s, e in zip(*(c.tolist() for c in columns), strict=True)}


class Flow(NamedTuple):
    """A completed flow: key, endpoints, start and completion."""

    key: tuple[int, int]
    src: int
    dst: int
    size_bytes: int
    start_ps: int
    time_ps: int


def flows_of(recording: Recording) -> list[Flow]:
    """Every flow that completed, in the order of the network's reports."""
    groups: dict[int, FlowGroup] = {}
    flows = []
    for call in recording.calls:
        groups.update({group.handle: group for group in call.flows.groups})
        done = call.answer.completions
        columns = (done.handle, done.index, done.start_ps, done.time_ps)
        for handle, index, start, time in zip(*(c.tolist() for c in columns), strict=True):
            group = groups[handle]
            table, row = group.table, int(group.table.row_of(np.array([index]))[0])
            flows.append(
                Flow(
                    (group.key[0], group.key[1] + index),
                    int(group.endpoints[table.src[row]]),
                    int(group.endpoints[table.dst[row]]),
                    int(table.size_bytes[row]),
                    start,
                    time,
                )
            )
    return flows


class Watched(ForwardingNetwork):
    """Asserts the seam's rules at each advance, and SimPy's ``now`` against the grant; counts open groups."""

    def __init__(self, inner: NetworkSimulator) -> None:
        super().__init__(inner)
        self.replay: Replay | None = None
        self.granted = 0
        self.left: dict[int, int] = {}
        self.most_open = 0
        self.is_closed = False

    @property
    def now(self) -> int:
        return int(self.replay.environment.now) if self.replay is not None else 0

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        assert self.now <= self.granted <= horizon_ps
        for group in flows.groups:
            assert group.handle not in self.left, "a handle that is still in use"
            self.left[group.handle] = group.table.num_flows
        self.most_open = max(self.most_open, len(self.left))
        assert (flows.start_ps >= self.granted).all()
        assert (flows.cause_ps <= flows.start_ps).all()
        assert all(handle in self.left for handle in flows.start_handle.tolist())
        answer = super().advance(flows, horizon_ps)
        done = answer.completions
        assert self.granted <= answer.granted_ps <= horizon_ps
        assert (self.granted <= done.time_ps).all()
        assert (done.time_ps <= answer.granted_ps).all()
        assert (done.start_ps <= done.time_ps).all()
        assert (done.since() <= done.time_ps).all()
        for handle in done.handle.tolist():
            self.left[handle] -= 1
            if self.left[handle] == 0:
                del self.left[handle]
        self.granted = answer.granted_ps
        return answer

    def close(self) -> None:
        self.is_closed = True
        super().close()


class Shuffled(ForwardingNetwork):
    """Gives groups and starts, and reports completions, in random order."""

    def __init__(self, inner: NetworkSimulator, seed: int) -> None:
        super().__init__(inner)
        self._random = random.Random(seed)

    def _order(self, count: int) -> list[int]:
        return self._random.sample(range(count), count)

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        groups = [flows.groups[k] for k in self._order(len(flows.groups))]
        at = self._order(len(flows.start_handle))
        starts = (flows.start_handle[at], flows.start_index[at], flows.start_ps[at], flows.cause_ps[at])
        granted, done = self.inner.advance(FlowBatch(groups, *starts), horizon_ps)
        return Advance(granted, done.take(np.array(self._order(len(done)), np.int64)))


class Hesitant(ForwardingNetwork):
    """Grants less than it could, a hundred times: a random, small step at most."""

    def __init__(self, inner: NetworkSimulator, seed: int) -> None:
        super().__init__(inner)
        self._random = random.Random(seed)
        self._granted = 0
        self._left = 100

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        self._left -= 1
        step = self._random.choice((1, 999, 1_000, 123_456, 10**7)) if self._left > 0 else NEVER
        answer = self.inner.advance(flows, max(self._granted, min(horizon_ps, self._granted + step)))
        self._granted = answer.granted_ps
        return answer


class ShortSighted(ForwardingNetwork):
    """No lookahead: every completion may be reacted to at once, so that the network stops at each."""

    def __init__(self, inner: NetworkSimulator) -> None:
        super().__init__(inner)
        self._tables: dict[int, tuple[FlowTable, FlowTable]] = {}

    def _table(self, table: FlowTable) -> FlowTable:
        if id(table) not in self._tables:
            self._tables[id(table)] = (table, replace(table, reaction_ps=np.zeros_like(table.reaction_ps)))
        return self._tables[id(table)][1]

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        groups = [replace(group, table=self._table(group.table)) for group in flows.groups]
        return self.inner.advance(replace(flows, groups=groups), horizon_ps)
