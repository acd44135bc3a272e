"""One-dimensional topologies in our own units: Ring, FullyConnected, Switch (ASTRA-sim's names)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cosim.context import Context
from cosim.topology.contract import Count, Fabric, Latency, Rate, Routing, TopologySpec
from cosim.topology.graph import Topology
from cosim.topology.grid import Dimension, Kind, grid_topology
from cosim.topology.routings import DimensionOrderedSpec


class _OneDimension(TopologySpec):
    has_dimensions: ClassVar[bool] = True
    dimension_kind: ClassVar[Kind]

    endpoints: Count = Field(description="Endpoints (GPUs).")
    rate: Rate = Field(description="Rate of each link, per direction, as in 400Gbps.")
    latency: Latency = Field(description="Latency of each link, as in 500ns.")
    routing: Routing = Field(
        DimensionOrderedSpec(), description="dimension_ordered (closed form), shortest or ecmp."
    )

    def build(self, context: Context) -> Topology:
        """The topology."""
        dimension = Dimension(self.dimension_kind, self.endpoints, self.rate, self.latency)
        return grid_topology([dimension], self.routing.build(Fabric((dimension,), True), context))

    def size_about(self) -> int:
        """See :class:`~cosim.topology.contract.TopologySpec`."""
        return self.endpoints * (self.endpoints - 1 if self.dimension_kind == "FullyConnected" else 2)

    def idle_settings(self) -> list[tuple[str, str]]:
        """The routing, where each pair has one shortest path."""
        if self.dimension_kind == "Ring" and self.endpoints > 2 and self.endpoints % 2 == 0:
            return []
        return self.idle_routing("each pair of endpoints has one shortest path only")


class Ring(_OneDimension):
    """Endpoints in a ring, linked both ways; the shorter way round, clockwise (+1) on a tie."""

    dimension_kind: ClassVar[Kind] = "Ring"


class FullyConnected(_OneDimension):
    """A link from each endpoint to each other one."""

    dimension_kind: ClassVar[Kind] = "FullyConnected"


class Switch(_OneDimension):
    """Endpoints on one switch: a path is two links, up and down; nothing inside the switch is slow."""

    dimension_kind: ClassVar[Kind] = "Switch"
