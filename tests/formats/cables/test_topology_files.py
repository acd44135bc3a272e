"""Topology files of other programs: an example of each format, closed forms, mistakes with their lines."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cosim
from cosim.context import Context
from cosim.errors import CosimError, TopologyError
from cosim.topology.from_file import FileTopology
from cosim.topology.graph import Topology
from tests.formats.cables.files import CSV, EACH, HPCC, HTSIM, IB, SIMAI, lldp_json, netbox


def build(text: str, folder: Path, name: str = "fabric.txt", **values: Any) -> Topology:
    (folder / name).write_text(text)
    return FileTopology(file=name, **values).build(Context(base=folder))


def links(topology: Topology) -> dict[str, float]:
    """Gbit/s of each link by name."""
    return {topology.link_name(k): topology.link_rate_bps[k] / 1e9 for k in range(topology.num_links)}


def named(topology: Topology) -> tuple[str, ...]:
    return topology.node_names[: topology.num_endpoints]


def test_hpcc_s_nodes_that_are_no_switches_are_endpoints(tmp_path: Path) -> None:
    topology = build(HPCC, tmp_path)
    assert named(topology) == ("0", "1", "2", "3")
    assert links(topology)["3 -> 4"] == 400
    assert topology.link_latency_ps[-1] == 2_000_000
    assert "2 x line behind the links" in topology.info["ignored"]


def test_simai_s_nvswitches_are_scale_up(tmp_path: Path) -> None:
    topology = build(SIMAI, tmp_path)
    assert topology.num_endpoints == 8
    assert topology.scale_up is not None
    assert int(topology.scale_up.sum()) == 8
    assert set(topology.link_rate_bps[topology.scale_up]) == {2.4e12}


def test_htsim_s_radices_make_a_leaf_spine(tmp_path: Path) -> None:
    topology = build(HTSIM, tmp_path)
    rates = links(topology)
    assert topology.num_endpoints == 32
    assert topology.num_links == 2 * (32 + 4 * 2)
    assert rates["host9 -> tor1"] == 100
    assert rates["tor3 -> agg1"] == 200
    latency = {topology.link_name(k): int(topology.link_latency_ps[k]) for k in range(topology.num_links)}
    assert latency["host0 -> tor0"] == 1_000_000
    assert latency["tor0 -> host0"] == 1_005_000  # the switch's own 5 ns
    assert latency["tor0 -> agg0"] == 705_000


def test_four_to_one_is_what_it_takes(tmp_path: Path) -> None:
    """A rack's eight hosts send to the next rack's: 800 Gbit/s over two uplinks of 200."""
    (tmp_path / "tree.topo").write_text(HTSIM)
    flows = "".join(f"{host} {host + 8} 3 100000000 0\n" for host in range(8))
    (tmp_path / "flow.txt").write_text(f"8\n{flows}")
    run = cosim.run(
        {
            "topology": {"kind": "file", "file": str(tmp_path / "tree.topo"), "routing": "dmodk"},
            "network": "fair_share",
            "jobs": [{"workload": {"kind": "flow-list", "path": str(tmp_path / "flow.txt")}}],
        }
    )
    assert run.records.end_ps / 1e12 == pytest.approx(8 * 100e6 * 8 / 400e9, rel=0.01)


def test_cables_as_csv(tmp_path: Path) -> None:
    topology = build(CSV, tmp_path)
    assert named(topology) == ("gpu1", "gpu2", "gpu10")
    assert links(topology) == {
        **{
            f"{a} -> {b}": 400
            for one, two in (("gpu1", "leaf1"), ("gpu2", "leaf1"), ("gpu10", "leaf2"))
            for a, b in ((one, two), (two, one))
        },
        **{
            f"{a} -> {b}": 800 for leaf in ("leaf1", "leaf2") for a, b in ((leaf, "spine1"), ("spine1", leaf))
        },
    }
    assert "cable that is planned" in topology.info["ignored"]
    assert any(line.startswith("endpoints: gpu1, gpu2, gpu10") for line in topology.info["assumed"])


@pytest.mark.parametrize(
    ("header", "line", "rate"),
    [
        ("from,to,gbps_rate", "a1,s,400", 400),
        ("source;target;speed_mbps", "a1;s;100000", 100),
        ("side_a_device,side_a_name,side_b_device,side_b_name,speed (Gbps)", "a1,p,s,q,25", 25),
        ("hostname\tifname\tpeerHostname\tpeerIfname\tbandwidth", "a1\tx\ts\ty\t50GB/s", 400),
        ("Device A,Port A,Device B,Port B,Link Rate", "a1,p,s,q,4xNDR", 400),
        (
            "ID,Termination A,Device A,Termination B,Device B,Type,Speed",
            "7,p,a1,q,s,aoc,400gbase-x-qsfpdd",
            400,
        ),
    ],
)
def test_columns_are_called_in_many_ways(tmp_path: Path, header: str, line: str, rate: float) -> None:
    topology = build(f"{header}\n{line}\n{line.replace('a1', 'a2')}\n", tmp_path)
    assert set(named(topology)) == {"a1", "a2"}
    assert set(links(topology).values()) == {rate}


def test_graphml_of_networkx(tmp_path: Path) -> None:
    graph: Any = nx.MultiGraph()
    graph.add_node("n0", label="gpu0", role="gpu")
    graph.add_node("n1", label="gpu1", role="gpu")
    graph.add_node("n2", label="leaf", role="switch")
    graph.add_edge("n0", "n2", rate="200Gbps", latency="300ns")
    graph.add_edge("n0", "n2", rate="200Gbps", latency="300ns")
    graph.add_edge("n1", "n2", speed_gbps=400.0, latency="300ns")
    nx.write_graphml(graph, tmp_path / "graph.graphml")
    topology = FileTopology(file="graph.graphml").build(Context(base=tmp_path))
    assert named(topology) == ("gpu0", "gpu1")
    assert sorted(topology.link_rate_bps / 1e9) == [200] * 4 + [400] * 2
    assert set(topology.link_latency_ps) == {300_000}
    nx.write_graphml(graph.to_directed(), tmp_path / "graph.graphml")
    again = FileTopology(file="graph.graphml").build(Context(base=tmp_path))
    assert sorted(again.link_rate_bps) == sorted(topology.link_rate_bps)


def test_ibnetdiscover_lists_a_link_at_both_ends(tmp_path: Path) -> None:
    topology = build(IB, tmp_path)
    assert named(topology) == ("host2 HCA-1", "host10 HCA-1")
    assert links(topology) == {
        "MF0;leaf:MQM8700/U1 -> host2 HCA-1": 200,
        "host2 HCA-1 -> MF0;leaf:MQM8700/U1": 200,
        "MF0;leaf:MQM8700/U1 -> host10 HCA-1": 100,
        "host10 HCA-1 -> MF0;leaf:MQM8700/U1": 100,
    }


def test_lldp_has_a_file_for_each_device(tmp_path: Path) -> None:
    folder = tmp_path / "lldp"
    folder.mkdir()
    (folder / "gpu1.json").write_text(lldp_json([("eth0", "leaf1", "swp1")]))
    (folder / "gpu2.txt").write_text(
        "lldp.eth0.via=LLDP\nlldp.eth0.chassis.name=leaf1.example.org\nlldp.eth0.port.ifname=swp2\n"
        "lldp.eth0.port.auto-negotiation.current=100GbaseSR4\n"
    )
    (folder / "gpu3.out").write_text(
        "---\nLLDP neighbors:\n---\nInterface:    eth0, via: LLDP, RID: 1\n  Chassis:\n"
        "    SysName:      leaf1\n"
        "  Port:\n    PortID:       ifname swp3\n    MAU oper type: 100GbaseSR4 - x\n"
    )
    (folder / "leaf1.json").write_text(
        lldp_json([("swp1", "gpu1", "eth0"), ("swp2", "gpu2", "eth0"), ("swp3", "gpu3", "eth0")])
    )
    topology = FileTopology(file="lldp").build(Context(base=tmp_path))
    assert named(topology) == ("gpu1", "gpu2", "gpu3")
    assert topology.num_links == 6
    assert set(topology.link_rate_bps) == {1e11}


@pytest.mark.parametrize(("speed", "kind"), [(400_000_000, None), (None, "400gbase-x-qsfpdd")])
def test_netbox_s_cables(tmp_path: Path, speed: int | None, kind: str | None) -> None:
    topology = build(netbox(speed, kind), tmp_path)
    assert named(topology) == ("gpu0", "gpu1")
    assert set(topology.link_rate_bps) == {4e11}
    assert "cable that is planned" in topology.info["ignored"]


@pytest.mark.parametrize(
    ("text", "values", "says"),
    [
        ("who knows\n", {}, r"no format knows .*fabric.txt:\n  csv: .*\n  graphml: it has no <graphml>\n"),
        (HPCC.replace("3 4 400", "3 9 400"), {}, "fabric.txt:6: '3 9 400Gbps.*nodes 0 to 4"),
        (HPCC.replace("5 1 4", "5 1 9"), {}, "fabric.txt:.*'First line"),
        (HPCC.replace("\n4\n", "\n7\n"), {}, "fabric.txt:2: '7' among the switches"),
        (HTSIM.replace("Radix_Down 4", "Radix_Down 5"), {}, "Radix_Down 5, and a pod has 4 below"),
        (HTSIM.replace("Radix_Up 2", "Radix_Up two"), {}, "fabric.txt:9: Radix_Up 'two'"),
        (HTSIM.replace("Radix_Up 2", "Radius 2"), {}, "fabric.txt:9: 'Radius 2'.*radix_up"),
        (CSV.replace("400G,", "400,"), {}, "fabric.txt:3: '400' needs a unit"),
        (CSV.replace(",400G,", ",,"), {}, r"the rate of the cable from gpu1 to leaf1.*\n.*rate: 400Gbps"),
        (CSV, {"endpoints": ["npu*"]}, "no node is named 'npu\\*'; there are gpu1"),
        (CSV.replace("gpu2,eth0", "leaf1,eth0"), {}, "fabric.txt:4: a cable from 'leaf1' to itself"),
        (IB.replace('a1"[1](a1)', 'ff"[1](a1)'), {}, "fabric.txt:11.*described nowhere"),
        (IB.replace("[2]\t", "port 2\t"), {}, "fabric.txt:12: 'port 2"),
        (netbox(None, "400gbase-x").replace('"gpu0"', '""'), {}, "cable 0 has an end without a device"),
        ('{"lldp": {"interface": {"eth0": {"port": {}}}}}', {}, "eth0 has a neighbour without a name"),
        ("<graphml><graph edgedefault='undirected'><node id='a'/></graph>", {}, "fabric.txt:1: not XML"),
    ],
)  # fmt: skip
def test_mistakes_say_where_and_what_would_do(
    tmp_path: Path, text: str, values: dict[str, Any], says: str
) -> None:
    with pytest.raises(TopologyError, match=f"(?s){says}"):
        build(text, tmp_path, **values)


def test_a_rate_and_a_format_can_be_given(tmp_path: Path) -> None:
    text = CSV.replace(",400G,", ",,")
    topology = build(text, tmp_path, rate="100Gbps", latency="1us", format="csv")
    assert links(topology)["gpu1 -> leaf1"] == 100
    assert "rate of a cable without one (rate)" in topology.info["assumed"]
    with pytest.raises(TopologyError, match=r"fabric\.txt:1: begins with"):
        build(text, tmp_path, format="ns3")


def test_multihomed_hosts_are_endpoints_by_name(tmp_path: Path) -> None:
    rows = [f"h{k},leaf{side},100G" for k in range(4) for side in "ab"]
    text = "from,to,rate\n" + "\n".join(
        [*rows, *(f"leaf{side},spine{n},100G" for side in "ab" for n in (1, 2))]
    )
    with pytest.raises(TopologyError, match="doesn't say which nodes are endpoints"):
        build(text, tmp_path)
    assert named(build(text, tmp_path, endpoints=["h*"])) == ("h0", "h1", "h2", "h3")


@settings(max_examples=100, deadline=None)
@given(
    which=st.sampled_from([*EACH.values()]),
    cuts=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6), st.text(max_size=4)), min_size=1, max_size=3),
)
def test_damaged_files_are_read_or_refused(
    tmp_path_factory: Any, which: str, cuts: list[tuple[float, int, str]]
) -> None:
    for at, length, put in cuts:
        place = int(at * len(which))
        which = which[:place] + put + which[place + length :]
    folder = tmp_path_factory.getbasetemp()
    (folder / "damaged.txt").write_bytes(which.encode("utf-8", "replace"))
    with contextlib.suppress(CosimError):
        topology = FileTopology(file="damaged.txt", rate="1Gbps").build(Context(base=folder))
        assert np.isfinite(topology.link_rate_bps).all()
