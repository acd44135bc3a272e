"""Circuits: a message has all links of its path to itself, and waits until it gets them."""

from pydantic import Field

from cosim.plugins import ArrivalNetwork, NetworkSpec, TimePs


class CircuitNetwork(ArrivalNetwork):
    name = "circuits"

    def __init__(self, setup_ps):
        self.setup_ps = setup_ps

    def begin(self):
        self.free_ps = [0] * self.topology.num_links

    def arrival(self, message, start_ps):
        links = list(message.links)
        got_ps = max([start_ps, *(self.free_ps[link] for link in links)]) + self.setup_ps
        slowest = self.topology.link_rate_bps[links].min()
        sent_ps = got_ps + round(message.size_bytes * 8e12 / slowest)
        for link in links:
            self.free_ps[link] = sent_ps
        return sent_ps + int(self.topology.link_latency_ps[links].sum())


class Circuits(NetworkSpec):
    """A message has all links of its path to itself"""

    setup: TimePs = Field(0, ge=0, description="time until a circuit is there")

    def build(self, context):
        return CircuitNetwork(self.setup)

    def shares_by_weight(self):
        return False
