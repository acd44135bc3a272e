"""The state of the congestion network: ``struct congestion_state`` of ``cosim/kernel/src/kernel.h``, which
says what each field is.
"""

from __future__ import annotations

from typing import Any

from cosim.kernel import Columns, kernel, record
from cosim.network.flows import F64

PORT, PORT_LINK, LINE = record("port"), record("port_link"), record("line")
PASSING = record("passing")
SETTINGS, CONTROL_ROW, HOP_SIGHT = record("congestion_settings"), record("control_row"), record("hop_sight")
MAX_STATE: int = kernel.MOST_STATES
"""Columns of its own that a control may have."""
NUM_CLASSES: int = kernel.NUM_CLASSES
"""Classes of priority, as PFC has them (IEEE 802.1Qbb)."""
BINS: int = kernel.BINS
"""How many bins the queue's histogram has in a power of two, from 256 bytes to 4 GiB."""
QUEUE_BINS: int = kernel.QUEUE_BINS


class CongestionState(Columns):
    """Connections, their subflows, and the ports that they share."""

    def queues_of(self, links: Any, ports: Any, histogram: F64) -> CongestionState:
        """What settling queues looks at, of some links and their ports, which are copied."""
        made = CongestionState(
            counts=self.counts, settings=self.settings, links=links, ports=ports, histogram=histogram
        )
        made.counts["num_links"] = len(links)
        return made
