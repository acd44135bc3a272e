"""Which paths a pair of endpoints has to choose from: built once a pair, as rows of links.

The paths of equal cost that the topology's routing knows, at most :data:`MOST_PATHS` (where there are more,
so many of them, others for each pair); for balancers that take detours, further ones by way of other
endpoints' switches: from the source to another endpoint and on to the destination, without the link down to
that endpoint and back up where endpoints don't forward.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.network.balancing.ask import CANDIDATE, PAIR
from cosim.network.core import ChannelNumbers
from cosim.network.flows import I32, I64
from cosim.topology.graph import Topology

MOST_PATHS = 64
"""The most paths of equal cost; and as many detours."""


class Candidates:
    """Pairs of endpoints are numbered as they are first met."""

    def __init__(self, topology: Topology, *, detours: bool) -> None:
        self._topology = topology
        self._detours = detours
        self._numbers = ChannelNumbers()
        self.pairs = np.zeros(0, PAIR)
        self.paths = np.zeros(0, CANDIDATE)
        self.links = np.zeros(0, np.int32)

    def of(self, src: I32, dst: I32) -> I32:
        """The number of each row's pair, int32[R]; new ones get their paths."""
        old = len(self._numbers)
        none = np.zeros(len(src), np.int32)
        number = self._numbers.number(0, src, dst, none)
        if len(self._numbers) > old:
            new, row = np.unique(number, return_index=True)
            row = row[new >= old]
            self._add(src[row], dst[row])
        return number

    def _add(self, src: I32, dst: I32) -> None:
        topology = self._topology
        count, ptr, links = topology.routing.alternatives(topology, src, dst, MOST_PATHS)
        minimal = np.ones(len(ptr) - 1, np.float64)
        if self._detours:
            count, ptr, links, minimal = self._with_detours(src, dst, count, ptr, links)
        pairs = np.zeros(len(src), PAIR)
        pairs["count"] = count
        pairs["first"] = len(self.paths) + np.cumsum(count) - count
        paths = np.zeros(len(ptr) - 1, CANDIDATE)
        paths["begin"], paths["end"], paths["minimal"] = ptr[:-1], ptr[1:], minimal
        sums = np.concatenate([[0], np.cumsum(topology.link_latency_ps[links])])
        paths["latency"] = sums[ptr[1:]] - sums[ptr[:-1]]
        has = np.diff(ptr) > 0
        paths["rate"][has] = (
            np.minimum.reduceat(topology.link_rate_bps[links], ptr[:-1][has]) if has.any() else 0.0
        )
        _mark_own(paths, links, np.cumsum(count) - count, count)
        for name in ("begin", "end", "own", "own_end"):
            paths[name] += len(self.links)
        self.pairs = np.concatenate([self.pairs, pairs])
        self.paths = np.concatenate([self.paths, paths])
        self.links = np.concatenate([self.links, links.astype(np.int32)])

    def _with_detours(
        self, src: I32, dst: I32, count: I64, ptr: I64, links: I32
    ) -> tuple[I64, I64, I32, NDArray[np.float64]]:
        """The same with longer paths after the others: (count, ptr, links, which are the shortest)."""
        parts: list[list[int]] = []
        sizes, minimal = [], []
        first = np.cumsum(count) - count
        for pair, (a, b) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
            begin = int(first[pair])
            short = [links[ptr[p] : ptr[p + 1]].tolist() for p in range(begin, begin + int(count[pair]))]
            known = {tuple(path): None for path in short}
            known |= {tuple(path): None for path in self._detours_of(a, b)}
            parts += map(list, known)
            sizes.append(len(known))
            minimal += [1.0] * len(short) + [0.0] * (len(known) - len(short))
        lengths = np.array([0, *map(len, parts)], np.int64)
        flat = np.array([link for path in parts for link in path], np.int32)
        return np.array(sizes, np.int64), np.cumsum(lengths), flat, np.array(minimal)

    def _detours_of(self, src: int, dst: int) -> Iterator[list[int]]:
        """Paths by way of other endpoints' switches, without those that pass a node twice."""
        topology = self._topology
        by = np.array([one for one in self._middles if one not in (src, dst)], np.int32)
        none, many = np.zeros(len(by), np.int32), len(by)
        one, first = topology.paths(np.full(many, src, np.int32), by, none)
        two, then = topology.paths(by, np.full(many, dst, np.int32), none)
        for k in range(many):
            up, down = first[one[k] : one[k + 1]].tolist(), then[two[k] : two[k + 1]].tolist()
            while not topology.routing.endpoints_forward and up and down:
                if topology.link_src[up[-1]] != topology.link_dst[down[0]]:
                    break
                up.pop()
                down.pop(0)
            path = up + down
            nodes = [src, *topology.link_dst[path].tolist()]
            if path and len(set(nodes)) == len(nodes):
                yield path

    @cached_property
    def _middles(self) -> list[int]:
        """Endpoints to go by way of, on switches of their own, evenly spread where there are many."""
        topology = self._topology
        edge = np.arange(topology.num_endpoints)
        if not topology.routing.endpoints_forward:
            up = np.flatnonzero(topology.link_src < topology.num_endpoints)
            edge[topology.link_src[up]] = topology.link_dst[up]
        _, first = np.unique(edge, return_index=True)
        found: list[int] = np.sort(first)[:: max(1, -(-len(first) // MOST_PATHS))].tolist()
        return found


def _mark_own(paths: NDArray[Any], links: I32, first: I64, count: I64) -> None:
    """Leave out the links with which all paths of a pair begin, and those with which they end."""
    paths["own"], paths["own_end"] = paths["begin"], paths["end"]
    pair = np.repeat(np.arange(len(count)), count)
    for name, step in (("own", 1), ("own_end", -1)):
        shared = count[pair] > 1
        while shared.any():  # as long as all of a pair have the same link there
            left = shared & (paths["own"] < paths["own_end"])
            at = paths[name] - (step < 0)
            link = links[np.where(left, at, 0)] if len(links) else at
            same = left & (link == link[first[pair]]) & left[first[pair]]
            alike = np.ones(len(count), np.bool_)
            np.logical_and.at(alike, pair, same)
            shared = shared & alike[pair]
            paths[name][shared] += step
