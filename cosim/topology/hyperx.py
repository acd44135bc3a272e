"""HyperX: switches in a grid, each linked to all others along each dimension.

Routed by ``shortest``, dimension by dimension; ``ecmp`` takes the dimensions in an order by hash. Of sides L
and p endpoints a switch in n dimensions, an all-to-all of s bytes a pair brings p^2 L^(n-1) s to each link
between switches. Source: J. H. Ahn et al., "HyperX: topology, routing, and packaging of efficient large-scale
networks", SC 2009, doi:10.1145/1654059.1654101. One dimension is a full mesh of switches, two are a
flattened butterfly. Not modelled: several links between two switches (the paper's K; a higher
``switch_rate`` is the same to one message).
"""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from cosim.context import Context
from cosim.topology.contract import Count
from cosim.topology.graph import Topology
from cosim.topology.switch_fabric import SwitchFabric
from cosim.topology.torus import Sides


class HyperX(SwitchFabric):
    """Switches in a grid, each linked to all others along each dimension"""

    dims: Sides = Field(description="Switches along each dimension, as in [4, 4].")
    endpoints_per_switch: Count = Field(description="Endpoints (GPUs) on each switch.")

    def size_about(self) -> int:
        """See :class:`~cosim.topology.contract.TopologySpec`."""
        each = 2 * self.endpoints_per_switch + sum(self.dims) - len(self.dims)
        return math.prod(self.dims) * each * self.planes

    def build(self, context: Context) -> Topology:
        """The topology; links of dimension 0 come first."""
        shape = tuple(reversed(self.dims))
        names = [f"switch{i}" for i in range(math.prod(shape))]
        builder, number = self.start(names, self.endpoints_per_switch)
        grid = number.reshape(shape)
        for axis in range(len(shape) - 1, -1, -1):
            along = np.moveaxis(grid, axis, -1)
            one, other = np.triu_indices(shape[axis], 1)
            builder.connect(along[..., one], along[..., other], *self.between)
        name = f"hyperx {'x'.join(map(str, self.dims))}, {self.endpoints_per_switch} each"
        return builder.topology(name, self.routing, context, planes=self.planes)

    def idle_settings(self) -> list[tuple[str, str]]:
        """The routing, in one dimension."""
        if len(self.dims) == 1 and self.planes == 1:
            return self.idle_routing("each pair of endpoints has one shortest path only")
        return []
