"""Trees of switches that add up: where a group's data goes up, is added, and comes down again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.errors import AlgorithmError
from cosim.network.flows import I64
from cosim.topology.graph import Topology

_UNREACHED = 1 << 30


@dataclass(frozen=True, eq=False)
class AggregationTree:
    """``parent`` of each endpoint and each switch that adds, but for the root, which ``root`` is."""

    root: int
    parent: dict[int, int]

    @cached_property
    def children(self) -> dict[int, list[int]]:
        """What each switch that adds up waits for, and sends results to."""
        found: dict[int, list[int]] = {}
        for child, parent in self.parent.items():
            found.setdefault(parent, []).append(child)
        return found


def aggregation_trees(topology: Topology, endpoints: tuple[int, ...], count: int) -> list[AggregationTree]:
    """Trees with different roots: the switches that the farthest endpoint has the fewest hops to; of these
    those with the fewest in all; lowest numbers first.

    A switch on the way that only one child comes to passes on what it gets, and adds nothing.

    Raises
    ------
    AlgorithmError
        Fewer such switches than trees.
    """
    switches = range(topology.num_endpoints, topology.num_nodes)
    hops = {switch: _hops(topology, switch)[list(endpoints)] for switch in switches}
    cost = {switch: (int(of.max()), int(of.sum())) for switch, of in hops.items() if of.max() < _UNREACHED}
    if not cost:
        names = ", ".join(topology.node_names[one] for one in endpoints[:4])
        raise AlgorithmError(
            f"in_network: {topology.name} has no switch that {names}{', ...' * bool(endpoints[4:])} reach",
            hint="it needs a fabric with switches: switch, leaf_spine, fat_tree, or hosts with an NVSwitch",
        )
    least = min(cost.values())
    roots = [switch for switch in switches if cost.get(switch) == least]
    if count > len(roots):
        names = ", ".join(topology.node_names[one] for one in roots[:8])
        raise AlgorithmError(
            f"in_network: trees: {count}, but {topology.name} has {len(roots)} switches that are nearest to "
            f"all of these {len(endpoints)} ranks: {names}",
            hint=f"trees: {len(roots)} or less",
        )
    return [_tree(topology, endpoints, root, number) for number, root in enumerate(roots[:count])]


def _hops(topology: Topology, switch: int) -> I64:
    """Hops from each node up to a switch; endpoints don't forward."""
    found = np.full(topology.num_nodes, _UNREACHED, np.int64)
    found[switch] = 0
    reached = np.zeros(topology.num_nodes, np.bool_)
    reached[switch] = True
    for far in range(1, topology.num_nodes):
        ahead = topology.link_src[reached[topology.link_dst]]
        fresh = ahead[found[ahead] == _UNREACHED]
        if not len(fresh):
            break
        found[fresh] = far
        reached[:] = False
        reached[fresh] = True
        reached[: topology.num_endpoints] = False
    return found


def _tree(topology: Topology, endpoints: tuple[int, ...], root: int, channel: int) -> AggregationTree:
    """The ways of all endpoints to a root, as far as each is of its own; the first to come says the rest."""
    ends = np.array(endpoints, np.int32)
    ptr, links = topology.paths(ends, np.full_like(ends, root), np.full_like(ends, channel))
    ahead: dict[int, int] = {}
    for at in range(len(ends)):
        for link in links[ptr[at] : ptr[at + 1]].tolist():
            node = int(topology.link_src[link])
            if node in ahead:
                break
            ahead[node] = int(topology.link_dst[link])
    comes = dict.fromkeys(ahead.values(), 0)
    for node in ahead.values():
        comes[node] += 1
    adds = {node for node, count in comes.items() if count > 1} | {root}
    parent = {}
    for node in [*endpoints, *sorted(adds - {root})]:
        above = ahead[node]
        while above not in adds:
            above = ahead[above]
        parent[node] = above
    return AggregationTree(root, parent)
