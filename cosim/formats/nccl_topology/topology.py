"""NCCL's and RCCL's topology XML: one server as NCCL sees it, several of them joined at their network ports.

NCCL writes it with ``NCCL_TOPO_DUMP_FILE``. GPUs become endpoints in the order of their ranks; CPUs, PCI
switches, NICs and the NVSwitch forward. What a link carries is what NCCL reckons with, in each direction
(NCCL's ``graph/topo.h`` and ``topo.cc``, 10^9 bytes a second):

==========================  =====================================================================
XGMI                        count x 48 (gfx94x), 36 (gfx90a), 24 (older), from GPU to GPU
NVLink                      count x 18 (sm 60), 20 (70 to 80), 12 (86), 20.6 (90), 40.1 (100 on)
PCI                         link_width x 0.1875, 0.375, 0.75, 1.5, 3, 6 for 2.5, 5, 8, 16, 32, 64 GT/s,
                            three quarters of what the lanes carry
between CPUs                Intel 6 (Broadwell), 10 (Skylake), 22, 40 (Sapphire, Emerald Rapids); AMD 16;
                            POWER 32; Arm 6
NIC that is a CPU's own     5000
network port                its speed in Mb/s
==========================  =====================================================================

Files that clouds ship (Azure's azhpc-images, AWS's aws-ofi-nccl) leave out what NCCL asks the machine for. A
PCI device of class 0x03 is a GPU then, numbered in the order of bus numbers, one of class 0x02 a NIC with one
port; a link speed that is empty is Gen3's. What only the machine knows comes from the scenario:
``nvlink_rate`` joins such GPUs by an NVSwitch, ``port_rate`` is the speed of such a NIC's port.

``nccl`` knows the NICs, and takes links of such rates to carry what they say. With ``nvlink_rate`` given it
takes them for a data sheet's, and has the laws that were measured. Of several NICs that are equally near each
channel takes one (``routing: by_channel``, the default here).

All NVSwitches of a server are one, as in NCCL. Routing prefers as NCCL does: NVLink, PCI switches only, over
a CPU, over several (NVL, PIX and PXB, PHB, SYS); so a message to another server leaves by the nearest NIC, or
with ``rails`` by the one that is nearest at both ends together.

Not modelled: NICs shared by GPUs through NVLink (PXN), PCI switches' limits beyond their links, Intel's
overhead of GPU-to-GPU traffic over PCI, the CPU's memory.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from cosim.context import Context
from cosim.errors import TopologyError
from cosim.files.import_report import ReportBuilder
from cosim.files.located_xml import read_xml
from cosim.formats.nccl_topology.system import PCI_COST, NcclSystem, Speeds, read_server
from cosim.topology.builder import Builder
from cosim.topology.contract import Count, Latency, Rate, Routing, TopologySpec
from cosim.topology.graph import I64, Topology
from cosim.topology.host_shape import HostShape
from cosim.topology.routings import ByChannelSpec

MAX_NODES = 1 << 20


class NcclTopology(TopologySpec):
    """Servers from NCCL's topology XML, joined by a switch"""

    file: str = Field(description="The XML file that NCCL dumped (NCCL_TOPO_DUMP_FILE).")
    servers: Count = Field(1, le=1 << 14, description="Servers, all alike.")
    rails: bool = Field(False, description="Network port j of each server on switch j; else all on one.")
    ports: list[str] | None = Field(
        None, description="Names of the network ports to use (as NCCL_IB_HCA); omitted: all."
    )
    nvlink_rate: Rate | None = Field(None, description="Rate of each GPU's NVLinks; omitted: NCCL's figure.")
    nvlink_latency: Latency = Field(0, description="Latency of an NVLink.")
    pci_latency: Latency = Field(0, description="Latency of a PCI link, and of one between CPUs.")
    network_latency: Latency = Field(0, description="Latency from a network port to its switch.")
    port_rate: Rate | None = Field(
        None, description="Rate of the port of a NIC for which the file has none; omitted: its PCI link's."
    )
    routing: Routing = Field(
        default_factory=ByChannelSpec, description="by_channel, shortest, ecmp or dmodk."
    )
    unclassed: Literal["gpu", "nic"] | None = Field(
        None, description="What PCI devices are of which the file doesn't say the class; omitted: refused."
    )

    def build(self, context: Context) -> Topology:
        """The topology.

        Raises
        ------
        TopologyError
            A file that can't be read or isn't NCCL's, with the line; several servers without a port.
        """
        report = ReportBuilder()
        root = read_xml(context.base / self.file, TopologyError)
        server = read_server(root, self.ports, self.speeds(), report)
        if self.servers > 1 and not server.ports:
            raise root.wrong(f"has no network port that could join {self.servers} servers")
        gpus = [server.gpus[rank] for rank in sorted(server.gpus)]
        if self.servers * (len(gpus) + len(server.others)) > MAX_NODES:
            raise root.wrong(f"{self.servers} servers have more than {MAX_NODES} components in all")
        builder = Builder(f"server{s}.{gpu}" for s in range(self.servers) for gpu in gpus)
        each = np.arange(self.servers, dtype=np.int64)
        number = {gpu: each * len(gpus) + k for k, gpu in enumerate(gpus)}
        others = [f"server{s}.{name}" for s in range(self.servers) for name in server.others]
        numbers = builder.add_switches(others).reshape(self.servers, len(server.others))
        number.update({name: numbers[:, k] for k, name in enumerate(server.others)})
        for one, two, rate, latency, cost in server.links:
            builder.connect(number[one], number[two], rate, latency, cost)
        if self.servers > 1:
            self._fabric(builder, number, server)
        self._say(server, report)
        return builder.topology(
            f"{self.servers} x NCCL {Path(self.file).stem}",
            self.routing,
            context,
            dims=(len(gpus), self.servers) if self.servers > 1 else (),
            info=report.as_dict(),
            hosts=self._hosts(server),
        )

    def _hosts(self, server: NcclSystem) -> HostShape:
        """What algorithms ask for."""
        links, gpus = server.scale_up, len(server.gpus)
        own: dict[str, float] = {}
        for (gpu, _), rate in links.items():
            own[gpu] = own.get(gpu, 0.0) + rate
        switched = any(peer == "nvswitch" for _, peer in links)
        mesh = not switched and gpus > 1 and len(links) == gpus * (gpus - 1)
        ports = len(server.ports) if self.servers > 1 else 0
        return HostShape(
            gpus,
            ports,
            0.0 if self.nvlink_rate is None else max(own.values(), default=0.0),
            sum(rate for _, rate, _ in server.ports) / max(ports, 1),
            self.rails and ports > 1,
            self.nvlink_latency * (2 if switched else 1),
            max(ports // gpus, 1),
            mesh=mesh,
            partial=bool(links) and not (switched or mesh or self.servers > 1),
            reckoned=self.nvlink_rate is None,
            linked=bool(links),
            named_only=True,
        )

    def speeds(self) -> Speeds:
        """What the scenario says of links within a server."""
        return Speeds(self.nvlink_rate, self.nvlink_latency, self.pci_latency, self.port_rate, self.unclassed)

    def _fabric(self, builder: Builder, number: dict[str, I64], server: NcclSystem) -> None:
        count = len(server.ports) if self.rails else 1
        switches = builder.add_switches(f"rail{j}" if self.rails else "fabric" for j in range(count))
        for j, (name, rate, latency) in enumerate(server.ports):
            builder.connect(number[name], switches[j % count], rate, latency + self.network_latency, PCI_COST)

    def _say(self, server: NcclSystem, report: ReportBuilder) -> None:
        report.assumed("rates of NVLink, PCI and CPU links: what NCCL reckons with")
        for name, what in (
            ("nvlink_latency", "NVLinks"),
            ("pci_latency", "PCI and CPU links"),
            ("network_latency", "network ports beyond the file's"),
        ):
            if name not in self.model_fields_set and not (name == "network_latency" and self.servers == 1):
                report.assumed(f"no latency of {what} ({name})")
        if self.servers > 1:
            self._say_order(server, report)
            shape = f"{len(server.ports)} switches, one for each port" if self.rails else "one switch"
            report.assumed(f"{self.servers} such servers at {shape}")
        elif server.ports:
            report.ignored("network port, as there is one server", len(server.ports))

    def _say_order(self, server: NcclSystem, report: ReportBuilder) -> None:
        gpus, links = [server.gpus[rank] for rank in sorted(server.gpus)], server.scale_up
        if not links or any(peer == "nvswitch" for _, peer in links):
            return
        bare = [pair for pair in pairwise(gpus) if pair not in links]
        if bare:
            report.doubt(
                "topology",
                "rings over several servers pass GPUs in the order of ranks, which have no link from "
                f"{bare[0][0]} to {bare[0][1]}: NCCL and RCCL find other orders",
                "rings of nccl, such as RCCL's for this host (rome_models.cc); servers: 1 finds them",
            )

    def idle_settings(self) -> list[tuple[str, str]]:
        """Settings of the fabric, where there is one server."""
        given = self.model_fields_set
        names = [name for name in ("rails", "network_latency") if name in given and self.servers == 1]
        return [(name, "there is one server, so nothing leaves it") for name in names]
