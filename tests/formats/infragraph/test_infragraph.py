"""InfraGraph topologies: against upstream's own expansion, hand counts, and mistakes with their lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cosim
from cosim.context import HERE, Context
from cosim.errors import TopologyError
from cosim.formats.infragraph.topology import InfraGraph
from cosim.topology.graph import Topology
from tests.formats.topology_files import CLOS, DATA, RACK
from tests.inputs import needs

needs_files = needs("infragraph")


def build(text: str, folder: Path, **settings: Any) -> Topology:
    (folder / "rack.yaml").write_text(text)
    return InfraGraph(file=("rack.yaml",), **settings).build(Context(base=folder))


def joined(topology: Topology) -> set[frozenset[str]]:
    names = topology.node_names
    return {
        frozenset({names[a], names[b]}) for a, b in zip(topology.link_src, topology.link_dst, strict=True)
    }


def test_rack_is_expanded_as_written(tmp_path: Path) -> None:
    topology = build(RACK, tmp_path)
    assert topology.num_endpoints == 8
    assert topology.node_names[:5] == (
        "host.0.xpu.0",
        "host.0.xpu.1",
        "host.0.xpu.2",
        "host.0.xpu.3",
        "host.1.xpu.0",
    )
    # Per host 4 NVLinks and 4 PCIe, 4 inside the switch, 4 cables; each both ways.
    assert topology.num_links == 2 * (2 * 8 + 4 + 4)
    pairs = joined(topology)
    assert frozenset({"host.0.xpu.1", "host.0.nic.0"}) in pairs
    assert frozenset({"host.0.xpu.1", "host.0.nic.1"}) not in pairs
    assert frozenset({"host.1.nic.1", "switch.0.port.3"}) in pairs
    rates = {
        frozenset({topology.node_names[a].split(".")[-2], topology.node_names[b].split(".")[-2]}): (
            rate,
            latency,
        )
        for a, b, rate, latency in zip(
            topology.link_src,
            topology.link_dst,
            topology.link_rate_bps,
            topology.link_latency_ps,
            strict=True,
        )
    }
    assert rates[frozenset({"xpu", "nvsw"})] == (1.6e12, 0)
    assert rates[frozenset({"xpu", "nic"})] == (32 * 8e9, 250_000)
    assert rates[frozenset({"nic", "port"})] == (4e11, 0)
    assert topology.info["read"] == ("8 x xpu", "3 x switch", "4 x nic", "4 x port", "24 x link")
    assert any("no latency of link eth" in line for line in topology.info["assumed"])


def test_upstream_expands_to_the_same_graph(tmp_path: Path) -> None:
    service = pytest.importorskip("infragraph.infragraph_service", reason="pip install infragraph")
    upstream = service.InfraGraphService()
    upstream.set_graph(RACK)
    graph = upstream.get_networkx_graph()
    ours = build(RACK, tmp_path)
    assert set(graph.nodes) == set(ours.node_names)
    assert {frozenset(edge) for edge in graph.edges} == joined(ours)


@needs_files
def test_connections_of_several_files_are_joined() -> None:
    topology = InfraGraph(file=tuple(CLOS), rates={"ic": "1Tbps"}, latency="1us").build(HERE)
    assert topology.num_endpoints == 16
    # 4 servers of 4 + 4 links, 7 switches of 16 ports, 16 + 12 cables.
    assert topology.num_links == 2 * (4 * 8 + 7 * 16 + 28)
    assert "4 of instance server, the least that edges need" in topology.info["assumed"]
    ptr, _ = topology.paths(np.array([0, 0], np.int32), np.array([1, 4], np.int32), np.zeros(2, np.int32))
    assert np.diff(ptr).tolist() == [2, 12]


@needs_files
def test_a_device_of_another_file_and_an_instance_that_is_missing() -> None:
    names = [str(DATA / "dgxa100.yaml"), str(DATA / "cx5.yaml")]
    with pytest.raises(TopologyError, match=r"dgxa100\.yaml:111: device: .*'cx5', which isn't described"):
        InfraGraph(file=names[:1], rate="1Gbps").build(HERE)
    with pytest.raises(
        TopologyError, match=r"dgxa100\.yaml:113: connections\[0\]: an edge names 'server'"
    ) as caught:
        InfraGraph(file=tuple(names), rate="1Gbps").build(HERE)
    assert "instances: {server: DEVICE}" in str(caught.value)
    with pytest.raises(TopologyError, match=r"no bandwidth is given for links? dgx-a100\.fabric"):
        InfraGraph(file=tuple(names), instances={"server": "dgx-a100"}, rates={"pcie": "200Gbps"}).build(HERE)
    rates = {"pcie": "200Gbps", "nvlink": "200Gbps", "fabric": "400Gbps"}
    topology = InfraGraph(file=tuple(names), instances={"server": "dgx-a100"}, rates=rates).build(HERE)
    # 85 in the server as listed, 2 in each of 8 cards, 8 between.
    assert (topology.num_endpoints, topology.num_links) == (8, 2 * (77 + 16 + 8))


@needs_files
def test_an_instance_that_nobody_describes_is_left_out_if_nothing_needs_it() -> None:
    file = (str(DATA / "scaleup-scaleout.yaml"),)
    with pytest.raises(
        TopologyError, match=r"scaleup-scaleout\.yaml:15: no bandwidth .*VendorA-Server\.pcie3"
    ):
        InfraGraph(file=file).build(HERE)
    topology = InfraGraph(file=file, rates={"pcie3": "64Gbps"}).build(HERE)
    assert any("instance sosw" in line for line in topology.info["ignored"])


def test_a_ring_of_components(tmp_path: Path) -> None:
    ring = RACK.replace(
        "{ep1: {component: xpu}, ep2: {component: nvsw}, scheme: many2many, link: nvlink}",
        "{ep1: {component: xpu}, ep2: {component: xpu}, scheme: ring, link: nvlink}",
    )
    pairs = joined(build(ring, tmp_path))
    assert {frozenset({f"host.0.xpu.{k}", f"host.0.xpu.{(k + 1) % 4}"}) for k in range(4)} <= pairs


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("many2many, link: nvlink", "many, link: nvlink", "rack.yaml:13: scheme: 'many' should be"),
        ("link: nvlink}", "link: nvlnk}", "server has no link 'nvlnk'; did you mean 'nvlink'?"),
        ("component: 'xpu[0:2]'", "component: 'gpu[0:2]'", "rack.yaml:14: server has no component 'gpu'"),
        ("component: 'nic[0]'", "component: 'nic[2]'", "there is no nic[2]; there are 2"),
        ("component: 'nic[0]'", "component: 'nic[0:x]'", "should be a name, with [0], [0:4]"),
        ("count: 2}\n- {name: switch", "count: 3}\n- {name: switch", "one2one joins 6 components with 4"),
        ("device: tor", "device: tro", "which isn't described; did you mean 'tor'?"),
        ("instance: host", "instance: hots", "an edge names 'hots', which is no instance"),
        ("count: 4, choice: xpu", "count: 1000000000000", "should be a whole number from 0 to 1048576"),
        ("count: 4, choice: xpu", "count: 1000000, choice: xpu", "more than 1048576 components in all"),
        ("choice: xpu", "choice: cpu", "no component is of type xpu"),
        ("gigabits_per_second: 400", "gigabits_per_second: fast", "fast should be a number above zero"),
        ("{choice: gigabits_per_second, gigabits_per_second: 400}", "{furlongs: 4}", "a bandwidth is one of"),
        ("instances:\n", "instances:\n- {name: host, device: tor}\n", "another instance is named 'host'"),
        ("name: rack", "name: [", "not YAML"),
        ("devices:\n", "device:\n", "'device' is no key of an infrastructure; did you mean 'devices'?"),
        ("instances:\n", "instance:\n", "no key of an infrastructure; did you mean 'instances'?"),
    ],
)  # fmt: skip
def test_mistakes_say_line_and_remedy(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in RACK
    with pytest.raises(TopologyError) as caught:
        build(RACK.replace(old, new, 1), tmp_path)
    assert says in str(caught.value)
    assert "rack.yaml:" in str(caught.value)


def test_giga_transfers_are_no_rate(tmp_path: Path) -> None:
    text = RACK.replace(
        "{choice: gigabits_per_second, gigabits_per_second: 400}", "{gigatransfers_per_second: 8}"
    )
    with pytest.raises(TopologyError, match="no bandwidth is given for link eth"):
        build(text, tmp_path)
    assert any("GT/s" in line for line in build(text, tmp_path, rate="1Gbps").info["ignored"])


def test_unknown_keys_are_reported_and_unknown_links_refused(tmp_path: Path) -> None:
    topology = build(RACK.replace("name: rack", "name: rack\ncolour: red"), tmp_path)
    assert topology.info["ignored"] == ("key 'colour' of the infrastructure",)
    with pytest.raises(TopologyError, match=r"no link 'ehh' is used; did you mean 'eth'\?"):
        build(RACK, tmp_path, rates={"ehh": "1Gbps"})


def test_the_page_says_what_was_read_and_assumed(tmp_path: Path) -> None:
    (tmp_path / "rack.yaml").write_text(RACK)
    run = cosim.run(
        cosim.loads(
            "topology: {kind: infragraph, file: rack.yaml}\nnetwork: fair_share\n"
            "jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 8, size: 1MiB}}]\n",
            base=tmp_path,
        )
    )
    page = str(run)
    assert "\ntopology\n  read: 8 x xpu, 3 x switch" in page
    assert "assumed: no latency of link" in page
    assert run.summary.to_json()["topology_report"]["read"][0] == "8 x xpu"
