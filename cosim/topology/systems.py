"""Systems by name: hosts or racks as their data sheets have them, on a rail-optimised fabric.

``topology: {kind: dgx-h100, hosts: 4}`` is a leaf-spine: NIC j of each host on leaf j of its group of up to
32 hosts ("scalable unit"; NVIDIA DGX SuperPOD reference architectures RA-11333, DGX H100, and RA-11334, DGX
B200), leaves linked to all spines without oversubscription unless ``oversubscription`` says otherwise. Its
fabric is InfiniBand unless ``fabric`` says otherwise.

Not modelled: NVLink's own switches one by one (a domain is one switch, which no host fills), PCIe, the
storage network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from cosim.context import Context
from cosim.topology.contract import Count, Latency, Routing, TopologySpec
from cosim.topology.graph import Topology
from cosim.topology.host_shape import FABRICS, FabricCosts, FabricName
from cosim.topology.leaf_spine import LeafSpine
from cosim.topology.routings import DModKSpec

_UNIT = 32
"""Hosts below one group of leaves: half of a switch's 64 ports."""


@dataclass(frozen=True, slots=True)
class DataSheet:
    """A host: GPUs of one scale-up domain, a GPU's rate in it, NICs and theirs."""

    gpus: int
    nvlink_rate: str
    nics: int
    nic_rate: str
    source: str
    fabric: FabricName | None = "infiniband-ndr"


class System(TopologySpec):
    """Base of the systems: hosts on rails."""

    sheet: ClassVar[DataSheet]

    hosts: Count = Field(1, description="Hosts; of a rack system, racks.")
    spines: Count | None = Field(
        None, description="Spine switches; omitted: as many as a group has hosts, uplinks as fast as NICs."
    )
    oversubscription: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        1.0, description="Capacity below a leaf over capacity above it."
    )
    latency: Latency = Field(500_000, description="Latency of each link between NICs and switches.")
    nvlink_latency: Latency = Field(300_000, description="Latency of each GPU to the NVSwitch.")
    routing: Routing = Field(DModKSpec(), description="dmodk, ecmp or shortest.")

    def costs_between_hosts(self) -> FabricCosts | None:
        """Omitted: the InfiniBand of its data sheet."""
        return self.fabric or (FABRICS[self.sheet.fabric] if self.sheet.fabric else None)

    @property
    def groups(self) -> int:
        """Groups of leaves: as few as hosts need, all alike."""
        return next(
            count for count in range(-(-self.hosts // _UNIT), self.hosts + 1) if self.hosts % count == 0
        )

    def size_about(self) -> int:
        """Both ways: GPUs to their switch, NICs to their leaves, as many links above those or those asked."""
        sheet = self.sheet
        above = sheet.nics * (self.hosts if self.spines is None else -(-self.hosts // _UNIT) * self.spines)
        return 2 * (self.hosts * (sheet.gpus + sheet.nics) + above)

    def as_leaf_spine(self) -> LeafSpine:
        """The same as ``kind: leaf_spine``."""
        sheet, leaves = self.sheet, self.groups * self.sheet.nics
        return LeafSpine.model_validate(
            {
                "leaves": leaves,
                "spines": self.spines or self.hosts // self.groups,
                "endpoints_per_leaf": self.hosts * sheet.gpus // leaves,
                "latency": f"{self.latency}ps",
                "oversubscription": self.oversubscription,
                "routing": self.routing,
                "hosts": {
                    "gpus": sheet.gpus,
                    "nvlink_rate": sheet.nvlink_rate,
                    "nvlink_latency": f"{self.nvlink_latency}ps",
                    "nics": sheet.nics,
                    "nic_rate": sheet.nic_rate,
                    "rails": True,
                },
            }
        )

    def build(self, context: Context) -> Topology:
        """The leaf-spine."""
        return self.as_leaf_spine().build(context)


class DgxA100(System):
    """DGX A100: 8 A100s, 300 GB/s of NVLink each way, 8 NICs of 200 Gbit/s (NVIDIA DGX A100 datasheet,
    2020)
    """

    sheet = DataSheet(8, "300GB/s", 8, "200Gbps", "NVIDIA DGX A100 datasheet (2020)", "infiniband-hdr")


class DgxH100(System):
    """DGX or HGX H100: 8 H100s, 450 GB/s of NVLink each way, 8 NICs of 400 Gbit/s (NVIDIA DGX H100
    datasheet)
    """

    sheet = DataSheet(8, "450GB/s", 8, "400Gbps", "NVIDIA DGX H100 datasheet (2022)")


class DgxH200(System):
    """DGX or HGX H200: as the H100's, with H200s (NVIDIA DGX H200 datasheet, 2024)"""

    sheet = DataSheet(8, "450GB/s", 8, "400Gbps", "NVIDIA DGX H200 datasheet (2024)")


class DgxB200(System):
    """DGX or HGX B200: 8 B200s, 900 GB/s of NVLink each way, 8 NICs of 400 Gbit/s (NVIDIA DGX B200
    datasheet)
    """

    sheet = DataSheet(8, "900GB/s", 8, "400Gbps", "NVIDIA DGX B200 datasheet (2024)")


class DgxB300(System):
    """DGX or HGX B300: 8 B300s, 900 GB/s of NVLink each way, 8 NICs of 800 Gbit/s (NVIDIA DGX B300
    datasheet)
    """

    sheet = DataSheet(8, "900GB/s", 8, "800Gbps", "NVIDIA DGX B300 datasheet (2025)")


class Gb200Nvl72(System):
    """GB200 NVL72: racks of 72 GPUs on one NVLink, 900 GB/s each way, a NIC of 400 Gbit/s each (its
    datasheet)
    """

    sheet = DataSheet(72, "900GB/s", 72, "400Gbps", "NVIDIA GB200 NVL72 datasheet (2024)")


class Gb300Nvl72(System):
    """GB300 NVL72: racks of 72 GPUs on one NVLink, 900 GB/s each way, a NIC of 800 Gbit/s each (its
    datasheet)
    """

    sheet = DataSheet(72, "900GB/s", 72, "800Gbps", "NVIDIA GB300 NVL72 datasheet (2025)")


class Mi300x(System):
    """Eight MI300Xs, 448 GB/s of Infinity Fabric each way, 8 NICs of 400 Gbit/s (AMD MI300X platform data
    sheet); RCCL is taken for NCCL on an A100's NVLinks of that rate, which no switch adds up
    """

    sheet = DataSheet(8, "448GB/s", 8, "400Gbps", "AMD Instinct MI300X platform data sheet (2023)", None)
