"""One server as NCCL or RCCL sees it, read from its topology XML: GPUs, what forwards, links and ports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cosim.files.import_report import ReportBuilder
from cosim.files.located_xml import Element
from cosim.units import PS_PER_US

GBPS = 8e9
"""One of NCCL's GB/s in bits per second."""
_NVLINK = ((100, 40.1), (90, 20.6), (87, 20.0), (86, 12.0), (70, 20.0), (60, 18.0), (0, 20.0))
_XGMI = (("gfx90a", 36.0), ("910", 36.0), ("gfx94", 48.0), ("94", 48.0), ("", 24.0))
"""GB/s of one link by how a GPU's ``gcn`` begins (RCCL's ``graph/topo.h``; 910 was its name of gfx90a)."""
_LANE = {2.5: 0.1875, 5.0: 0.375, 8.0: 0.75, 16.0: 1.5, 32.0: 3.0, 64.0: 6.0}
_UNSAID_SPEED = 8.0
"""NCCL's for a ``link_speed`` that it doesn't know, such as an empty one (``kvDictPciGen``: 60, Gen3)."""
_LOCAL, _UNSAID_CPU = 5000.0, 10.0
_GPU_CLASS, _NIC_CLASS = ("0x03", "0x12"), "0x02"
"""Display controllers and accelerators, network controllers, of PCI's codes."""
_INTEL = ((0xCF, 40.0), (0x8F, 22.0), (0x55, 10.0), (0, 6.0))
PCI_COST, _TO_CPU, _BETWEEN_CPUS = 4, 8, 64
"""What routing counts such links as; an NVLink is 1. NCCL's order: PCI switches, one CPU, several."""

_KNOWN = {
    "system": ("version",),
    "cpu": ("host_hash", "numaid", "affinity", "arch", "vendor", "familyid", "modelid"),
    "pci": (
        "busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed",
        "link_width",
    ),
    "gpu": ("dev", "sm", "gcn", "arch", "rank", "gdr"),
    "nvlink": ("target", "count", "tclass"),
    "xgmi": ("target", "count", "tclass"),
    "nic": (),
    "net": (
        "name", "dev", "speed", "port", "latency", "guid", "maxconn", "gdr", "coll", "keep", "index",
    ),
}  # fmt: skip
_UNUSED = ("arch", "host_hash", "affinity", "guid", "maxconn", "gdr", "coll", "keep", "version", "index")


@dataclass(eq=False)
class NcclSystem:
    """One server: nodes by name, GPUs by rank, links (a, b, rate, latency, cost), and network ports."""

    gpus: dict[int, str] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    links: list[tuple[str, str, float, int, int]] = field(default_factory=list)
    ports: list[tuple[str, float, int]] = field(default_factory=list)
    scale_up: dict[tuple[str, str], float] = field(default_factory=dict)
    """bit/s of NVLinks or XGMI links from a GPU to another, or to the NVSwitch; from both sides."""


@dataclass(frozen=True, slots=True)
class Speeds:
    """What the scenario says: bit/s (None: NCCL's figure, or the file's), picoseconds."""

    nvlink_rate_bps: float | None
    nvlink_latency_ps: int
    pci_latency_ps: int
    port_rate_bps: float | None
    unclassed: Literal["gpu", "nic"] | None
    """What a PCI device is of which the file doesn't even say the class."""


def read_server(
    root: Element, ports: Sequence[str] | None, speeds: Speeds, report: ReportBuilder
) -> NcclSystem:
    """The server; ``ports`` are the names of the network ports to use, None for all.

    Raises
    ------
    TopologyError
        A file that isn't NCCL's; names file and line.
    """
    return _SystemReader(root, ports, speeds, report).server


