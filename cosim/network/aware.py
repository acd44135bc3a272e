"""``congestion_aware``: ASTRA-sim's congestion-aware analytical model, on any routed topology.

Per directed link of bandwidth B (bytes per ns) and latency ``lat``: a message of m bytes keeps the link
busy for ``int(m / B)`` ns and is at the next node ``int(lat + m / B)`` ns after it started; it starts when
the link is free, first come, first served, the queue unbounded; the next hop starts at full arrival
(store-and-forward of whole messages). ``int`` truncates a double. A mark (source = destination) takes no
time.

Messages that reach a link at the same instant are served in the order (when their arrival became certain,
endpoint they come from, key): the order in which ASTRA-sim's event list, first come, first served within one
time, holds them, but independent of the order in which the flows were given. Of two that became certain at
the same instant, ASTRA-sim takes first whose cause came first in that instant's list, and so on back to the
beginning, where NPUs come by number; here NPUs come by number at once.

A link that has sent its last byte is free before anything reaches it in that instant, so who waits behind a
message that takes no time (``int`` made it 0 ns) goes on in no time, too. What an instant brings about in
itself, such a message over a link without latency, reaches its next link a turn after what it follows from;
the order above holds within a turn. ASTRA-sim's list has who waited a turn behind who did not; so two of one
path keep their order there, and go by key here.

Where links change (:mod:`~cosim.network.analytical`) another loop runs, with the same times where they don't.

Source: ASTRA-sim, ``astra-network-analytical`` (congestion_aware/network/Link.cpp); there 1-D
topologies only, and links that never change.
Not modelled: packets, fair sharing, back-pressure, loss, a switch's own capacity.
"""

from __future__ import annotations

import numpy as np

from cosim.context import Context
from cosim.kernel import Columns, kernel, record
from cosim.network.analytical import AnalyticalNetwork, bytes_per_ns
from cosim.network.compiled import LinkNumber
from cosim.network.contract import NetworkSpec
from cosim.network.flows import F64, I64
from cosim.network.simulator import NetworkSimulator
from cosim.topology.graph import Topology


class LinkQueues(Columns):
    """The model's state: links, and room for the events of an instant."""


class CongestionAwareNetwork(AnalyticalNetwork):
    """The model of the module's text."""

    name = "congestion_aware"
    in_turn = True
    plain_loop = "run_aware"
    plain_kind = kernel.LINKS_IN_TURN

    def _open_plain(self, topology: Topology) -> None:
        links = np.zeros(topology.num_links, record("aware_link"))
        own = self._numbers_of_plain(topology.link_rate_bps, topology.link_latency_ps)
        for (_, name), numbers in own.items():
            links[name] = numbers
        self._plain = LinkQueues(links=links)

    def _numbers_of_plain(self, rate_bps: F64, latency_ps: I64) -> dict[LinkNumber, F64]:
        return {("links", "rate"): bytes_per_ns(rate_bps), ("links", "latency"): latency_ps / 1000.0}

    def _copy_plain(self) -> LinkQueues:
        return LinkQueues(links=self._plain.links.copy())


class CongestionAware(NetworkSpec):
    """ASTRA-sim's congestion-aware analytical model: first come, first served, store-and-forward."""

    def shares_links(self) -> bool:
        """A link sends one message after the other."""
        return True

    def shares_by_weight(self) -> bool:
        """First come, first served, or not even that."""
        return False

    def build(self, context: Context) -> NetworkSimulator:  # noqa: ARG002 - nothing of it matters
        """A fresh network."""
        return CongestionAwareNetwork()
