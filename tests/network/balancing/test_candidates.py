"""Paths that a pair may choose among are its cheapest ones, each once."""

from __future__ import annotations

import itertools
from collections import deque

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.context import HERE
from cosim.network.balancing.candidates import MOST_PATHS, Candidates
from cosim.topology.fat_tree import FatTree
from cosim.topology.graph import Topology
from cosim.topology.routing import EcmpPaths
from tests.network.balancing.worlds import leaf_spine
from tests.network.worlds import graph

many = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def cheapest(topology: Topology, src: int, dst: int) -> set[tuple[int, ...]]:
    """All shortest paths, by breadth-first search that remembers every way."""
    found: set[tuple[int, ...]] = set()
    queue: deque[tuple[int, tuple[int, ...]]] = deque([(src, ())])
    best = None
    while queue:
        node, path = queue.popleft()
        if best is not None and len(path) > best:
            break
        if node == dst:
            best = len(path)
            found.add(path)
            continue
        if node < topology.num_endpoints and node != src:
            continue
        queue.extend(
            (int(topology.link_dst[k]), (*path, k))
            for k in np.flatnonzero(topology.link_src == node).tolist()
        )
        assert len(queue) < 10**6
    return found


def paths_of(made: Candidates, pair: int) -> list[tuple[int, ...]]:
    one = made.pairs[pair]
    rows = made.paths[one["first"] : one["first"] + one["count"]]
    return [tuple(made.links[row["begin"] : row["end"]].tolist()) for row in rows]


@many
@given(seed=st.integers(0, 2**32 - 1), nodes=st.integers(4, 9), more=st.integers(4, 24))
def test_of_any_graph_they_are_all_shortest_paths_each_once(seed: int, nodes: int, more: int) -> None:
    rng = np.random.default_rng(seed)
    ends = 3
    pairs = {
        tuple(sorted(rng.choice(np.arange(ends, ends + nodes), 2, replace=False).tolist()))
        for _ in range(more)
    }
    pairs |= {(ends + k, ends + k + 1) for k in range(nodes - 1)}
    pairs |= {(k, ends + int(rng.integers(nodes))) for k in range(ends)}
    both = [(a, b, 1e9, 1000) for a, b in sorted(pairs)] + [(b, a, 1e9, 1000) for a, b in sorted(pairs)]
    topology = graph(ends, ends + nodes, both)
    object.__setattr__(topology, "routing", EcmpPaths())
    src, dst = (np.array(x, np.int32) for x in zip(*itertools.permutations(range(ends), 2), strict=True))
    made = Candidates(topology, detours=False)
    for pair, (a, b) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
        assert made.of(src, dst)[pair] == pair
        got = paths_of(made, pair)
        expected = cheapest(topology, a, b)
        assert len(got) == len(set(got))
        assert set(got) == expected or (len(expected) > MOST_PATHS and set(got) < expected)


def test_a_fat_tree_with_more_paths_than_fit_uses_different_ones_for_each_pair() -> None:
    topology = FatTree(k=18, rate="80Gbps", latency="1us", routing="ecmp").build(HERE)
    half = topology.num_endpoints // 2
    src = np.arange(16, dtype=np.int32)
    made = Candidates(topology, detours=False)
    made.of(src, src + np.int32(half))
    assert (made.pairs["count"] == MOST_PATHS).all()  # of 81
    used = {path[2] for pair in range(16) for path in paths_of(made, pair)}
    assert len(used) > MOST_PATHS
    for pair in range(16):
        assert len(set(paths_of(made, pair))) == MOST_PATHS


def test_own_links_are_those_that_not_all_paths_share() -> None:
    topology = leaf_spine()
    made = Candidates(topology, detours=False)
    made.of(np.array([0], np.int32), np.array([5], np.int32))
    assert (made.paths["own"] - made.paths["begin"] == 1).all()
    assert (made.paths["end"] - made.paths["own_end"] == 1).all()


@pytest.mark.parametrize("kind", ["fully_connected", "leaf_spine"])
def test_detours_are_longer_and_go_by_another_switch(kind: str) -> None:
    topology = leaf_spine(spines=2)
    if kind == "fully_connected":
        from cosim.testing.strategies.traffic import topologies  # noqa: F401 - the room's own worlds

        names = [(a, b, 1e9, 1000) for a in range(4) for b in range(4) if a != b]
        topology = graph(4, 4, names)
        object.__setattr__(topology, "routing", EcmpPaths(endpoints_forward=True))
    made = Candidates(topology, detours=True)
    made.of(np.array([0], np.int32), np.array([topology.num_endpoints - 1], np.int32))
    minimal = made.paths["minimal"] == 1
    hops = made.paths["end"] - made.paths["begin"]
    assert minimal[0]
    assert not minimal.all()
    assert hops[~minimal].min() > hops[minimal].max()
    assert len(set(paths_of(made, 0))) == len(made.paths)
    for path in paths_of(made, 0):  # connected, without a node twice
        assert (topology.link_dst[list(path[:-1])] == topology.link_src[list(path[1:])]).all()
        nodes = [int(topology.link_src[path[0]]), *topology.link_dst[list(path)].tolist()]
        assert len(set(nodes)) == len(nodes)
