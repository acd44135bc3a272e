"""``hybrid``: two networks as one. Scale-up domains (NVLink) in one, everything else in the other.

A flow belongs to the network whose links its path takes; each network is opened on its own links only, so
that ns-3 builds no NVSwitches. A group of flows (a collective's phase) that lies in one network is handed to
it whole, dependencies included; of one that lies in both, each gets its rows, and dependencies are followed
here, as the engine would. No link is in both, so nothing is shared but time.

**Time.** While flows are under way in one network only, it runs by itself. Else the one that can't peek (a
simulator elsewhere) goes first, to where the other says that its next completion is; then the other follows to
what was granted. Where both peek, the one whose completion comes first goes first. What completes at the
instant already granted is taken round by round: marks let their network stop at once.

Not modelled: links that carry both kinds of paths. A path that changes from scale-up to scale-out links is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field, field_validator

from cosim.errors import CausalityError, InputError, NetworkError, TopologyError
from cosim.network.flows import I32, I64, Completions, FlowBatch, FlowGroup, FlowTable
from cosim.network.merged import merge
from cosim.network.named import NetworkName
from cosim.network.outbox import Outbox
from cosim.network.releaser import Releaser
from cosim.network.shares import Mask, Share, share_of, whole_share
from cosim.network.simulator import Advance, Capabilities, NetworkSimulator, NetworkStatistics
from cosim.network.store import COMPLETED, STARTED
from cosim.spec import Spec
from cosim.topology.graph import Topology
from cosim.topology.part import part_of
from cosim.units import NEVER, PS_PER_NS

_ROLES = ("scale-up", "scale-out")
_MOST_REPORTED = 1 << 18


@dataclass(eq=False)
class _Child:
    """One of the networks: how far it is, what it is to be given, and its flows under way."""

    network: NetworkSimulator
    role: str
    links: I64
    peeks: bool
    releases: bool
    name: str
    granted: int = 0
    outbox: Outbox = field(default_factory=Outbox)
    shares: dict[int, Share] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)
    running: set[int] = field(default_factory=set)

    def open(self, group: FlowGroup, share: Share, release: Any) -> None:
        """Have its share of a group given."""
        self.outbox.open(replace(group, table=share.table, release=release))
        self.shares[group.handle] = share
        self.left[group.handle] = share.table.num_flows

    def advance(self, horizon: int) -> Completions:
        """Give what there is and run.

        Raises
        ------
        CausalityError, NetworkError
            It went back, too far, or not at all.
        """
        batch, before = self.outbox.take(), self.granted
        granted, done = self.network.advance(batch, horizon)
        if not before <= granted <= horizon:
            raise CausalityError(f"{self.name} granted {granted} ps; it may grant {before} to {horizon} ps")
        if granted == before < horizon and not len(done) and not len(batch.start_handle):
            raise NetworkError(f"{self.name} makes no progress at {granted} ps")
        self.granted = granted
        return done

    def peek(self) -> int | None:
        """Its next completion, all that it is to be given included."""
        if not self.outbox.is_empty:
            self.advance(self.granted)
        return self.network.peek()


@dataclass(eq=False, slots=True)
class _Open:
    """A group: which network carries each row, and whether its dependencies are followed here."""

    group: FlowGroup
    carrier: I32
    alone: int | None
    released: bool
    left: int


class HybridNetwork:
    """The two networks behind the seam. See :class:`~cosim.network.simulator.NetworkSimulator`."""

    def __init__(self, scale_up: NetworkSimulator, scale_out: NetworkSimulator) -> None:
        self.networks = (scale_up, scale_out)
        self._children: tuple[_Child, ...] = ()
        self._closed = False
        self._granted = 0
        self._releaser = Releaser()
        self._groups: dict[int, _Open] = {}
        self._carriers: dict[tuple[int, bytes, int], tuple[FlowTable, I32, Mask]] = {}
        self._shares: dict[tuple[Any, ...], Share] = {}

    def describe(self) -> Capabilities:
        """See :class:`~cosim.network.simulator.NetworkSimulator`: what both can do."""
        one, two = (network.describe() for network in self.networks)
        return Capabilities(
            name=f"hybrid of {one.name} and {two.name}",
            dependent_flows=True,
            peek=all(_peeks(network) for network in self.networks),
            deterministic=one.deterministic and two.deterministic,
            quantum_ps=gcd(one.quantum_ps, two.quantum_ps),
        )

    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`.

        Raises
        ------
        TopologyError
            The topology has no scale-up domains, or nothing else.
        NetworkError
            Neither network peeks.
        """
        if self._children:
            raise NetworkError("hybrid: a network is opened once")
        if options:
            raise NetworkError(f"hybrid has no options; got {', '.join(sorted(options))}")
        scale_up = scale_up_links(topology)
        self._topology = topology
        self._scale_up = scale_up
        children = []
        for network, role, links in zip(self.networks, _ROLES, (scale_up, ~scale_up), strict=True):
            there, part = network.describe(), part_of(topology, links, role)
            numbers = np.flatnonzero(links)
            peeks = _peeks(network)
            children.append(_Child(network, role, numbers, peeks, there.dependent_flows, there.name))
            network.open(part, seed)
        if not any(child.peeks for child in children):
            names = " and ".join(child.name for child in children)
            raise NetworkError(f"hybrid: of {names}, one has to say when its next completion comes (peek)")
        self._children = tuple(children)

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self._check_open("advance")
        if horizon_ps < self._granted:
            raise CausalityError(f"hybrid: horizon {horizon_ps} ps is before the grant {self._granted} ps")
        for group in flows.groups:
            self._open_group(group)
        self._take(flows)
        parts: list[Completions] = []
        bound, count = NEVER, 0
        while self._granted < min(horizon_ps, bound) and count < _MOST_REPORTED:
            for child, done in self._round(min(horizon_ps, bound)):
                if len(done):
                    part, react = self._completed(child, done)
                    parts.append(part)
                    bound, count = min(bound, react), count + len(part)
        if len(parts) == 1:
            return Advance(self._granted, parts[0])
        empty = np.empty(0, np.int64)
        columns = [np.concatenate([empty, *(getattr(p, name) for p in parts)]) for name in _COLUMNS]
        return Advance(self._granted, Completions(columns[0].astype(np.int32), *columns[1:]))

    def peek(self) -> int | None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self._check_open("peek")
        if not all(child.peeks for child in self._children):
            raise NetworkError(f"{self.describe().name} does not peek")
        times = [time for child in self._children if (time := child.peek()) is not None]
        return min(times, default=None)

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self._check_open("statistics")
        parts = [(child.network.statistics(), child.links) for child in self._children]
        return merge(parts, self._topology.num_links)

    def close(self) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self._closed = True
        with ExitStack() as stack:
            for network in self.networks:
                stack.callback(network.close)

    def _check_open(self, what: str) -> None:
        if not self._children or self._closed:
            raise NetworkError(f"hybrid: {what} needs an open network")

    # -- time ----------------------------------------------------------------------------------------

    def _round(self, limit: int) -> Iterator[tuple[_Child, Completions]]:
        """Let each network go as far as the others allow; ``_granted`` is where they are then."""
        busy = [child for child in self._children if child.running]
        if len(busy) == 1:
            yield busy[0], busy[0].advance(limit)
            self._granted = max(self._granted, busy[0].granted)  # it may have been behind
            return
        coming = [(time, child) for child in busy if child.peeks and (time := child.peek()) is not None]
        coming.sort(key=lambda one: one[0])
        blind = [child for child in busy if not child.peeks]
        if not coming and not blind:
            self._granted = limit
            return
        if coming and coming[0][0] <= self._granted:
            # At this very instant, more completes: only marks can, which let their network stop here.
            child = coming[0][1]
            yield child, child.advance(self._granted + 1)
            if child.granted > self._granted:
                raise NetworkError(f"{child.name} went beyond an instant, {self._granted} ps")
            return
        first, others = (blind[0], coming) if blind else (coming[0][1], coming[1:])
        yield first, first.advance(min([limit, *(time for time, _ in others)]))
        self._granted = max(self._granted, first.granted)
        for _, child in others:
            while child.granted < self._granted:
                yield child, child.advance(self._granted)

    # -- flows in ------------------------------------------------------------------------------------

    def _open_group(self, group: FlowGroup) -> None:
        if group.handle in self._groups:
            raise NetworkError(f"flow group handle {group.handle} is still in use")
        table = group.table
        carrier, at_once = self._carried(group)
        alone = int(carrier[0]) if len(carrier) and (carrier == carrier[0]).all() else None
        children = self._children if alone is None else self._children[alone : alone + 1]
        waits = group.release == "network" and bool(len(table.dep_distance))
        released = waits and (alone is None or not children[0].releases)
        for child in children:
            mine = carrier == self._children.index(child)
            marks = at_once if child.peeks else None
            if alone is not None and not released:
                share = self._share(table, child, None, False, marks)
                child.open(group, share, group.release)
            elif mine.any():
                child.open(group, self._share(table, child, mine, released, marks), "caller")
        if released:
            self._releaser.open(group)
        self._groups[group.handle] = _Open(group, carrier, alone, released, table.num_flows)

    def _carried(self, group: FlowGroup) -> tuple[I32, Mask]:
        """The network of each row, and which rows may complete at the instant they start.

        Raises
        ------
        NetworkError
            A path takes links of both; or the table has another number of participants.
        """
        table = group.table
        key = id(table), group.endpoints.tobytes(), group.channel
        known = self._carriers.get(key)
        if known is not None:
            return known[1:]
        nodes = np.asarray(group.endpoints, np.int32)
        if len(nodes) != table.num_participants:
            raise NetworkError(
                f"a table of {table.num_participants} participants was bound to {len(nodes)} endpoints"
            )
        src, dst = nodes[table.src], nodes[table.dst]
        ptr, links = self._topology.paths(src, dst, table.channel + np.int32(group.channel))
        inner, hops = _sums(self._scale_up[links], ptr), np.diff(ptr)
        mixed = np.flatnonzero((inner > 0) & (inner < hops))
        if len(mixed):
            names, row = self._topology.node_names, int(mixed[0])
            raise NetworkError(
                f"hybrid: the path from {names[src[row]]} to {names[dst[row]]} takes scale-up links and others; "
                "each message is carried by one network"
            )
        out = hops > inner
        # Marks have no path: they go with the others, or where they cost least.
        carrier = np.where(out | ((hops == 0) & out.any() & ~(inner > 0).any()), 1, 0).astype(np.int32)
        at_once = _sums(self._topology.link_latency_ps[links], ptr) < PS_PER_NS
        self._carriers[key] = table, carrier, at_once
        return carrier, at_once

    def _share(
        self, table: FlowTable, child: _Child, rows: Mask | None, released: bool, at_once: Mask | None
    ) -> Share:
        """The same table for the same rows, for networks keep what they saw."""
        masks = (mask if mask is None else mask.tobytes() for mask in (rows, at_once))
        key = id(table), child.role, released, *masks
        known = self._shares.get(key)
        if known is None:
            if rows is None:
                known = whole_share(table, at_once)
            else:
                known = share_of(table, rows, released, at_once)
            self._shares[key] = known
        return known

    def _take(self, flows: FlowBatch) -> None:
        if not len(flows.start_handle):
            return
        first = int(flows.start_ps.min())
        if first < self._granted:
            raise CausalityError(
                f"hybrid: a flow was given for {first} ps, but {self._granted} ps had been granted"
            )
        columns = flows.start_handle, flows.start_index, flows.start_ps, flows.cause_ps
        self._start(*columns)
        for handle, at in _by_handle(flows.start_handle):
            group = self._groups[handle].group
            if not self._groups[handle].released:
                continue
            index, table = flows.start_index[at], group.table
            waiting = np.diff(table.dep_ptr)[table.row_of(index)] > 0
            if waiting.any():
                raise NetworkError(
                    f"hybrid: flow {index[waiting][0]} of group {handle} was given, "
                    "but has dependencies that the network follows"
                )
            self._follow(flows.start_handle[at], index, flows.start_ps[at], STARTED)

    def _start(self, handle: I32, index: I64, start_ps: I64, cause_ps: I64) -> None:
        """Have flows started by the networks that carry them."""
        for one, at in _by_handle(handle):
            opened = self._groups.get(one)
            if opened is None:
                raise NetworkError(f"a flow of unknown group handle {one}")
            table, flows = opened.group.table, index[at]
            if not 0 <= int(flows.min()) <= int(flows.max()) < table.num_flows:
                raise NetworkError(f"flow index beyond the {table.num_flows} flows of group {one}")
            row = table.row_of(flows) if opened.alone is None or opened.released else flows
            for number, child in enumerate(self._children):
                if opened.alone is None:
                    mine = np.flatnonzero(opened.carrier[row] == number)
                elif opened.alone == number:
                    mine = np.arange(len(at))
                else:
                    continue
                if len(mine):
                    inner = child.shares[one].inward(row[mine], flows[mine])
                    child.outbox.start_many(handle[at[mine]], inner, start_ps[at[mine]], cause_ps[at[mine]])
                    child.running.add(one)

    def _follow(self, handle: I32, index: I64, time_ps: I64, kind: int) -> None:
        """Start what waited for this."""
        for released in self._releaser.feed(handle, index, time_ps, kind):
            self._start(*released)

    # -- completions out -----------------------------------------------------------------------------

    def _completed(self, child: _Child, done: Completions) -> tuple[Completions, int]:
        """Completions in the caller's numbers, and the earliest that the caller may react to one."""
        index, bound, ended = np.empty(len(done), np.int64), NEVER, []
        for handle, at in _by_handle(done.handle):
            opened, share = self._groups[handle], child.shares[handle]
            table = opened.group.table
            index[at] = share.outward(done.index[at])
            reaction = table.reaction_ps[table.row_of(index[at])]
            bound = min(bound, int((np.minimum(reaction, NEVER - done.time_ps[at]) + done.time_ps[at]).min()))
            opened.left -= len(at)
            child.left[handle] -= len(at)
            if child.left[handle] == 0:
                del child.left[handle], child.shares[handle]
                child.running.discard(handle)
            if opened.released:
                self._follow(done.handle[at], index[at], done.time_ps[at], COMPLETED)
            if opened.left == 0:
                ended.append(handle)
        for handle in ended:
            if self._groups.pop(handle).released:
                self._releaser.close(handle)
        return Completions(done.handle, index, done.start_ps, done.time_ps, done.since()), bound


