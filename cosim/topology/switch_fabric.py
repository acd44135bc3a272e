"""What fabrics share whose switches all have endpoints: their settings."""

from __future__ import annotations

from pydantic import Field

from cosim.topology.builder import Builder
from cosim.topology.contract import Latency, Planes, Rate, TopologySpec
from cosim.topology.graph import I64


class SwitchFabric(TopologySpec):
    """Fields of fabrics where every switch has endpoints. Switches have no limit of their own."""

    rate: Rate = Field(description="Rate of each endpoint to its switch, per direction.")
    latency: Latency = Field(description="Latency of each link between an endpoint and its switch.")
    switch_rate: Rate | None = Field(
        None, description="Rate of each link between switches, per direction; omitted: rate."
    )
    switch_latency: Latency | None = Field(
        None, description="Latency of each link between switches; omitted: latency."
    )
    planes: Planes = Field(1, description="Such fabrics side by side; each endpoint has a link to each.")

    @property
    def between(self) -> tuple[float, int]:
        """Rate and latency of a link between switches."""
        latency = self.latency if self.switch_latency is None else self.switch_latency
        return self.switch_rate or self.rate, latency

    def start(self, switches: list[str], each: int) -> tuple[Builder, I64]:
        """A builder with so many endpoints below each of the switches of these names, and their numbers."""
        builder = Builder(f"gpu{i}" for i in range(len(switches) * each))
        numbers = builder.add_switches(switches)
        builder.connect(range(builder.num_endpoints), numbers.repeat(each), self.rate, self.latency)
        return builder, numbers
