"""Leaf-spine, fat-tree and hosts against closed forms and networkx."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import chi2

from cosim.context import HERE, Context
from cosim.topology.fat_tree import FatTree
from cosim.topology.graph import Topology
from cosim.topology.hosts import Hosts
from cosim.topology.leaf_spine import LeafSpine
from cosim.topology.routing import ChannelPaths

LINE: dict[str, Any] = {"rate": "100Gbps", "latency": "500ns"}
HOST: dict[str, Any] = {
    "gpus": 8,
    "nvlink_rate": "450GB/s",
    "nvlink_latency": "300ns",
    "nics": 8,
    "nic_rate": "400Gbps",
}


def digraph(topology: Topology) -> Any:
    graph: Any = nx.DiGraph()
    for a, b, rate in zip(topology.link_src, topology.link_dst, topology.link_rate_bps, strict=True):
        graph.add_edge(int(a), int(b), capacity=float(rate))
    return graph


def column(*values: int) -> Any:
    return np.array(values, np.int32)


def nodes_of(topology: Topology, src: int, dst: int, channel: int = 0) -> list[str]:
    _, links = topology.paths(column(src), column(dst), column(channel))
    return [topology.node_names[src], *(topology.node_names[topology.link_dst[link]] for link in links)]


def all_pairs(topology: Topology) -> tuple[Any, Any]:
    n = np.arange(topology.num_endpoints, dtype=np.int32)
    return np.repeat(n, len(n)), np.tile(n, len(n))


def halves_cut_bps(topology: Topology) -> float:
    """Max-flow from the first half of the endpoints to the second: the bisection of an ordered tree."""
    graph = digraph(topology)
    half = topology.num_endpoints // 2
    for endpoint in range(topology.num_endpoints):
        if endpoint < half:
            graph.add_edge("source", endpoint)
        else:
            graph.add_edge(endpoint, "sink")
    return float(nx.maximum_flow_value(graph, "source", "sink"))


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_fat_tree_has_the_papers_counts(k: int) -> None:
    tree = FatTree(k=k, **LINE).build(HERE)
    switches = tree.node_names[tree.num_endpoints :]
    assert tree.num_endpoints == k**3 // 4
    assert sum(name.startswith("core") for name in switches) == k * k // 4
    assert sum(".edge" in name for name in switches) == k * k // 2
    assert sum(".agg" in name for name in switches) == k * k // 2
    assert tree.num_links == 2 * 3 * k**3 // 4


def test_every_fat_tree_switch_uses_k_ports() -> None:
    tree = FatTree(k=6, **LINE).build(HERE)
    ports = np.bincount(tree.link_src, minlength=tree.num_nodes)
    assert (ports[tree.num_endpoints :] == 6).all()


def test_fat_tree_has_k_half_squared_equal_paths_between_pods_and_ecmp_finds_them() -> None:
    tree = FatTree(k=6, **LINE).build(HERE)
    assert len(list(nx.all_shortest_paths(digraph(tree), 0, 53))) == 9
    channel = np.arange(400, dtype=np.int32)
    ptr, links = tree.paths(channel * 0, channel * 0 + 53, channel)
    assert set(np.diff(ptr)) == {6}
    assert len({tuple(links[ptr[i] : ptr[i + 1]]) for i in range(400)}) == 9


@pytest.mark.parametrize("over", [1.0, 2.0, 4.0])
def test_fat_tree_bisection_shrinks_by_the_oversubscription(over: float) -> None:
    tree = FatTree(k=4, oversubscription=over, **LINE).build(HERE)
    assert halves_cut_bps(tree) == pytest.approx(8 * 100e9 / over)
    assert tree.info["oversubscription"] == over


@pytest.mark.parametrize("over", [1.0, 3.0])
def test_leaf_spine_bisection_shrinks_by_the_oversubscription(over: float) -> None:
    fabric = LeafSpine(leaves=4, spines=3, endpoints_per_leaf=6, oversubscription=over, **LINE).build(HERE)
    assert halves_cut_bps(fabric) == pytest.approx(12 * 100e9 / over)


def test_uplink_rate_and_oversubscription_are_two_ways_to_say_it() -> None:
    by_rate = LeafSpine(leaves=2, spines=4, endpoints_per_leaf=8, uplink_rate="50Gbps", **LINE)
    by_ratio = LeafSpine(leaves=2, spines=4, endpoints_per_leaf=8, oversubscription=4, **LINE)
    assert by_rate.build(HERE).link_rate_bps.tolist() == by_ratio.build(HERE).link_rate_bps.tolist()
    assert by_rate.build(HERE).info["oversubscription"] == 4


def test_fat_tree_endpoints_per_edge_are_counted_and_balanced() -> None:
    tree = FatTree(k=4, endpoints_per_edge=6, oversubscription=3, **LINE).build(HERE)
    assert tree.num_endpoints == 48
    assert sorted(set(tree.link_rate_bps.tolist())) == [100e9]


@pytest.mark.parametrize("routing", ["shortest", "ecmp"])
@pytest.mark.parametrize(
    "spec",
    [
        FatTree(k=4, **LINE),
        LeafSpine(leaves=3, spines=2, endpoints_per_leaf=3, **LINE),
        LeafSpine(leaves=4, spines=2, endpoints_per_leaf=8, latency="1us", hosts=HOST | {"nics": 4}),
        LeafSpine(
            leaves=4, spines=2, endpoints_per_leaf=8, latency="1us", hosts=HOST | {"nics": 2, "rails": 1}
        ),
        FatTree(k=4, endpoints_per_edge=4, latency="1us", hosts=HOST | {"gpus": 4, "nics": 1}),
        LeafSpine(
            leaves=2,
            spines=2,
            endpoints_per_leaf=8,
            latency=0,
            hosts={"gpus": 4, "nics": 2, "nic_rate": "1Gbps"},
        ),
    ],
    ids=lambda spec: type(spec).__name__,
)
def test_paths_are_continuous_and_as_short_as_networkx_says(spec: Any, routing: str) -> None:
    fabric = spec.model_copy(update={"routing": type(spec)._routing_fits(_routing(routing))}).build(HERE)
    src, dst = all_pairs(fabric)
    ptr, links = fabric.paths(src, dst, np.zeros_like(src))
    graph = digraph(fabric)
    # Endpoints do not forward: leave out every one but the two that talk.
    switches = list(range(fabric.num_endpoints, fabric.num_nodes))
    for i in range(0, len(src), 7):
        a, b = int(src[i]), int(dst[i])
        at = a
        for link in links[ptr[i] : ptr[i + 1]]:
            assert fabric.link_src[link] == at
            at = int(fabric.link_dst[link])
        assert at == b
        short = nx.shortest_path_length(graph.subgraph([*switches, a, b]), a, b)
        assert ptr[i + 1] - ptr[i] == short


def _routing(name: str) -> Any:
    return LeafSpine(leaves=1, spines=1, endpoints_per_leaf=1, routing=name, **LINE).routing


def test_gpus_of_a_host_talk_over_the_nvswitch_even_when_they_share_a_nic() -> None:
    fabric = LeafSpine(
        leaves=2, spines=2, endpoints_per_leaf=16, latency="1us", hosts=HOST | {"nics": 1}
    ).build(HERE)
    for channel in range(50):
        assert nodes_of(fabric, 0, 7, channel) == ["gpu0", "host0.nvswitch", "gpu7"]
    assert nodes_of(fabric, 0, 8) == ["gpu0", "host0.nic0", "leaf0", "host1.nic0", "gpu8"]


def test_rails_keep_equal_local_ranks_on_one_leaf() -> None:
    rails = LeafSpine(
        leaves=8, spines=4, endpoints_per_leaf=16, latency="1us", hosts=HOST | {"rails": True}
    ).build(HERE)
    for local in range(8):
        path = nodes_of(rails, local, 8 * 15 + local)
        assert path == [
            f"gpu{local}",
            f"host0.nic{local}",
            f"leaf{local}",
            f"host15.nic{local}",
            f"gpu{120 + local}",
        ]
    assert len(nodes_of(rails, 0, 8 * 15 + 1)) == 7
    assert rails.dims == (8, 16)


def test_with_pxn_another_rail_is_reached_by_its_own_nic() -> None:
    """Without, over the spines; one's own rail, one's own host and other leaves' hosts as ever."""
    hosts = HOST | {"rails": True}
    plain, pxn = (
        LeafSpine(
            leaves=16, spines=4, endpoints_per_leaf=16, latency="1us", hosts=hosts | {"pxn": flag}
        ).build(HERE)
        for flag in (False, True)
    )
    for src, dst in [(0, 8), (0, 1), (3, 255), (5, 5 + 8 * 20)]:
        assert nodes_of(pxn, src, dst, 7) == nodes_of(plain, src, dst, 7)
    for local in range(8):
        other = (local + 3) % 8
        assert nodes_of(pxn, local, 8 * 15 + other) == [
            f"gpu{local}", f"host0.nic{other}", f"leaf{other}", f"host15.nic{other}", f"gpu{120 + other}",
        ]  # fmt: skip
        assert len(nodes_of(plain, local, 8 * 15 + other)) == 7
    assert pxn.num_links == plain.num_links + 256 * 7


