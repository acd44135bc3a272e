"""Regular fabrics against closed forms of all-to-all loads, published graphs and networkx."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx
import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

import cosim
from cosim.context import HERE, Context
from cosim.errors import TopologyError
from cosim.network.balancing.candidates import Candidates
from cosim.topology.contract import TopologySpec
from cosim.topology.direct_connect import DirectConnect
from cosim.topology.dragonfly import Dragonfly
from cosim.topology.expander import Expander
from cosim.topology.galois import GaloisField
from cosim.topology.graph import Topology
from cosim.topology.hyperx import HyperX
from cosim.topology.leaf_spine import LeafSpine
from cosim.topology.path_lengths import path_lengths
from cosim.topology.rail_only import RailOnly
from cosim.topology.scale_up import host_shape
from cosim.topology.slim_fly import SlimFly
from cosim.topology.strides import best, hops, spread
from cosim.topology.torus import Mesh, Torus
from tests.topology.random_fabrics import random_fabric, try_one

LINE: dict[str, Any] = {"rate": "100Gbps", "latency": "500ns"}


def switches_of(topology: Topology) -> Any:
    """The graph of switches alone."""
    graph: Any = nx.Graph()
    for a, b in zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True):
        if min(a, b) >= topology.num_endpoints:
            graph.add_edge(a, b)
    return graph


def busiest(topology: Topology) -> int:
    found = path_lengths(topology, topology.num_endpoints)
    return int(found.load[found.busiest])


@pytest.mark.parametrize("dims", [[4, 4, 4], [6, 4], [8, 8], [6, 6], [4, 4]])
def test_an_all_to_all_loads_a_torus_and_a_mesh_as_bisection_says(dims: list[int]) -> None:
    ranks = int(np.prod(dims))
    torus, mesh = Torus(dims=dims, **LINE).build(HERE), Mesh(dims=dims, **LINE).build(HERE)
    assert busiest(torus) == ranks * max(dims) / 8
    assert busiest(mesh) == ranks * max(dims) / 4


@pytest.mark.parametrize("kind", [Torus, Mesh])
@pytest.mark.parametrize("dims", [[2, 3, 4], [5, 5], [2], [7], [3, 2, 2, 2]])
def test_paths_of_grids_are_the_shortest(kind: type[Torus] | type[Mesh], dims: list[int]) -> None:
    topology = kind(dims=dims, **LINE).build(HERE)
    graph: Any = nx.DiGraph(zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True))
    assert len(graph.edges) == topology.num_links
    far = dict(nx.all_pairs_shortest_path_length(graph))
    n = np.arange(topology.num_endpoints, dtype=np.int32)
    src, dst = np.repeat(n, len(n)), np.tile(n, len(n))
    ptr, links = topology.paths(src, dst, np.zeros(len(src), np.int32))
    for i, (a, b) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
        at = a
        for link in links[ptr[i] : ptr[i + 1]].tolist():
            assert topology.link_src[link] == at
            at = int(topology.link_dst[link])
        assert (at, ptr[i + 1] - ptr[i]) == (b, far[a][b])


@pytest.mark.parametrize(("p", "a", "h"), [(2, 4, 2), (3, 4, 1), (1, 2, 3), (2, 6, 3)])
def test_an_all_to_all_loads_a_dragonfly_as_its_closed_form(p: int, a: int, h: int) -> None:
    topology = Dragonfly(endpoints_per_switch=p, switches_per_group=a, links_per_switch=h, **LINE).build(HERE)
    ranks = (a * h + 1) * a * p
    assert topology.num_endpoints == ranks
    assert busiest(topology) == max(ranks - 1, (a * p) ** 2, p * p * (1 + 2 * a * h))
    assert path_lengths(topology, ranks).most == 5
    assert set(dict(switches_of(topology).degree).values()) == {a - 1 + h}


@pytest.mark.parametrize(("dims", "p", "load"), [([4, 4], 4, 64), ([3, 3, 3], 3, 81), ([5], 7, 49)])
def test_an_all_to_all_loads_a_hyperx_as_its_closed_form(dims: list[int], p: int, load: int) -> None:
    topology = HyperX(dims=dims, endpoints_per_switch=p, **LINE).build(HERE)
    assert busiest(topology) == max(load, topology.num_endpoints - 1)
    assert set(dict(switches_of(topology).degree).values()) == {sum(dims) - len(dims)}


@pytest.mark.parametrize("q", [4, 5, 7, 8, 9, 11, 13])
def test_a_slim_fly_is_a_regular_graph_of_diameter_two(q: int) -> None:
    made = SlimFly(q=q, **LINE)
    graph = switches_of(made.build(HERE))
    assert len(graph) == 2 * q * q
    assert set(dict(graph.degree).values()) == {made.degree}
    assert nx.diameter(graph) == 2


@pytest.mark.parametrize("q", [4, 8, 9, 16, 25, 27, 125, 243, 251])
def test_a_field_has_its_laws(q: int) -> None:
    """Associative, commutative, distributive, and each element but 0 has one inverse; at random places."""
    field, rng = GaloisField(q), np.random.default_rng(q)
    a, b, c = rng.integers(0, q, (3, 2_000))
    for one in (field.plus, field.times):
        assert (one(a, b) == one(b, a)).all()
        assert (one(one(a, b), c) == one(a, one(b, c))).all()
    assert (field.times(a, field.plus(b, c)) == field.plus(field.times(a, b), field.times(a, c))).all()
    every = np.arange(q)
    assert ((field.times(every[:, None], every) == 1).sum(axis=1) == (every > 0)).all()
    assert (np.sort(field.plus(every[:, None], every), axis=1) == every).all()


def test_q_5_is_the_hoffman_singleton_graph() -> None:
    assert nx.is_isomorphic(switches_of(SlimFly(q=5, **LINE).build(HERE)), nx.hoffman_singleton_graph())


def test_an_expander_is_regular_connected_and_the_seed_s() -> None:
    made = Expander(switches=20, degree=3, endpoints_per_switch=2, **LINE)
    graphs = [switches_of(made.build(Context(seed=seed))) for seed in (0, 0, 1)]
    assert set(dict(graphs[0].degree).values()) == {3}
    assert nx.is_connected(graphs[0])
    assert nx.utils.graphs_equal(graphs[0], graphs[1])
    assert not nx.utils.graphs_equal(graphs[0], graphs[2])
    assert made.uses_seed()
    with pytest.raises(TopologyError, match="none of 64 random graphs of 40 switches"):
        Expander(switches=40, degree=1, endpoints_per_switch=1, **LINE).build(HERE)


def test_gpus_of_a_host_forward_to_other_rails() -> None:
    topology = RailOnly(hosts=3, gpus=4, nvlink_rate="900GB/s", **LINE).build(HERE)
    _, links = topology.paths(np.array([0], np.int32), np.array([9], np.int32), np.zeros(1, np.int32))
    names = [topology.node_names[topology.link_dst[link]] for link in links]
    assert names == ["host0.nvswitch", "gpu1", "rail1", "gpu9"]
    shape = host_shape(topology)
    assert shape is not None
    assert (shape.gpus, shape.nics) == (4, 4)


def test_planes_share_endpoints_and_nothing_else() -> None:
    one = LeafSpine(leaves=2, spines=2, endpoints_per_leaf=4, routing="by_channel", **LINE).build(HERE)
    topology = LeafSpine(
        leaves=2, spines=2, endpoints_per_leaf=4, planes=3, routing="by_channel", **LINE
    ).build(HERE)
    assert topology.num_links == 3 * one.num_links
    graph = switches_of(topology)
    assert nx.number_connected_components(graph) == 3
    for channel in range(3):
        _, links = topology.paths(*(np.array([x], np.int32) for x in (0, 7, channel)))
        through = {topology.node_names[node] for node in topology.link_dst[links][:-1].tolist()}
        assert all(name.startswith(f"plane{channel}.") for name in through)


def test_planes_of_hosts_share_the_nvswitch() -> None:
    hosts = {"gpus": 2, "nvlink_rate": "450GB/s", "nics": 2, "nic_rate": "400Gbps"}
    made = LeafSpine(leaves=2, spines=1, endpoints_per_leaf=2, latency="1us", planes=2, hosts=hosts)
    names = made.build(HERE).node_names
    assert [name for name in names if "nvswitch" in name] == ["host0.nvswitch", "host1.nvswitch"]
    assert sum("nic" in name for name in names) == 8


@pytest.mark.parametrize(
    ("servers", "degree", "strides", "diameter", "mean"),
    [
        (16, 4, [1, 5], 4, 2.133),
        (128, 4, [1, 13], 10, 5.622),
        (128, 6, [1, 7, 27], 6, 3.669),
        (128, 8, [1, 5, 13, 39], 5, 2.961),
        (1024, 8, [1, 7, 33, 181], 8, 5.116),
    ],
)
def test_strides_are_those_of_topoopt(
    servers: int, degree: int, strides: list[int], diameter: int, mean: float
) -> None:
    assert spread(servers, servers, degree // 2) == strides
    found = hops(servers, strides)
    assert (found[0], round(found[1], 3)) == (diameter, mean)


def test_paths_of_a_direct_connect_have_its_strides_hops() -> None:
    topology = DirectConnect(servers=16, degree=4, **LINE).build(HERE)
    found = path_lengths(topology, 16)
    assert (found.most, round(found.mean, 3)) == (4, 2.133)


def test_the_best_strides_beat_the_rule() -> None:
    assert best(128, 128, 2) == (1, 15)
    found = hops(128, (1, 15))
    assert (found[0], round(found[1], 3)) == (8, 5.354)


def test_strides_of_a_group_stay_in_it() -> None:
    assert spread(16, 8, 2) == [2, 6]
    two = DirectConnect(servers=16, degree=6, group=8, pairs=[[0, 1], [2, 3], [4, 5], [6, 7], [0, 3]], **LINE)
    assert two.chosen == [2, 6]
    topology = two.build(HERE)
    assert path_lengths(topology, 16).most <= 6


def test_links_between_the_same_servers_add_up() -> None:
    topology = DirectConnect(servers=4, degree=4, strides=[1], pairs=[[0, 1], [0, 1]], **LINE).build(HERE)
    rate = {
        (int(a), int(b)): float(r)
        for a, b, r in zip(topology.link_src, topology.link_dst, topology.link_rate_bps, strict=True)
    }
    assert rate[0, 1] == rate[1, 0] == 3e11
    assert rate[1, 2] == 1e11


def test_detours_of_a_torus_are_other_ways_and_longer() -> None:
    topology = Torus(dims=[4, 4], **LINE).build(HERE)
    found = Candidates(topology, detours=True)
    found.of(np.array([0], np.int32), np.array([1], np.int32))
    length = found.paths["end"] - found.paths["begin"]
    assert found.paths["minimal"][0] == 1.0
    assert length[0] == 1
    assert len(length) > 4
    assert (length[1:] > 1).all()


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (DirectConnect, {"servers": 16, "degree": 3}, "degree 3 leaves an odd number of links, 3"),
        (
            DirectConnect,
            {"servers": 16, "degree": 4, "strides": [2, 4]},
            r"\[2, 4\] don't connect 16 servers",
        ),
        (DirectConnect, {"servers": 16, "degree": 4, "group": 5}, "no whole number of groups of 5"),
        (DirectConnect, {"servers": 16, "degree": 4, "strides": [1, 1]}, "each should be there once"),
        (DirectConnect, {"servers": 16, "degree": 2, "strides": [1, 5]}, "degree 2 leaves 2"),
        (DirectConnect, {"servers": 4, "degree": 2, "pairs": [[1, 1]]}, r"pairs has \[1, 1\]"),
        (DirectConnect, {"servers": 4, "degree": 2, "pairs": [[0, 1]] * 3}, "give a server 3 links"),
        (DirectConnect, {"servers": 1024, "degree": 16, "strides": "best"}, "too many to try; take auto"),
        (SlimFly, {"q": 10}, "q 10 should be a prime or a power of one, from 4 to 251; 9 and 11 are"),
        (
            Dragonfly,
            {"endpoints_per_switch": 1, "switches_per_group": 4, "links_per_switch": 2, "groups": 7},
            "groups could be 2, 3, 5, 9",
        ),
        (Expander, {"switches": 5, "degree": 3, "endpoints_per_switch": 1}, "make one of the two even"),
        (Expander, {"switches": 4, "degree": 4, "endpoints_per_switch": 1}, "at most 3 others"),
        (Torus, {"dims": [4, 1]}, "greater than or equal to 2"),
        (Torus, {"dims": []}, "at least 1 item"),
    ],
)
def test_what_cant_be_is_refused(kind: type[TopologySpec], given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        TypeAdapter(kind).validate_python({**LINE, **given})


def test_random_fabrics_are_built_and_routed_or_refused() -> None:
    rng = random.Random(44)
    built = sum(try_one(random_fabric(rng)) for _ in range(60))
    assert 10 < built < 60


@pytest.mark.slow
def test_more_random_fabrics() -> None:
    rng = random.Random(4)
    assert sum(try_one(random_fabric(rng)) for _ in range(1500)) > 300


def test_detours_help_where_each_group_sends_to_the_next_one() -> None:
    """Eight GPUs of a group share one link to the next group: 8 MB at 100 Gbps. Other ways are free."""
    programs = [
        {
            "ranks": [rank],
            "operations": [
                {"name": "to", "kind": "send", "peer": (rank + 8) % 72, "size": "1MB"},
                {"name": "from", "kind": "recv", "peer": (rank - 8) % 72, "size": "1MB"},
            ],
        }
        for rank in range(72)
    ]
    took = {}
    for balancer in ("ecmp", "valiant", "ugal"):
        scenario = {
            "topology": {
                "kind": "dragonfly",
                "endpoints_per_switch": 2,
                "switches_per_group": 4,
                "links_per_switch": 2,
                **LINE,
            },
            "network": {"model": "fair_share", "balancer": balancer},
            "jobs": [{"workload": {"kind": "operations", "world_size": 72, "programs": programs}}],
        }
        took[balancer] = float(cosim.run(scenario).summary.jobs[0].iteration_mean_ps or 0) / 1e9
    assert took["ecmp"] == pytest.approx(0.64 + 5 * 0.0005, abs=1e-3)
    assert took["ugal"] < took["valiant"] < took["ecmp"]