_COLUMNS = ("handle", "index", "start_ps", "time_ps", "cause_ps")


def _sums(values: Any, ptr: I64) -> I64:
    """Of each row's links."""
    total = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return np.asarray(total[ptr[1:]] - total[ptr[:-1]], np.int64)


def _by_handle(handle: I32) -> Iterator[tuple[int, I64]]:
    """(handle, where it is) of each one."""
    order = np.argsort(handle, kind="stable")
    for at in np.split(order, np.flatnonzero(np.diff(handle[order])) + 1) if len(handle) else ():
        yield int(handle[at[0]]), at


def _peeks(network: NetworkSimulator) -> bool:
    """Whether to ask it; not one with a log, whose answers have to be the same when that is played."""
    return network.describe().peek and not hasattr(network, "log_to")


def scale_up_links(topology: Topology) -> Mask:
    """The links of scale-up domains.

    Raises
    ------
    TopologyError
        There are none, or no others.
    """
    if topology.scale_up is None or topology.scale_up.all():
        what = "nothing but" if topology.scale_up is not None else "no"
        raise TopologyError(
            f"{topology.name} has {what} scale-up links, so there is nothing to share out between two networks",
            hint="scale-up links are those to the NVSwitch of hosts (topology.hosts.nvlink_rate), and links of "
            "a graph with scale_up: true",
        )
    return topology.scale_up