def test_without_rails_a_hosts_nics_share_a_leaf() -> None:
    fabric = LeafSpine(leaves=8, spines=4, endpoints_per_leaf=16, latency="1us", hosts=HOST).build(HERE)
    names = {nodes_of(fabric, gpu, 64 + gpu)[2] for gpu in range(8)}
    assert names == {"leaf0"}


def test_host_links_have_their_rates_and_latencies() -> None:
    fabric = LeafSpine(
        leaves=2, spines=2, endpoints_per_leaf=8, latency="1us", uplink_latency="2us", hosts=HOST
    ).build(HERE)
    found = {
        (
            fabric.link_rate_bps[i],
            fabric.link_latency_ps[i],
            fabric.link_name(i).split(" -> ")[1].rstrip("0123"),
        )
        for i in range(fabric.num_links)
        if fabric.link_name(i).startswith(("gpu0", "host0.nic0", "leaf0"))
    }
    assert (450e9 * 8, 300_000, "host0.nvswitch") in found
    assert (400e9, 0, "host0.nic") in found
    assert (400e9, 1_000_000, "leaf") in found
    # Eight NICs below, two links up at 1:1.
    assert (1600e9, 2_000_000, "spine") in found


def test_nic_of_gpu_says_which_nic_a_gpu_uses() -> None:
    host = HOST | {"nics": 3, "nic_of_gpu": [2, 2, 0, 0, 1, 1, 1, 1]}
    fabric = LeafSpine(leaves=2, spines=1, endpoints_per_leaf=8, latency="1us", hosts=host).build(HERE)
    assert [nodes_of(fabric, gpu, 8)[1][-1] for gpu in range(8)] == list("22001111")


