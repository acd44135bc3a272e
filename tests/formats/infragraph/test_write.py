"""Topologies written as InfraGraph and read back: the same links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import cosim
from cosim.context import Context
from cosim.errors import TopologyError
from cosim.experiment.build import fabric
from cosim.formats.infragraph.topology import InfraGraph
from cosim.formats.infragraph.write import write_infragraph
from cosim.topology.explicit import Graph
from cosim.topology.graph import Topology
from tests.inputs import ROOT

LINE = {"rate": "100Gbps", "latency": "500ns"}
FABRICS: tuple[dict[str, Any], ...] = (
    {"kind": "torus", "dims": [3, 4], **LINE},
    {"kind": "torus", "dims": [2, 2], **LINE},
    {"kind": "mesh", "dims": [3, 2, 2], "rate": "50GiB/s", "latency": "1.001ns"},
    {"kind": "dragonfly", "endpoints_per_switch": 1, "switches_per_group": 2, "links_per_switch": 1, **LINE},
    {"kind": "direct_connect", "servers": 8, "degree": 5, "pairs": [[0, 1], [2, 3]], "strides": [1], **LINE},
    {"kind": "rail_only", "hosts": 2, "gpus": 2, "nvlink_rate": "450GB/s", "planes": 2, **LINE},
    {"kind": "fat_tree", "k": 4, **LINE},
    {"kind": "dgx-h100", "hosts": 2},
    {
        "kind": "graph",
        "endpoints": ["a", "b"],
        "links": [{"from": "a", "to": "b", "rate": "3.7Gbps", "latency": "0ns"}] * 2,
    },
)


def links(topology: Topology) -> list[tuple[float, ...]]:
    columns = (topology.link_src, topology.link_dst, topology.link_rate_bps, topology.link_latency_ps)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def built(**topology: Any) -> Topology:
    jobs = [{"workload": {"kind": "collective", "collective": "barrier", "ranks": 2, "size": "0B"}}]
    return fabric(cosim.loads(yaml.safe_dump({"topology": topology, "network": "fair_share", "jobs": jobs})))


@pytest.mark.parametrize("topology", FABRICS, ids=lambda one: one["kind"])
def test_a_topology_is_read_back_as_it_was(topology: dict[str, Any], tmp_path: Path) -> None:
    one = built(**topology)
    (tmp_path / "fabric.yaml").write_text(write_infragraph(one))
    back = InfraGraph(file="fabric.yaml").build(Context(tmp_path))
    assert back.num_endpoints == one.num_endpoints
    assert back.num_nodes == one.num_nodes
    assert links(back) == links(one)


@pytest.mark.parametrize("topology", FABRICS, ids=lambda one: one["kind"])
def test_upstream_expands_what_is_written_to_the_same_graph(topology: dict[str, Any], tmp_path: Path) -> None:
    service = pytest.importorskip("infragraph.infragraph_service", reason="pip install infragraph")
    one, upstream = built(**topology), service.InfraGraphService()
    upstream.set_graph(write_infragraph(one))
    graph = upstream.get_networkx_graph()
    names = [f"fabric.0.xpu.{k}" for k in range(one.num_endpoints)]
    names += [f"fabric.0.switch.{k}" for k in range(one.num_nodes - one.num_endpoints)]
    assert set(graph.nodes) == set(names)
    ends = zip(one.link_src.tolist(), one.link_dst.tolist(), strict=True)
    assert {frozenset(edge) for edge in graph.edges} == {frozenset((names[a], names[b])) for a, b in ends}


def test_a_link_of_one_way_is_refused() -> None:
    one_way = Graph.model_validate(
        {
            "endpoints": ["a", "b"],
            "links": [{"from": "a", "to": "b", "rate": "1Gbps", "latency": "0ns", "bidirectional": False}],
        }
    )
    with pytest.raises(TopologyError, match="a -> b has no equal the other way"):
        write_infragraph(one_way.build(Context()))


def test_the_command_writes_it(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from cosim.cli import app

    target = tmp_path / "made.yaml"
    scenario = ROOT / "scenarios" / "dragonfly.yaml"
    done = CliRunner().invoke(app, ["topology", str(scenario), "--infragraph", str(target)])
    assert done.exit_code == 0
    assert "instances:" in target.read_text()
