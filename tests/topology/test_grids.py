"""Grids against networkx and ASTRA-sim's rules, with coordinates worked out by divmod."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from cosim.context import HERE, Context
from cosim.errors import TopologyError
from cosim.formats.astra_sim.topology import AstraSim
from cosim.topology.graph import Topology
from cosim.topology.regular import FullyConnected, Ring, Switch
from tests.inputs import find

KINDS = ("Ring", "FullyConnected", "Switch")


def astra(*dims: tuple[str, int], **more: Any) -> Topology:
    return AstraSim(
        topology=[kind for kind, _ in dims],
        npus_count=[size for _, size in dims],
        bandwidth=[50.0] * len(dims),
        latency=[500.0] * len(dims),
        **more,
    ).build(HERE)


def all_pairs(topology: Topology) -> tuple[Any, Any]:
    n = np.arange(topology.num_endpoints, dtype=np.int32)
    return np.repeat(n, len(n)), np.tile(n, len(n))


def nodes_of(topology: Topology, src: int, dst: int) -> list[str]:
    one = np.array([src], np.int32)
    _, links = topology.paths(one, np.array([dst], np.int32), np.zeros(1, np.int32))
    return [topology.node_names[src], *(topology.node_names[topology.link_dst[link]] for link in links)]


def digraph(topology: Topology) -> Any:
    graph: Any = nx.DiGraph()
    graph.add_nodes_from(range(topology.num_nodes))
    graph.add_edges_from(zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True))
    return graph


def assert_continuous(topology: Topology, src: Any, dst: Any, ptr: Any, links: Any) -> None:
    for i in range(len(src)):
        at = src[i]
        for link in links[ptr[i] : ptr[i + 1]]:
            assert topology.link_src[link] == at
            at = topology.link_dst[link]
        assert at == dst[i]


def test_ring_tie_goes_clockwise() -> None:
    ring = astra(("Ring", 8))
    assert nodes_of(ring, 6, 2) == ["npu6", "npu7", "npu0", "npu1", "npu2"]
    assert nodes_of(ring, 6, 3) == ["npu6", "npu5", "npu4", "npu3"]


def test_ring_of_two_has_one_link_each_way() -> None:
    ring = astra(("Ring", 2))
    assert [(int(a), int(b)) for a, b in zip(ring.link_src, ring.link_dst, strict=True)] == [(0, 1), (1, 0)]


def test_link_and_node_counts_are_the_closed_forms() -> None:
    assert astra(("Ring", 8)).num_links == 16
    assert astra(("FullyConnected", 8)).num_links == 56
    assert astra(("Switch", 8)).num_links == 16
    mixed = astra(("Ring", 4), ("FullyConnected", 3), ("Switch", 5))
    assert mixed.num_endpoints == 60
    assert mixed.num_nodes == 60 + 12
    assert mixed.num_links == 60 * (2 + 2 + 2)
    assert mixed.dims == (4, 3, 5)


def test_no_link_is_there_twice() -> None:
    mixed = astra(("Ring", 2), ("FullyConnected", 4), ("Ring", 3), ("Switch", 2))
    ends = set(zip(mixed.link_src.tolist(), mixed.link_dst.tolist(), strict=True))
    assert len(ends) == mixed.num_links


def test_dimension_zero_varies_fastest_and_is_crossed_first() -> None:
    grid = astra(("Ring", 2), ("FullyConnected", 8), ("Switch", 4))
    # 47 is (1, 7, 2), ASTRA-sim's own example; 16 is (0, 0, 1).
    assert nodes_of(grid, 47, 16) == ["npu47", "npu46", "npu32", "dim2.switch0", "npu16"]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.integers(2, 5)), min_size=1, max_size=3),
    st.sampled_from(["dimension_ordered", "shortest", "ecmp"]),
)
def test_paths_are_continuous_and_as_short_as_networkx_says(
    dims: list[tuple[str, int]], routing: str
) -> None:
    grid = astra(*dims, routing=routing)
    src, dst = all_pairs(grid)
    ptr, links = grid.paths(src, dst, np.zeros_like(src))
    assert_continuous(grid, src, dst, ptr, links)
    shortest = dict(nx.all_pairs_shortest_path_length(digraph(grid)))
    assert [shortest[int(a)][int(b)] for a, b in zip(src, dst, strict=True)] == np.diff(ptr).tolist()


@pytest.mark.parametrize("dims", list(itertools.product(KINDS, KINDS)))
def test_links_join_npus_that_differ_in_one_coordinate(dims: tuple[str, str]) -> None:
    grid = astra((dims[0], 3), (dims[1], 4))
    n = math.prod(grid.dims)
    for a, b in zip(grid.link_src.tolist(), grid.link_dst.tolist(), strict=True):
        if a < n and b < n:
            differing = [x != y for x, y in zip(divmod(a, 3), divmod(b, 3), strict=True)]
            assert sum(differing) == 1


def test_dimension_order_can_be_told_from_the_crossed_dimensions() -> None:
    grid = astra(("Ring", 4), ("Ring", 4), ("Ring", 4))
    src, dst = all_pairs(grid)
    ptr, links = grid.paths(src, dst, np.zeros_like(src))
    dimension = links // (2 * 64)
    for i in range(len(src)):
        crossed = dimension[ptr[i] : ptr[i + 1]]
        assert (np.diff(crossed) >= 0).all()


def test_rates_and_latencies_are_exact() -> None:
    grid = AstraSim(topology=["Ring"], npus_count=[4], bandwidth=[741.34], latency=[936.25]).build(HERE)
    assert set(grid.link_rate_bps.tolist()) == {741.34 * 2**33}
    assert set(grid.link_latency_ps.tolist()) == {936250}


def test_each_dimension_has_its_own_rate() -> None:
    grid = AstraSim(
        topology=["Ring", "Switch"], npus_count=[8, 8], bandwidth=[200, 50], latency=[50, 500]
    ).build(HERE)
    assert grid.link_rate_bps.tolist() == [200.0 * 2**33] * 128 + [50.0 * 2**33] * 128
    assert grid.link_latency_ps.tolist() == [50000] * 128 + [500000] * 128


def test_network_file_reads_as_the_lists(tmp_path: Path) -> None:
    lines = ["topology: [ Ring, Switch ]  # comment", "npus_count: [ 4, 2 ]"]
    lines += ["bandwidth: [ 50.0, 25 ]", "latency: [ 500.0, 1 ]"]
    (tmp_path / "net.yml").write_text("\n".join(lines))
    read = AstraSim(file="net.yml").build(Context(base=tmp_path))
    inline = AstraSim(
        topology=["Ring", "Switch"], npus_count=[4, 2], bandwidth=[50.0, 25], latency=[500.0, 1]
    ).build(HERE)
    assert read.name == inline.name == "Ring(4) x Switch(2)"
    assert read.link_rate_bps.tolist() == inline.link_rate_bps.tolist()
    assert read.link_dst.tolist() == inline.link_dst.tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topology: [Ring]\nnpus_count: [4]\nlatncy: [1]\n", r"net.yml:3: latncy: .*did you mean 'latency'"),
        (
            "topology: [Ring]\nnpus_count:\n  - 0\nbandwidth: [1]\nlatency: [1]\n",
            r"net.yml:3: npus_count\[0\]: .*greater than 1",
        ),
        (
            "topology: [Torus]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\n",
            r"net.yml:1: topology\[0\]: .*'Ring'",
        ),
        (
            "topology: [Ring]\nnpus_count: [4, 2]\nbandwidth: [1]\nlatency: [1]\n",
            "npus_count has 2 entries",
        ),
        ("topology: [Ring\n", r"net.yml:2: this is not YAML"),
        ("- Ring\n", "should be a mapping"),
    ],
)
def test_bad_network_file_says_where(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "net.yml").write_text(text)
    with pytest.raises(TopologyError, match=message):
        AstraSim(file="net.yml").build(Context(base=tmp_path))


def test_missing_network_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"gone\.yml: there is no such file"):
        AstraSim(file="gone.yml").build(Context(base=tmp_path))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"npus_count": [1]}, "greater than 1"),
        ({"bandwidth": [0]}, "greater than 0"),
        ({"latency": [-1]}, "greater than or equal to 0"),
        ({"latency": [0.0001]}, "finer than a picosecond"),
        ({"latency": [1, 2]}, "latency has 2 entries, topology has 1"),
        ({"topology": []}, "npus_count has 1 entries, topology has 0"),
        ({"file": "net.yml"}, "both given"),
        ({"routing": "ecpm"}, "did you mean 'ecmp'"),
        ({"routing": {"kind": "ecmp", "sed": 1}}, "did you mean 'seed'"),
    ],
)
def test_bad_lists_are_refused(fields: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"topology": ["Ring"], "npus_count": [4], "bandwidth": [1], "latency": [1]}
    with pytest.raises(ValidationError, match=message):
        AstraSim.model_validate(good | fields)


@pytest.mark.parametrize(
    ("spec", "links"),
    [(Ring, 16), (FullyConnected, 56), (Switch, 16)],
    ids=lambda v: getattr(v, "__name__", v),
)
def test_plain_specs_take_our_units(spec: Any, links: int) -> None:
    built = spec(endpoints=8, rate="400Gbps", latency="1.5us").build(HERE)
    assert built.num_links == links
    assert set(built.link_rate_bps.tolist()) == {4e11}
    assert set(built.link_latency_ps.tolist()) == {1_500_000}
    assert built.name == f"{spec.__name__}(8)"


@pytest.mark.parametrize(
    "wrong", [{"endpoints": 0}, {"endpoints": -4}, {"rate": "0Gbps"}, {"latency": "-1ns"}, {"rate": "4"}]
)
def test_plain_specs_refuse_what_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Ring.model_validate({"endpoints": 8, "rate": "400Gbps", "latency": "1us"} | wrong)


@pytest.mark.parametrize("spec", [Ring, FullyConnected, Switch])
def test_one_endpoint_is_a_topology(spec: Any) -> None:
    built = spec(endpoints=1, rate="1Gbps", latency=0).build(HERE)
    zero = np.zeros(1, np.int32)
    ptr, links = built.paths(zero, zero, zero)
    assert ptr.tolist() == [0, 0]
    assert len(links) == 0


def test_an_endpoint_that_is_not_there_is_named() -> None:
    ring = astra(("Ring", 8))
    zero = np.zeros(2, np.int32)
    for routing in ("dimension_ordered", "shortest", "ecmp"):
        ring = astra(("Ring", 8), routing=routing)
        with pytest.raises(TopologyError, match=r"destination 8 of flow 1 .*\n.*0 to 7"):
            ring.paths(zero, np.array([1, 8], np.int32), zero)
        with pytest.raises(TopologyError, match="source -1 of flow 0"):
            ring.paths(zero - 1, zero, zero)


def test_ecmp_on_a_ring_uses_both_ways_for_opposite_npus_only() -> None:
    ring = astra(("Ring", 8), routing={"kind": "ecmp", "seed": 7})
    channel = np.arange(256, dtype=np.int32)
    zero = np.zeros_like(channel)
    _, links = ring.paths(zero, zero + 4, channel)
    first = links[::4]
    assert set(first.tolist()) == {0, 8}
    assert 80 < int((first == 0).sum()) < 176
    _, links = ring.paths(zero, zero + 3, channel)
    assert set(links.tolist()) == {0, 1, 2}


def test_settings_that_cannot_matter_are_told() -> None:
    line = {"rate": "1Gbps", "latency": "1ns", "routing": {"kind": "ecmp", "seed": 1}}
    assert Ring(endpoints=8, **line).idle_settings() == []
    assert [key for key, _ in Ring(endpoints=7, **line).idle_settings()] == ["routing.seed"]
    assert [key for key, _ in Switch(endpoints=8, **(line | {"routing": "ecmp"})).idle_settings()] == [
        "routing"
    ]
    assert Switch(endpoints=8, rate="1Gbps", latency="1ns").idle_settings() == []


def test_a_million_pairs_on_a_switch_are_two_links_each() -> None:
    switch = Switch(endpoints=1024, rate="400Gbps", latency="500ns").build(HERE)
    src, dst = all_pairs(switch)
    ptr, links = switch.paths(src, dst, np.zeros_like(src))
    assert len(links) == 2 * 1024 * 1023
    assert np.array_equal(switch.link_src[links[::2]], src[src != dst])
    assert np.array_equal(switch.link_dst[links[1::2]], dst[src != dst])
    assert ptr[-1] == len(links)


def test_every_network_of_the_reference_cases_is_built(tmp_path: Path) -> None:
    reference = find("reference/astra_sim_analytical.json")
    for case in json.loads(reference.read_text())["cases"]:
        if "network_yml" in case:
            (tmp_path / "network.yml").write_text(case["network_yml"])
            spec, sizes = AstraSim(file="network.yml"), yaml.safe_load(case["network_yml"])["npus_count"]
        else:
            sizes = case["npus_count"]
            spec = AstraSim(
                topology=case["topology"],
                npus_count=sizes,
                bandwidth=case["bandwidth_GiBps"],
                latency=case["latency_ns"],
            )
        if math.prod(sizes) <= 256:
            grid = spec.build(Context(base=tmp_path))
            assert grid.dims == tuple(sizes)
            assert grid.num_endpoints == math.prod(sizes)
