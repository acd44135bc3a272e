"""Paths around dead links: routing over what is left of a topology."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.errors import UnreachableError
from cosim.topology.graph import I32, I64, Paths, Topology
from cosim.topology.routing import ShortestPaths, reached_from

Mask = NDArray[np.bool_]


def cheapest_around(topology: Topology, dead: Mask, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
    """The cheapest paths over what is left, each link one hop; see :meth:`Paths.around`."""
    forward = topology.routing.endpoints_forward
    return paths_over(topology, ~dead, lambda _: ShortestPaths(forward), src, dst, channel)


def paths_over(
    topology: Topology,
    alive: Mask,
    routing: Callable[[Mask], Paths],
    src: I32,
    dst: I32,
    channel: I32,
) -> tuple[I64, I32]:
    """Paths by ``routing`` (of the mask of links alive) over those links alone, in the topology's numbers; a
    row has no links where there is none.
    """
    links = np.flatnonzero(alive).astype(np.int32)
    left = replace(
        topology,
        link_src=topology.link_src[links],
        link_dst=topology.link_dst[links],
        link_rate_bps=topology.link_rate_bps[links],
        link_latency_ps=topology.link_latency_ps[links],
        routing=routing(alive),
        scale_up=None,
        link_number=None,
        changes=None,
    )
    try:
        ptr, found = left.paths(src, dst, channel)
    except UnreachableError:
        there = np.zeros(len(src), np.bool_)
        for one in np.unique(src).tolist():
            rows = src == one
            there[rows] = reached_from(left, one, left.routing.endpoints_forward)[dst[rows]]
        some, found = left.paths(src[there], dst[there], channel[there])
        hops = np.zeros(len(src), np.int64)
        hops[there] = np.diff(some)
        ptr = np.concatenate([[0], np.cumsum(hops)]).astype(np.int64)
    return ptr, links[found]
