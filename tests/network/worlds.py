"""Small random worlds, and drivers that put them through a network in many ways.

A *world* is a topology and groups of flows. ``drive`` runs one with the network releasing dependent flows,
or with a releaser in plain Python that shares no code with ``cosim.network.store``.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.network.device.gpus import DeviceGpu
from cosim.network.device.network import DeviceNetwork
from cosim.network.device.settings import Device
from cosim.network.flows import ON_COMPLETION, ON_START, FlowBatch, FlowGroup, FlowTable
from cosim.network.simulator import NetworkSimulator
from cosim.testing.strategies.traffic import Row, table_of
from cosim.testing.strategies.traffic import Traffic as World
from cosim.topology.graph import I32, I64, Paths, Topology
from cosim.units import NEVER

Key = tuple[int, int]


class FixedRoutes(Paths):
    """Shortest paths by breadth-first search over links in their order."""

    name = "fixed"

    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        del channel
        ptr, links = [0], list[int]()
        for one, other in zip(src.tolist(), dst.tolist(), strict=True):
            links += self._path(topology, one, other)
            ptr.append(len(links))
        return np.array(ptr, np.int64), np.array(links, np.int32)

    def _path(self, topology: Topology, src: int, dst: int) -> list[int]:
        came: dict[int, list[int]] = {src: []}
        queue = [src]
        for node in queue:
            for link in range(topology.num_links):
                to = int(topology.link_dst[link])
                if int(topology.link_src[link]) == node and to not in came:
                    came[to] = [*came[node], link]
                    queue.append(to)
        return came[dst]


def small_device() -> NetworkSimulator:
    """A device network whose GPUs have few parts, so that messages of a world meet in them."""
    gpu = DeviceGpu(units=3, rows=2, columns=2, channels=2, ports=2, outstanding=8, wavefronts=2)
    return DeviceNetwork(Device(gpu=gpu))


def graph(
    num_endpoints: int, num_nodes: int, links: Sequence[tuple[int, int, float, int]], name: str = "test"
) -> Topology:
    """A topology of links (source, destination, bits/s, latency ps)."""
    columns = list(zip(*links, strict=True))
    return Topology(
        name=name,
        num_endpoints=num_endpoints,
        node_names=tuple(f"n{k}" for k in range(num_nodes)),
        link_src=np.array(columns[0], np.int32),
        link_dst=np.array(columns[1], np.int32),
        link_rate_bps=np.array(columns[2], np.float64),
        link_latency_ps=np.array(columns[3], np.int64),
        routing=FixedRoutes(),
    )


def unrolled(table: FlowTable) -> FlowTable:
    """The same flows, with every block repeated once."""
    row = table.row_of(np.arange(table.num_flows, dtype=np.int64))
    ptr = table.dep_ptr
    rows: list[Row] = [
        (
            int(table.src[r]),
            int(table.dst[r]),
            int(table.size_bytes[r]),
            int(table.channel[r]),
            int(table.delay_ps[r]),
            [(int(table.dep_distance[k]), int(table.dep_kind[k])) for k in range(ptr[r], ptr[r + 1])],
        )
        for r in row.tolist()
    ]
    flat = table_of(rows, table.num_participants, [(len(rows), 1)], 0)
    return replace(flat, reaction_ps=table.reaction_ps[row])


def batch(groups: Sequence[FlowGroup] = (), starts: Sequence[tuple[int, int, int, int]] = ()) -> FlowBatch:
    """A batch of groups and (handle, index, start, cause)."""
    columns = list(zip(*starts, strict=True)) or [(), (), (), ()]
    return FlowBatch(
        groups,
        np.array(columns[0], np.int32),
        np.array(columns[1], np.int64),
        np.array(columns[2], np.int64),
        np.array(columns[3], np.int64),
    )


Result = dict[tuple[int, int], tuple[int, int]]
"""(handle, index) -> (start, completion)."""


def drive(
    network: NetworkSimulator,
    world: World,
    *,
    cuts: random.Random | None = None,
    eager: bool = True,
) -> Result:
    """Run with the network releasing. ``cuts``: random horizons, orders and opening times.

    ``eager`` gives every start at once; otherwise each start is given when the grant gets near it.
    """
    network.open(world.topology)
    todo = [
        (start, cause, g.handle, flow)
        for g, given in zip(world.groups, world.given, strict=True)
        for flow, (start, cause) in given.items()
    ]
    todo.sort()
    if cuts:
        cuts.shuffle(todo)
        todo.sort(key=lambda one: one[0])
    closed = {g.handle: g for g in world.groups if g.table.num_flows}
    result: Result = {}
    total = sum(g.table.num_flows for g in world.groups)
    granted = 0
    while True:
        groups: list[FlowGroup] = []
        starts: list[tuple[int, int, int, int]] = []
        horizon = NEVER if not cuts else granted + cuts.choice((0, 1, 999, 1_000, 500_000, 10**7))
        if eager and not cuts:
            groups, closed = list(closed.values()), {}
        while todo and ((eager and not cuts) or todo[0][0] <= horizon):
            start, cause, handle, flow = todo.pop(0)
            if handle in closed:
                groups.append(closed.pop(handle))
            starts.append((handle, flow, start, cause))
        if todo:
            horizon = min(horizon, max(todo[0][0], granted))
        if cuts:
            for handle in [h for h in closed if cuts.random() < 0.2]:
                groups.append(closed.pop(handle))
            cuts.shuffle(starts)
            cuts.shuffle(groups)
        step = network.advance(batch(groups, starts), horizon)
        assert granted <= step.granted_ps <= horizon
        granted = step.granted_ps
        _collect(step.completions, granted, result)
        if not todo and len(result) == total:
            network.close()
            return result
        assert granted < NEVER, "the network ran dry"


def _collect(done: object, granted: int, result: Result) -> list[tuple[int, int, int]]:
    new = []
    columns: Sequence[NDArray[np.int64]] = [
        getattr(done, name) for name in ("handle", "index", "start_ps", "time_ps")
    ]
    for handle, index, start, time in zip(*(c.tolist() for c in columns), strict=True):
        assert (handle, index) not in result
        assert start <= time <= granted
        result[handle, index] = (start, time)
        new.append((handle, index, time))
    return new


def drive_by_caller(network: NetworkSimulator, world: World) -> Result:
    """Run with every flow released here, in plain Python, from completions alone."""
    network.open(world.topology)
    waits: dict[tuple[int, int], int] = {}
    ready: dict[tuple[int, int], int] = defaultdict(int)
    after: dict[tuple[int, int, int], list[tuple[int, int]]] = defaultdict(list)
    delay: dict[tuple[int, int], int] = {}
    todo: list[tuple[int, int, int, int]] = []
    for group, given in zip(world.groups, world.given, strict=True):
        flat = unrolled(group.table)
        for flow in range(flat.num_flows):
            edges = range(flat.dep_ptr[flow], flat.dep_ptr[flow + 1])
            waits[group.handle, flow] = len(edges)
            delay[group.handle, flow] = int(flat.delay_ps[flow])
            for e in edges:
                source = flow - int(flat.dep_distance[e])
                after[group.handle, source, int(flat.dep_kind[e])].append((group.handle, flow))
        todo += [(start, cause, group.handle, flow) for flow, (start, cause) in given.items()]
    told: set[tuple[int, int, int]] = set()

    def tell(handle: int, flow: int, kind: int, time: int) -> None:
        assert (handle, flow, kind) not in told
        told.add((handle, flow, kind))
        for one in after[handle, flow, kind]:
            waits[one] -= 1
            ready[one] = max(ready[one], time)
            if waits[one] == 0:
                todo.append((ready[one] + delay[one], ready[one], *one))

    result: Result = {}
    granted = 0
    groups = [replace(g, release="caller") for g in world.groups]
    while True:
        # Start, for this releaser, is told when it is given: at its very time, never before.
        starts: list[tuple[int, int, int, int]] = []
        horizon = min((start for start, *_ in todo), default=NEVER)
        if horizon == granted:
            for one in [t for t in todo if t[0] == granted]:
                todo.remove(one)
                starts.append((one[2], one[3], one[0], one[1]))
            for handle, flow, start, _ in starts:
                tell(handle, flow, ON_START, start)
            # Released by a start, at no delay: they start in the same round.
            more = [t for t in todo if t[0] == granted]
            while more:
                for one in more:
                    todo.remove(one)
                    starts.append((one[2], one[3], one[0], one[1]))
                    tell(one[2], one[3], ON_START, one[0])
                more = [t for t in todo if t[0] == granted]
            horizon = min((start for start, *_ in todo), default=NEVER)
        step = network.advance(batch(groups, starts), horizon)
        groups = []
        granted = step.granted_ps
        for handle, index, time in _collect(step.completions, granted, result):
            tell(handle, index, ON_COMPLETION, time)
        if len(result) == len(waits):
            network.close()
            return result
        assert granted < NEVER, "the network ran dry"
