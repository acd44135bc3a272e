"""NCCL's topology XML: one server as NCCL sees it, several of them joined at their network ports.

NCCL writes it with ``NCCL_TOPO_DUMP_FILE``. GPUs become endpoints in the order of their ranks; CPUs, PCI
switches, NICs and the NVSwitch forward. What a link carries is what NCCL reckons with, in each direction
(NCCL's ``graph/topo.h`` and ``topo.cc``, 10^9 bytes a second):

==========================  =====================================================================
NVLink                      count x 18 (sm 60), 20 (70 to 80), 12 (86), 20.6 (90), 40.1 (100 on)
PCI                         link_width x 0.1875, 0.375, 0.75, 1.5, 3, 6 for 2.5, 5, 8, 16, 32, 64 GT/s,
                            three quarters of what the lanes carry
between CPUs                Intel 6 (Broadwell), 10 (Skylake), 22, 40 (Sapphire, Emerald Rapids); AMD 16;
                            POWER 32; Arm 6
network port                its speed in Mb/s
==========================  =====================================================================

All NVSwitches of a server are one, as in NCCL. Routing prefers as NCCL does: NVLink, PCI switches only, over
a CPU, over several (NVL, PIX and PXB, PHB, SYS); so a message to another server leaves by the nearest NIC, or
with ``rails`` by the one that is nearest at both ends together.

Not modelled: NICs shared by GPUs through NVLink (PXN), PCI switches' limits beyond their links, Intel's
overhead of GPU-to-GPU traffic over PCI, the CPU's memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pydantic import Field

from cosim.context import Context
from cosim.errors import TopologyError
from cosim.files.located_xml import Element, read_xml
from cosim.files.report import ReportBuilder
from cosim.topology.builder import Builder
from cosim.topology.contract import Count, Latency, Rate, TopologySpec
from cosim.topology.graph import I64, Topology
from cosim.units import PS_PER_US

MAX_NODES = 1 << 20
GBPS = 8e9
"""One of NCCL's GB/s in bits per second."""
_NVLINK = ((100, 40.1), (90, 20.6), (87, 20.0), (86, 12.0), (70, 20.0), (60, 18.0), (0, 20.0))
_LANE = {2.5: 0.1875, 5.0: 0.375, 8.0: 0.75, 16.0: 1.5, 32.0: 3.0, 64.0: 6.0}
_INTEL = ((0xCF, 40.0), (0x8F, 22.0), (0x55, 10.0), (0, 6.0))
_PCI, _TO_CPU, _BETWEEN_CPUS = 4, 8, 64
"""What routing counts such links as; an NVLink is 1. NCCL's order: PCI switches, one CPU, several."""

_KNOWN = {
    "system": ("version",),
    "cpu": ("host_hash", "numaid", "affinity", "arch", "vendor", "familyid", "modelid"),
    "pci": (
        "busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed",
        "link_width",
    ),
    "gpu": ("dev", "sm", "rank", "gdr"),
    "nvlink": ("target", "count", "tclass"),
    "nic": (),
    "net": (
        "name", "dev", "speed", "port", "latency", "guid", "maxconn", "gdr", "coll", "keep", "index",
    ),
}  # fmt: skip
_UNUSED = ("host_hash", "affinity", "guid", "maxconn", "gdr", "coll", "keep", "version", "index")


