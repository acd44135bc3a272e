"""What the topologies and routings that a scenario can name have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, SerializeAsAny, field_validator

from cosim.registry import Named
from cosim.spec import RateBps, Spec, TimePs
from cosim.topology.graph import I32, I64, Paths, Topology
from cosim.topology.grid import Dimension, DimensionOrdered
from cosim.topology.routing import DModK, Ecmp, Shortest

Count = Annotated[int, Field(gt=0)]
"""Field type: how many; at least one."""
Rate = RateBps
"""Field type: ``"400Gbps"``, above zero, in bits per second, per direction of a link."""
Latency = Annotated[TimePs, Field(ge=0)]
"""Field type: ``"500ns"``, zero or more, in picoseconds, of one link."""


@dataclass(frozen=True, eq=False, slots=True)
class Fabric:
    """What a routing may need to know of the topology it is built for.

    ``dimensions`` is empty where there are none; ``endpoints_forward`` says that paths may pass through
    endpoints; ``link_cost`` int32[L] is None where every link counts as one hop; ``place_of``
    int64[endpoints] numbers endpoints along the edge switches, None where their own numbers do.
    """

    dimensions: tuple[Dimension, ...] = ()
    endpoints_forward: bool = False
    link_cost: I32 | None = None
    place_of: I64 | None = None


class RoutingSpec(Spec):
    """Base of the routings that a scenario can name."""

    needs_dimensions: ClassVar[bool] = False

    @abstractmethod
    def build(self, fabric: Fabric, seed: int = 0) -> Paths:
        """The routing; ``seed`` is the run's, which a routing's own seed overrides."""


class ShortestSpec(RoutingSpec):
    """Cheapest path; among equals, the lowest-numbered link at each node."""

    def build(self, fabric: Fabric, seed: int = 0) -> Shortest:  # noqa: ARG002
        """The routing; it uses no seed."""
        return Shortest(fabric.endpoints_forward, fabric.link_cost)


class EcmpSpec(RoutingSpec):
    """Equal-cost multi-path, per flow: a seeded hash of source, destination and channel picks."""

    seed: int | None = Field(None, description="Seed of the hash; omitted: the run's seed.")

    def build(self, fabric: Fabric, seed: int = 0) -> Ecmp:
        """The routing."""
        own = seed if self.seed is None else self.seed
        return Ecmp(fabric.endpoints_forward, fabric.link_cost, seed=own)


class DModKSpec(RoutingSpec):
    """Destination modulo k: of equal ways up, the destination's place picks one (fat-trees; InfiniBand)."""

    def build(self, fabric: Fabric, seed: int = 0) -> DModK:  # noqa: ARG002
        """The routing; it uses no seed."""
        return DModK(fabric.endpoints_forward, fabric.link_cost, place_of=fabric.place_of)


class DimensionOrderedSpec(RoutingSpec):
    """Dimension 0 first, then 1, and so on; the shorter way round a ring, clockwise on a tie."""

    needs_dimensions: ClassVar[bool] = True

    def build(self, fabric: Fabric, seed: int = 0) -> DimensionOrdered:  # noqa: ARG002
        """The routing; it uses no seed."""
        return DimensionOrdered(fabric.dimensions)


Routing = Annotated[SerializeAsAny[RoutingSpec], Named("cosim.routings")]
"""Field type: a routing's name, or ``{kind: NAME, <its settings>}``."""


class TopologySpec(Spec):
    """Base of the topologies that a scenario can name."""

    has_dimensions: ClassVar[bool] = False

    routing: Routing = Field(ShortestSpec(), description="shortest, ecmp, dmodk or dimension_ordered.")

    @field_validator("routing")
    @classmethod
    def _routing_fits(cls, routing: RoutingSpec) -> RoutingSpec:
        if not isinstance(routing, RoutingSpec):
            raise ValueError(f"{type(routing).__name__} is not a routing; name one, as in 'routing: ecmp'")
        if routing.needs_dimensions and not cls.has_dimensions:
            raise ValueError(
                "dimension_ordered needs a topology with dimensions; here: shortest, ecmp or dmodk"
            )
        return routing

    @abstractmethod
    def build(self, seed: int = 0, base: Path | None = None) -> Topology:
        """The topology. ``seed`` is the run's; ``base`` is the folder that relative files start from."""

    def idle_routing(self, why: str) -> list[tuple[str, str]]:
        """The routing settings that were given although every pair has one path only."""
        if "routing" not in self.model_fields_set:
            return []
        if isinstance(self.routing, EcmpSpec) and self.routing.seed is not None:
            return [("routing.seed", why)]
        return [("routing", why)]
