"""Torus and mesh: endpoints in a grid of any number of dimensions, linked to their neighbours in each.

Endpoints forward. Routed dimension by dimension; on a torus half of the pairs that lie opposite go either way
round, so that an all-to-all of s bytes a pair brings N a / 8 s to every link (N endpoints, even side a); on a
mesh the middle links carry N a / 4 s. Source: W. J. Dally and B. Towles, "Principles and Practices of
Interconnection Networks", 2004, chapter 5. A torus's dimension of two has one link each way. Not modelled:
virtual channels and the deadlocks that they prevent.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

from pydantic import Field

from cosim.context import Context
from cosim.topology.contract import Fabric, Latency, Rate, Routing, TopologySpec
from cosim.topology.graph import Topology
from cosim.topology.grid import Dimension, OwnKind, grid_topology
from cosim.topology.routings import DimensionOrderedSpec

Sides = Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=1, max_length=8)]
"""Field type: ``[4, 4, 4]``, how many there are along each dimension, dimension 0 first; two at least."""


class _Neighbours(TopologySpec):
    has_dimensions: ClassVar[bool] = True
    dimension_kind: ClassVar[OwnKind]
    title: ClassVar[str]

    dims: Sides = Field(description="Endpoints (GPUs) along each dimension, as in [4, 4, 4].")
    rate: Rate = Field(description="Rate of each link, per direction.")
    latency: Latency = Field(description="Latency of each link.")
    routing: Routing = Field(
        DimensionOrderedSpec(), description="dimension_ordered (closed form), shortest or ecmp."
    )

    def size_about(self) -> int:
        """See :class:`~cosim.topology.contract.TopologySpec`."""
        return math.prod(self.dims) * 2 * len(self.dims)

    def build(self, context: Context) -> Topology:
        """The topology."""
        found = tuple(Dimension(self.dimension_kind, size, self.rate, self.latency) for size in self.dims)
        name = f"{self.title} {'x'.join(map(str, self.dims))}"
        return grid_topology(found, self.routing.build(Fabric(found, True), context), name)


class Torus(_Neighbours):
    """Endpoints in a grid of rings, linked to their neighbours in each dimension"""

    dimension_kind: ClassVar[OwnKind] = "Torus"
    title: ClassVar[str] = "torus"


class Mesh(_Neighbours):
    """Endpoints in a grid of lines, linked to their neighbours in each dimension"""

    dimension_kind: ClassVar[OwnKind] = "Line"
    title: ClassVar[str] = "mesh"

    def idle_settings(self) -> list[tuple[str, str]]:
        """The routing, in one dimension."""
        if len(self.dims) == 1:
            return self.idle_routing("each pair of endpoints has one shortest path only")
        return []
