"""ASTRA-sim's ``network.yml``: 1 to N dimensions of Ring, FullyConnected and Switch.

A bandwidth of v means v * 2^30 bytes a second of each link, a latency of v nanoseconds
(see :mod:`cosim.formats.astra_sim.topology`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cosim.formats.astra_sim.topology import BPS_PER_GIB
from cosim.topology.graph import Topology
from cosim.topology.grid import Dimension, DimensionOrdered, grid_links
from cosim.translation.loss_report import LossReport
from cosim.units import PS_PER_NS


def dimensions_of(topology: Topology) -> tuple[Dimension, ...]:
    """The dimensions of a topology that ASTRA-sim's notation has; none for others.

    Whatever it was made by: it counts that nodes and links are those of a grid.
    """
    if isinstance(topology.routing, DimensionOrdered):
        return topology.routing.dimensions
    return _one_dimension(topology)


def _one_dimension(topology: Topology) -> tuple[Dimension, ...]:
    """A grid of one dimension, recognised by its links, whatever routes on it."""
    if not topology.num_links or topology.num_endpoints < 2:
        return ()
    rates, latencies = np.unique(topology.link_rate_bps), np.unique(topology.link_latency_ps)
    if len(rates) > 1 or len(latencies) > 1:
        return ()
    mine = sorted(zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True))
    for kind in ("Ring", "FullyConnected", "Switch"):
        one = Dimension(kind, topology.num_endpoints, float(rates[0]), int(latencies[0]))
        _, src, dst, _, _ = grid_links([one])
        if sorted(zip(src.tolist(), dst.tolist(), strict=True)) == mine:
            return (one,)
    return ()


def stand_in(topology: Topology) -> Dimension:
    """One switch with the rate of the endpoints' slowest link and half of the longest latency of a path."""
    own = topology.link_src < topology.num_endpoints
    rate = float(topology.link_rate_bps[own].min()) if own.any() else BPS_PER_GIB
    last = topology.num_endpoints - 1
    _, links = topology.paths(*(np.array([n], np.int32) for n in (0, last, 0)))
    latency = int(topology.link_latency_ps[links].sum())
    return Dimension("Switch", topology.num_endpoints, rate, latency // 2)


def said_to_be(topology: Topology) -> Topology:
    """A topology under the name of what ASTRA-sim was told it is."""
    if dimensions_of(topology):
        return topology
    return replace(topology, name=f"Switch({topology.num_endpoints}) in place of {topology.name}")


def network_of(topology: Topology, report: LossReport) -> dict[str, Any]:
    """The four lists, and what of the topology they don't say."""
    found = dimensions_of(topology)
    if not found:
        one = stand_in(topology)
        report.lost(
            "topology", 1, f"{topology.name}: a single switch there, at the rate of an endpoint's link"
        )
        found = (one,)
    return {
        "topology": [d.kind for d in found],
        "npus_count": [d.size for d in found],
        "bandwidth": [d.rate_bps / BPS_PER_GIB for d in found],
        "latency": [d.latency_ps / PS_PER_NS for d in found],
    }