def _domains(topology: Topology) -> I64:
    """The scale-up domain of each endpoint: the lowest node that it reaches over scale-up links."""
    links = scale_up_links(topology)
    label = np.arange(topology.num_nodes)
    while True:
        before = label.copy()
        np.minimum.at(label, topology.link_dst[links], label[topology.link_src[links]])
        np.minimum.at(label, topology.link_src[links], label[topology.link_dst[links]])
        if (label == before).all():
            return label[: topology.num_endpoints]


def _or(name: str) -> BeforeValidator:
    """A mapping without a name has settings of ``name``."""

    def complete(network: Any) -> Any:
        if isinstance(network, dict) and not network.keys() & {"model", "simulator", "command", "address"}:
            return {"model": name, **network}
        return network

    return BeforeValidator(complete)


class Hybrid(Spec):
    """Two networks in one run: scale-up domains (NVLink) in one, everything between them in the other."""

    scale_up: Annotated[NetworkName, _or("fair_share")] = Field(
        "fair_share", validate_default=True, description="network of the links within scale-up domains"
    )
    scale_out: Annotated[NetworkName, _or("ns3")] = Field(
        "ns3", validate_default=True, description="network of all other links"
    )

    @field_validator("scale_up", "scale_out")
    @classmethod
    def _not_again(cls, network: Any) -> Any:
        if isinstance(network, Hybrid):
            raise ValueError("a hybrid's networks are single ones")
        return network

    @property
    def shares_by_weight(self) -> bool:
        """Whether weights and priorities of jobs may matter: in either."""
        return any(getattr(spec, "shares_by_weight", True) for spec in (self.scale_up, self.scale_out))

    @property
    def uses_seed(self) -> bool:
        """Whether either draws from the run's seed."""
        return any(getattr(spec, "uses_seed", False) for spec in (self.scale_up, self.scale_out))

    def check_topology(self, topology: Topology) -> None:
        """Refuse a topology that has no scale-up domains, before anything is built.

        Raises
        ------
        TopologyError
            Says what would be right.
        """
        scale_up_links(topology)

    def idle_on(self, topology: Topology, jobs: Sequence[I32]) -> list[tuple[str, str]]:
        """(field, why) of a network that no job can send anything through; ``jobs`` are their endpoints."""
        domain = _domains(topology)
        places = [np.unique(endpoints) for endpoints in jobs]
        spans = [len(np.unique(domain[mine])) for mine in places]
        idle = []
        if all(count == len(mine) for count, mine in zip(spans, places, strict=True)):
            idle.append(("scale_up", "no job has two ranks in one scale-up domain"))
        if all(count == 1 for count in spans):
            idle.append(("scale_out", "every job sits within one scale-up domain"))
        return idle

    def build(self) -> NetworkSimulator:
        """A fresh network.

        Raises
        ------
        InputError
            Both are simulators elsewhere.
        """
        networks = self.scale_up.build(), self.scale_out.build()
        if all(hasattr(network, "log_to") for network in networks):
            raise InputError(
                "one network of a hybrid may be a simulator elsewhere, not both: the other has to say when its "
                "next completion comes",
                hint="for example scale_up: fair_share",
            )
        return HybridNetwork(*networks)
