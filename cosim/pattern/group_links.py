"""The links between a group's ranks: what algorithms that are made for a fabric go by.

Links between two endpoints of the group are there as they are. Endpoints below switches are given a
ring through them, in the group's order: what TACOS calls unwinding a switch to degree one (W. Won et al.,
"TACOS: Topology-Aware Collective Algorithm Synthesizer for Distributed Machine Learning", MICRO 2024, arXiv
2304.05301).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.topology.graph import I64, Topology
from cosim.topology.hop_tables import pointer

Link = tuple[int, int, float, int]
"""Source and destination by position in the group, bits per second, latency in ps."""


@dataclass(frozen=True, slots=True)
class GroupLinks:
    """Links of a group of ``num_ranks``: from endpoint to endpoint, and those made of ways over switches."""

    num_ranks: int
    direct: tuple[Link, ...]
    switched: tuple[Link, ...]

    @property
    def all(self) -> tuple[Link, ...]:
        """One link a pair: the direct one where there are both."""
        there = {link[:2] for link in self.direct}
        return self.direct + tuple(link for link in self.switched if link[:2] not in there)


def group_links(topology: Topology, endpoints: tuple[int, ...]) -> GroupLinks:
    """The links between ranks on these endpoints; several between two are one of their summed rate."""
    n = topology.num_endpoints
    position = np.full(topology.num_nodes, -1, np.int64)
    position[list(endpoints)] = np.arange(len(endpoints))
    src, dst = position[topology.link_src], position[topology.link_dst]
    direct: dict[tuple[int, int], Link] = {}
    for link in np.flatnonzero((src >= 0) & (dst >= 0)).tolist():
        pair = int(src[link]), int(dst[link])
        rate, latency = float(topology.link_rate_bps[link]), int(topology.link_latency_ps[link])
        before = direct.get(pair, (*pair, 0.0, latency))
        direct[pair] = (*pair, before[2] + rate, max(before[3], latency))
    up = (topology.link_src < n) & (topology.link_dst >= n)
    around = _next_over_switches(topology, endpoints, up) if up.any() else np.zeros((0, 2), np.int64)
    return GroupLinks(len(endpoints), tuple(direct.values()), _over_paths(topology, endpoints, around))


def _next_over_switches(topology: Topology, endpoints: tuple[int, ...], up: np.ndarray) -> I64:
    """Pairs of positions: each rank and the next one whose endpoint has the same piece of switches."""
    n = topology.num_endpoints
    label = np.arange(topology.num_nodes)
    inner = (topology.link_src >= n) & (topology.link_dst >= n)
    while True:
        before = label.copy()
        np.minimum.at(label, topology.link_dst[inner], label[topology.link_src[inner]])
        np.minimum.at(label, topology.link_src[inner], label[topology.link_dst[inner]])
        if (label == before).all():
            break
    pairs: dict[tuple[int, int], None] = {}
    for piece in np.unique(label[topology.link_dst[up]]).tolist():
        hang = set(topology.link_src[up][label[topology.link_dst[up]] == piece].tolist())
        ring = [place for place, endpoint in enumerate(endpoints) if endpoint in hang]
        if len(ring) > 1:
            pairs |= dict.fromkeys(zip(ring, [*ring[1:], ring[0]], strict=True))
    return np.array(list(pairs), np.int64).reshape(-1, 2)


def _over_paths(topology: Topology, endpoints: tuple[int, ...], pairs: I64) -> tuple[Link, ...]:
    """Each pair as one link: as slow as its path's slowest, as long as all of it."""
    if not len(pairs):
        return ()
    ends = np.array(endpoints, np.int32)[pairs]
    ptr, links = topology.paths(ends[:, 0], ends[:, 1], np.zeros(len(ends), np.int32))
    rate = np.minimum.reduceat(topology.link_rate_bps[links], ptr[:-1])
    latency = np.diff(pointer(topology.link_latency_ps[links])[ptr])
    return tuple(
        (int(a), int(b), float(r), int(t)) for (a, b), r, t in zip(pairs, rate, latency, strict=True)
    )
