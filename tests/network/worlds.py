"""Small random worlds, and drivers that put them through a network in many ways.

A *world* is a topology and groups of flows. ``drive`` runs one with the network releasing dependent flows,
or with a releaser in plain Python that shares no code with ``cosim.network.store``.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from cosim.network.flows import ON_COMPLETION, ON_START, FlowBatch, FlowGroup, FlowTable, pack_key
from cosim.network.simulator import NetworkSimulator
from cosim.topology.graph import I32, I64, Paths, Topology
from cosim.units import NEVER

Key = tuple[int, int]
Rows = list[tuple[int, int, int, int, int, list[tuple[int, int]]]]


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


def table_of(rows: Rows, participants: int, blocks: Sequence[tuple[int, int]], reaction: int) -> FlowTable:
    """A table of (src, dst, size, channel, delay, [(distance, kind)]); blocks are (rows, repeats)."""
    deps = [dep for row in rows for dep in row[5]]
    return FlowTable(
        num_participants=participants,
        src=np.array([r[0] for r in rows], np.int32),
        dst=np.array([r[1] for r in rows], np.int32),
        size_bytes=np.array([r[2] for r in rows], np.int64),
        channel=np.array([r[3] for r in rows], np.int32),
        delay_ps=np.array([r[4] for r in rows], np.int64),
        reaction_ps=np.full(len(rows), reaction, np.int64),
        dep_ptr=np.cumsum([0, *(len(r[5]) for r in rows)]).astype(np.int64),
        dep_distance=np.array([d for d, _ in deps], np.int64),
        dep_kind=np.array([k for _, k in deps], np.int8),
        block_row=np.cumsum([0, *(b[0] for b in blocks)]).astype(np.int64),
        block_repeat=np.array([b[1] for b in blocks], np.int64),
    )


def unrolled(table: FlowTable) -> FlowTable:
    """The same flows, with every block repeated once."""
    row = table.row_of(np.arange(table.num_flows, dtype=np.int64))
    ptr = table.dep_ptr
    rows: Rows = [
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


@dataclass(frozen=True)
class World:
    """Groups with the (start, cause) of each of their given flows."""

    topology: Topology
    groups: tuple[FlowGroup, ...]
    given: tuple[dict[int, tuple[int, int]], ...]

    def with_tables(self, change: dict[int, FlowTable]) -> World:
        groups = [replace(g, table=change[id(g.table)]) for g in self.groups]
        return replace(self, groups=tuple(groups))

    def reacting(self, reaction_ps: int) -> World:
        made = {
            id(g.table): replace(g.table, reaction_ps=np.full(g.table.num_rows, reaction_ps, np.int64))
            for g in self.groups
        }
        return self.with_tables(made)


# Sizes, rates and latencies from small sets, so that ties are the rule rather than the exception.
RATES = (8e9, 16e9, 40e9, 50 * 2.0**33)
LATENCIES = (0, 1_000, 500_000, 1_234)
SIZES = (0, 1, 1_000, 4_096, 65_536, 999_983)
TIMES = (0, 0, 1_000, 131_000, 1_000_000, 5_242_880)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """A ring of endpoints and switches with chords, so that all reach all."""
    endpoints = draw(st.integers(2, 5))
    nodes = endpoints + draw(st.integers(0, 2))
    order = draw(st.permutations(range(nodes)))
    ends = [(order[k], order[(k + 1) % nodes]) for k in range(nodes)]
    chords = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda p: p[0] != p[1])
    ends += draw(st.lists(chords, max_size=6))
    links = [(a, b, draw(st.sampled_from(RATES)), draw(st.sampled_from(LATENCIES))) for a, b in ends]
    return graph(endpoints, nodes, links)


@st.composite
def tables(draw: st.DrawFn, participants: int, repeats: bool = True) -> FlowTable:
    """A random dependency graph in one to three blocks, the later ones repeated."""
    num_blocks = draw(st.integers(1, 3))
    rows: Rows = []
    blocks: list[tuple[int, int]] = []
    base = 0
    for block in range(num_blocks):
        count = draw(st.integers(1, 5))
        repeat = draw(st.integers(1, 4)) if repeats and block > 0 else 1
        for local in range(count):
            # Rows of a block that repeats have dependencies, or each repetition would have to be given.
            least = 1 if block > 0 else 0
            reach = base + local
            number = draw(st.integers(least if reach else 0, 3 if reach else 0))
            deps = [
                (draw(st.integers(1, reach)), draw(st.sampled_from((ON_COMPLETION, ON_COMPLETION, ON_START))))
                for _ in range(number)
            ]
            src = draw(st.integers(0, participants - 1))
            dst = draw(st.integers(0, participants - 1))
            size, channel = draw(st.sampled_from(SIZES)), draw(st.integers(0, 1))
            rows.append((src, dst, size, channel, draw(st.sampled_from(TIMES)), deps))
        blocks.append((count, repeat))
        base += count * repeat
    return table_of(rows, participants, blocks, 0)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """One to three groups, of one or two tables, on a random topology."""
    topology = draw(topologies())
    participants = draw(st.integers(1, topology.num_endpoints))
    choice = draw(st.lists(tables(participants), min_size=1, max_size=2))
    groups, given = [], []
    for number in range(draw(st.integers(1, 3))):
        table = draw(st.sampled_from(choice))
        nodes = draw(st.permutations(range(topology.num_endpoints)))[:participants]
        groups.append(
            FlowGroup(
                handle=number,
                table=table,
                endpoints=np.array(nodes, np.int32),
                key=pack_key(number % 2, 0, number, 0),
                job=number % 2,
                channel=draw(st.integers(0, 1)),
                priority=draw(st.integers(0, 1)),
                weight=draw(st.sampled_from((1.0, 1.0, 2.0, 0.5, 3.7))),
            )
        )
        starts = {}
        for flow in given_flows(table):
            start = draw(st.sampled_from(TIMES))
            starts[flow] = (start, max(0, start - draw(st.sampled_from((0, 0, 1_000)))))
        given.append(starts)
    return World(topology, tuple(groups), tuple(given))


def given_flows(table: FlowTable) -> list[int]:
    rows = table.row_of(np.arange(table.num_flows, dtype=np.int64))
    return [f for f, r in enumerate(rows.tolist()) if table.dep_ptr[r] == table.dep_ptr[r + 1]]


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
