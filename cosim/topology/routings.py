"""The routings that a scenario can name: ``routing: ecmp``, ``routing: {kind: ecmp, seed: 3}``."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from cosim.context import Context
from cosim.topology.contract import Fabric, RoutingSpec
from cosim.topology.routing import ChannelPaths, DModKPaths, EcmpPaths, ShortestPaths

if TYPE_CHECKING:
    from cosim.topology.grid import DimensionOrdered


class ShortestSpec(RoutingSpec):
    """Cheapest path; among equals, the lowest-numbered link at each node."""

    def build(self, fabric: Fabric, context: Context) -> ShortestPaths:  # noqa: ARG002
        """The routing; it draws nothing."""
        return ShortestPaths(fabric.endpoints_forward, fabric.link_cost)


class EcmpSpec(RoutingSpec):
    """Equal-cost multi-path, per flow: a seeded hash of source, destination and channel picks."""

    seed: int | None = Field(None, description="Seed of the hash; omitted: the run's seed.")

    def build(self, fabric: Fabric, context: Context) -> EcmpPaths:
        """The routing."""
        own = context.seed if self.seed is None else self.seed
        return EcmpPaths(fabric.endpoints_forward, fabric.link_cost, seed=own)

    def uses_seed(self) -> bool:
        """Without a seed of its own."""
        return self.seed is None


class DModKSpec(RoutingSpec):
    """Destination modulo k: of equal ways up, the destination's place picks one (fat-trees; InfiniBand)."""

    def build(self, fabric: Fabric, context: Context) -> DModKPaths:  # noqa: ARG002
        """The routing; it draws nothing."""
        return DModKPaths(fabric.endpoints_forward, fabric.link_cost, place_of=fabric.place_of)


class ByChannelSpec(RoutingSpec):
    """A channel of a collective keeps to a NIC, plane or spine: of k equal ways channel c takes c mod k."""

    def build(self, fabric: Fabric, context: Context) -> ChannelPaths:  # noqa: ARG002
        """The routing; it draws nothing."""
        return ChannelPaths(fabric.endpoints_forward, fabric.link_cost)


class DimensionOrderedSpec(RoutingSpec):
    """Dimension 0 first, then 1, and so on; the shorter way round a ring, clockwise on a tie."""

    needs_dimensions: ClassVar[bool] = True

    def build(self, fabric: Fabric, context: Context) -> DimensionOrdered:  # noqa: ARG002
        """The routing; it draws nothing."""
        from cosim.topology.grid import DimensionOrdered

        return DimensionOrdered(fabric.dimensions)
