"""NCCL's topology XML: against NCCL's own figures, by hand, and mistakes with their lines."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.context import HERE, Context
from cosim.errors import CosimError, TopologyError
from cosim.experiment.run import run
from cosim.formats.nccl_topology.topology import NcclTopology
from cosim.topology.graph import Topology
from tests.formats.topology_files import DGX, PAIR, fuzz_targets
from tests.inputs import needs


def build(text: str, folder: Path, **values: Any) -> Topology:
    (folder / "node.xml").write_text(text)
    return NcclTopology(file="node.xml", **values).build(Context(base=folder))


def link(topology: Topology, one: str, two: str) -> tuple[float, int]:
    names = topology.node_names
    where = [
        k
        for k, (a, b) in enumerate(zip(topology.link_src, topology.link_dst, strict=True))
        if (names[a], names[b]) == (one, two)
    ]
    (only,) = where
    return float(topology.link_rate_bps[only]), int(topology.link_latency_ps[only])


def path(topology: Topology, one: int, two: int) -> list[str]:
    _, links = topology.paths(np.array([one], np.int32), np.array([two], np.int32), np.zeros(1, np.int32))
    return [topology.node_names[topology.link_dst[k]] for k in links]


def test_links_carry_what_nccl_reckons_with(tmp_path: Path) -> None:
    topology = build(PAIR, tmp_path)
    assert topology.node_names[:2] == ("server0.gpu0", "server0.gpu1")
    assert link(topology, "server0.gpu0", "server0.gpu1") == (2 * 20 * 8e9, 0)  # two NVLinks of a V100
    assert link(topology, "server0.gpu0", "server0.pci-0000:01:00.0") == (12 * 8e9, 0)  # PCI Gen3 x16: PCI_BW
    assert link(topology, "server0.nic-0000:04:00.0", "server0.pci-0000:01:00.0") == (6 * 8e9, 0)
    assert topology.num_links == 2 * 6  # NVLink, 4 PCI, network port; listed from both GPUs, there once
    assert path(topology, 0, 1) == ["server0.gpu1"]


def test_servers_meet_at_a_switch_by_their_ports(tmp_path: Path) -> None:
    topology = build(PAIR, tmp_path, servers=3, network_latency="2us")
    assert topology.num_endpoints == 6
    assert topology.dims == (2, 3)
    assert link(topology, "server1.mlx5_0", "fabric") == (1e11, 3_500_000)  # the file's 1.5 us besides
    assert path(topology, 0, 5)[-1] == "server2.gpu1"
    assert "fabric" in path(topology, 0, 5)
    assert any("3 such servers at one switch" in line for line in topology.info["assumed"])


CLOUD = """<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s" link_width="16">
      <pci busid="0003:00:00.0" class="0x030200" link_speed="" link_width="0"/>
      <pci busid="0103:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/>
      <pci busid="0001:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
    </pci>
  </cpu>
