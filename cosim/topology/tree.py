"""What leaf-spine and fat-tree share: endpoints or hosts below edge switches, and the links above."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from cosim.topology.builder import Builder
from cosim.topology.contract import Latency, Planes, Rate, Routing, TopologySpec
from cosim.topology.graph import I64
from cosim.topology.hosts import Hosts
from cosim.topology.routings import EcmpSpec


class Tree(TopologySpec):
    """Fields of switched trees. Switches have no limit of their own: only links are slow."""

    rate: Rate | None = Field(
        None,
        description="Rate of each endpoint to its edge switch, per direction; hosts have nic_rate instead.",
    )
    latency: Latency = Field(description="Latency of each link between an endpoint (or NIC) and its switch.")
    uplink_rate: Rate | None = Field(
        None, description="Rate of each link between switches, per direction; or give oversubscription."
    )
    oversubscription: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        None, description="Capacity below an edge switch over capacity above it; 1 if neither is given."
    )
    uplink_latency: Latency | None = Field(
        None, description="Latency of each link between switches; omitted: latency."
    )
    hosts: Hosts | None = Field(None, description="Hosts of several GPUs; omitted: endpoints on their own.")
    planes: Planes = Field(
        1, description="Such fabrics side by side; each endpoint (or host) has its links to each."
    )
    routing: Routing = Field(EcmpSpec(), description="ecmp, dmodk or shortest.")

    @abstractmethod
    def edge_shape(self) -> tuple[int, int, int]:
        """Edge switches, endpoints on each, and links up from each."""

    @model_validator(mode="after")
    def _one_rate_each(self) -> Self:
        if (self.hosts is None) == (self.rate is None):
            what = (
                "hosts have a rate of their own: set hosts.nic_rate, not rate"
                if self.hosts
                else ("give rate, or hosts with a nic_rate")
            )
            raise ValueError(what)
        if self.uplink_rate is not None and self.oversubscription is not None:
            raise ValueError("uplink_rate and oversubscription say the same thing; give one of them")
        edges, per_edge, _ = self.edge_shape()
        if self.hosts is not None:
            self.hosts.check_edges(edges, per_edge)
        return self

    def down_bps(self) -> float:
        """Capacity below one edge switch, per direction."""
        per_edge = self.edge_shape()[1]
        if self.hosts is not None:
            return self.hosts.ports_per_edge(per_edge) * self.hosts.nic_rate
        return per_edge * (self.rate or 0.0)

    def up_bps(self) -> float:
        """Rate of one link between switches, per direction."""
        if self.uplink_rate is not None:
            return self.uplink_rate
        return self.down_bps() / (self.edge_shape()[2] * (self.oversubscription or 1.0))

    def up_ps(self) -> int:
        """Latency of one link between switches."""
        return self.latency if self.uplink_latency is None else self.uplink_latency

    def ratio(self) -> float:
        """Oversubscription: capacity below an edge switch over the capacity above it."""
        return self.down_bps() / (self.edge_shape()[2] * self.up_bps())

    def start(self) -> Builder:
        """A builder with the endpoints in it."""
        edges, per_edge, _ = self.edge_shape()
        return Builder(f"gpu{i}" for i in range(edges * per_edge))

    def attach(self, builder: Builder, edges: I64) -> tuple[tuple[int, ...], I64]:
        """Hang endpoints or hosts on the edge switches; the topology's dims, and each endpoint's place.

        Hosts with a scale-up switch make two dimensions: GPUs in a host, and hosts.
        """
        per_edge = self.edge_shape()[1]
        if self.hosts is None:
            gpu = np.arange(builder.num_endpoints)
            builder.connect(gpu, edges[gpu // per_edge], self.rate or 0.0, self.latency)
            return (builder.num_endpoints,), gpu
        count, place = self.hosts.attach(builder, edges, self.latency)
        if self.hosts.nvlink_rate is not None and self.hosts.gpus > 1 and count > 1:
            return (self.hosts.gpus, count), place
        return (builder.num_endpoints,), place

    def idle_settings(self) -> list[tuple[str, str]]:
        """Settings of uplinks that nothing uses, and of a choice with one option; hosts tell their own."""
        idle: list[tuple[str, str]] = []
        edges, _, up = self.edge_shape()
        if edges == 1:
            why = "there is one edge switch, so nothing goes up"
            names = ("uplink_rate", "oversubscription", "uplink_latency")
            idle += [(name, why) for name in names if name in self.model_fields_set]
        if self.planes == 1 and (edges == 1 or up == 1):
            idle += self.idle_routing("each pair of endpoints has one path only")
        return idle
