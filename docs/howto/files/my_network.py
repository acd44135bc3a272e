"""Any network, on links that reach a part of their rate."""

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from cosim.plugins import ForwardingNetwork, Named, NetworkSpec


class SlowedNetwork(ForwardingNetwork):
    def __init__(self, inner, reached):
        super().__init__(inner)
        self.reached = reached

    def describe(self):
        return replace(self.inner.describe(), name=f"slowed {self.inner.describe().name}")

    def open(self, topology, seed=0, options=None):
        slower = replace(topology, link_rate_bps=topology.link_rate_bps * self.reached)
        self.inner.open(slower, seed, options)


class Slowed(NetworkSpec):
    """Another network, on links that reach a part of their rate"""

    of: Annotated[NetworkSpec, Named("cosim.networks")] = Field(description="the other network")
    reached: float = Field(0.9, gt=0, le=1, description="of each link's rate")

    def build(self, context):
        return SlowedNetwork(self.of.build(context), self.reached)