</system>
"""
"""As clouds ship them: no <gpu>, no <net>, an empty speed; GPUs not in the order of their buses."""


def test_what_a_cloud_s_file_leaves_out_is_filled_in_as_nccl_does(tmp_path: Path) -> None:
    topology = build(CLOUD, tmp_path, servers=2, nvlink_rate="300GB/s", port_rate="200Gbps")
    assert topology.node_names[:4] == ("server0.gpu0", "server0.gpu1", "server1.gpu0", "server1.gpu1")
    # GPU 0 is the one of the lower bus; an empty speed is Gen3's, no width sixteen lanes: 16 x 0.75 GB/s
    assert link(topology, "server0.gpu0", "server0.pci-ffff:ff:01.0") == (24 * 8e9, 0)
    assert link(topology, "server0.gpu1", "server0.pci-ffff:ff:01.0") == (12 * 8e9, 0)
    assert link(topology, "server0.gpu1", "server0.nvswitch") == (2.4e12, 0)
    assert link(topology, "server1.port-0103:00:00.0", "fabric") == (2e11, 0)
    assert path(topology, 0, 1) == ["server0.nvswitch", "server0.gpu1"]
    assumed = topology.info["assumed"]
    assert any("8 GT/s, as NCCL" in line for line in assumed)
    assert any("GPUs by the class" in line for line in assumed)


def test_what_only_the_machine_knows_is_said(tmp_path: Path) -> None:
    topology = build(CLOUD, tmp_path, servers=2)
    assert link(topology, "server0.port-0103:00:00.0", "fabric") == (24 * 8e9, 0)
    assert not any("nvswitch" in name for name in topology.node_names)
    assumed = " ".join(topology.info["assumed"])
    assert [doubt.why[:20] for doubt in topology.info["doubts"]] == ["GPUs have no NVLinks"]
    assert "speed of a network port" in assumed
    nameless = CLOUD.replace('class="0x020700" ', "")
    with pytest.raises(TopologyError, match=r'node.xml:5.*busid="0103:00:00.0".*has no class') as caught:
        build(nameless, tmp_path)
    assert 'class="0x020000" for a NIC' in str(caught.value)
    assert build(nameless, tmp_path, unclassed="nic").node_names == topology.node_names[:2] + tuple(
        name for name in topology.node_names if name.startswith("server0") and "gpu" not in name
    )


def test_a_nic_of_a_cpu_and_an_nvlink_to_itself(tmp_path: Path) -> None:
    text = CLOUD.replace(
        'class="0x030200" link_speed="" link_width="0"/>',
        'class="0x030200" link_speed="" link_width="0"><gpu dev="0" sm="80" rank="0">'
        '<nvlink target="0003:00:00.0" count="12" tclass="0x030200"/></gpu></pci>',
    ).replace("  </cpu>", '    <nic><net name="eth0" dev="0" speed="100000"/></nic>\n  </cpu>')
    topology = build(text, tmp_path, port_rate="1Gbps")
    assert link(topology, "server0.nic-cpu0", "server0.cpu0") == (5000 * 8e9, 0)
    assert link(topology, "server0.eth0", "server0.nic-cpu0") == (1e11, 0)
    assert topology.num_endpoints == 2  # rank 1 is the one that the file leaves out
    assert any("NVLink from a GPU to itself" in line for line in topology.info["ignored"])


@needs("infragraph/dgx_a100_nccl_topo.xml")
def test_a_dgx_a100_as_nccl_dumped_it() -> None:
    topology = NcclTopology(file=str(DGX), servers=2).build(HERE)
    assert topology.num_endpoints == 16
    # Twelve NVLinks of 20 GB/s: what NCCL's search calls 240 GB/s.
    assert link(topology, "server0.gpu3", "server0.nvswitch") == (240 * 8e9, 0)
    assert path(topology, 2, 5) == ["server0.nvswitch", "server0.gpu5"]
    out = path(topology, 0, 8)
    assert out[-1] == "server1.gpu0"
    assert "server0.mlx5_0" in out  # the NIC behind the same PCI switch (PXB), not over a CPU
    assert not any("cpu" in name for name in out)
    read = dict(reversed(line.split(" x ")) for line in topology.info["read"] if " x " in line)
    assert read == {
        "CPU (NUMA node)": "6",
        "PCI switch": "24",
        "GPU": "8",
        "NIC": "10",
        "network port": "12",
        "NVLink": "96",
    }


@needs("infragraph/dgx_a100_nccl_topo.xml")
def test_ports_can_be_chosen_and_put_on_rails() -> None:
    topology = NcclTopology(file=str(DGX), servers=2, rails=True, ports=["mlx5_0", "mlx5_1"]).build(HERE)
    assert {name for name in topology.node_names if name.startswith("rail")} == {"rail0", "rail1"}
    assert "10 x network port that ports leaves out" in topology.info["ignored"]
    with pytest.raises(TopologyError, match="has no network port mlx5_99"):
        NcclTopology(file=str(DGX), ports=["mlx5_99"]).build(HERE)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('link_speed="8.0 GT/s PCIe"', 'link_speed="9 GT/s"', "node.xml:3: <pci> link_speed"),
        ('busid="0000:04:00.0"', 'busid="0000:02:00.0"', "node.xml:3"),
        ('rank="1"', 'rank="0"', "node.xml:8: <gpu> rank=\"0\": another GPU has this rank"),
        ('count="2"', 'count="0"', "should be a whole number from 1 to 1024"),
        ('target="0000:03:00.0"', 'target="0000:09:00.0"', "is neither a GPU of this file nor"),
        ('vendor="GenuineIntel"', 'vendor="Z80"', "a CPU that NCCL has no figure for"),
        ('speed="100000"', 'speed="-1"', "<net> speed=\"-1\": should be a whole number from 1"),
        ('latency="1.5"', 'latency="soon"', "should be microseconds"),
        ("<system", "<sistem", "not XML"),
        ('sm="70"', 'sm="x"', "should be a whole number from 10 to 999"),
    ],
)  # fmt: skip
def test_mistakes_say_line_and_remedy(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in PAIR
    text = PAIR.replace(old, new, 1)
    if "04:00" in old:
        says = "another device has this busid"
    if "Z80" in new:  # two CPUs are needed for a link between them
        text = text.replace("</system>", '<cpu arch="x86_64" vendor="Z80"/></system>')
    with pytest.raises(TopologyError) as caught:
        build(text, tmp_path)
    assert says in str(caught.value)
    assert "node.xml:" in str(caught.value)


def test_servers_without_ports_cannot_be_joined(tmp_path: Path) -> None:
    lone = PAIR.replace('<net name="mlx5_0" dev="0" speed="100000" port="1" latency="1.5"/>', "")
    build(lone, tmp_path)
    with pytest.raises(TopologyError, match="has no network port that could join 2 servers"):
        build(lone, tmp_path, servers=2)


def test_fabric_settings_of_one_server_are_idle() -> None:
    assert [
        name for name, _ in NcclTopology(file="x", rails=True, network_latency="1us").idle_settings()
    ] == [
        "rails",
        "network_latency",
    ]
    assert NcclTopology(file="x", rails=True, servers=2).idle_settings() == []


TARGETS = fuzz_targets()


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_damaged_topology_files_raise_only_our_errors(data: st.DataObject) -> None:
    _, seeds, read = TARGETS[data.draw(st.integers(0, len(TARGETS) - 1))]
    content = bytearray(seeds[data.draw(st.integers(0, len(seeds) - 1))])
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        kind = data.draw(st.sampled_from(["byte", "cut", "number", "double", "word"]))
        if kind == "byte":
            content[at : at + 1] = bytes([data.draw(st.integers(0, 255))])
        elif kind == "cut":
            del content[at : at + data.draw(st.integers(1, 100))]
        elif kind == "double":
            content[at:at] = content[at : at + 90]
        elif kind == "word":
            content[at:at] = data.draw(
                st.sampled_from([b"[", b"{", b"*a", b"&a ", b": ", b"\n- ", b"!!x ", b"2020-99-99"])
            )
        else:
            digits = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
            if digits:
                where = data.draw(st.sampled_from(digits))
                content[where : where + 1] = data.draw(
                    st.sampled_from([b"-1", b"9" * 12, b"0", b"", b"1e9", b".5"])
                )
    with contextlib.suppress(CosimError):
        read(bytes(content))


LINK = b"endpoints: [a, b]\nlinks:\n- {from: a, to: b, latency: 1us, rate: RATE}\n"
NETWORK = b"topology: [Ring]\nnpus_count: [COUNT]\nbandwidth: [1]\nlatency: [TIME]\n"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("graph", LINK.replace(b"RATE", b"1e999Gbps"), "any link carries"),
        ("graph", LINK.replace(b"RATE", b"1e99999999Gbps"), "not a rate"),
        ("graph", b"[" * 20_000, "nested more than 100 deep"),
        ("graph", b"endpoints: 2020-99-99\n", "valid list"),
        ("astra-sim network", NETWORK.replace(b"COUNT", b"9" * 13).replace(b"TIME", b"1"), "are the most"),
        ("astra-sim network", NETWORK.replace(b"COUNT", b"4").replace(b"TIME", b"1e30"), "53 days"),
    ],
)
def test_absurd_values_are_refused_at_once(name: str, content: bytes, says: str) -> None:
    (read,) = (read for target, _, read in TARGETS if target == name)
    with pytest.raises(CosimError, match=says):
        read(content)


def mesh_of(gcn: str, count: int = 1) -> str:
    """Four GPUs on a CPU, an XGMI link from each to each other one."""
    buses = [f"0000:0{k}:00.0" for k in range(1, 5)]
    gpus = ""
    for rank, bus in enumerate(buses):
        links = "".join(
            f'<xgmi target="{peer}" count="{count}" tclass="0x120000"/>' for peer in buses if peer != bus
        )
        gpus += (
            f'<pci busid="{bus}" class="0x120000" link_speed="32.0 GT/s PCIe" link_width="16">\n'
            f'<gpu dev="{rank}" sm="304" gcn="{gcn}" arch="38911" rank="{rank}" gdr="1">{links}</gpu></pci>\n'
        )
    return (
        f'<system version="2">\n<cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">\n{gpus}</cpu></system>\n'
    )


@pytest.mark.parametrize(
    ("gcn", "rate"),
    [("gfx942", 48), ("940", 48), ("gfx90a", 36), ("910", 36), ("908", 24), ("gfx908", 24), ("906", 24)],
)
def test_xgmi_links_carry_what_rccl_reckons_with(tmp_path: Path, gcn: str, rate: int) -> None:
    """RCCL's ``ncclTopoXGMISpeed``; a ring's closed form over them."""
    (tmp_path / "node.xml").write_text(mesh_of(gcn))
    size = 1 << 28
    took = {
        name: run(
            {
                "topology": {"kind": "nccl", "file": str(tmp_path / "node.xml")},
                "network": "fair_share",
                "collectives": {"all_reduce": {"algorithm": name}},
                "jobs": [
                    {"workload": {"kind": "collective", "collective": "all_reduce", "size": size, "ranks": 4}}
                ],
            }
        ).records.end_ps
        for name in ("ring", "nccl")
    }
    ring = 2 * 3 / 4 * size / (rate * 1e9) * 1e12
    assert took["ring"] == pytest.approx(ring, rel=1e-6)
    assert took["nccl"] == pytest.approx(ring / 3, rel=0.07)  # over all three links, and its starts


def test_pci_switches_of_one_busid_are_several(tmp_path: Path) -> None:
    """As in RCCL's topo_4p4h.xml; NCCL makes a node of each element (``ncclTopoAddPci``)."""
    switch = '<pci busid="0000:c5:00.0" class="0x060400" link_speed="8 GT/s" link_width="16">'
    text = mesh_of("908").replace('<pci busid="0000:0', switch + '<pci busid="0000:0')
    text = text.replace("</pci>", "</pci></pci>")
    names = build(text, tmp_path).node_names
    assert [name for name in names if "pci-" in name] == [
        f"server0.pci-0000:c5:00.0{more}" for more in ("", "-2", "-3", "-4")
    ]
    nic_as_switch = PAIR.replace('busid="0000:04:00.0"', 'busid="0000:01:00.0"')  # as topo_8p1h_1.xml
    assert "server0.nic-0000:01:00.0" in build(nic_as_switch, tmp_path).node_names


