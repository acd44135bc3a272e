"""``congestion_unaware`` and ``congestion_aware``: ASTRA-sim's analytical models, on any routed topology.

A link has a rate in bytes per ns and a latency in ns; ``int`` truncates a double. Under
``congestion_unaware`` a message of m bytes arrives ``int(sum of latencies + m / least rate)`` ns after its
start, whatever else is on its way. Under ``congestion_aware`` a link sends one whole message after the
other, first come, first served: it is busy for ``int(m / rate)`` ns, and the message is at the next node
``int(latency + m / rate)`` ns after it began.

Source: ASTRA-sim, ``astra-network-analytical``: congestion_unaware/basic-topology/BasicTopology.cpp and
congestion_aware/network/Link.cpp.
"""

from __future__ import annotations

from cosim.network.reference.plain import FlowEvent, PlainNetwork, Transfer
from cosim.units import MOST_NS, NEVER, PS_PER_NS


class _Analytical(PlainNetwork):
    """What both have."""

    quantum_ps = PS_PER_NS
    link_changes = False

    def _open_model(self) -> None:
        # In ASTRA-sim's own order of operations: GB/s * 2^30 / 10^9, here with bits/s = GB/s * 2^33.
        self.rate = (self.topology.link_rate_bps / 8.0 / 1e9).tolist()
        self.latency = (self.topology.link_latency_ps / PS_PER_NS).tolist()
        self.free = [0] * self.topology.num_links

    def _whole_ps(self, time_ns: float) -> int:
        """Whole nanoseconds, cut off, as picoseconds."""
        return int(time_ns) * PS_PER_NS if time_ns < MOST_NS else self._in_time(NEVER)


class PlainUnaware(_Analytical):
    """Every message takes its time, and meets nobody."""

    name = "congestion_unaware"

    def _take(self, event: FlowEvent) -> None:
        flow, now = event.flow, event.time_ps
        if not flow.links:  # a mark, or two participants on one endpoint
            self._complete(flow, now, event.cause_ps)
            return
        for link in flow.links:
            self.use.sent_bytes[link] += flow.size
            self.use.add(link, now, now + self._whole_ps(flow.size / self.rate[link]))
        # Whole picoseconds add up exactly, in any order; the division comes last.
        wait = float(self.topology.link_latency_ps[list(flow.links)].sum()) / PS_PER_NS
        slowest = min(self.rate[link] for link in flow.links)
        self._complete(flow, now + self._whole_ps(wait + flow.size / slowest), now)


class PlainAware(_Analytical):
    """Messages queue at each link."""

    name = "congestion_aware"

    def _take(self, event: FlowEvent) -> None:
        flow, now = event.flow, event.time_ps
        if not flow.links:
            self._complete(flow, now, event.cause_ps)
            return
        link = flow.links[event.hop]
        takes = flow.size / self.rate[link]
        begin = max(now, self.free[link])
        arrival = begin + self._whole_ps(self.latency[link] + takes)
        # The link takes the next message when the last byte has left it; this one is there a latency later.
        self.free[link] = begin + self._whole_ps(takes)
        self.use.sent_bytes[link] += flow.size
        self.use.add(link, begin, self.free[link])
        self._go_on(flow, event.hop + 1, arrival, begin)

    def _go_on(self, flow: Transfer, hop: int, arrival: int, since: int) -> None:
        if hop == len(flow.links):
            self._complete(flow, arrival, since)
        else:
            self._push(flow, arrival, since, hop)