class _SystemReader:
    """Reads one server."""

    def __init__(
        self, root: Element, ports: Sequence[str] | None, speeds: Speeds, report: ReportBuilder
    ) -> None:
        self.ports, self.speeds, self.report, self.server = ports, speeds, report, NcclSystem()
        self._nvlinks: list[tuple[str, float, Element]] = []
        """GPU, GB/s of one of its links, the element."""
        self._gpu_at: dict[str, str] = {}
        self._buses: set[str] = set()
        self._joined: list[str] = []
        """GPUs that the scenario joins by an NVSwitch."""
        self._unsaid_ports = 0
        if root.tag != "system":
            raise root.wrong("the root of NCCL's topology is <system>")
        self._filled = _filled_ranks(root, speeds)
        """Ranks of the GPUs that NCCL finds on the machine, by bus."""
        self._note(root)
        cpus = [child for child in root.children if child.tag == "cpu"]
        for place, cpu in enumerate(cpus):
            self._cpu(cpu, place)
        self._between(cpus)
        self._nvlink()
        unused = {name for name, _, _ in self.server.ports}
        if ports is not None and unused != set(ports):
            missing = sorted(set(ports) - unused)
            raise root.wrong(f"has no network port {', '.join(missing)}")
        if speeds.port_rate_bps is not None and not self._unsaid_ports:
            self.report.ignored("port_rate: the file says the speed of each port")
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
            elif child.tag == "nic":
                own = f"nic-{name}"
                self._nic(child, own)
                self.server.links.append((own, name, _LOCAL * GBPS, self.speeds.pci_latency_ps, _TO_CPU))

    def _between(self, cpus: list[Element]) -> None:
        for one in range(len(cpus)):
            for two in range(one + 1, len(cpus)):
                rate = min(_cpu_rate(cpus[k], self.report) for k in (one, two)) * GBPS
                self.server.links.append(
                    (f"cpu{one}", f"cpu{two}", rate, self.speeds.pci_latency_ps, _BETWEEN_CPUS)
                )

    def _pci(self, element: Element, parent: str) -> None:
        self._note(element)
        bus = element.text("busid").lower()
        rate = self._pci_rate(element)
        inner = [child for child in element.children if child.tag in ("gpu", "nic")]
        forwards = not inner and any(child.tag == "pci" for child in element.children)
        if not forwards and bus in self._buses:
            raise element.wrong("another device has this busid", "busid")
        if not forwards:
            self._buses.add(bus)
        if inner and inner[0].tag == "gpu":
            name = self._gpu(inner[0], bus)
        elif inner:
            name = f"nic-{bus}"
            self._nic(inner[0], name)
        elif not forwards:
            name = self._device(element, bus, rate)
        else:
            name = self._switch(bus)
            self.report.read("PCI switch")
            for child in element.children:
                if child.tag == "pci":
                    self._pci(child, name)
        cost = _TO_CPU if parent.startswith("cpu") else PCI_COST
        self.server.links.append((name, parent, rate, self.speeds.pci_latency_ps, cost))

    def _switch(self, bus: str) -> str:
        """A PCI switch; to NCCL each element is one, whatever busid it has."""
        alike = sum(name == f"pci-{bus}" or name.startswith(f"pci-{bus}-") for name in self.server.others)
        if alike:
            self.report.assumed("PCI switches of the same busid: several, as NCCL")
        name = f"pci-{bus}-{alike + 1}" if alike else f"pci-{bus}"
        self.server.others.append(name)
        return name

    def _device(self, element: Element, bus: str, rate: float) -> str:
        """A PCI device of which the file says no more: what NCCL would find there, by its class."""
        kind = _class_of(element, self.speeds)
        if not kind:
            raise element.wrong(
                "has no class, so nothing says what it is; NCCL asks the machine",
                "busid",
                hint='write class="0x030200" for a GPU, class="0x020000" for a NIC; or unclassed: nic',
            )
        if kind.startswith(_GPU_CLASS):
            name = self.server.gpus[self._filled[bus]] = f"gpu{self._filled[bus]}"
            self.report.read("GPU")
            self.report.assumed("GPUs by the class of their PCI device, in the order of bus numbers")
            if self.speeds.nvlink_rate_bps is None:
                self.report.doubt(
                    "topology",
                    "GPUs have no NVLinks: the file has them as PCI devices only, so they reach each other "
                    "over PCI and CPUs",
                    "nvlink_rate, as 450GB/s of an H100 or 300GB/s of an A100; or a file that NCCL dumped",
                )
            else:
                self._joined.append(name)
            return name
        name = f"nic-{bus}" if kind.startswith(_NIC_CLASS) else f"pci-{bus}"
        self._add(name, element)
        if kind.startswith(_NIC_CLASS):
            self.report.read("NIC")
            self._port(f"port-{bus}", name, rate)
        else:
            self.report.read("PCI switch")
        return name

    def _port(self, port: str, nic: str, pci_rate: float) -> None:
        """The port of a NIC for which the file has none."""
        if self.ports is not None and port not in self.ports:
            self.report.ignored("network port that ports leaves out")
            return
        self.server.others.append(port)
        speed = self.speeds.port_rate_bps
        if speed is None:
            self.report.assumed("speed of a network port: that of its NIC's PCI link (port_rate)")
            speed = pci_rate
        self._unsaid_ports += 1
        self.server.links.append((nic, port, speed, 0, PCI_COST))
        self.server.ports.append((port, speed, 0))

    def _nic(self, element: Element, name: str) -> None:
        self._add(name, element)
        self.report.read("NIC")
        for child in element.children:
            if child.tag == "net":
                self._net(child, name)

    def _pci_rate(self, element: Element) -> float:
        """bit/s of the link from a device to what it is linked to."""
        text = element.text("link_speed", "").strip()
        found = re.match(r"([0-9]{1,3}(?:\.[0-9])?) GT/s", text)
        if not text:
            self.report.assumed(f"link_speed of PCI devices without one: {_UNSAID_SPEED:g} GT/s, as NCCL")
        lane = _LANE.get(float(found.group(1)) if found else 0.0 if text else _UNSAID_SPEED)
        if lane is None:
            speeds = ", ".join(f"{speed:g}" for speed in _LANE)
            raise element.wrong(f"should be one of {speeds} GT/s", "link_speed")
        width = element.integer("link_width", 0, 64, default=0) or 16
        return width * lane * GBPS

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
                sm = element.integer("sm", 10, 999)
                each = next(rate for least, rate in _NVLINK if sm >= least)
            elif child.tag == "xgmi":
                gcn = element.text("gcn", "").lower()
                if not gcn:
                    self.report.assumed("XGMI links of GPUs without gcn: 24 GB/s, as RCCL")
                each = next(rate for begin, rate in _XGMI if gcn.startswith(begin))
            else:
                continue
            self._note(child)
            self._nvlinks.append((name, each, child))
        return name

    def _net(self, element: Element, nic: str) -> None:
        self._note(element)
        name = element.text("name")
        if self.ports is not None and name not in self.ports:
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
        self.server.links.append((nic, name, speed, 0, PCI_COST))
        self.server.ports.append((name, speed, latency))

    def _nvlink(self) -> None:
        """NVLinks and XGMI links, added up; a pair of GPUs is listed from both sides."""
        rates = self.server.scale_up
        for gpu, each, element in self._nvlinks:
            count = element.integer("count", 1, 1024)
            target = element.text("target").lower()
            peer = self._gpu_at.get(target)
            switch = element.tag == "nvlink" and element.text("tclass", "").startswith("0x0680")
            if peer is None and not switch:
                nvlink = "is neither a GPU of this file nor (tclass 0x068000) an NVSwitch"
                raise element.wrong(nvlink if element.tag == "nvlink" else "is no GPU of this file", "target")
            if peer == gpu:  # Azure's ncv4-topo.xml; NCCL makes a link of it that no path takes
                self.report.ignored("NVLink from a GPU to itself")
                continue
            self.report.read("NVLink" if element.tag == "nvlink" else "XGMI link", count)
            key = (gpu, peer or "nvswitch")
            own = self.speeds.nvlink_rate_bps
            rates[key] = own or rates.get(key, 0.0) + each * count * GBPS
        for gpu in self._joined:
            rates[gpu, "nvswitch"] = self.speeds.nvlink_rate_bps or 0.0
        if any(peer == "nvswitch" for _, peer in rates):
            self.server.others.append("nvswitch")
        for (gpu, peer), rate in sorted(rates.items()):
            if peer == "nvswitch" or gpu < peer or (peer, gpu) not in rates:
                self.server.links.append((gpu, peer, rate, self.speeds.nvlink_latency_ps, 1))


