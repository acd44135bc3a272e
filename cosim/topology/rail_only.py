"""Rail-only: GPUs of equal local number on one switch, and nothing between these rails but the hosts.

What goes to another rail is forwarded by a GPU of its host: over NVLink to the GPU that is on the
destination's rail. Source: W. Wang, M. Ghobadi, K. Shakeri, Y. Zhang and N. Hasani, "Rail-only: A Low-Cost
High-Performance Network for Training LLMs with Trillion Parameters", HotI 2024, arXiv 2307.12169. A rail is
one switch here, however many ports it has.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from cosim.context import Context
from cosim.topology.builder import Builder
from cosim.topology.contract import Count, Latency, Planes, Rate, TopologySpec
from cosim.topology.graph import Topology


class RailOnly(TopologySpec):
    """Hosts whose GPUs of equal local number share a switch; no spines, GPUs forward to other rails"""

    hosts: Count = Field(description="Hosts, or racks: scale-up domains.")
    gpus: Count = Field(description="GPUs in a host; as many rails.")
    nvlink_rate: Rate = Field(description="Rate of each GPU to the NVSwitch, per direction.")
    nvlink_latency: Latency = Field(0, description="Latency of each GPU to the NVSwitch.")
    rate: Rate = Field(description="Rate of each GPU to its rail's switch, per direction.")
    latency: Latency = Field(description="Latency of each GPU to its rail's switch.")
    planes: Planes = Field(1, description="Switches of a rail, side by side; each GPU has a link to each.")

    def size_about(self) -> int:
        """See :class:`~cosim.topology.contract.TopologySpec`."""
        return self.hosts * self.gpus * 2 * (1 + self.planes)

    def build(self, context: Context) -> Topology:
        """The topology; links to NVSwitches come first, so that GPUs of the source's host forward."""
        gpu = np.arange(self.hosts * self.gpus)
        builder = Builder(f"gpu{i}" for i in gpu)
        inside = builder.add_switches(f"host{h}.nvswitch" for h in range(self.hosts))
        rail = builder.add_switches(f"rail{j}" for j in range(self.gpus))
        builder.connect(gpu, inside[gpu // self.gpus], self.nvlink_rate, self.nvlink_latency, scale_up=True)
        builder.connect(gpu, rail[gpu % self.gpus], self.rate, self.latency)
        return builder.topology(
            f"rail-only {self.hosts}x{self.gpus}",
            self.routing,
            context,
            endpoints_forward=True,
            dims=(self.gpus, self.hosts) if self.gpus > 1 < self.hosts else (),
            planes=self.planes,
        )
