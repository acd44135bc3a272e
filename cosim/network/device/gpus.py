"""What a GPU is to the device network: units, a mesh of routers, memory channels, I/O ports."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from cosim.registry import nearest
from cosim.spec import RateBps, Spec, TimePs

_GIB = 8.0 * 2**30


class DeviceGpu(Spec):
    """A GPU: its parts, their rates and latencies. By default the generic one of ASTRA-sim 3.0's paper."""

    units: int = Field(128, ge=1, le=4096, description="compute units")
    rows: int = Field(8, ge=1, le=64, description="rows of routers")
    columns: int = Field(4, ge=1, le=64, description="columns of routers")
    channels: int = Field(32, ge=1, le=1024, description="memory channels, spread over the routers")
    ports: int = Field(16, ge=1, le=1024, description="I/O ports, spread over the routers")
    unit_rate: RateBps = Field(512 * _GIB, gt=0, description="lines that a unit sends or takes")
    router_rate: RateBps = Field(1024 * _GIB, gt=0, description="of each link of the mesh")
    memory_rate: RateBps = Field(4096 * _GIB, gt=0, description="of all channels together")
    port_rate: RateBps = Field(1024 * _GIB, gt=0, description="of all ports together, each way")
    hop_latency: TimePs = Field(1_000, ge=0, description="of each link of the mesh")
    memory_latency: TimePs = Field(
        100_000, ge=0, description="of another GPU's load or store, beyond transfers"
    )
    flag_latency: TimePs = Field(
        0, ge=0, description="of a flag besides: the fence before it, and who polls it"
    )
    outstanding: int = Field(256, ge=1, le=1 << 20, description="lines of a unit in flight")
    wavefronts: int = Field(32, ge=1, le=1024, description="of a workgroup")

    @property
    def num_routers(self) -> int:
        """Routers of the mesh."""
        return self.rows * self.columns


GPUS: dict[str, DeviceGpu] = {
    "generic": DeviceGpu(),
    # Three numbers (unit, memory, flag) and a launch of 1.2 us are fitted to the all-reduces of 4 GB200s that
    # NVIDIA publishes with their kernels (NVIDIA/nccl, contrib/custom_algos, Apache-2.0). Memory latency has
    # the way through NVSwitch, and what that takes to add up: links have none then.
    "gb200": DeviceGpu.model_validate(
        {
            "units": 148,
            "outstanding": 128,
            "unit_rate": "27GB/s",
            "memory_rate": "8TB/s",
            "port_rate": "900GB/s",
            "memory_latency": "2.29us",
            "flag_latency": "1.1us",
        }
    ),
    # Two numbers of each (unit, memory), and a launch of 3.2 us of both, are fitted to all-reduces by packets
    # that MSCCL++ measured, and to NCCL's below 1 MB (tests/lab/validation/device.py). The flag's is the
    # GB200's. Stores don't wait for one another: where a thread has one load in flight, say ``outstanding``.
    "a100": DeviceGpu.model_validate(
        {
            "units": 108,
            "outstanding": 1024,
            "unit_rate": "27GB/s",
            "memory_rate": "2.04TB/s",
            "port_rate": "300GB/s",
            "memory_latency": "1.29us",
            "flag_latency": "1.1us",
        }
    ),
    "h100": DeviceGpu.model_validate(
        {
            "units": 132,
            "outstanding": 1024,
            "unit_rate": "40GB/s",
            "memory_rate": "3.35TB/s",
            "port_rate": "450GB/s",
            "memory_latency": "0.85us",
            "flag_latency": "1.1us",
        }
    ),
}
"""GPUs that a scenario can name."""


def _by_name(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value not in GPUS:
        raise ValueError(
            f"unknown GPU {value!r}{nearest(value, GPUS)}; known: {', '.join(sorted(GPUS))}; "
            "or a mapping of units, rows, columns, ..."
        )
    return GPUS[value]


DeviceGpuName = Annotated[DeviceGpu, BeforeValidator(_by_name)]
"""Field type: a name, or a mapping of what differs from the generic GPU."""
