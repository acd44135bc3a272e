"""What stands at some links at an instant, computed on copies of them: settled where they are, lines would
be cut, and that shows in the last digits of all that follows.
"""

from __future__ import annotations

import numpy as np

from cosim.kernel import kernel
from cosim.network.congestion.state import QUEUE_BINS, CongestionState
from cosim.network.core import Core
from cosim.network.flows import I64
from cosim.network.simulator import QueueSample

_ONE_BIN_BITS = 61  # two bins of 2^61 ps hold all of time: nobody reads them


class LinkWatch:
    """Some links of a network, and their ports, of as many classes of priority as it had then."""

    def __init__(self, core: Core, fluid: CongestionState, links: I64) -> None:
        self.links = links
        self.num_ports = len(fluid.ports)
        all_links, count = len(fluid.links), len(links)
        # Row k * count + n of the copies is class k of the n-th of them, as in the whole.
        first_of_class = np.arange(self.num_ports // all_links)[:, None] * all_links
        self._rows = (first_of_class + links).reshape(-1)
        self._core = core.copy({"pending": 0}, link_busy=np.zeros((2, count), np.int64))
        self._core.state["bin_bits"] = _ONE_BIN_BITS
        histogram = np.zeros((count, QUEUE_BINS))
        self._fluid = fluid.queues_of(fluid.links[links], fluid.ports[self._rows], histogram)

    def queues(self, fluid: CongestionState, now_ps: int, packet_bytes: int) -> QueueSample:
        """Theirs in ``fluid`` when the instant ``now_ps`` begins."""
        self._fluid.links[:] = fluid.links[self.links]
        self._fluid.ports[:] = fluid.ports[self._rows]
        kernel.settle_all_queues(self._core, self._fluid, now_ps)
        ports = self._fluid.ports
        paused = ports["paused_ps"] + np.where(ports["paused"] > 0, now_ps - ports["since"], 0)
        each = (
            ports["queue"],
            ports["served"],
            ports["marked"] / packet_bytes,
            ports["dropped"] / packet_bytes,
            paused,
        )
        found = np.array(each, np.float64).reshape(len(each), -1, len(self.links)).sum(axis=1)
        return QueueSample(*found)
