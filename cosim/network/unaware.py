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

from typing import Any

import numpy as np

from cosim.context import Context
from cosim.network.analytical import AnalyticalNetwork, bytes_per_ns
from cosim.network.arrays import Arrays
from cosim.network.calendar import free, take_instant
from cosim.network.contract import NetworkSpec
from cosim.network.core import DONE, NEED_PENDING, Core, bins_end, complete, release, widen
from cosim.network.flows import F64, I32
from cosim.network.jit import compiled, inlined, once
from cosim.network.simulator import NetworkSimulator, NetworkStatistics
from cosim.topology.graph import Topology
from cosim.units import MOST_NS, NEVER, PS_PER_NS


@compiled
def spread(core: Core, whole: I32) -> None:
    """Add to each bin the messages that fill it; ``whole`` says where they begin to, and where they end."""
    busy = core.link_busy
    for b in range(len(busy)):
        for link in range(busy.shape[1]):
            busy[b, link] += np.int64(whole[b, link]) << core.state[0].bin_bits
            whole[b + 1, link] += whole[b, link]
            whole[b, link] = 0
    for link in range(busy.shape[1]):
        whole[len(busy), link] = 0


@inlined
def _add_busy(core: Core, whole: I32, link: int, start: int, duration: int) -> None:
    """Count a link as busy in [start, start + duration), in a time that does not grow with the duration."""
    busy = core.link_busy
    end = start + duration
    while end > bins_end(core):
        spread(core, whole)
        widen(core)
    bits = core.state[0].bin_bits
    first = start >> bits
    last = end >> bits
    if first == last:
        busy[first, link] += duration
        return
    busy[first, link] += ((first + 1) << bits) - start
    # Bins that it fills are counted where they begin and end, and added up when somebody looks.
    whole[first + 1, link] += 1
    whole[last, link] -= 1
    if last < len(busy):
        busy[last, link] += end - (last << bits)


class Rates(Arrays):
    """The model's state: of each link bytes per ns, and ps; ``whole``: see :func:`spread`."""

    rate: F64
    latency: F64
    whole: I32


@once
def _cross(core: Core, rates: Rates, at: int) -> None:
    """A message starts, and completes when all of it has crossed its path, whatever else is there."""
    state = core.state[0]
    e = core.calendar.events[at]
    time, handle, rep, row, cause = state.instant, e.handle, e.rep, e.row, e.cause
    free(core.calendar, at)
    arrival = time
    path = core.store.groups[handle].path + row
    if core.path_ptr[path] != core.path_ptr[path + 1]:  # neither a mark nor two participants on one endpoint
        size = core.store.rows[row].size
        slowest = np.inf
        wait = 0.0
        most = MOST_NS - time / PS_PER_NS
        for k in range(core.path_ptr[path], core.path_ptr[path + 1]):
            link = core.path_link[k]
            slowest = min(slowest, rates.rate[link])
            wait += rates.latency[link]
            transfer = size / rates.rate[link]
            if transfer >= most:  # as an integer it would be any number
                state.too_late = 1
                break
            core.link_bytes[link] += size
            _add_busy(core, rates.whole, link, time, int(transfer) * PS_PER_NS)
        if state.too_late != 0:
            return
        # Whole picoseconds add up exactly, in any order; the division by 1000 comes last.
        cause = time
        arrival = time + int(wait / PS_PER_NS + size / slowest) * PS_PER_NS
    complete(core, handle, rep, row, time, arrival, cause)


def run_unaware(core: Core, rates: Rates, horizon: int) -> int:
    """Run every instant before the horizon and before any completion's reaction could matter.

    ``state.cursor`` is the event that comes next in the instant under way, plus one; 0: none is.
    """
    state = core.state[0]
    calendar = core.calendar
    heap = calendar.heap
    while True:
        # First what follows from the turn before: dependents that it released may start in this instant.
        status = release(core)
        if status != DONE:
            return status
        if state.cursor == 0:
            state.next = heap[0].time if calendar.state[0].num_instants > 0 else NEVER
            if state.next >= min(horizon, state.bound):
                return DONE
            if state.num_pending >= state.report_at and heap[0].time > state.instant:
                return DONE
            state.instant = heap[0].time
            state.cursor = take_instant(calendar) + 1
        if state.num_pending == len(core.pending):
            return NEED_PENDING
        at = state.cursor - 1
        # Before the event is freed, and its place taken by another.
        state.cursor = calendar.events[at].next + 1
        state.num_events += 1
        state.num_started += 1
        _cross(core, rates, at)


class CongestionUnawareNetwork(AnalyticalNetwork):
    """The model of the module's text."""

    name = "congestion_unaware"
    symmetric = True
    in_turn = False

    def _open_plain(self, topology: Topology) -> None:
        self._rate = bytes_per_ns(topology.link_rate_bps)
        self._latency = topology.link_latency_ps.astype(np.float64)
        bins, links = self._arrays["link_busy"].shape
        self._whole = np.zeros((bins + 1, links), np.int32)

    def _copy_plain(self) -> dict[str, Any]:
        return {"_whole": np.zeros((3, self._topology.num_links), np.int32)}

    @property
    def plain_loop(self) -> Any:
        """See :class:`~cosim.network.analytical.AnalyticalNetwork`."""
        return run_unaware

    def plain_columns(self) -> Rates:
        """See :class:`~cosim.network.analytical.AnalyticalNetwork`."""
        return Rates(self._rate, self._latency, self._whole)

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        spread(self.core(), self._whole)
        return super().statistics()


class CongestionUnaware(NetworkSpec):
    """ASTRA-sim's congestion-unaware analytical model: latency plus size over the slowest link, no queues."""

    def shares_by_weight(self) -> bool:
        """First come, first served, or not even that."""
        return False

    def build(self, context: Context) -> NetworkSimulator:  # noqa: ARG002 - nothing of it matters
        """A fresh network."""
        return CongestionUnawareNetwork()
