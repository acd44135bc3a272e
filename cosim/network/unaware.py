"""``congestion_unaware``: ASTRA-sim's congestion-unaware analytical model, on any routed topology.

A message of m bytes arrives ``int(latency + m / B)`` ns after its start, whatever else is on its way:
``latency`` is the sum over its path (ns), B the smallest bandwidth on it (bytes per ns); ``int``
truncates a double. So the serialization is paid once (cut-through), and nothing ever waits. A mark
(source = destination) takes no time.

Links are never really occupied. Statistics still count, on each link of the path, the bytes and ``m / B``
of that link's own B as busy time from the message's start on, so that a link may be busy for longer than
time went by: that is how much too much it was given.

Where links change (:mod:`~cosim.network.analytical`) another loop runs, with the same times where they don't.

Source: ASTRA-sim, ``astra-network-analytical`` (congestion_unaware/basic-topology/BasicTopology.cpp); there
links never change.
Not modelled: queueing, sharing, order of messages between two endpoints.
"""

from __future__ import annotations

import numpy as np

from cosim.context import Context
from cosim.kernel import Columns, kernel
from cosim.network.analytical import AnalyticalNetwork, bytes_per_ns
from cosim.network.compiled import LinkNumber
from cosim.network.contract import NetworkSpec
from cosim.network.flows import F64, I64
from cosim.network.simulator import NetworkSimulator, NetworkStatistics
from cosim.topology.graph import Topology


class LinkRates(Columns):
    """The model's state: what each link does, and who fills bins of statistics."""


class CongestionUnawareNetwork(AnalyticalNetwork):
    """The model of the module's text."""

    name = "congestion_unaware"
    symmetric = True
    in_turn = False
    plain_loop = "run_unaware"
    plain_kind = kernel.STATELESS

    def _open_plain(self, topology: Topology) -> None:
        bins, links = self.core.link_busy.shape
        own = self._numbers_of_plain(topology.link_rate_bps, topology.link_latency_ps)
        self._plain = LinkRates(
            whole=np.zeros((bins + 1, links), np.int32),
            **{name: numbers for (name, _), numbers in own.items()},
        )

    def _numbers_of_plain(self, rate_bps: F64, latency_ps: I64) -> dict[LinkNumber, F64]:
        return {("rate", ""): bytes_per_ns(rate_bps), ("latency", ""): latency_ps.astype(np.float64)}

    def _copy_plain(self) -> Columns:
        return self._plain.copy(whole=np.zeros((3, self._topology.num_links), np.int32))

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        kernel.spread(self.core, self._plain)
        return super().statistics()


class CongestionUnaware(NetworkSpec):
    """ASTRA-sim's congestion-unaware analytical model: latency plus size over the slowest link, no queues."""

    def shares_by_weight(self) -> bool:
        """First come, first served, or not even that."""
        return False

    def build(self, context: Context) -> NetworkSimulator:  # noqa: ARG002 - nothing of it matters
        """A fresh network."""
        return CongestionUnawareNetwork()
