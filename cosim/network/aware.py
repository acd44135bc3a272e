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

from typing import Any

import numpy as np

from cosim.context import Context
from cosim.network.analytical import AnalyticalNetwork, bytes_per_ns
from cosim.network.arrays import Arrays
from cosim.network.calendar import Records, free, push, room, take_instant
from cosim.network.contract import NetworkSpec
from cosim.network.core import (
    DONE,
    NEED_CALENDAR,
    NEED_MORE,
    NEED_PENDING,
    Core,
    add_busy,
    complete,
    release,
)
from cosim.network.flows import I32
from cosim.network.jit import once
from cosim.network.order import sort_instant
from cosim.network.simulator import NetworkSimulator
from cosim.topology.graph import Topology
from cosim.units import MOST_NS, NEVER, PS_PER_NS

LINK = np.dtype([("rate", "f8"), ("latency", "f8"), ("free", "i8"), ("seen", "i8")])
"""Bytes per ns, ns, when it is free again (ps), and the last instant at which something reached it."""


class LinkQueues(Arrays):
    """The model's state: links, and room for the events of an instant."""

    links: Records
    instant: I32
    spare: I32
    other: I32


@once
def _open_instant(core: Core, queues: LinkQueues) -> None:
    """Go on to the next instant: its events, in order where two of them reach the same link."""
    state = core.state[0]
    calendar = core.calendar
    events = calendar.events
    instant = queues.instant
    state.instant = calendar.heap[0].time
    state.serial += 1
    serial = state.serial
    at = take_instant(calendar)
    found = 0
    clash = False
    while at != -1:
        instant[found] = at
        found += 1
        e = events[at]
        path = core.store.groups[e.handle].path + e.row
        if core.path_ptr[path] != core.path_ptr[path + 1]:
            link = core.path_link[core.path_ptr[path] + e.hop]
            # Sorting is dear and seldom needed: only who comes first at a link matters.
            clash = clash or queues.links[link].seen == serial
            queues.links[link].seen = serial
        at = e.next
    state.cursor = 0
    state.instant_size = found
    if clash:
        sort_instant(core, instant, queues.spare, queues.other, found)


@once
def _reach_link(core: Core, queues: LinkQueues, at: int) -> None:
    """A message reaches its next link, and queues there; or has reached its last one, and completes."""
    state = core.state[0]
    e = core.calendar.events[at]
    time, handle, rep, row, hop, origin, cause = (
        state.instant,
        e.handle,
        e.rep,
        e.row,
        e.hop,
        e.origin,
        e.cause,
    )
    free(core.calendar, at)
    if hop == 0:
        state.num_started += 1
    path = core.store.groups[handle].path + row
    first, past = core.path_ptr[path], core.path_ptr[path + 1]
    if first == past:  # a mark, or two participants on one endpoint
        complete(core, handle, rep, row, origin, time, cause)
        return
    link = core.path_link[first + hop]
    one = queues.links[link]
    size = core.store.rows[row].size
    transfer = size / one.rate
    if transfer >= MOST_NS:  # as an integer it would be any number
        state.too_late = 1
        return
    start = max(time, one.free)
    serialization = int(transfer) * PS_PER_NS
    arrival = start + int(one.latency + transfer) * PS_PER_NS
    if arrival >= NEVER:
        state.too_late = 1
        return
    # Store and forward: the link takes the next message when the last byte has left it, this one is at the
    # next link a latency later.
    one.free = start + serialization
    core.link_bytes[link] += size
    add_busy(core, link, start, serialization)
    if first + hop + 1 == past:
        complete(core, handle, rep, row, origin, arrival, start)
    else:
        push(core.calendar, arrival, start, origin, handle, rep, row, hop + 1)


def run_aware(core: Core, queues: LinkQueues, horizon: int) -> int:
    """Run every instant before the horizon and before any completion's reaction could matter."""
    state = core.state[0]
    calendar = core.calendar
    heap = calendar.heap
    while True:
        # First what follows from the turn before: dependents that it released may start in this instant.
        status = release(core)
        if status != DONE:
            return status
        if state.cursor == state.instant_size:
            state.next = heap[0].time if calendar.state[0].num_instants > 0 else NEVER
            if state.next >= min(horizon, state.bound):
                return DONE
            # Enough to hand on, and the instant is whole: reports never part one.
            if state.num_pending >= state.report_at and heap[0].time > state.instant:
                return DONE
            if len(queues.instant) < len(calendar.events):
                return NEED_MORE
            _open_instant(core, queues)
        # Nothing has changed yet: what is short can grow in Python, and the loop goes on here.
        if not room(calendar, 1):
            return NEED_CALENDAR
        if state.num_pending == len(core.pending):
            return NEED_PENDING
        at = queues.instant[state.cursor]
        state.cursor += 1
        state.num_events += 1
        _reach_link(core, queues, at)


class CongestionAwareNetwork(AnalyticalNetwork):
    """The model of the module's text."""

    name = "congestion_aware"
    in_turn = True

    def _open_plain(self, topology: Topology) -> None:
        self._links = np.zeros(topology.num_links, LINK)
        self._links["rate"] = bytes_per_ns(topology.link_rate_bps)
        self._links["latency"] = topology.link_latency_ps / 1000.0
        self._scratch = [np.zeros(0, np.int32)] * 3

    def _copy_plain(self) -> dict[str, Any]:
        return {"_links": self._links.copy()}

    def _grow_plain(self) -> None:
        size = len(self._arrays["calendar"].events)
        self._scratch = [np.zeros(size, np.int32) for _ in range(3)]

    @property
    def plain_loop(self) -> Any:
        """See :class:`~cosim.network.analytical.AnalyticalNetwork`."""
        return run_aware

    def plain_columns(self) -> LinkQueues:
        """See :class:`~cosim.network.analytical.AnalyticalNetwork`."""
        return LinkQueues(self._links, *self._scratch)


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
