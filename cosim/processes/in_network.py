"""In-network aggregation: switches add up what ranks send, and send everybody the sum.

A rank sends its data in chunks of ``slot_size``. A switch keeps a slot for a chunk from when its first
rank's comes until all have; then it sends the sum down. A rank has ``slots`` chunks on the way: it sends
chunk k + slots when result k is back (SwitchML: Sapio et al., NSDI 2021, arXiv 1903.06701). Switches on the
way to the root add up what comes from below, so that one copy goes up each link. ``trees`` share the data
equally, each with a root and slots of its own (PANAMA: Gebara et al., MLSys 2021). With a ``pool`` all jobs
share the slots of a switch by hash: a chunk whose slot is taken goes to an endpoint, the ``fallback``, which
adds up (ATP: Lao et al., NSDI 2021).

Chunks are not sent one by one, but as trains. A train has as many chunks as there are slots: its first chunk,
its last one, and what is between. A switch sends on what is between while it comes in. This is exact, up to
the rounding of each message to a picosecond, where no link changes its rate within a train: then chunk k +
slots leaves when result k is back, or when the link has sent all before it. Where other traffic comes in,
a rank may be ahead of its window, by one train at most.

Not modelled: losses and retransmissions, the time that a switch takes to add, and quantising.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from pydantic import Field
from simpy.events import Event

from cosim.errors import AlgorithmError
from cosim.pattern.template import Collective
from cosim.processes.aggregation_trees import AggregationTree, aggregation_trees
from cosim.processes.carrier import Carried, Carrier
from cosim.processes.simulation import Simulation
from cosim.processes.slot_pool import Held, SlotPool
from cosim.spec import SizeBytes
from cosim.topology.graph import Topology

_PS_PER_BYTE_BPS = 8 * 10**12


class InNetwork(Carrier):
    """Switches add up what ranks send them, chunk by chunk, in slots; all-reduce in one way up and down"""

    name: ClassVar[str] = "in_network"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_REDUCE})
    checks_data: ClassVar[bool] = True

    slots: int = Field(256, ge=1, le=1 << 20, description="chunks that a rank has on the way, in each tree")
    slot_size: SizeBytes = Field(1024, gt=0, description="of a chunk")
    trees: int = Field(1, ge=1, le=1024, description="with a root each, which share the data equally")
    pool: int | None = Field(
        None,
        ge=1,
        le=1 << 20,
        description="slots of a switch, shared by all jobs by hash; omitted: each has its own",
    )
    fallback: str = Field(
        "server",
        description="endpoint that adds up a chunk whose slot is taken; server: the first that no job is on",
    )

    def idle_settings(self) -> list[tuple[str, str]]:
        """The fallback, without a pool."""
        idle = self.pool is None and "fallback" in self.model_fields_set
        return [("fallback", "each job has slots of its own (no pool), and none is ever taken")] * idle

    def carry(self, sim: Simulation, collective: Carried) -> Generator[Event, Any, Any]:
        """See :class:`~cosim.processes.carrier.Carrier`."""
        key = "in_network", self, collective.job, collective.ranks
        group: _SlotGroup = collective.shared(key, lambda: _SlotGroup(self, sim, collective))
        # Those of one group follow each other: they use the same slots.
        before, group.last = group.last, sim.event()
        mine = group.last
        if before is not None:
            yield before
        one = _Aggregation(sim, collective, group)
        one.begin()
        yield one.over
        mine.succeed()


class _SlotGroup:
    """What all collectives of a group have in common: its trees, and those of its servers."""

    def __init__(self, spec: InNetwork, sim: Simulation, collective: Carried) -> None:
        self.spec = spec
        self.last: Event | None = None
        topology, ends = collective.topology, collective.endpoints
        self.trees = aggregation_trees(topology, ends, spec.trees)
        self.pace_ps = max(_pace_ps(topology, tree, spec.slot_size) for tree in self.trees)
        self.owner = collective.job << 20 | min(collective.ranks)
        self.pools: list[list[SlotPool]] = []
        self.server = -1
        if spec.pool is not None:
            size = spec.pool
            self.server = _server(spec, sim, topology, ends)
            for tree in self.trees:
                of_tree = []
                for switch in sorted(tree.children):
                    pool = collective.shared(("in_network pool", switch), lambda: SlotPool(size))
                    if pool.size != size:
                        raise AlgorithmError(
                            f"in_network: pool: {size}, but another job says {pool.size} of the same switch "
                            f"{topology.node_names[switch]}"
                        )
                    of_tree.append(pool)
                self.pools.append(of_tree)


def _server(spec: InNetwork, sim: Simulation, topology: Topology, ends: tuple[int, ...]) -> int:
    """The endpoint that adds up what has no slot."""
    names = topology.node_names[: topology.num_endpoints]
    if spec.fallback in names:
        found = names.index(spec.fallback)
        if found in ends:
            raise AlgorithmError(f"in_network: fallback: a rank of the group is on {spec.fallback}")
        return found
    if spec.fallback != "server":
        raise AlgorithmError(f"in_network: fallback: {topology.name} has no endpoint {spec.fallback!r}")
    for one in sim.free_endpoints().tolist():
        if one not in ends:
            return int(one)
    raise AlgorithmError(
        f"in_network: no endpoint is left for the server: jobs are on all {len(names)} of {topology.name}",
        hint="add an endpoint to the topology, or take pool away",
    )


def _pace_ps(topology: Topology, tree: AggregationTree, slot_size: int) -> int:
    """How long a chunk takes over the slowest link that a tree takes."""
    src, dst = (np.array(side, np.int32) for side in zip(*tree.parent.items(), strict=True))
    _, links = topology.paths(src, dst, np.zeros_like(src))
    return int(slot_size * _PS_PER_BYTE_BPS / float(topology.link_rate_bps[links].min()))


class _Train:
    """Chunks that go together through one tree, or through the server: ``parts`` are its first chunk, what is
    between, and its last, none of them empty.
    """

    __slots__ = ("come", "parts", "way")

    def __init__(self, way: _Way, begin: int, end: int, slot_size: int) -> None:
        self.way = way
        first, last = min(begin + slot_size, end), max(begin, end - ((end - begin - 1) % slot_size + 1))
        cuts = [begin, first, max(first, last), end]
        self.parts = [(a, b) for a, b in pairwise(cuts) if a < b]
        self.come: dict[tuple[int, bool], int] = {}
        """How many first or last parts have come to each node."""


class _Way:
    """Who sends what to whom: up to who adds, and down again."""

    def __init__(
        self, parent: dict[int, int], children: dict[int, list[int]], down: dict[int, list[int]], channel: int
    ) -> None:
        self.parent, self.children, self.down, self.channel = parent, children, down, channel


class _Aggregation:
    """One all-reduce. Messages are followed by callbacks, of which there are many: not a process for each."""

    def __init__(self, sim: Simulation, collective: Carried, group: _SlotGroup) -> None:
        self.sim, self.collective, self.group = sim, collective, group
        self.over = sim.event()
        spec, size = group.spec, collective.size_bytes
        chunks = -(-size // spec.slot_size)
        self.streams: list[_TreeStream] = []
        for number, tree in enumerate(group.trees):
            first, last = (chunks * k // spec.trees for k in (number, number + 1))
            if first < last:
                begin, end = first * spec.slot_size, min(last * spec.slot_size, size)
                self.streams.append(_TreeStream(self, number, tree, begin, end))
        self.left = {
            position: sum(stream.num_trains for stream in self.streams)
            for position in range(collective.num_ranks)
        }

    def begin(self) -> None:
        """Have each rank begin when it comes."""
        for position in range(self.collective.num_ranks):
            arrival = self.collective.arrival(position)
            if arrival.callbacks is None:
                self._enter(position)
            else:
                arrival.callbacks.append(partial(self._enter, position))

    def _enter(self, position: int, _: Event | None = None) -> None:
        for stream in self.streams:
            stream.enter(position)
        if not self.streams:
            self._done(position)

    def result(self, position: int) -> None:
        """A rank has all of a train."""
        self.left[position] -= 1
        if not self.left[position]:
            self._done(position)

    def _done(self, position: int) -> None:
        self.collective.through(position)
        if self.collective.is_over:
            self.over.succeed()


class _TreeStream:
    """What goes through one tree: trains of ``slots`` chunks, bytes ``begin`` to ``end`` of the data."""

    def __init__(self, of: _Aggregation, number: int, tree: AggregationTree, begin: int, end: int) -> None:
        self.of, self.number, self.begin, self.end = of, number, begin, end
        group, collective = of.group, of.collective
        self.ends = collective.endpoints
        self.position = {node: at for at, node in enumerate(self.ends)}
        spec = group.spec
        self.train_bytes = spec.slots * spec.slot_size
        self.num_trains = -(-(end - begin) // self.train_bytes)
        self.tree = _Way(tree.parent, tree.children, tree.children, 2 * number)
        self.server: _Way | None = None
        if group.server >= 0:
            up = dict.fromkeys(self.ends, group.server)
            down = {**tree.children, group.server: [tree.root]}
            self.server = _Way(up, {group.server: [*self.ends]}, down, 2 * number + 1)
        self.trains: dict[int, list[_Train]] = {}
        """By number: what goes by the tree, and what by the server."""
        self.held: dict[int, list[Held]] = {}
        self.sent = [0] * len(self.ends)
        """Trains that each rank has sent so far."""
        self.heads: dict[tuple[int, int], int] = {}
        self.tails: dict[tuple[int, int], int] = {}

    def enter(self, position: int) -> None:
        """A rank has come: it sends its first train."""
        self._release(position)

    def _release(self, position: int) -> None:
        """A rank sends its next train, where there is one."""
        number = self.sent[position]
        if number == self.num_trains:
            return
        self.sent[position] += 1
        trains = self._train(number)
        last_of_all = min(self.sent) > number
        for held in self.held.get(number, ()) if last_of_all else ():
            held.until_ps = self.of.sim.now_ps + held.pace_ps
        key = number, position
        self.heads[key] = self.tails[key] = len(trains)
        node = self.ends[position]
        for train in trains:
            # The first chunk and the rest: what is between and the last follow each other anyway.
            first, rest = train.parts[0], (train.parts[0][1], train.parts[-1][1])
            self._up(number, train, node, first, is_last=rest[0] == rest[1], is_first=True)
            if rest[0] < rest[1]:
                self._up(number, train, node, rest, is_last=True, is_first=False)

    def _train(self, number: int) -> list[_Train]:
        """What the chunks of a train go by; decided when the first rank sends them."""
        if number in self.trains:
            return self.trains[number]
        begin = self.begin + number * self.train_bytes
        end = min(begin + self.train_bytes, self.end)
        slot_size = self.of.group.spec.slot_size
        count = -(-(end - begin) // slot_size)
        with_slot = count if self.server is None else self._take(number, begin // slot_size, count)
        cut = min(begin + with_slot * slot_size, end)
        made = []
        if begin < cut:
            made.append(_Train(self.tree, begin, cut, slot_size))
        if cut < end:
            assert self.server is not None
            made.append(_Train(self.server, cut, end, slot_size))
        self.trains[number] = made
        return made

    def _take(self, number: int, chunk: int, count: int) -> int:
        """Take the slots of a train, as far as they are free at all its switches: of how many chunks."""
        group = self.of.group
        free = np.ones(count, np.bool_)
        wanted = []
        for pool in group.pools[self.number]:
            since = self.of.sim.now_ps + group.pace_ps
            wanted.append(Held(pool.first_slot(group.owner, chunk), count, group.pace_ps, since))
            free &= pool.free(wanted[-1])
        kept = self.held[number] = []
        for first, end in _runs(free):
            for pool, one in zip(group.pools[self.number], wanted, strict=True):
                since = one.since_ps + first * one.pace_ps
                held = Held((one.first + first) % pool.size, end - first, one.pace_ps, since)
                pool.hold(held)
                kept.append(held)
        return int(free.sum())

    # -- up and down -----------------------------------------------------------------------------------

    def _up(
        self, number: int, train: _Train, node: int, part: tuple[int, int], *, is_first: bool, is_last: bool
    ) -> None:
        """A node sends a part towards who adds."""
        goal, streams = train.way.parent[node], not (is_first or is_last)
        sent = self.of.collective.send(
            node, goal, part, channel=train.way.channel, adds=True, streams=streams
        )
        if is_first or is_last:
            assert sent.callbacks is not None
            sent.callbacks.append(lambda _: self._come_up(number, train, goal, is_first, is_last))

    def _come_up(self, number: int, train: _Train, node: int, is_first: bool, is_last: bool) -> None:
        """A first or last part has come to who adds: when all have, it goes on."""
        for is_end in [False] * is_first + [True] * is_last:
            key = node, is_end
            train.come[key] = train.come.get(key, 0) + 1
            if train.come[key] < len(train.way.children[node]):
                continue
            parts = train.parts
            chosen = parts[-1:] * (len(parts) > 1) if is_end else parts[: max(1, len(parts) - 1)]
            for part in chosen:
                first, last = part == parts[0], part == parts[-1]
                if node in train.way.parent:
                    self._up(number, train, node, part, is_first=first, is_last=last)
                else:
                    self._down(number, train, node, part)

    def _down(self, number: int, train: _Train, node: int, part: tuple[int, int]) -> None:
        """A node sends a part of the result to all below it."""
        for child in train.way.down[node]:
            streams = part not in (train.parts[0], train.parts[-1])
            sent = self.of.collective.send(node, child, part, channel=train.way.channel, streams=streams)
            assert sent.callbacks is not None
            sent.callbacks.append(partial(self._come_down, number, train, child, part))

    def _come_down(self, number: int, train: _Train, node: int, part: tuple[int, int], _: Event) -> None:
        """A part of the result has come to a switch, which sends it on, or to a rank."""
        if node not in self.position:
            self._down_from(number, train, node, part)
            return
        position = self.position[node]
        key = number, position
        if part == train.parts[0]:
            self.heads[key] -= 1
            if not self.heads[key]:
                del self.heads[key]
                self._release(position)
        if part == train.parts[-1]:
            self.tails[key] -= 1
            if not self.tails[key]:
                del self.tails[key]
                self.of.result(position)

    def _down_from(self, number: int, train: _Train, node: int, part: tuple[int, int]) -> None:
        """A switch sends results on: what is between goes with the first chunk, while it comes in."""
        parts = train.parts
        if part == parts[0]:
            for one in parts[: max(1, len(parts) - 1)]:
                self._down(number, train, node, one)
        elif part == parts[-1]:
            self._down(number, train, node, part)


def _runs(free: Any) -> list[tuple[int, int]]:
    """Where runs of True begin and end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], free.astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