def test_without_nvlink_a_host_talks_over_its_nics() -> None:
    host = {"gpus": 4, "nics": 2, "nic_rate": "400Gbps"}
    fabric = LeafSpine(leaves=1, spines=1, endpoints_per_leaf=8, latency="1us", hosts=host).build(HERE)
    assert nodes_of(fabric, 0, 1) == ["gpu0", "host0.nic0", "gpu1"]
    assert nodes_of(fabric, 0, 2) == ["gpu0", "host0.nic0", "leaf0", "host0.nic1", "gpu2"]
    assert fabric.dims == (8,)


def spread(seed: int, count: int = 4000) -> Any:
    fabric = LeafSpine(
        leaves=2, spines=8, endpoints_per_leaf=64, routing={"kind": "ecmp", "seed": seed}, **LINE
    ).build(HERE)
    flows = np.arange(count, dtype=np.int32)
    ptr, links = fabric.paths(flows % 64, 64 + flows // 64 % 64, flows // 4096)
    assert set(np.diff(ptr)) == {4}
    return fabric.link_dst[links.reshape(-1, 4)[:, 1]]


@pytest.mark.parametrize("seed", [0, 1, 2, 12345])
def test_ecmp_spreads_over_the_spines_as_chance_would(seed: int) -> None:
    _, counts = np.unique(spread(seed), return_counts=True)
    assert len(counts) == 8
    statistic = float(((counts - 500) ** 2 / 500).sum())
    # Neither worse nor, as a counter in disguise would be, better than one chance in 10,000.
    assert chi2.ppf(1e-4, 7) < statistic < chi2.ppf(1 - 1e-4, 7)


def test_ecmp_choices_of_successive_switches_are_independent() -> None:
    tree = FatTree(k=8, **LINE).build(HERE)
    flows = np.arange(4096, dtype=np.int32)
    _, links = tree.paths(flows % 16, 64 + flows // 16 % 16, flows // 256)
    core = tree.link_dst[links.reshape(-1, 6)[:, 2]]
    _, counts = np.unique(core, return_counts=True)
    assert len(counts) == 16
    assert float(((counts - 256) ** 2 / 256).sum()) < chi2.ppf(1 - 1e-4, 15)


def test_ecmp_depends_on_its_seed_which_overrides_the_runs() -> None:
    assert not np.array_equal(spread(1), spread(2))
    plain = LeafSpine(leaves=2, spines=8, endpoints_per_leaf=64, **LINE)
    own = LeafSpine(leaves=2, spines=8, endpoints_per_leaf=64, routing={"kind": "ecmp", "seed": 5}, **LINE)
    src = np.arange(64, dtype=np.int32)
    runs = [
        spec.build(Context(seed=seed)).paths(src, src + 64, src * 0)[1]
        for spec, seed in ((own, 1), (own, 2), (plain, 5))
    ]
    assert np.array_equal(runs[0], runs[1])
    assert np.array_equal(runs[0], runs[2])
    assert not np.array_equal(runs[0], plain.build(Context(seed=6)).paths(src, src + 64, src * 0)[1])


def test_ecmp_does_not_depend_on_batches_or_earlier_questions() -> None:
    spec = FatTree(k=4, routing={"kind": "ecmp", "seed": 3}, **LINE)
    fabric = spec.build(HERE)
    src, dst = all_pairs(fabric)
    ptr, links = fabric.paths(src, dst, src + dst)
    order = np.random.default_rng(0).permutation(len(src))
    other = spec.build(HERE)
    for part in np.array_split(order, 17):
        p, part_links = other.paths(src[part], dst[part], (src + dst)[part])
        for i, flow in enumerate(part):
            assert part_links[p[i] : p[i + 1]].tolist() == links[ptr[flow] : ptr[flow + 1]].tolist()


def test_tables_that_do_not_fit_the_memory_give_the_same_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = FatTree(k=4, **LINE)
    fabric = spec.build(HERE)
    src, dst = all_pairs(fabric)
    ptr, links = fabric.paths(src, dst, src)
    monkeypatch.setattr("cosim.topology.hop_tables._TABLE_BYTES", 3 * 4 * 20)
    small = spec.build(HERE)
    for _ in range(2):
        p, got = small.paths(src, dst, src)
        assert np.array_equal(p, ptr)
        assert np.array_equal(got, links)


def test_shortest_takes_the_lowest_numbered_link() -> None:
    fabric = LeafSpine(leaves=2, spines=4, endpoints_per_leaf=2, routing="shortest", **LINE).build(HERE)
    assert nodes_of(fabric, 0, 3)[2] == "spine0"
    assert nodes_of(fabric, 1, 2, 9)[2] == "spine0"


def test_sixteen_thousand_gpus_in_hosts_route_with_a_row_per_edge_switch() -> None:
    tree = FatTree(k=32, endpoints_per_edge=32, latency="1us", hosts=HOST | {"rails": True}).build(HERE)
    src = np.arange(tree.num_endpoints, dtype=np.int32)
    assert len(src) == 16384
    ptr, _ = tree.paths(src, np.roll(src, -1), src * 0)
    hops = np.diff(ptr)
    assert (hops[np.arange(16384) % 8 != 7] == 2).all()
    routing: Any = tree.routing
    assert routing._tables(tree).used == 512


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"leaves": 0}, "greater than 0"),
        ({"spines": -1}, "greater than 0"),
        ({"rate": "-1Gbps"}, "above zero"),
        ({"latency": "-1ns"}, "greater than or equal to 0"),
        ({"oversubscription": 0}, "greater than 0"),
        ({"oversubscription": 2, "uplink_rate": "1Gbps"}, "give one of them"),
        ({"routing": "dimension_ordered"}, "shortest, ecmp, dmodk or by_channel"),
        ({"hosts": HOST}, "set hosts.nic_rate, not rate"),
        ({"rate": None}, "give rate"),
        ({"rate": None, "hosts": HOST | {"nics": 3}}, "nics must divide gpus"),
        ({"rate": None, "hosts": HOST | {"nic_of_gpu": [0, 8]}}, "8 numbers from 0 to 7"),
        ({"rate": None, "hosts": HOST | {"gpus": 24}}, "16 GPUs, which is not a whole number of hosts of 24"),
        ({"rate": None, "hosts": HOST | {"rails": True}}, "multiple of 8"),
        ({"rate": None, "hosts": HOST | {"nvlink_rate": None}}, "without nvlink_rate"),
        ({"rate": None, "hosts": HOST | {"pxn": True}}, "pxn is from rail to rail.*it needs rails: true"),
        (
            {"rate": None, "hosts": {"gpus": 4, "nics": 4, "nic_rate": "1Gbps", "rails": True, "pxn": True}},
            "it needs nvlink_rate",
        ),
    ],
)
def test_what_cannot_be_built_is_refused_with_what_would_be_right(
    fields: dict[str, Any], message: str
) -> None:
    good: dict[str, Any] = {"leaves": 4, "spines": 2, "endpoints_per_leaf": 16} | LINE
    with pytest.raises(ValidationError, match=message):
        LeafSpine.model_validate(good | fields)


