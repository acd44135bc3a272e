"""Topology files for tests: the real ones, small ones, and what a fuzzer mutates."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from cosim.context import HERE
from cosim.formats.astra_sim.topology import AstraSim
from cosim.formats.infragraph.topology import InfraGraph
from cosim.formats.nccl_topology.topology import NcclTopology
from cosim.topology.explicit import Graph
from cosim.topology.from_file import FileTopology
from tests.formats.cables.files import EACH
from tests.inputs import find

DATA = find("infragraph")
DGX = DATA / "dgx_a100_nccl_topo.xml"
CLOS = [str(DATA / f"two-tier-clos-fabric-{part}.yaml") for part in ("infrastructure", "server", "switch")]

RACK = """name: rack
devices:
- name: server
  components:
  - {name: xpu, count: 4, choice: xpu}
  - {name: nvsw, count: 1, choice: switch}
  - {name: nic, count: 2, choice: nic}
  links:
  - {name: nvlink, physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: 1600}}}
  - {name: pcie, physical: {bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 32},
                            latency: {choice: ns, ns: 250}}}
  edges:
  - {ep1: {component: xpu}, ep2: {component: nvsw}, scheme: many2many, link: nvlink}
  - {ep1: {component: 'xpu[0:2]'}, ep2: {component: 'nic[0]'}, scheme: many2many, link: pcie}
  - {ep1: {component: 'xpu[2:4]'}, ep2: {component: 'nic[1]'}, scheme: many2many, link: pcie}
- name: tor
  components:
  - {name: port, count: 4, choice: port}
  - {name: asic, count: 1, choice: switch}
  links:
  - {name: ic, physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: 6400}}}
  edges:
  - {ep1: {component: port}, ep2: {component: asic}, scheme: many2many, link: ic}
links:
- {name: eth, physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: 400}}}
instances:
- {name: host, device: server, count: 2}
- {name: switch, device: tor, count: 1}
edges:
- ep1: {instance: host, component: nic}
  ep2: {instance: switch, component: port}
  scheme: one2one
  link: eth
"""

ASTRA = "topology: [Ring, Switch]\nnpus_count: [4, 2]\nbandwidth: [50.0, 25.0]\nlatency: [500.0, 700.0]\n"
GRAPH = "endpoints: [a, b]\nswitches: [s]\nlinks:\n- {from: a, to: s, rate: 1Gbps, latency: 1us}\n"

PAIR = """<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="8.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="70" rank="0"><nvlink target="0000:03:00.0" count="2" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:03:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="70" rank="1"><nvlink target="0000:02:00.0" count="2" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:04:00.0" class="0x020000" link_speed="8.0 GT/s PCIe" link_width="8">
        <nic><net name="mlx5_0" dev="0" speed="100000" port="1" latency="1.5"/></nic>
      </pci>
    </pci>
  </cpu>
</system>
"""


_BUSES = ("0000:03:00.0", "0000:06:00.0")
XGMI = (
    '<system version="2"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">\n'
    + "".join(
        f'<pci busid="{bus}" class="0x120000" link_speed="32.0 GT/s PCIe" link_width="16">\n'
        f'<gpu dev="{number}" sm="94" gcn="gfx942" rank="{number}" gdr="1">\n'
        f'<xgmi target="{_BUSES[1 - number]}" count="1" tclass="0x120000"/></gpu></pci>\n'
        for number, bus in enumerate(_BUSES)
    )
    + "</cpu></system>\n"
)
"""Two GPUs of AMD, as RCCL's models have them."""


def fuzz_targets() -> list[tuple[str, list[bytes], Callable[[bytes], object]]]:
    """(name, valid files, reader): a reader of mutated files may raise a CosimError, and nothing else."""
    folder = Path(tempfile.mkdtemp(prefix="cosim-fuzz-"))

    def reader(name: str, build: Callable[[str], object]) -> Callable[[bytes], object]:
        def read(content: bytes) -> object:
            path = folder / name
            path.write_bytes(content)
            return build(str(path))

        return read

    infragraph = [RACK.encode(), *(path.read_bytes() for path in sorted(DATA.glob("*.yaml")))]
    nccl = [PAIR.encode(), XGMI.encode(), *([DGX.read_bytes()] if DGX.exists() else [])]
    return [
        (
            "infragraph",
            infragraph,
            reader("i.yaml", lambda f: InfraGraph(file=(f,), rate="1Gbps").build(HERE)),
        ),
        ("nccl", nccl, reader("n.xml", lambda f: NcclTopology(file=f, servers=2).build(HERE))),
        ("astra-sim network", [ASTRA.encode()], reader("a.yaml", lambda f: AstraSim(file=f).build(HERE))),
        *(
            (
                name,
                [text.encode()],
                reader(f"{name}.txt", lambda f: FileTopology(file=f, rate="1Gbps").build(HERE)),
            )
            for name, text in EACH.items()
        ),
        ("graph", [GRAPH.encode()], reader("g.yaml", lambda f: Graph(file=f).build(HERE))),
    ]
