"""What a scenario says of the device network: ``{model: device, gpu: generic, unroll: 4, ...}``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from cosim.context import Context
from cosim.errors import TopologyError
from cosim.network.contract import NetworkSpec
from cosim.network.device.gpus import GPUS, DeviceGpu, DeviceGpuName
from cosim.network.simulator import NetworkSimulator
from cosim.spec import SizeBytes, TimePs
from cosim.topology.graph import Topology

MOST_STATIONS = 1 << 22


class DeviceSpec(NetworkSpec):
    """Loads and stores on GPUs with compute units, line by line"""

    gpu: DeviceGpuName = Field(GPUS["generic"], description="a name, or its parts: units, rows, columns ...")
    granularity: SizeBytes = Field(128, ge=1, le=1 << 24, description="bytes of a line")
    control: SizeBytes = Field(
        16, ge=0, le=1 << 24, description="bytes of a request or an answer without data"
    )
    access: Literal["put", "get"] = Field(
        "put",
        description="messages are stored by their source, or loaded by their destination; thread blocks of "
        "plans say it themselves",
    )
    workgroups: int | None = Field(
        None, ge=1, description="that carry a message which is no thread block's; omitted: one on each unit"
    )
    unroll: int = Field(4, ge=1, le=1024, description="lines that a wavefront asks for at once")
    outstanding: int | None = Field(
        None, ge=1, le=1 << 20, description="lines of a unit in flight; omitted: the GPU's"
    )
    wavefronts: int | None = Field(None, ge=1, le=1024, description="of a workgroup; omitted: the GPU's")
    workgroup_time: TimePs | None = Field(
        None,
        ge=1_000_000,
        description="a computation's workgroup has a unit to itself so long; omitted: none takes units",
    )
    arbitration: Literal["fair", "fcfs"] = Field(
        "fair", description="data and requests without share stations by turns, or first come, first served"
    )

    @model_validator(mode="after")
    def _fits(self) -> DeviceSpec:
        if self.workgroups is not None and self.workgroups > self.gpu.units:
            raise ValueError(
                f"{self.workgroups} workgroups a message, but the GPU has {self.gpu.units} units"
            )
        if self.unroll > self.in_flight:
            raise ValueError(
                f"a wavefront asks for {self.unroll} lines at once, but {self.in_flight} may be in flight"
            )
        return self

    @property
    def in_flight(self) -> int:
        """Lines of a unit in flight at most."""
        return self.gpu.outstanding if self.outstanding is None else self.outstanding

    @property
    def window(self) -> int:
        """Lines of a workgroup in flight at most."""
        return self.unroll * (self.gpu.wavefronts if self.wavefronts is None else self.wavefronts)

    def shares_by_weight(self) -> bool:
        """First come, first served."""
        return False

    def check_topology(self, topology: Topology) -> None:
        """Refuse more GPUs than stations are kept of. See :class:`NetworkSpec`."""
        gpu: DeviceGpu = self.gpu
        each = gpu.units + gpu.channels + 2 * gpu.ports + 4 * gpu.num_routers
        if each * topology.num_endpoints > MOST_STATIONS:
            raise TopologyError(
                f"network: {topology.num_endpoints} GPUs of {each} units, links, channels and ports are "
                f"more than the {MOST_STATIONS} that model: device keeps",
                hint="take fewer endpoints, or model: fair_share",
            )

    def build(self, context: Context) -> NetworkSimulator:  # noqa: ARG002 - nothing of it matters
        """A fresh network."""
        from cosim.network.device.network import DeviceNetwork

        return DeviceNetwork(self)