def test_odd_k_is_refused() -> None:
    with pytest.raises(ValidationError, match="4 or 6, not 5"):
        FatTree(k=5, **LINE)


def test_settings_that_cannot_matter_are_told() -> None:
    ecmp = {"kind": "ecmp", "seed": 1}
    one_spine = LeafSpine(leaves=4, spines=1, endpoints_per_leaf=2, routing=ecmp, **LINE)
    assert [key for key, _ in one_spine.idle_settings()] == ["routing.seed"]
    one_leaf = LeafSpine(leaves=1, spines=4, endpoints_per_leaf=2, oversubscription=2, **LINE)
    assert [key for key, _ in one_leaf.idle_settings()] == ["oversubscription"]
    assert LeafSpine(leaves=4, spines=2, endpoints_per_leaf=2, routing=ecmp, **LINE).idle_settings() == []
    lone = Hosts(gpus=1, nics=1, nic_rate="1Gbps", rails=True, nvlink_rate="9Gbps")
    assert [key for key, _ in lone.idle_settings()] == ["nvlink_rate", "rails"]
    assert Hosts.model_validate(HOST | {"rails": True}).idle_settings() == []


def test_channels_have_a_spine_each() -> None:
    tree = LeafSpine(
        leaves=2, spines=4, endpoints_per_leaf=2, rate="100Gbps", latency="1us", routing="by_channel"
    ).build(HERE)
    channel = np.arange(8, dtype=np.int32)
    ptr, links = tree.paths(np.zeros(8, np.int32), np.full(8, 3, np.int32), channel)
    names = [tree.node_names[node] for node in tree.link_dst[links[ptr[:-1] + 1]].tolist()]
    assert names == [f"spine{k % 4}" for k in range(8)]


