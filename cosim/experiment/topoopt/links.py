"""A server's links shared out: rings for what goes round in groups, matchings for pairs.

Rings and pairs have links by their bytes, rings two at a time. Groups that are alike (the tensor-parallel
groups of all replicas, say) are one kind; kinds have rings by their bytes, each next ring to the kind with
most bytes a ring. A ring's stride is TopoOpt's, within its group. What is left goes to maximum-weight
matchings over pairs: one that was served c times weighs c / (c + 1) less.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import networkx as nx
import numpy as np

from cosim.errors import InputError
from cosim.experiment.topoopt.demand import ServerDemand
from cosim.topology.strides import candidates, connects, spread

Pairs = list[list[int]]


@dataclass(frozen=True, slots=True)
class SharedLinks:
    """``strides`` and ``pairs`` of a ``direct_connect``."""

    strides: list[int]
    pairs: Pairs


@dataclass(frozen=True, slots=True)
class _AlikeGroups:
    """Groups of one size, each server in one at most, and the bytes of all of their rings."""

    groups: list[tuple[int, ...]]
    total: float

    @property
    def size(self) -> int:
        return len(self.groups[0])

    @property
    def most(self) -> int:
        """Rings that differ from one another."""
        return max(1, sum(2 * one <= self.size for one in candidates(self.size, self.size)))


def share_links(demand: ServerDemand, degree: int) -> SharedLinks:
    """SharedLinks of at most ``degree`` at each server, which connect all of them.

    Raises
    ------
    InputError
        So few can't.
    """
    if degree < 2 and demand.servers > 2:
        raise InputError(
            f"--degree {degree}: {demand.servers} servers can't be linked by one each; give 2 or more"
        )
    first = _shared(demand, degree, [])
    if connects(demand.servers, first.strides, first.pairs):
        return first
    return _shared(demand, degree, [1])  # a ring through all servers, and what is left as before


def _shared(demand: ServerDemand, degree: int, first: list[int]) -> SharedLinks:
    """SharedLinks of which strides ``first`` are some."""
    n = demand.servers
    strides: list[int] = list(first)
    pairs: Pairs = []
    free = degree - 2 * len(first)
    kinds = _kinds(demand)
    ringed, paired = sum(kind.total for kind in kinds), float(demand.pairs.sum())
    rings = 0
    if ringed:
        rings = min(free // 2, max(1, round(free * ringed / (ringed + paired) / 2)))
    for kind, count in zip(kinds, _rings_of(kinds, rings), strict=True):
        for stride in spread(kind.size, kind.size, count):
            unit = _even(kind.groups, n)
            if unit and stride * unit not in strides:
                strides.append(stride * unit)
            elif not unit:
                pairs += [
                    [group[place], group[(place + stride) % kind.size]]
                    for group in kind.groups
                    for place in range(kind.size)
                ]
    used = Counter(end for pair in pairs for end in pair)
    return SharedLinks(strides, pairs + _matchings(demand, degree, strides, used))


def _rings_of(kinds: list[_AlikeGroups], rings: int) -> list[int]:
    """How many each kind has."""
    count = [0] * len(kinds)
    for _ in range(rings):
        free = [k for k, kind in enumerate(kinds) if count[k] < kind.most]
        if free:
            count[max(free, key=lambda k: (kinds[k].total / (count[k] + 1), -k))] += 1
    return count


def _kinds(demand: ServerDemand) -> list[_AlikeGroups]:
    """Groups of one size that share no server, most bytes first."""
    kinds: list[_AlikeGroups] = []
    for group, each in sorted(demand.rings.items(), key=lambda item: (-item[1], item[0])):
        for number, kind in enumerate(kinds):
            if kind.size == len(group) and not {*group} & {end for one in kind.groups for end in one}:
                kinds[number] = _AlikeGroups([*kind.groups, group], kind.total + each * len(group))
                break
        else:
            kinds.append(_AlikeGroups([group], each * len(group)))
    return sorted(kinds, key=lambda kind: (-kind.total, kind.groups))


def _even(groups: list[tuple[int, ...]], servers: int) -> int:
    """How far apart members are, where each is every so many servers, and no server is in none; else 0."""
    size = len(groups[0])
    unit = servers // size
    every = {tuple(range(first, servers, unit)) for first in range(unit)} if servers % size == 0 else set()
    return unit if {tuple(sorted(group)) for group in groups} == every else 0


def _matchings(demand: ServerDemand, degree: int, strides: list[int], used: Counter[int]) -> Pairs:
    """Pairs for the links that are left."""
    n = demand.servers
    weight = demand.pairs + demand.pairs.T
    served = np.zeros((n, n))
    left = np.array([degree - 2 * len(strides) - used[server] for server in range(n)])
    pairs: Pairs = []
    while True:
        free = np.triu(weight / (served + 1), 1) * (left > 0)[:, None] * (left > 0)[None, :]
        a, b = np.nonzero(free)
        if not len(a):
            return pairs
        graph: nx.Graph[int] = nx.Graph()
        graph.add_weighted_edges_from(zip(a.tolist(), b.tolist(), free[a, b].tolist(), strict=True))
        for pair in sorted(sorted(edge) for edge in nx.max_weight_matching(graph)):
            pairs.append(pair)
            served[pair[0], pair[1]] += 1
            left[pair] -= 1