def test_rings_of_several_servers_without_links_on_their_way_are_doubtful(tmp_path: Path) -> None:
    bare = mesh_of("gfx908")
    for one, two in (("01", "02"), ("02", "01")):
        link = bare.index(f'<xgmi target="0000:{two}', bare.index(f'<pci busid="0000:{one}'))
        bare = bare[:link] + bare[bare.index("/>", link) + 2 :]
    port = '<nic><net name="m" dev="0" speed="100000" port="1"/></nic></cpu>'
    for text, doubts in ((bare, 1), (mesh_of("gfx908"), 0)):
        info = build(text.replace("</cpu>", port), tmp_path, servers=2).info
        assert len(info.get("doubts", [])) == doubts
    assert not build(bare, tmp_path).info.get("doubts")


def test_xgmi_to_no_gpu_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"node.xml:4: <xgmi> target=.*is no GPU of this file"):
        build(mesh_of("gfx942").replace('target="0000:02:00.0"', 'target="0000:09:00.0"', 1), tmp_path)


def test_servers_without_nvlinks_are_doubtful_and_all_nics_are_used(tmp_path: Path) -> None:
    bare = build(CLOUD, tmp_path, servers=2)
    assert "GPUs have no NVLinks" in bare.info["doubts"][0].why
    assert not build(CLOUD, tmp_path, servers=2, nvlink_rate="300GB/s").info.get("doubts")
    assert bare.hosts is not None
    assert (bare.hosts.gpus, bare.hosts.nics, bare.hosts.linked) == (2, 1, False)