def test_channels_have_a_nic_each_where_a_host_hangs_on_several() -> None:
    nics = [0, 1]  # of two hosts, numbered from 4 on; all hang on one switch
    pairs = [(host, 2 + 2 * host + nic) for host in (0, 1) for nic in nics]
    pairs += [(2 + k, 6) for k in range(4)]
    both = [*pairs, *((b, a) for a, b in pairs)]
    src, dst = (np.array(column, np.int32) for column in zip(*both, strict=True))
    count = len(both)
    graph = Topology(
        "two planes", 2, tuple("abcdefg"), src, dst, np.full(count, 1e11), np.zeros(count, np.int64),
        ChannelPaths(),
    )  # fmt: skip
    ptr, links = graph.paths(np.zeros(4, np.int32), np.ones(4, np.int32), np.arange(4, dtype=np.int32))
    assert graph.link_dst[links[ptr[:-1]]].tolist() == [2, 3, 2, 3]


@pytest.mark.parametrize("shift", [1, 5, 8, 21])
@pytest.mark.parametrize(
    "tree",
    [
        LeafSpine(leaves=8, spines=4, endpoints_per_leaf=4, rate="100Gbps", latency="1us", routing="dmodk"),
        FatTree(k=4, rate="100Gbps", latency="1us", routing="dmodk"),
        LeafSpine(
            leaves=8,
            spines=4,
            endpoints_per_leaf=4,
            latency="1us",
            routing="dmodk",
            hosts={"gpus": 2, "nics": 2, "nic_rate": "100Gbps", "rails": True},
        ),
    ],
    ids=["leaf-spine", "fat-tree", "rails"],
)
def test_destination_modulo_k_lets_shifts_share_no_link(tree: LeafSpine | FatTree, shift: int) -> None:
    # Zahavi 2010, theorem 1. On rails a shift by whole hosts stays on its rail, so shift hosts, not GPUs.
    topology = tree.build(HERE)
    n = topology.num_endpoints
    step = shift * (tree.hosts.gpus if tree.hosts else 1)
    src = np.arange(n, dtype=np.int32)
    _, links = topology.paths(src, np.roll(src, -step).astype(np.int32), np.zeros(n, np.int32))
    assert len(np.unique(links)) == len(links)
