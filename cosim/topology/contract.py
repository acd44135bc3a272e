"""What the topologies and routings that a scenario can name are.

A topology's spec builds a :class:`~cosim.topology.graph.Topology`, as a rule with a
:class:`~cosim.topology.builder.Builder`, which routes it as its ``routing`` says::

    class Star(TopologySpec):
        '''Endpoints on one switch'''

        endpoints: Count = Field(description="how many")
        rate: Rate = Field(description="of each link")

        def build(self, context: Context) -> Topology:
            builder = Builder(f"gpu{i}" for i in range(self.endpoints))
            hub = builder.add_switches(["hub"])
            builder.connect(range(self.endpoints), hub, self.rate, 0)
            return builder.topology("star", self.routing, context)

A routing's spec builds :class:`~cosim.topology.graph.Paths`, which find the links from one endpoint to
another.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, field_validator

from cosim.context import Context
from cosim.registry import Named
from cosim.spec import RateBps, Spec, TimePs
from cosim.topology.graph import I32, I64, Paths, Topology
from cosim.topology.host_shape import FabricCosts, NamedFabric

if TYPE_CHECKING:
    from cosim.topology.grid import Dimension

Count = Annotated[int, Field(gt=0)]
"""Field type: how many; at least one."""
Rate = RateBps
"""Field type: ``"400Gbps"``, above zero, in bits per second, per direction of a link."""
Latency = Annotated[TimePs, Field(ge=0)]
"""Field type: ``"500ns"``, zero or more, in picoseconds, of one link."""


Planes = Annotated[int, Field(ge=1, le=64)]
"""Field type: how many copies of a fabric stand side by side."""


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
    """It goes by ``Fabric.dimensions``, so that a topology without any refuses it."""

    @abstractmethod
    def build(self, fabric: Fabric, context: Context) -> Paths:
        """How (source, destination, channel) becomes links, on a topology of which ``fabric`` tells."""


Routing = Annotated[RoutingSpec, Named("cosim.routings")]
"""Field type: a routing's name, or ``{kind: NAME, <its settings>}``."""


def _shortest() -> RoutingSpec:
    from cosim.topology.routings import ShortestSpec

    return ShortestSpec()


class TopologySpec(Spec):
    """Base of the topologies that a scenario can name."""

    has_dimensions: ClassVar[bool] = False
    """It gives its routing ``Fabric.dimensions``."""

    routing: Routing = Field(
        default_factory=_shortest, description="shortest, ecmp, dmodk, by_channel or dimension_ordered."
    )
    fabric: NamedFabric | None = Field(
        None,
        description="what NCCL's messages between hosts cost: infiniband-ndr, infiniband-hdr, roce, efa-v2, "
        "efa-v3, efa-v4, or {rate, step, declared}; omitted: NCCL's own figures of 2022",
    )

    @field_validator("routing")
    @classmethod
    def _routing_fits(cls, routing: RoutingSpec) -> RoutingSpec:
        if routing.needs_dimensions and not cls.has_dimensions:
            raise ValueError(
                "dimension_ordered needs a topology with dimensions; "
                "here: shortest, ecmp, dmodk or by_channel"
            )
        return routing

    @abstractmethod
    def build(self, context: Context) -> Topology:
        """Nodes, links, and how to route; relative files start from ``context.base``.

        Raises
        ------
        TopologyError
            It can't be built as its settings or its files say.
        """

    def costs_between_hosts(self) -> FabricCosts | None:
        """The costs of the fabric that it names; None: it names none."""
        return self.fabric

    def process(self) -> Any:
        """A :class:`cosim.plugins.ProcessSpec` that lives in every run, and may change links; None: none."""
        return None

    def size_about(self) -> int:
        """How many links it will have, before it is built; 0: not known, and not large."""
        return 0

    def uses_seed(self) -> bool:
        """Where the routing does."""
        return self.routing.uses_seed()

    def idle_routing(self, why: str) -> list[tuple[str, str]]:
        """The routing settings that were given although every pair has one path only."""
        if "routing" not in self.model_fields_set:
            return []
        own = sorted(self.routing.model_fields_set)
        return [(f"routing.{name}", why) for name in own] or [("routing", why)]
