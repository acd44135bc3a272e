"""Hosts: GPUs behind a scale-up switch (NVSwitch), and NICs that lead to the scale-out fabric.

Inside a host, GPU to GPU goes over the NVSwitch; between hosts, GPU -> NIC -> edge switch ... NIC -> GPU.
Every GPU uses one NIC. With rails, NIC j of each host of a group is linked to the group's edge switch j
("rail-optimized"), so that equal local ranks meet at one switch; else a host's NICs share one switch.

With ``pxn`` whatever goes to a GPU on another rail, sends between pipeline stages too, takes that rail's NIC,
over the NVLink of the GPU that has it (NCCL's PXN, ``NCCL_P2P_PXN_LEVEL`` 2, since 2.12: "Doubling all2all
Performance with NVIDIA Collective Communication Library 2.12", NVIDIA's blog, 2022), if a NIC of its own
would have it cross the spines. All-to-alls of ``nccl`` have PXN anyway, message by message.

Not modelled: PCIe switches and host memory on the way to a NIC, congestion inside the NVSwitch, what PXN
takes of the NVLinks, which are several times as fast as a NIC.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from pydantic import Field, model_validator

from cosim.spec import Spec
from cosim.topology.builder import Builder
from cosim.topology.contract import Count, Latency, Rate
from cosim.topology.graph import I64

_NIC_COST = 2
"""Cost of a GPU-NIC link, where there is an NVSwitch (1 a link): else two GPUs of one NIC, two links apart
over either, could meet at the NIC."""

_PXN_COST = 3
"""Cost of a link to another GPU's NIC: less than a way over the spines, more than one's own NIC."""


class Hosts(Spec):
    """Hosts with several GPUs, a scale-up switch and NICs."""

    gpus: Count = Field(description="GPUs in a host.")
    nvlink_rate: Rate | None = Field(
        None, description="Rate of each GPU to the NVSwitch, per direction; omitted: no NVSwitch."
    )
    nvlink_latency: Latency = Field(0, description="Latency of each GPU to the NVSwitch.")
    nics: Count = Field(description="NICs in a host.")
    nic_rate: Rate = Field(description="Rate of each NIC to its edge switch, per direction.")
    gpu_nic_rate: Rate | None = Field(
        None, description="Rate of each GPU to its NIC, per direction; omitted: nic_rate."
    )
    gpu_nic_latency: Latency = Field(0, description="Latency of each GPU to its NIC.")
    nic_of_gpu: list[int] | None = Field(
        None, description="NIC of each GPU of a host; omitted: blocks, GPU g uses NIC g * nics // gpus."
    )
    rails: bool = Field(False, description="NIC j of each host of a group on the group's edge switch j.")
    pxn: bool = Field(
        False, description="rails: what goes to another rail takes that rail's NIC, over the GPU that has it."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.nic_of_gpu is None and self.gpus % self.nics:
            raise ValueError(
                f"{self.gpus} gpus do not share {self.nics} nics evenly: nics must divide gpus, "
                "or nic_of_gpu says which NIC each GPU uses"
            )
        if self.nic_of_gpu is not None and (
            len(self.nic_of_gpu) != self.gpus or not all(0 <= nic < self.nics for nic in self.nic_of_gpu)
        ):
            raise ValueError(
                f"nic_of_gpu {self.nic_of_gpu} must be {self.gpus} numbers from 0 to {self.nics - 1}, "
                "one for each GPU"
            )
        if self.nvlink_rate is None and "nvlink_latency" in self.model_fields_set:
            raise ValueError("nvlink_latency is given without nvlink_rate; give both, or neither")
        if self.pxn and (self.nvlink_rate is None or not self.rails):
            missing = "rails: true" if self.nvlink_rate is not None else "nvlink_rate"
            raise ValueError(f"pxn is from rail to rail, over NVLinks: it needs {missing}; or leave it out")
        return self

    def check_edges(self, num_edges: int, per_edge: int) -> None:
        """Refuse hosts that do not fill ``num_edges`` switches of ``per_edge`` GPUs each.

        Raises
        ------
        ValueError
            Says which numbers would fit.
        """
        if self.rails and num_edges % self.nics:
            raise ValueError(
                f"rails: the {self.nics} NICs of a host go to {self.nics} edge switches, and the topology "
                f"has {num_edges}; make that a multiple of {self.nics}"
            )
        group = self.nics if self.rails else 1
        if group * per_edge % self.gpus:
            where = f"a group of {group} edge switches has" if group > 1 else "an edge switch has"
            raise ValueError(
                f"{where} {group * per_edge} GPUs, which is not a whole number of hosts of {self.gpus}"
            )

    def ports_per_edge(self, per_edge: int) -> int:
        """NICs on each edge switch."""
        group = self.nics if self.rails else 1
        return group * per_edge // self.gpus * self.nics // group

    def attach(self, builder: Builder, edges: I64, latency_ps: int) -> tuple[int, I64]:
        """Hang the builder's endpoints, host by host, on the edge switches.

        The number of hosts, and each endpoint's place: its NIC's number along the edge switches, int64.
        """
        count = builder.num_endpoints // self.gpus
        gpu = np.arange(builder.num_endpoints, dtype=np.int64)
        host = np.arange(count)
        if self.nvlink_rate is not None:
            scale_up = builder.add_switches(f"host{h}.nvswitch" for h in host)
            switch = scale_up[gpu // self.gpus]
            builder.connect(gpu, switch, self.nvlink_rate, self.nvlink_latency, scale_up=True)
        nic = builder.add_switches(f"host{h}.nic{j}" for h in host for j in range(self.nics))
        local = self.nic_of_gpu or [g * self.nics // self.gpus for g in range(self.gpus)]
        mine = nic[gpu // self.gpus * self.nics + np.array(local)[gpu % self.gpus]]
        cost = 1 if self.nvlink_rate is None else _NIC_COST
        builder.connect(gpu, mine, self.gpu_nic_rate or self.nic_rate, self.gpu_nic_latency, cost)
        if self.pxn:
            self._over_others(builder, gpu, nic, mine)
        number, rail = host.repeat(self.nics), np.tile(np.arange(self.nics), count)
        if self.rails:
            hosts_in_group = count * self.nics // len(edges)
            edge = number // hosts_in_group * self.nics + rail
        else:
            edge = number // (count // len(edges))
        builder.connect(nic, edges[edge], self.nic_rate, latency_ps)
        place = np.empty(len(nic), np.int64)
        place[np.argsort(edge, kind="stable")] = np.arange(len(nic))
        return count, place[mine - nic[0]]

    def _over_others(self, builder: Builder, gpu: I64, nic: I64, mine: I64) -> None:
        """One way from each GPU to the NICs of its host that aren't its own, dearer than to its own."""
        src = gpu.repeat(self.nics)
        dst = nic.reshape(-1, self.nics)[gpu // self.gpus].ravel()
        other = dst != mine[src]
        latency = 2 * self.nvlink_latency + self.gpu_nic_latency
        builder.link(src[other], dst[other], self.gpu_nic_rate or self.nic_rate, latency, _PXN_COST)

    def idle_settings(self) -> list[tuple[str, str]]:
        """Settings for what such hosts do not have."""
        idle: list[tuple[str, str]] = []
        if self.gpus == 1:
            why = "a host has one GPU, so nothing uses its NVSwitch"
            idle += [(name, why) for name in ("nvlink_rate", "nvlink_latency")]
        if self.nics == 1:
            idle += [(name, "a host has one NIC") for name in ("nic_of_gpu", "rails", "pxn")]
        return [(name, why) for name, why in idle if name in self.model_fields_set]