@dataclass(eq=False)
class _Server:
    """One server: nodes by name, GPUs by rank, links (a, b, rate, latency, cost), and network ports."""

    gpus: dict[int, str] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    links: list[tuple[str, str, float, int, int]] = field(default_factory=list)
    ports: list[tuple[str, float, int]] = field(default_factory=list)


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

    def build(self, context: Context) -> Topology:
        """The topology.

        Raises
        ------
        TopologyError
            A file that can't be read or isn't NCCL's, with the line; several servers without a port.
        """
        report = ReportBuilder()
        root = read_xml(context.base / self.file, TopologyError)
        server = _Reader(self, root, report).server
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
        )

    def _fabric(self, builder: Builder, number: dict[str, I64], server: _Server) -> None:
        count = len(server.ports) if self.rails else 1
        switches = builder.add_switches(f"rail{j}" if self.rails else "fabric" for j in range(count))
        for j, (name, rate, latency) in enumerate(server.ports):
            builder.connect(number[name], switches[j % count], rate, latency + self.network_latency, _PCI)

    def _say(self, server: _Server, report: ReportBuilder) -> None:
        report.invented("rates of NVLink, PCI and CPU links: what NCCL reckons with")
        for name, what in (
            ("nvlink_latency", "NVLinks"),
            ("pci_latency", "PCI and CPU links"),
            ("network_latency", "network ports beyond the file's"),
        ):
            if name not in self.model_fields_set and not (name == "network_latency" and self.servers == 1):
                report.invented(f"no latency of {what} ({name})")
        if self.servers > 1:
            shape = f"{len(server.ports)} switches, one for each port" if self.rails else "one switch"
            report.invented(f"{self.servers} such servers at {shape}")
        elif server.ports:
            report.ignored("network port, as there is one server", len(server.ports))

    def idle_settings(self) -> list[tuple[str, str]]:
        """Settings of the fabric, where there is one server."""
        given = self.model_fields_set
        names = [name for name in ("rails", "network_latency") if name in given and self.servers == 1]
        return [(name, "there is one server, so nothing leaves it") for name in names]


