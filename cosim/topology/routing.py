"""Routings by tables: cheapest paths over any directed graph: the first, or by hash or destination.

Cost is hops, unless the builder gave links other costs. Distances are found per destination, when a
destination is first asked for; endpoints that are linked to one switch share the table of that switch.
An endpoint with several equally good NICs has one for each channel, whatever switches go by, and the goal's
NIC goes with it.
Routing is static: paths do not react to load, and (source, destination, channel) always has the same one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import UnreachableError
from cosim.kernel import kernel
from cosim.topology.graph import I32, I64, Paths, Topology, check_endpoints
from cosim.topology.hop_tables import HopTables, pointer

_MOST_KEPT = 1 << 16
"""Links of paths that room is kept for from one question to the next."""


@dataclass(frozen=True, eq=False)
class _TableRouting(Paths):
    """What the table routings share; ``endpoints_forward`` lets a path pass through other endpoints, and
    ``to_switches`` begin and end at switches.
    """

    endpoints_forward: bool = False
    link_cost: I32 | None = None
    to_switches: bool = field(default=False, kw_only=True)
    _kept: list[Any] = field(default_factory=list, init=False, repr=False)

    def _tables(self, topology: Topology) -> HopTables:
        # A topology that differs in rates or latencies only (dataclasses.replace) keeps its tables.
        links = (topology.link_src, topology.link_dst)
        if not self._kept or self._kept[0] is not links[0] or self._kept[1] is not links[1]:
            forward, cost = self.endpoints_forward, self.link_cost
            made = HopTables.of(topology, forward, cost, to_switches=self.to_switches)
            places = self._places(topology)
            if self.to_switches and len(places):  # a switch is no place: it takes the first way
                places = np.append(places, np.zeros(topology.num_nodes - len(places), np.int64))
            made.put(place_of=places)
            self._kept[:] = [*links, made]
        tables: HopTables = self._kept[2]
        return tables

    @property
    def _way(self) -> tuple[int, int]:
        """Which of equal ways is taken, as the kernel calls it, and a seed."""
        return kernel.FIRST_WAY, 0

    def _places(self, topology: Topology) -> I64:
        """Digits of each destination, where they choose a way."""
        del topology
        return np.empty(0, np.int64)

    def with_switches(self) -> _TableRouting:
        """See :class:`~cosim.topology.graph.Paths`: as this routes between endpoints."""
        return replace(self, to_switches=True)

    def around(
        self, topology: Topology, dead: NDArray[np.bool_], src: I32, dst: I32, channel: I32
    ) -> tuple[I64, I32]:
        """See :class:`~cosim.topology.graph.Paths`: as this routes where nothing is dead."""
        from cosim.topology.around import paths_over

        cost = self.link_cost

        def routing(alive: NDArray[np.bool_]) -> _TableRouting:
            return replace(self, link_cost=None if cost is None else cost[alive])

        return paths_over(topology, ~dead, routing, src, dst, channel)

    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        """See :class:`~cosim.topology.graph.Paths`."""
        src, dst, channel = check_endpoints(topology, src, dst, channel, switches=self.to_switches)
        tables = self._tables(topology)
        with tables.lock:
            return self._find(topology, tables, src, dst, channel)

    def _find(
        self, topology: Topology, tables: HopTables, src: I32, dst: I32, channel: I32
    ) -> tuple[I64, I32]:
        if kernel.why_not() is not None:
            return self._find_plainly(topology, tables, src, dst, channel)
        root = tables.root_of[dst]
        if tables.has(root):
            return self._walk(topology, tables, src, dst, channel)
        batches = tables.batches(_distinct(root[src != dst], topology.num_nodes))
        if len(batches) <= 1:
            for batch in batches:
                tables.fill(batch)
            return self._walk(topology, tables, src, dst, channel)
        hops = np.zeros(len(src), np.int64)
        parts = []
        for batch in batches:
            at = np.flatnonzero(np.isin(root, batch) & (src != dst))
            tables.fill(batch)
            ptr, links = self._walk(topology, tables, src[at], dst[at], channel[at])
            hops[at] = np.diff(ptr)
            parts.append((at, ptr, links))
        total = pointer(hops)
        out = np.empty(int(total[-1]), np.int32)
        for at, ptr, links in parts:
            shift = np.repeat(total[at] - ptr[:-1], np.diff(ptr))
            out[np.arange(len(links)) + shift] = links
        return total, out

    def _find_plainly(
        self, topology: Topology, tables: HopTables, src: I32, dst: I32, channel: I32
    ) -> tuple[I64, I32]:
        from cosim.topology.plain_paths import find_paths

        found = find_paths(tables, src, dst, channel, *self._way)
        if isinstance(found, int):
            raise unreachable(topology, int(src[found]), int(dst[found]), self.endpoints_forward)
        return found

    def _walk(
        self, topology: Topology, tables: HopTables, src: I32, dst: I32, channel: I32
    ) -> tuple[I64, I32]:
        ptr = np.zeros(len(src) + 1, np.int64)
        failed = kernel.find_paths(tables, len(src), src, dst, channel, *self._way, ptr)
        if failed >= 0:
            raise unreachable(topology, int(src[failed]), int(dst[failed]), self.endpoints_forward)
        return ptr, _taken(tables, ptr)

    @property
    def has_alternatives(self) -> bool:
        """Every cheapest path."""
        return True

    def alternatives(self, topology: Topology, src: I32, dst: I32, most: int) -> tuple[I64, I64, I32]:
        """See :class:`~cosim.topology.graph.Paths`."""
        src, dst, _ = check_endpoints(topology, src, dst, dst)
        tables = self._tables(topology)
        if kernel.why_not() is not None:
            from cosim.topology.plain_paths import find_equal_paths

            paths = find_equal_paths(tables, src, dst, most)
            if isinstance(paths, int):
                raise unreachable(topology, int(src[paths]), int(dst[paths]), self.endpoints_forward)
            return paths
        root = tables.root_of[dst]
        counts, sizes, found = np.zeros(len(src), np.int64), [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        order = []
        with tables.lock:
            for batch in tables.batches(_distinct(root, topology.num_nodes)):
                tables.fill(batch)
                at = np.flatnonzero(np.isin(root, batch))
                count = np.zeros(len(at), np.int64)
                failed = kernel.find_equal_paths(tables, len(at), src[at], dst[at], most, count)
                if failed >= 0:
                    pair = int(src[at[failed]]), int(dst[at[failed]])
                    raise unreachable(topology, *pair, self.endpoints_forward)
                ptr = tables.found_ptr[: int(count.sum()) + 1]
                counts[at] = count
                order.append(np.repeat(at, count))
                sizes.append(np.diff(ptr))
                found.append(_taken(tables, ptr))
        return counts, *in_order(np.concatenate([*order, np.zeros(0, np.int64)]), sizes, found)


def _taken(tables: HopTables, ptr: I64) -> I32:
    """Links of the paths that were just found."""
    links: I32 = tables.found[: ptr[-1]].copy()
    if len(links) > _MOST_KEPT:
        tables.put(found=links[:0])
    return links


@dataclass(frozen=True, eq=False)
class ShortestPaths(_TableRouting):
    """The cheapest path; among equals, the lowest-numbered link. The channel chooses a NIC, and no more."""

    name: str = "shortest"


@dataclass(frozen=True, eq=False)
class EcmpPaths(_TableRouting):
    """Equal-cost multi-path, per flow: a hash of (source, destination, channel, seed) picks at each node.

    Each node mixes its own number into the hash, so that choices at successive nodes are independent;
    the hash polarisation of switches that all hash alike is not modelled, nor are flowlets, adaptive
    routing or packet spraying. RFC 2992 (analysis of ECMP).
    """

    seed: int = 0
    name: str = "ecmp"

    @property
    def _way(self) -> tuple[int, int]:
        return kernel.HASHED_WAY, self.seed


@dataclass(frozen=True, eq=False)
class DModKPaths(_TableRouting):
    """Destination modulo k: of k equal ways up, digit by digit the destination's place picks one.

    In a fat-tree with full bisection, shifts (each endpoint sends to the one n places on) share no link;
    InfiniBand's subnet managers route so. E. Zahavi, "D-Mod-K Routing Providing Non-Blocking Traffic for
    Shift Permutations on Real Life Fat Trees", Technion CCIT report 776, 2010. The channel plays no part.

    ``place_of`` int64[endpoints] numbers endpoints along the edge switches, ports of one switch in a row.
    """

    place_of: I64 | None = None
    name: str = "dmodk"

    @property
    def _way(self) -> tuple[int, int]:
        return kernel.WAY_BY_DESTINATION, 0

    def _places(self, topology: Topology) -> I64:
        place_of = np.arange(topology.num_endpoints) if self.place_of is None else self.place_of
        return np.ascontiguousarray(place_of, np.int64)


@dataclass(frozen=True, eq=False)
class ChannelPaths(_TableRouting):
    """Channel c takes way c modulo k of k equal ways, and what is left of c counts further on.

    So each channel of a collective has a NIC, a plane or a spine of its own, as far as there are some. What
    has one channel only takes the lowest-numbered links.
    """

    name: str = "by_channel"

    @property
    def _way(self) -> tuple[int, int]:
        return kernel.WAY_BY_CHANNEL, 0


def _distinct(nodes: I32, count: int) -> I64:
    """Which of so many nodes are among these, ascending."""
    among = np.zeros(count, np.bool_)
    among[nodes] = True
    return among.nonzero()[0]


def in_order(pair: I64, sizes: list[I64], found: list[I32]) -> tuple[I64, I32]:
    """Paths (ptr, links), given portion by portion with the pair of each, by the number of their pair."""
    size, links = np.concatenate(sizes), np.concatenate(found)
    if len(found) <= _ONE_PORTION:
        return pointer(size), links
    order = np.argsort(pair, kind="stable")
    ptr, old = pointer(size[order]), pointer(size)
    shift = np.repeat(old[order] - ptr[:-1], size[order])
    return ptr, links[np.arange(len(links)) + shift]


_ONE_PORTION = 2


def unreachable(topology: Topology, src: int, dst: int, endpoints_forward: bool) -> UnreachableError:
    """The error for a pair without a path: both names, and how many nodes either side has."""
    side = reached_from(topology, src, endpoints_forward)
    other = _closure(topology, dst, topology.link_dst, topology.link_src, endpoints_forward)
    names = topology.node_names
    text = (
        f"no path from {names[src]} to {names[dst]} in {topology.name}: it is partitioned; of "
        f"{topology.num_nodes} nodes, {names[src]} reaches {side.sum()} (itself included), and "
        f"{other.sum()} reach {names[dst]}"
    )
    if not endpoints_forward and reached_from(topology, src, endpoints_forward=True)[dst]:
        text += "; there is a way through other endpoints, but endpoints do not forward here"
    return UnreachableError(text)


def reached_from(topology: Topology, src: int, endpoints_forward: bool) -> NDArray[np.bool_]:
    """Nodes that an endpoint has a path to: bool[nodes]."""
    reached: NDArray[np.bool_] = _closure(
        topology, src, topology.link_src, topology.link_dst, endpoints_forward
    )
    return reached


def _closure(topology: Topology, start: int, tail: I32, head: I32, everyone: bool) -> Any:
    """Nodes reached from ``start``, following links from ``tail`` to ``head``."""
    reached = np.zeros(topology.num_nodes, np.bool_)
    reached[start] = True
    relays = np.ones(topology.num_nodes, np.bool_)
    relays[: topology.num_endpoints] = everyone
    relays[start] = True
    while True:
        found = head[(reached & relays)[tail]]
        if reached[found].all():
            return reached
        reached[found] = True
