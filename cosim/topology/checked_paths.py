"""Paths of a routing that somebody plugged in, looked at before a network goes by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cosim.answers import is_foreign, misfit
from cosim.errors import TopologyError

if TYPE_CHECKING:
    from cosim.topology.graph import I32, I64, Paths, Topology


def checked_paths(routing: Paths, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
    """What ``routing.paths`` gives; see :class:`~cosim.topology.graph.Paths`.

    Raises
    ------
    TopologyError
        A plug-in gave something else than paths from each source to its destination.
    """
    if not hasattr(routing, "paths"):
        raise TopologyError(f"the routing of {topology.name} is {routing!r:.80}; it should be a Paths")
    found = routing.paths(topology, src, dst, channel)
    if is_foreign(type(routing)) and (wrong := _wrong(found, topology, src, dst)):
        raise TopologyError(f"{type(routing).__name__}.paths gave {wrong}")
    return found


def _wrong(found: tuple[I64, I32], topology: Topology, src: I32, dst: I32) -> str:
    if text := misfit(found, tuple[NDArray[np.int64], NDArray[np.int32]]):
        return f"something that{text}; it should give two arrays, where paths begin and their links"
    ptr, links = found
    if ptr.ndim != 1 or links.ndim != 1:
        return f"arrays of {ptr.ndim} and {links.ndim} dimensions; both should have one"
    if ptr.shape != (len(src) + 1,) or ptr[0] != 0 or ptr[-1] != len(links) or (np.diff(ptr) < 0).any():
        return f"paths that begin at {ptr[:8].tolist()} of {len(links)} links, for {len(src)} pairs"
    for link in links[(links < 0) | (links >= topology.num_links)][:1].tolist():
        return f"link {link}; links are 0 to {topology.num_links - 1}"
    # A path goes from its source: each link begins where the one before, or else the source, ends.
    pair = np.repeat(np.arange(len(src)), np.diff(ptr))
    ends = np.roll(topology.link_dst[links], 1)
    before = np.where(np.isin(np.arange(len(links)), ptr[:-1]), src[pair], ends)
    broken = pair[topology.link_src[links] != before]
    some = np.flatnonzero(np.diff(ptr))
    broken = np.concatenate([broken, some[topology.link_dst[links[ptr[some + 1] - 1]] != dst[some]]])
    broken = np.concatenate([broken, np.flatnonzero((np.diff(ptr) == 0) & (src != dst))])
    for one in broken[:1].tolist():
        names = topology.node_names
        return f"no path from {names[int(src[one])]} to {names[int(dst[one])]}, but links " + (
            str(links[ptr[one] : ptr[one + 1]][:8].tolist())
        )
    return ""
