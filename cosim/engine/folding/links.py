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
    """A routing whose links are replaced by those that stand for them: ``stands_for`` int32[L]."""

    routing: Paths
    stands_for: I32

    @property
    def name(self) -> str:
        """As that of the routing below."""
        return self.routing.name

    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        """See :class:`~cosim.topology.graph.Paths`."""
        ptr, links = self.routing.paths(topology, src, dst, channel)
        return ptr, np.ascontiguousarray(self.stands_for[links])


def link_orbits(
    topology: Topology, endpoints: I32, pairs: SendingPairs, translations: Translations
) -> I64 | str:
    """Orbits of the links in use, int64[orbits, copies], the first of each standing for the rest.

    A text where translations are no symmetry, which says what differs.
    """
    src, dst = translations.images(pairs.src), translations.images(pairs.dst)
    shape, copies = src.shape, translations.copies
    channel = np.broadcast_to(pairs.channel, shape).astype(np.int32)
    ptr, links = topology.paths(
        endpoints[src.reshape(-1)], endpoints[dst.reshape(-1)], np.ascontiguousarray(channel.reshape(-1))
    )
    hops = np.diff(ptr).reshape(shape)
    uneven = np.argwhere(hops != hops[0])
    if len(uneven):
        g, p = uneven[0].tolist()
        return (
            f"ranks {pairs.src[p]} and {pairs.dst[p]} are {hops[0, p]} links apart, ranks {src[g, p]} and "
            f"{dst[g, p]} in their place {hops[g, p]}"
        )
    rows = links.reshape(copies, -1).T.astype(np.int64)
    for name, column in (("rate", topology.link_rate_bps), ("latency", topology.link_latency_ps)):
        values = column[rows]
        unlike = np.argwhere(values != values[:, :1])
        if len(unlike):
            k, g = unlike[0].tolist()
            one, other = topology.link_name(int(rows[k, 0])), topology.link_name(int(rows[k, g]))
            return f"{other} stands where {one} does, with another {name}"
    ordered = np.sort(rows, axis=1)
    twice = np.argwhere(ordered[:, 1:] == ordered[:, :-1])
    if len(twice):
        k, g = twice[0].tolist()
        shared = topology.link_name(int(ordered[k, g]))
        return f"{shared} is shared by messages of ranks in the same place"
    orbits = np.unique(translations.canonical(rows), axis=0)
    used, count = np.unique(orbits, return_counts=True)
    if len(used) != orbits.size:
        crossed = topology.link_name(int(used[count > 1][0]))
        return f"{crossed} has different neighbours seen from different ranks"
    return np.asarray(orbits, np.int64)
