"""Flows that begin or end at switches take cheapest paths, as a search over the graph finds them."""

from __future__ import annotations

import random
from collections import deque
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from cosim.errors import TopologyError
from cosim.topology.graph import Topology
from cosim.topology.routing import ChannelPaths, DModKPaths, EcmpPaths, ShortestPaths


def fabric(seed: int, routing: Any) -> Topology:
    """Endpoints on one or two of some switches, which are connected at random."""
    draw = random.Random(seed)
    endpoints, switches = draw.randint(2, 8), draw.randint(1, 6)
    pairs = [(endpoints + k, endpoints + draw.randrange(k)) for k in range(1, switches)]
    pairs += [(endpoints + draw.randrange(switches), endpoints + draw.randrange(switches)) for _ in range(4)]
    pairs += [
        (end, endpoints + draw.randrange(switches))
        for end in range(endpoints)
        for _ in range(draw.randint(1, 2))
    ]
    pairs = [*{(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}]
    links = np.array([*pairs, *((b, a) for a, b in pairs)], np.int32)
    names = tuple(f"n{k}" for k in range(endpoints + switches))
    count = len(links)
    return Topology(
        "random", endpoints, names, links[:, 0].copy(), links[:, 1].copy(),
        np.full(count, 1e9), np.zeros(count, np.int64), routing,
    )  # fmt: skip


def hops(topology: Topology, src: int, dst: int) -> int:
    """Links of the shortest way, which leads through no endpoint."""
    far, todo = {src: 0}, deque([src])
    while todo:
        node = todo.popleft()
        if node == dst:
            return far[node]
        if node != src and node < topology.num_endpoints:
            continue
        for ahead in topology.link_dst[topology.link_src == node].tolist():
            if ahead not in far:
                far[ahead] = far[node] + 1
                todo.append(ahead)
    raise AssertionError(f"no way from {src} to {dst}")


@pytest.mark.parametrize("routing", [ShortestPaths(), EcmpPaths(seed=3), DModKPaths(), ChannelPaths()])
def test_paths_are_the_shortest(routing: Any) -> None:
    for seed in range(25):
        topology = fabric(seed, type(routing)(**({"seed": 3} if isinstance(routing, EcmpPaths) else {})))
        nodes = range(topology.num_nodes)
        pairs = [(a, b) for a in nodes for b in nodes if a != b]
        src, dst = (np.array(side, np.int32) for side in zip(*pairs, strict=True))
        ptr, links = topology.paths(src, dst, np.full(len(src), 1, np.int32))
        for (first, last), begin, end in zip(pairs, *zip(*pairwise(ptr.tolist()), strict=True), strict=True):
            way = links[begin:end]
            ends = [first, *topology.link_dst[way].tolist()]
            assert ends[-1] == last
            assert topology.link_src[way].tolist() == ends[:-1]
            assert len(way) == hops(topology, first, last)


def test_those_between_endpoints_are_what_they_are_without() -> None:
    topology = fabric(7, EcmpPaths(seed=5))
    nodes = range(topology.num_endpoints)
    pairs = [(a, b) for a in nodes for b in nodes if a != b]
    src, dst = (np.array(side, np.int32) for side in zip(*pairs, strict=True))
    channel = np.zeros(len(src), np.int32)
    ptr, links = topology.paths(src, dst, channel)
    more = (np.append(side, np.int32(switch)) for side, switch in ((src, 0), (dst, topology.num_nodes - 1)))
    ptr2, links2 = topology.paths(*more, np.append(channel, np.int32(0)))
    assert ptr2[:-1].tolist() == ptr.tolist()
    assert links2[: len(links)].tolist() == links.tolist()


def test_a_node_that_is_not_there_is_named() -> None:
    topology = fabric(1, ShortestPaths())
    zero = np.zeros(1, np.int32)
    with pytest.raises(TopologyError, match="destination 99 of flow 0 is not an endpoint of random"):
        topology.paths(zero, np.array([99], np.int32), zero)