def _cpu_rate(cpu: Element, report: ReportBuilder) -> float:
    """GB/s from one CPU to another, as NCCL's ``ncclTopoGetInterCpuBw``."""
    arch = cpu.text("arch", "x86_64")
    if arch == "ppc64":
        return 32.0
    if arch == "arm64":
        return 6.0
    if "vendor" not in cpu.attributes:
        report.assumed(f"links between CPUs: {_UNSAID_CPU:g} GB/s, as the file doesn't name them")
        return _UNSAID_CPU
    vendor = cpu.text("vendor")
    if vendor == "AuthenticAMD":
        return 16.0
    if vendor == "GenuineIntel":
        model = cpu.integer("modelid", 0, 1 << 16, default=0)
        return next(rate for least, rate in _INTEL if model >= least)
    raise cpu.wrong("a CPU that NCCL has no figure for; known are GenuineIntel, AuthenticAMD", "vendor")


def _devices(element: Element) -> Iterator[Element]:
    for child in element.children:
        if child.tag == "pci":
            yield child
            yield from _devices(child)


def _class_of(device: Element, speeds: Speeds) -> str:
    """The class of a PCI device without children."""
    unsaid = {"gpu": _GPU_CLASS[0], "nic": _NIC_CLASS}.get(speeds.unclassed or "", "")
    return device.text("class", "") or unsaid


def _filled_ranks(root: Element, speeds: Speeds) -> dict[str, int]:
    """GPUs that the file has as PCI devices only, by bus; their ranks come after those that it says."""
    said, buses = -1, []
    for cpu in root.children:
        for device in _devices(cpu):
            gpu = next((child for child in device.children if child.tag == "gpu"), None)
            if gpu is not None:
                said = max(said, gpu.integer("rank", 0, 1 << 16, default=gpu.integer("dev", 0, 1 << 16)))
            elif not device.children and _class_of(device, speeds).startswith(_GPU_CLASS):
                buses.append(device.text("busid").lower())
    return {bus: said + 1 + place for place, bus in enumerate(sorted(buses))}
