"""Random traffic: topologies, tables of flows with dependencies, and groups of them with their starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from cosim.network.flows import ON_COMPLETION, ON_START, FlowBatch, FlowGroup, FlowTable, pack_key
from cosim.network.simulator import NetworkSimulator
from cosim.topology.graph import Topology
from cosim.topology.routing import ShortestPaths
from cosim.units import NEVER

RATES = (8e9, 16e9, 40e9, 50 * 2.0**33)
LATENCIES = (0, 1_000, 500_000, 1_234)
SIZES = (0, 1, 1_000, 4_096, 65_536, 999_983)
TIMES = (0, 0, 1_000, 131_000, 1_000_000, 5_242_880)


Row = tuple[int, int, int, int, int, list[tuple[int, int]]]
"""(Source, destination, bytes, channel, delay in ps, [(distance, kind) of each dependency])."""


@dataclass(frozen=True)
class Traffic:
    """Groups of flows on a topology, and when those that the caller starts do so.

    ``given[k]`` is the (start, cause) of each given flow of group k, in ps, by the flow's number.
    """

    topology: Topology
    groups: tuple[FlowGroup, ...]
    given: tuple[dict[int, tuple[int, int]], ...]

    @property
    def num_flows(self) -> int:
        """Flows of all groups."""
        return sum(group.table.num_flows for group in self.groups)

    def batch(self) -> FlowBatch:
        """Every group and every start, as one batch."""
        starts = [
            (group.handle, flow, start, cause)
            for group, given in zip(self.groups, self.given, strict=True)
            for flow, (start, cause) in given.items()
        ]
        columns = np.array(starts, np.int64).reshape(-1, 4).T
        return FlowBatch(self.groups, columns[0].astype(np.int32), *columns[1:])

    def run(self, network: NetworkSimulator) -> dict[tuple[int, int], tuple[int, int]]:
        """Put it through a network that is not open yet: (start, completion) by (handle, index).

        Raises
        ------
        AssertionError
            The network says that it has nothing left to do, but flows have not completed.
        """
        network.open(self.topology)
        found: dict[tuple[int, int], tuple[int, int]] = {}
        batch, granted = self.batch(), 0
        while len(found) < self.num_flows:
            assert granted < NEVER, f"{self.num_flows - len(found)} flows never complete"
            granted, done = network.advance(batch, NEVER)
            batch = FlowBatch()
            flows = zip(done.handle.tolist(), done.index.tolist(), strict=True)
            found.update(
                zip(flows, zip(done.start_ps.tolist(), done.time_ps.tolist(), strict=True), strict=True)
            )
        network.close()
        return found

    def with_tables(self, change: dict[int, FlowTable]) -> Traffic:
        """The same with other tables, by the ``id`` of those that they stand for."""
        groups = [replace(group, table=change[id(group.table)]) for group in self.groups]
        return replace(self, groups=tuple(groups))

    def reacting(self, reaction_ps: int) -> Traffic:
        """The same with that reaction delay for every flow: NEVER, where nothing outside waits for any."""
        made = {
            id(group.table): replace(
                group.table, reaction_ps=np.full(group.table.num_rows, reaction_ps, np.int64)
            )
            for group in self.groups
        }
        return self.with_tables(made)


def table_of(
    rows: Sequence[Row], participants: int, blocks: Sequence[tuple[int, int]], reaction: int
) -> FlowTable:
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


@st.composite
def topologies(draw: st.DrawFn, most_endpoints: int = 5) -> Topology:
    """A ring of 2 to ``most_endpoints`` endpoints and switches with chords, so that all reach all."""
    endpoints = draw(st.integers(2, most_endpoints))
    nodes = endpoints + draw(st.integers(0, 2))
    order = draw(st.permutations(range(nodes)))
    ends = [(order[k], order[(k + 1) % nodes]) for k in range(nodes)]
    chords = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda p: p[0] != p[1])
    ends += draw(st.lists(chords, max_size=6))
    links = [(a, b, draw(st.sampled_from(RATES)), draw(st.sampled_from(LATENCIES))) for a, b in ends]
    columns = list(zip(*links, strict=True))
    return Topology(
        name=f"{endpoints} endpoints, {nodes - endpoints} switches",
        num_endpoints=endpoints,
        node_names=tuple(f"node{k}" for k in range(nodes)),
        link_src=np.array(columns[0], np.int32),
        link_dst=np.array(columns[1], np.int32),
        link_rate_bps=np.array(columns[2], np.float64),
        link_latency_ps=np.array(columns[3], np.int64),
        routing=ShortestPaths(endpoints_forward=True),
        dims=(endpoints,),
    )


@st.composite
def tables(draw: st.DrawFn, participants: int, repeats: bool = True) -> FlowTable:
    """A random dependency graph in one to three blocks, the later ones repeated."""
    num_blocks = draw(st.integers(1, 3))
    rows: list[Row] = []
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
def traffic(draw: st.DrawFn) -> Traffic:
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
    return Traffic(topology, tuple(groups), tuple(given))


def given_flows(table: FlowTable) -> list[int]:
    """Flows without dependencies: those that the caller starts."""
    rows = table.row_of(np.arange(table.num_flows, dtype=np.int64))
    return [f for f, r in enumerate(rows.tolist()) if table.dep_ptr[r] == table.dep_ptr[r + 1]]
