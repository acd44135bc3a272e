"""What stands at some links at an instant, worked out on copies of them: settled where they are, lines would
be cut, and that shows in the last digits of all that follows.
"""

from __future__ import annotations

import numpy as np

from cosim.network.compiled import ONE_BIN_BITS
from cosim.network.congestion.ports import settle_all
from cosim.network.congestion.state import QUEUE_BINS, CongestionState
from cosim.network.core import Core
from cosim.network.flows import I64
from cosim.network.growing import zeros
from cosim.network.simulator import QueueSample


class LinkWatch:
    """Some links of a network, and their ports, of as many classes of priority as it had then."""

    def __init__(self, core: Core, fluid: CongestionState, links: I64) -> None:
        self.links = links
        self.num_ports = len(fluid.ports)
        classes, count = self.num_ports // len(fluid.links), len(links)
        # Row k * count + n of the copies is class k of the n-th of them, as in the whole.
        self._rows = (np.arange(classes)[:, None] * len(fluid.links) + links).reshape(-1)
        self._ports = zeros((len(self._rows),), fluid.ports.dtype)
        self._links = zeros((count,), fluid.links.dtype)
        state = core.state.copy()
        state["bin_bits"] = ONE_BIN_BITS
        self._core = core.replaced(state=state, link_busy=np.zeros((2, count), np.int64))
        histogram = np.zeros((count, QUEUE_BINS))
        self._fluid = fluid.replaced(links=self._links, ports=self._ports, histogram=histogram)

    def queues(self, fluid: CongestionState, now_ps: int, mtu_bytes: int) -> QueueSample:
        """Theirs in ``fluid`` when the instant ``now_ps`` begins."""
        self._links[:] = fluid.links[self.links]
        ports = self._ports
        ports[:] = fluid.ports[self._rows]
        settle_all(self._core, self._fluid, now_ps)
        paused = ports["paused_ps"] + np.where(ports["paused"] > 0, now_ps - ports["since"], 0)
        each = (
            ports["queue"],
            ports["served"],
            ports["marked"] / mtu_bytes,
            ports["dropped"] / mtu_bytes,
            paused,
        )
        found = np.array(each, np.float64).reshape(len(each), -1, len(self.links)).sum(axis=1)
        return QueueSample(*found)
