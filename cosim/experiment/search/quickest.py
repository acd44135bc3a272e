"""What the fabric lets an endpoint send at most, and how soon a message is there at least."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.topology.graph import I32, I64, Topology
from cosim.topology.scale_up import domains
from cosim.units import PS_PER_NS, PS_PER_S

INSIDE, OUTSIDE = 0, 1
"""Whether a pair of endpoints is in one scale-up domain. Without such domains all are outside."""
_ROUNDING = 1e-9
"""Relative: what adding up rates may be off by."""
_STARTS = 128
"""Endpoints from which paths are looked at."""


@dataclass(frozen=True)
class Quickest:
    """The quickest endpoint there is, so that none is quicker: INSIDE over all its links, OUTSIDE over those
    that lead out of its scale-up domain.

    ``rate_bps`` and ``latency_ps`` of both; ``domain`` of each endpoint. Times are
    rounded down to nanoseconds, as ASTRA-sim's are.
    """

    rate_bps: tuple[float, float]
    latency_ps: tuple[int, int]
    domain: tuple[int, ...]

    def least_ps(self, size_bytes: I64, side: int | NDArray[np.int64]) -> I64:
        """What messages of these sizes take to one side, whatever else there is: int64, picoseconds."""
        sent = size_bytes * (8 * PS_PER_S / np.array(self.rate_bps))[side]
        takes = (sent * (1 - _ROUNDING)).astype(np.int64), np.array(self.latency_ps)[side]
        return np.asarray(sum(one // PS_PER_NS * PS_PER_NS for one in takes), np.int64)

    def sides(self, src: I32 | I64, dst: I32 | I64) -> NDArray[np.int64]:
        """INSIDE or OUTSIDE of pairs of endpoints."""
        where = np.array(self.domain)
        return np.where(where[src] == where[dst], INSIDE, OUTSIDE).astype(np.int64)


def quickest_of(topology: Topology) -> Quickest | None:
    """The quickest endpoint of a topology; None where endpoints forward for others, or links change."""
    if topology.changes is not None:
        return None
    count = topology.num_endpoints
    scale_up = topology.scale_up
    if scale_up is None or not scale_up.any() or scale_up.all():
        inside = np.zeros(topology.num_links, np.bool_)
        domain = np.arange(count)
    elif topology.routing.endpoints_forward:  # a peer's NIC may be on the way
        return None
    else:
        inside, domain = scale_up, domains(topology)
    every = np.ones(topology.num_links, np.bool_)
    rates = []
    for links in (every, ~inside):
        into = _per_endpoint(topology.link_dst, topology.link_rate_bps, links, count)
        out = _per_endpoint(topology.link_src, topology.link_rate_bps, links, count)
        rates.append(float(min(into.max(), out.max())))
    if min(rates) <= 0:
        return None
    return Quickest((rates[0], rates[1]), _latencies(topology, domain), tuple(domain.tolist()))


def _latencies(topology: Topology, domain: I64) -> tuple[int, int]:
    """The least of a path to either side, from some endpoints to all; 0 where there is none."""
    count = topology.num_endpoints
    some = np.unique(np.linspace(0, count - 1, _STARTS).astype(np.int32))
    src, dst = (one.ravel().astype(np.int32) for one in np.meshgrid(some, np.arange(count), indexing="ij"))
    src, dst = src[src != dst], dst[src != dst]
    ptr, links = topology.paths(src, dst, np.zeros(len(src), np.int32))
    until = np.concatenate([[0], np.cumsum(topology.link_latency_ps[links])])
    latency = until[ptr[1:]] - until[ptr[:-1]]
    near = domain[src] == domain[dst]
    inside, outside = latency[near], latency[~near]
    return (
        int(inside.min()) if len(inside) else 0,
        int(outside.min()) if len(outside) else 0,
    )


def _per_endpoint(
    ends: I32, rate_bps: NDArray[np.float64], links: NDArray[np.bool_], count: int
) -> NDArray[np.float64]:
    """Rates of each endpoint's links together."""
    mine = links & (ends < count)
    return np.asarray(np.bincount(ends[mine], rate_bps[mine], minlength=count), np.float64)
