"""Graphs from YAML and networkx, partitions, and which nodes forward."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from cosim.context import HERE, Context
from cosim.errors import TopologyError, UnreachableError
from cosim.topology.explicit import Graph, from_networkx
from cosim.topology.graph import Topology
from cosim.topology.routings import EcmpSpec, ShortestSpec

DUMBBELL = """\
endpoints: [a, b, c, d]
switches: [left, right]
links:
  - {from: a, to: left, rate: 100Gbps, latency: 1us}
  - {from: b, to: left, rate: 100Gbps, latency: 1us}
  - {from: c, to: right, rate: 100Gbps, latency: 1us}
  - {from: d, to: right, rate: 100Gbps, latency: 1us}
  - {from: left, to: right, rate: 50Gbps, latency: 5us}
"""


def nodes_of(topology: Topology, src: int, dst: int) -> list[str]:
    one = np.array([src], np.int32)
    _, links = topology.paths(one, np.array([dst], np.int32), np.zeros(1, np.int32))
    return [topology.node_names[src], *(topology.node_names[topology.link_dst[link]] for link in links)]


def link(a: str, b: str, **more: Any) -> dict[str, Any]:
    return {"from": a, "to": b, "rate": "1Gbps", "latency": 0} | more


def test_a_dumbbell_file_is_routed(tmp_path: Path) -> None:
    (tmp_path / "dumbbell.yaml").write_text(DUMBBELL)
    graph = Graph(file="dumbbell.yaml").build(Context(base=tmp_path))
    assert nodes_of(graph, 0, 3) == ["a", "left", "right", "d"]
    assert nodes_of(graph, 0, 1) == ["a", "left", "b"]
    assert graph.num_links == 10
    assert graph.link_name(8) == "left -> right"
    assert graph.link_rate_bps[8:].tolist() == [5e10, 5e10]
    assert graph.name == "graph dumbbell"


def test_one_way_links_are_one_way() -> None:
    spec = Graph.model_validate(
        {
            "endpoints": [0, 1],
            "switches": ["s"],
            "links": [
                link("0", "s"),
                link("s", "1", bidirectional=False),
                link("1", "0", bidirectional=False),
            ],
        }
    )
    graph = spec.build(HERE)
    assert nodes_of(graph, 0, 1) == ["0", "s", "1"]
    assert nodes_of(graph, 1, 0) == ["1", "0"]


def test_endpoints_forward_only_where_asked() -> None:
    chain = {"endpoints": ["a", "b", "c"], "links": [link("a", "b"), link("b", "c")]}
    with pytest.raises(UnreachableError, match="endpoints do not forward here"):
        nodes_of(Graph.model_validate(chain).build(HERE), 0, 2)
    forwarding = Graph.model_validate(chain | {"endpoints_forward": True}).build(HERE)
    assert nodes_of(forwarding, 0, 2) == ["a", "b", "c"]


def test_costs_steer_routing() -> None:
    links = [
        link("a", "s"),
        link("s", "t", cost=5),
        link("s", "u"),
        link("u", "v"),
        link("v", "t"),
        link("t", "b"),
    ]
    graph = Graph.model_validate({"endpoints": ["a", "b"], "switches": list("stuv"), "links": links}).build(
        HERE
    )
    assert nodes_of(graph, 0, 1) == ["a", "s", "u", "v", "t", "b"]


def test_a_node_next_to_the_destination_by_a_dear_link_is_left_the_cheap_way() -> None:
    # a-w-b costs 5, a-s-b 11, a-s-r-t-b 4.
    links = [link("a", "w"), link("w", "b", cost=4), link("a", "s"), link("s", "b", cost=10)]
    links += [link("s", "r"), link("r", "t"), link("t", "b")]
    graph = Graph.model_validate({"endpoints": ["a", "b"], "switches": list("rstw"), "links": links}).build(
        HERE
    )
    assert nodes_of(graph, 0, 1) == ["a", "s", "r", "t", "b"]


def test_parallel_links_are_kept_and_shared_by_ecmp() -> None:
    links = [link("a", "s"), link("s", "t"), link("s", "t"), link("s", "t"), link("t", "b")]
    graph = Graph.model_validate(
        {"endpoints": ["a", "b"], "switches": ["s", "t"], "links": links, "routing": "ecmp"}
    ).build(HERE)
    channel = np.arange(90, dtype=np.int32)
    _, found = graph.paths(channel * 0, channel * 0 + 1, channel)
    assert set(found.reshape(-1, 3)[:, 1].tolist()) == {2, 4, 6}


def test_a_partition_names_both_ends_and_counts_both_sides() -> None:
    spec = Graph.model_validate(
        {
            "endpoints": ["a", "b", "c"],
            "switches": ["s", "t", "u"],
            "links": [link("a", "s"), link("b", "s"), link("c", "t"), link("t", "u")],
        }
    )
    graph = spec.build(HERE)
    message = r"no path from b to c .*partitioned; of 6 nodes, b reaches 3 \(itself included\), and 3 reach c"
    for _ in range(2):
        with pytest.raises(UnreachableError, match=message):
            graph.paths(np.array([0, 1], np.int32), np.array([1, 2], np.int32), np.zeros(2, np.int32))
    assert nodes_of(graph, 0, 1) == ["a", "s", "b"]


def test_an_endpoint_without_links_is_unreachable_both_ways() -> None:
    graph = Graph(endpoints=["a", "b"], switches=["s"]).build(HERE)
    with pytest.raises(UnreachableError, match="no path from a to b"):
        nodes_of(graph, 0, 1)
    assert nodes_of(graph, 1, 1) == ["b"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("to: right, rate: 50", "to: rihgt, rate: 50"), r"g.yaml:8: links\[4\].to: .*did you mean 'right'"),
        (("rate: 50Gbps", "rate: 50"), r"g.yaml:8: links\[4\].rate: .*rate unit"),
        (("[left, right]", "[left, right, a]"), r"g.yaml:1: endpoints: 2 nodes are named 'a'"),
        (("latency: 5us", "latncy: 5us"), r"g.yaml:8: links\[4\].latncy: .*did you mean 'latency'"),
        (("from: left", "from: right"), r"links\[4\]: a link from 'right' to itself"),
        (("endpoints: [a, b, c, d]", "endpoints: []"), r"g.yaml:1: endpoints: .*at least 1 item"),
    ],
)
def test_a_bad_graph_file_says_where(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    (tmp_path / "g.yaml").write_text(DUMBBELL.replace(*change))
    with pytest.raises(TopologyError, match=message):
        Graph(file="g.yaml").build(Context(base=tmp_path))


def test_a_graph_needs_endpoints_or_a_file_and_not_both() -> None:
    with pytest.raises(ValidationError, match="needs endpoints"):
        Graph()
    with pytest.raises(ValidationError, match="both given"):
        Graph(endpoints=["a"], file="g.yaml")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 10), st.booleans(), st.booleans())
def test_any_networkx_graph_has_the_shortest_paths_of_networkx(
    seed: int, endpoints: int, switches: int, directed: bool, ecmp: bool
) -> None:
    total = endpoints + switches
    graph: Any = nx.gnp_random_graph(total, 0.35, seed=seed, directed=directed)
    for i, edge in enumerate(graph.edges):
        graph.edges[edge].update(rate_bps=10**9, latency_ps=5, cost=1 + (i * 7 + seed) % 7)
    built = from_networkx(
        graph, range(endpoints), cost="cost", routing=EcmpSpec(seed=seed) if ecmp else ShortestSpec()
    )
    names = built.node_names
    for a in range(endpoints):
        for b in range(endpoints):
            seen = graph.subgraph([a, b, *range(endpoints, total)])
            if not nx.has_path(seen, a, b):
                with pytest.raises(UnreachableError, match=f"from {a} to {b} "):
                    nodes_of(built, a, b)
                continue
            path = [int(node) for node in nodes_of(built, a, b)]
            assert path[0] == a
            assert path[-1] == b
            cost = sum(graph.edges[edge]["cost"] for edge in pairwise(path))
            assert cost == nx.shortest_path_length(seen, a, b, weight="cost")
    assert names == tuple(str(i) for i in range(total))


def test_networkx_node_names_and_directions_are_kept() -> None:
    graph: Any = nx.DiGraph()
    graph.add_edge("tor", "g1", rate_bps=2e9, latency_ps=7)
    graph.add_edge("g0", "tor", rate_bps=1e9, latency_ps=3)
    built = from_networkx(graph, ["g0", "g1"])
    assert built.node_names == ("g0", "g1", "tor")
    assert nodes_of(built, 0, 1) == ["g0", "tor", "g1"]
    assert built.link_rate_bps.tolist() == [2e9, 1e9]
    assert built.link_latency_ps.tolist() == [7, 3]
    with pytest.raises(UnreachableError, match="no path from g1 to g0"):
        nodes_of(built, 1, 0)


@pytest.mark.parametrize(
    ("attributes", "endpoints", "message"),
    [
        ({"rate_bps": 1e9}, [0, 1], "edge 0 -> 1 has no attribute 'latency_ps'.*it has: rate_bps"),
        ({"rate_bps": 0, "latency_ps": 1}, [0, 1], "rate_bps = 0; it must be bits per second above zero"),
        ({"rate_bps": 1, "latency_ps": 0.5}, [0, 1], "latency_ps = 0.5; it must be whole picoseconds"),
        ({"rate_bps": 1, "latency_ps": -1}, [0, 1], "latency_ps = -1"),
        ({"rate_bps": "fast", "latency_ps": 1}, [0, 1], "rate_bps = 'fast'"),
        ({"rate_bps": 1, "latency_ps": 1}, [0, 9], "endpoint 9 is not a node"),
        ({"rate_bps": 1, "latency_ps": 1}, [0, 0], "endpoint 0 is given 2 times"),
        ({"rate_bps": 1, "latency_ps": 1}, [], "needs endpoints"),
    ],
)
def test_a_bad_networkx_graph_is_refused(attributes: Any, endpoints: list[int], message: str) -> None:
    graph: Any = nx.Graph()
    graph.add_edge(0, 1, **attributes)
    with pytest.raises(TopologyError, match=message):
        from_networkx(graph, endpoints)


def test_a_networkx_self_loop_is_refused() -> None:
    graph: Any = nx.Graph()
    graph.add_edge(0, 0, rate_bps=1, latency_ps=1)
    with pytest.raises(TopologyError, match="self-loop"):
        from_networkx(graph, [0])
