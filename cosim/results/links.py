"""Links: utilisation over time, and which are busiest.

Utilisation is time busy over time; a fluid network counts the fraction of the rate in use. A network that
keeps no queues (congestion-unaware) may report more than a link can carry: that is what "unaware" means.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.network.simulator import NetworkStatistics
from cosim.topology.graph import Topology
from cosim.units import PS_PER_S

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

SHOWN_BINS = 32
"""A summary keeps at most this many points of a link's utilisation over time."""


@dataclass(frozen=True)
class LinkSummary:
    """One link. ``utilisation`` is over the whole run, ``peak_utilisation`` that of the network's busiest
    bin, ``over_time`` the utilisation in equal parts of the run, from its start. ``tier``: where hosts have
    scale-up links, ``scale-up``, ``NIC`` or ``fabric``; empty elsewhere.
    """

    link: int
    name: str
    rate_bps: float
    sent_bytes: int
    mean_rate_bps: float
    busy_ps: int
    utilisation: float
    peak_utilisation: float
    over_time: tuple[float, ...]
    tier: str = ""


@dataclass(frozen=True)
class LinkTotals:
    """All links together: how many carried anything, what, and how busy those were on average."""

    links: int
    used: int
    sent_bytes: int
    mean_utilisation: float
    max_utilisation: float
    bin_ps: int


def bin_lengths(statistics: NetworkStatistics, end_ps: int) -> I64:
    """Length of each bin that the run reached, the last one cut at ``end_ps``: int64[B]."""
    edges = np.minimum(np.arange(len(statistics.busy_ps) + 1, dtype=np.int64) * statistics.bin_ps, end_ps)
    lengths = np.diff(edges)
    return np.asarray(lengths[lengths > 0], np.int64)


def utilisation_over_time(statistics: NetworkStatistics, end_ps: int) -> F64:
    """float64[B, L]: utilisation of each link in each bin that the run reached."""
    lengths = bin_lengths(statistics, end_ps)
    return np.asarray(statistics.busy_ps[: len(lengths)] / np.maximum(lengths, 1)[:, None], np.float64)


def busiest(statistics: NetworkStatistics, count: int) -> I64:
    """Numbers of the links that were busy longest, then of those that carried most; unused ones left out.

    A millionth of the busiest link's time decides nothing, so that links alike stay in their order.
    """
    busy, size = statistics.link_busy_ps, statistics.link_bytes
    coarse = np.round(busy / max(int(busy.max(initial=0)), 1), 6)
    order = np.lexsort((np.arange(len(size)), -size, -coarse))[:count]
    return np.asarray(order[(busy[order] > 0) | (size[order] > 0)], np.int64)


def summarize_links(
    topology: Topology, statistics: NetworkStatistics, end_ps: int, count: int
) -> tuple[LinkSummary, ...]:
    """The ``count`` busiest links, and the busiest of each tier that is not among them."""
    busy, span = statistics.link_busy_ps, max(end_ps, 1)
    lengths = bin_lengths(statistics, end_ps)
    order, tiers = busiest(statistics, len(busy)), _tiers(topology)
    first = np.unique(tiers[order], return_index=True)[1]
    chosen = order[np.union1d(np.arange(min(count, len(order))), first)]
    columns = statistics.busy_ps[: len(lengths), chosen]
    peak = (columns / lengths[:, None]).max(axis=0) if len(lengths) else np.zeros(len(chosen))
    coarse = _coarser(columns, lengths)
    return tuple(
        LinkSummary(
            link=int(link),
            name=topology.link_name(int(link)),
            rate_bps=float(topology.link_rate_bps[link]),
            sent_bytes=int(statistics.link_bytes[link]),
            mean_rate_bps=int(statistics.link_bytes[link]) * 8 * PS_PER_S / span,
            busy_ps=int(busy[link]),
            utilisation=int(busy[link]) / span,
            peak_utilisation=float(peak[i]),
            over_time=tuple(round(float(u), 6) for u in coarse[:, i]),
            tier=_TIERS[tiers[link]],
        )
        for i, link in enumerate(chosen)
    )


_TIERS = ("", "scale-up", "NIC", "fabric")


def _tiers(topology: Topology) -> I64:
    """Number of each link's tier: int64[links], all 0 where no host has scale-up links."""
    if topology.scale_up is None or not topology.scale_up.any():
        return np.zeros(topology.num_links, np.int64)
    ends = (topology.link_src < topology.num_endpoints) | (topology.link_dst < topology.num_endpoints)
    return np.where(topology.scale_up, 1, np.where(ends, 2, 3)).astype(np.int64)


def summarize_link_totals(statistics: NetworkStatistics, end_ps: int) -> LinkTotals:
    """Totals over every link."""
    busy = statistics.link_busy_ps
    used = (busy > 0) | (statistics.link_bytes > 0)
    share = busy[used] / max(end_ps, 1)
    return LinkTotals(
        links=len(busy),
        used=int(used.sum()),
        sent_bytes=int(statistics.link_bytes.sum()),
        mean_utilisation=float(share.mean()) if len(share) else 0.0,
        max_utilisation=float(share.max()) if len(share) else 0.0,
        bin_ps=statistics.bin_ps,
    )


def _coarser(busy_ps: I64, lengths: I64) -> F64:
    """Utilisation in at most ``SHOWN_BINS`` parts, each made of whole bins: float64[parts, links]."""
    bins = len(lengths)
    if bins == 0:
        return np.zeros((0, busy_ps.shape[1]))
    parts = min(bins, SHOWN_BINS)
    first = np.arange(parts) * bins // parts
    total = np.add.reduceat(busy_ps, first, axis=0)
    return np.asarray(total / np.add.reduceat(lengths, first)[:, None], np.float64)
