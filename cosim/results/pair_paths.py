"""What the network would take for a message with nothing else on it: of each pair of endpoints that sent, its
path's slowest link and latencies. Slowdowns are times by that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.engine.records import F64, I64, Records

MOST_PAIRS = 20_000


@dataclass(frozen=True, eq=False)
class PairPaths:
    """Each pair: endpoints, bits per second of the slowest link, latencies of all links."""

    src: I64
    dst: I64
    rate_bps: F64
    latency_ps: I64

    def alone_ps(self, src: I64, dst: I64, size_bytes: I64) -> F64:
        """Times of messages, with the path to themselves and no packets; NaN of pairs that aren't known."""
        key = self.src << 32 | self.dst
        order = np.argsort(key)
        wanted = src.astype(np.int64) << 32 | dst
        if not len(key):
            return np.full(len(src), np.nan)
        at = order[np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)]
        took = size_bytes * 8e12 / self.rate_bps[at] + self.latency_ps[at]
        return np.where(key[at] == wanted, took, np.nan)


def pair_paths(records: Records) -> PairPaths:
    """By the routing's paths of channel 0; of none where more than :data:`MOST_PAIRS` sent."""
    traffic, topology = records.traffic, records.topology
    sent = np.flatnonzero((traffic.pair_bytes > 0) & (traffic.src != traffic.dst))
    if len(sent) > MOST_PAIRS:
        sent = sent[:0]
    src, dst = traffic.src[sent], traffic.dst[sent]
    ptr, links = topology.paths(src, dst, np.zeros(len(sent), np.int32))
    on_links = np.diff(ptr) > 0  # two ranks on one endpoint have no path
    starts, links = ptr[:-1][on_links], links.astype(np.int64)
    none = not len(starts)
    rate = np.zeros(0) if none else np.minimum.reduceat(topology.link_rate_bps[links], starts)
    latency = np.zeros(0, np.int64) if none else np.add.reduceat(topology.link_latency_ps[links], starts)
    ends = src[on_links].astype(np.int64), dst[on_links].astype(np.int64)
    return PairPaths(*ends, np.asarray(rate, np.float64), np.asarray(latency, np.int64))