class _Reader:
    """Reads one server."""

    def __init__(self, spec: NcclTopology, root: Element, report: ReportBuilder) -> None:
        self.spec, self.report, self.server = spec, report, _Server()
        self._nvlinks: list[tuple[str, int, Element]] = []
        self._gpu_at: dict[str, str] = {}
        self._buses: set[str] = set()
        if root.tag != "system":
            raise root.wrong("the root of NCCL's topology is <system>")
        self._note(root)
        cpus = [child for child in root.children if child.tag == "cpu"]
        for place, cpu in enumerate(cpus):
            self._cpu(cpu, place)
        self._between(cpus)
        self._nvlink()
        unused = {name for name, _, _ in self.server.ports}
        if spec.ports is not None and unused != set(spec.ports):
            missing = sorted(set(spec.ports) - unused)
            raise root.wrong(f"has no network port {', '.join(missing)}")
        if not self.server.gpus:
            raise root.wrong("has no <gpu>")

    def _note(self, element: Element) -> None:
        known = _KNOWN.get(element.tag, ())
        for key in element.attributes:
            if key not in known or key in _UNUSED:
                self.report.ignored(f"{key} of <{element.tag}>")
        for child in element.children:
            if child.tag not in _KNOWN:
                self.report.ignored(f"<{child.tag}>")

    def _cpu(self, element: Element, place: int) -> None:
        self._note(element)
        self.report.read("CPU (NUMA node)")
        name = f"cpu{place}"
        self.server.others.append(name)
        for child in element.children:
            if child.tag == "pci":
                self._pci(child, name)

    def _between(self, cpus: list[Element]) -> None:
        for one in range(len(cpus)):
            for two in range(one + 1, len(cpus)):
                rate = min(_cpu_rate(cpus[one]), _cpu_rate(cpus[two])) * GBPS
                self.server.links.append(
                    (f"cpu{one}", f"cpu{two}", rate, self.spec.pci_latency, _BETWEEN_CPUS)
                )

    def _pci(self, element: Element, parent: str) -> None:
        self._note(element)
        bus = element.text("busid").lower()
        if bus in self._buses:
            raise element.wrong("another device has this busid", "busid")
        self._buses.add(bus)
        rate = _pci_rate(element)
        inner = [child for child in element.children if child.tag in ("gpu", "nic")]
        if not inner:
            name = f"pci-{bus}"
            self._add(name, element)
            self.report.read("PCI switch")
            for child in element.children:
                if child.tag == "pci":
                    self._pci(child, name)
        elif inner[0].tag == "gpu":
            name = self._gpu(inner[0], bus)
        else:
            name = f"nic-{bus}"
            self._add(name, element)
            self.report.read("NIC")
            for child in inner[0].children:
                if child.tag == "net":
                    self._net(child, name)
        cost = _TO_CPU if parent.startswith("cpu") else _PCI
        self.server.links.append((name, parent, rate, self.spec.pci_latency, cost))

    def _add(self, name: str, element: Element) -> None:
        if name in self.server.others:
            raise element.wrong("another network port has this name", "name")
        self.server.others.append(name)

    def _gpu(self, element: Element, bus: str) -> str:
        self._note(element)
        self.report.read("GPU")
        rank = element.integer("rank", 0, 1 << 16, default=element.integer("dev", 0, 1 << 16))
        if rank in self.server.gpus:
            raise element.wrong("another GPU has this rank", "rank")
        name = self.server.gpus[rank] = f"gpu{rank}"
        self._gpu_at[bus] = name
        for child in element.children:
            if child.tag == "nvlink":
                self._note(child)
                self._nvlinks.append((name, element.integer("sm", 10, 999), child))
        return name

    def _net(self, element: Element, nic: str) -> None:
        self._note(element)
        name = element.text("name")
        if self.spec.ports is not None and name not in self.spec.ports:
            self.report.ignored("network port that ports leaves out")
            return
        self._add(name, element)
        speed = element.integer("speed", 1, 10**9) * 1e6
        try:
            latency = round(float(element.text("latency", "0")) * PS_PER_US)
        except (ValueError, OverflowError):
            latency = -1
        if not 0 <= latency <= 10**6 * PS_PER_US:
            raise element.wrong("should be microseconds, zero or more", "latency")
        self.report.read("network port")
        self.server.links.append((nic, name, speed, 0, _PCI))
        self.server.ports.append((name, speed, latency))

    def _nvlink(self) -> None:
        """NVLinks to a switch, or between two GPUs, added up; each such pair is listed from both sides."""
        rates: dict[tuple[str, str], float] = {}
        for gpu, sm, element in self._nvlinks:
            count = element.integer("count", 1, 1024)
            target = element.text("target").lower()
            peer = self._gpu_at.get(target)
            if peer is None and not element.text("tclass", "").startswith("0x0680"):
                raise element.wrong(
                    "is neither a GPU of this file nor (tclass 0x068000) an NVSwitch", "target"
                )
            if peer == gpu:
                raise element.wrong("is the GPU itself", "target")
            self.report.read("NVLink", count)
            each = next(rate for least, rate in _NVLINK if sm >= least)
            key = (gpu, peer or "nvswitch")
            rates[key] = rates.get(key, 0.0) + each * count
        if any(peer == "nvswitch" for _, peer in rates):
            self.server.others.append("nvswitch")
        for (gpu, peer), rate in sorted(rates.items()):
            if peer == "nvswitch" or gpu < peer or (peer, gpu) not in rates:
                bps = self.spec.nvlink_rate or rate * GBPS
                self.server.links.append((gpu, peer, bps, self.spec.nvlink_latency, 1))


def _cpu_rate(cpu: Element) -> float:
    """GB/s from one CPU to another, as NCCL's ``ncclTopoGetInterCpuBw``."""
    arch = cpu.text("arch", "x86_64")
    if arch == "ppc64":
        return 32.0
    if arch == "arm64":
        return 6.0
    vendor = cpu.text("vendor", "")
    if vendor == "AuthenticAMD":
        return 16.0
    if vendor == "GenuineIntel":
        model = cpu.integer("modelid", 0, 1 << 16, default=0)
        return next(rate for least, rate in _INTEL if model >= least)
    raise cpu.wrong("a CPU that NCCL has no figure for; known are GenuineIntel, AuthenticAMD", "vendor")


def _pci_rate(element: Element) -> float:
    """bit/s of the link from a device to what it hangs on."""
    found = re.match(r"\s*([0-9]{1,3}(?:\.[0-9])?) GT/s", element.text("link_speed", ""))
    lane = _LANE.get(float(found.group(1))) if found else None
    if lane is None:
        speeds = ", ".join(f"{speed:g}" for speed in _LANE)
        raise element.wrong(f"should be one of {speeds} GT/s", "link_speed")
    width = element.integer("link_width", 0, 64, default=0) or 16
    return width * lane * GBPS
