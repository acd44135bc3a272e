"""A dragonfly: switches in groups, all to all within a group, one link between any two groups."""

from pydantic import Field

from cosim.plugins import Builder, Count, Latency, Rate, TopologySpec


class Dragonfly(TopologySpec):
    """Groups of switches, all to all within, a link between any two groups"""

    groups: Count = Field(description="how many")
    switches: Count = Field(description="in a group")
    endpoints: Count = Field(description="on a switch")
    rate: Rate = Field(description="of each link")
    latency: Latency = Field(description="of each link")

    def build(self, context):
        groups, a, p = self.groups, self.switches, self.endpoints
        builder = Builder(f"gpu{i}" for i in range(groups * a * p))
        switches = builder.add_switches(f"s{g}.{i}" for g in range(groups) for i in range(a))
        for switch, number in enumerate(switches):
            builder.connect(range(switch * p, (switch + 1) * p), number, self.rate, self.latency)
            later = range(switch + 1, (switch // a + 1) * a)
            builder.connect(number, switches[list(later)], self.rate, self.latency)
        for one in range(groups):
            for other in range(one + 1, groups):
                here, there = one * a + other % a, other * a + one % a
                builder.connect(switches[here], switches[there], self.rate, self.latency)
        return builder.topology(f"dragonfly {groups}x{a}x{p}", self.routing, context)
