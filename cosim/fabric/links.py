"""Links by name, as scenarios and processes write them: ``leaf* -> spine0``, ``leaf0 <-> spine0``."""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np

from cosim.errors import TopologyError
from cosim.registry import nearest
from cosim.topology.graph import Topology
from cosim.units import format_rate

Part = tuple[int, ...]
"""Links that fail together, by number."""


def nodes_named(topology: Topology, pattern: str) -> list[int]:
    """The node of a name, or nodes by a pattern.

    Raises
    ------
    TopologyError
        There is none; names a near one.
    """
    if pattern in topology.node_number:
        return [topology.node_number[pattern]]
    names = topology.node_names
    found = [n for n, name in enumerate(names) if fnmatchcase(name, pattern)]
    if not found:
        raise TopologyError(f"{topology.name} has no node {pattern!r}{nearest(pattern, names)}")
    return found


def links_at(topology: Topology, node: int) -> Part:
    """All links of a node."""
    return tuple(np.flatnonzero((topology.link_src == node) | (topology.link_dst == node)).tolist())


def links_between(topology: Topology, name: str) -> list[Part]:
    """Links by name; parallel ones together, and so both ways of one cable.

    Raises
    ------
    TopologyError
        There is none; names a near one.
    """
    both = "<->" in name
    ends = [end.strip() for end in name.split("<->" if both else "->")]
    if len(ends) != 2 or not all(ends):
        example = topology.link_name(0) if topology.num_links else "leaf0 -> spine1"
        raise TopologyError(f"{name!r} is not a link; write it as in {example!r}")
    is_source, is_target = np.zeros((2, topology.num_nodes), np.bool_)
    is_source[nodes_named(topology, ends[0])] = True
    is_target[nodes_named(topology, ends[1])] = True
    src, dst = topology.link_src, topology.link_dst
    there = is_source[src] & is_target[dst]
    back = is_target[src] & is_source[dst] & ~there & both
    parts: dict[tuple[int, int], list[int]] = {}
    for link in np.flatnonzero(there | back).tolist():
        pair = int(src[link]), int(dst[link])
        parts.setdefault(pair[::-1] if back[link] else pair, []).append(link)
    if not parts:
        names = [topology.link_name(link) for link in range(topology.num_links)]
        raise TopologyError(f"{topology.name} has no link {name!r}{nearest(name, names)}")
    return [tuple(links) for links in parts.values()]


def check_rate(topology: Topology, link: int, rate_bps: float) -> None:
    """Refuse a rate that a link was not built for.

    Raises
    ------
    TopologyError
        It would be faster than it is.
    """
    own = float(topology.link_rate_bps[link])
    if rate_bps > own:
        name, rates = topology.link_name(link), (format_rate(rate_bps), format_rate(own))
        raise TopologyError(f"the link {name} would have {rates[0]}, more than its own {rates[1]}")
