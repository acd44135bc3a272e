"""Do a job's messages look the same from every replica? Links under translations.

Every path is looked at. A translation of ranks must take paths to paths, link by link, so that it is a
permutation of the links in use which keeps rates and latencies; and no two images of one link may be the same
link, so that what a representative's messages meet on a link is just what each image meets on its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.engine.folding.translations import Translations
from cosim.network.flows import I32, I64
from cosim.topology.graph import Paths, Topology


@dataclass(frozen=True, eq=False)
class SendingPairs:
    """Who sends to whom: the representatives' messages, ranks and channel, each once."""

    src: I64
    dst: I64
    channel: I64


@dataclass(frozen=True, eq=False)
class FoldedPaths(Paths):
    """A topology's routing whose links are replaced by those that stand for them: ``stands_for`` int32[L]."""

    whole: Topology
    stands_for: I32

    @property
    def name(self) -> str:
        """As that of the routing below."""
        return self.whole.routing.name

    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        """See :class:`~cosim.topology.graph.Paths`."""
        del topology
        ptr, links = self.whole.routing.paths(self.whole, src, dst, channel)
        return ptr, np.ascontiguousarray(self.stands_for[links])


class Routes:
    """Paths between ranks, each found once however many foldings are tried.

    ``hops`` int64[found] and ``ptr`` int64[found] say how long the path of each is and where in ``links``
    int32 it begins.
    """

    def __init__(self, topology: Topology, endpoints: I32) -> None:
        self._topology, self._endpoints = topology, endpoints
        self._codes = np.zeros(0, np.int64)
        self.ptr, self.hops, self.links = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32)

    def find(self, src: I64, dst: I64, channel: I64) -> I64:
        """The number of the path of each (source rank, destination rank, channel)."""
        world = len(self._endpoints)
        # One number a pair and channel, so that known ones are found by bisection.
        codes = (channel * world + src) * world + dst
        at = np.searchsorted(self._codes, codes)
        is_new = np.ones(codes.shape, np.bool_)
        inside = at < len(self._codes)
        is_new[inside] = self._codes[at[inside]] != codes[inside]
        if not is_new.any():
            return at
        self._add(np.unique(codes[is_new]))
        return np.searchsorted(self._codes, codes)

    def _add(self, codes: I64) -> None:
        world = len(self._endpoints)
        channel, src, dst = codes // world**2, codes // world % world, codes % world
        ptr, links = self._topology.paths(
            self._endpoints[src], self._endpoints[dst], channel.astype(np.int32)
        )
        # `links` only grows at its end: where known paths begin stays true, and only the index is put in
        # order.
        every = np.concatenate([self._codes, codes])
        order = np.argsort(every)
        self._codes = every[order]
        self.ptr = np.concatenate([self.ptr, ptr[:-1] + len(self.links)])[order]
        self.hops = np.concatenate([self.hops, np.diff(ptr)])[order]
        self.links = np.concatenate([self.links, links])


def link_orbits(
    topology: Topology, routes: Routes, pairs: SendingPairs, translations: Translations
) -> I64 | str:
    """Orbits of the links in use, int64[orbits, copies], the first of each standing for the rest.

    A text where translations are no symmetry, which says what differs.
    """
    src, dst = translations.images(pairs.src), translations.images(pairs.dst)
    path = routes.find(src, dst, np.broadcast_to(pairs.channel, src.shape))
    hops = routes.hops[path]
    uneven = np.argwhere(hops != hops[0])
    if len(uneven):
        g, p = uneven[0].tolist()
        return (
            f"ranks {pairs.src[p]} and {pairs.dst[p]} are {hops[0, p]} links apart, ranks {src[g, p]} and "
            f"{dst[g, p]} in their place {hops[g, p]}"
        )
    # The hop's number within its path, for all paths in a row; rows below: a hop of a pair, a column each
    # image.
    along = np.arange(int(hops[0].sum())) - np.repeat(np.cumsum(hops[0]) - hops[0], hops[0])
    rows = routes.links[np.repeat(routes.ptr[path], hops[0], axis=1) + along].T.astype(np.int64)
    for name, column in (("rate", topology.link_rate_bps), ("latency", topology.link_latency_ps)):
        values = column[rows]
        unlike = np.argwhere(values != values[:, :1])
        if len(unlike):
            k, g = unlike[0].tolist()
            one, other = topology.link_name(int(rows[k, 0])), topology.link_name(int(rows[k, g]))
            return f"{other} stands where {one} does, with another {name}"
    # If two images of a link were one link, images would meet there what no representative meets.
    ordered = np.sort(rows, axis=1)
    twice = np.argwhere(ordered[:, 1:] == ordered[:, :-1])
    if len(twice):
        k, g = twice[0].tolist()
        shared = topology.link_name(int(ordered[k, g]))
        return f"{shared} is shared by messages of ranks in the same place"
    # Different pairs meet the same link as the image of different translations: rows become comparable first.
    orbits = _different(translations.canonical(rows))
    used, count = np.unique(orbits, return_counts=True)
    if len(used) != orbits.size:
        crossed = topology.link_name(int(used[count > 1][0]))
        return f"{crossed} has different neighbours seen from different ranks"
    return orbits


def _different(rows: I64) -> I64:
    """Each row once, in their order: by their first values alone where those tell them apart."""
    _, first, of = np.unique(rows[:, 0], return_index=True, return_inverse=True)
    chosen = rows[first]
    return chosen if np.array_equal(chosen[of], rows) else np.unique(rows, axis=0)
