"""The loop of ``congestion_aware`` and ``congestion_unaware`` where links fail, slow down and come back.

Without changes it gives what the models' own loops give, which know of no drains: there, when a message
arrives is known when it is sent. At an instant, first what has been sent, then what changes, then what
starts or comes to its next link.
"""

from __future__ import annotations

import numpy as np

from cosim.network.calendar import free, push, room, take_instant
from cosim.network.changes import NEED_ROUTES, ROUTES, begin_change, end_change, is_in_vain, next_change
from cosim.network.core import DONE, NEED_CALENDAR, NEED_MORE, NEED_PENDING, Core, complete, release
from cosim.network.drains import set_drain
from cosim.network.jit import once
from cosim.network.leg_routes import follow
from cosim.network.legs import (
    NONE,
    Legs,
    begin,
    count,
    end_of_leg,
    is_on,
    left_at,
    reach,
    set_rate,
    takes_ns,
)
from cosim.network.order import sort_instant
from cosim.units import MOST_NS, NEVER, PS_PER_NS

NEED_MESSAGES = 20
"""What the loop stops for: more room."""


@once
def _forget(legs: Legs, m: int) -> None:
    """A message has completed."""
    counts = legs.counts[0]
    counts.under_way -= 1
    legs.messages[m].next = counts.free
    counts.free = m


@once
def _drain(core: Core, legs: Legs) -> None:
    """The next message has been sent: the link takes the next one, and it is at the next node later."""
    state = core.state[0]
    counts = legs.counts[0]
    now = legs.drains[0].time
    m = legs.drains[0].flow
    never = int(np.int64(NEVER))  # as a literal it would have the heap compiled twice, by its type
    counts.num_drains = set_drain(counts.num_drains, legs.drains, m, never)
    state.instant = now
    state.num_events += 1
    one = legs.messages[m]
    count(core, legs, m, 0.0, now)
    one.sending = 0
    first = core.path_ptr[one.path] + one.hop
    past = end_of_leg(core, legs, m)
    latency = 0
    for k in range(first, past):
        latency += legs.lanes[core.path_link[k]].latency
    takes = latency / PS_PER_NS + takes_ns(legs, m)
    if takes >= MOST_NS - one.begin / PS_PER_NS:
        state.too_late = 1
        return
    arrival = max(one.begin + int(takes) * PS_PER_NS, now)
    if counts.in_turn != 0:
        lane = legs.lanes[core.path_link[first]]
        lane.head = one.next
        if lane.head != NONE:
            begin(core, legs, lane.head, now)
    if past < core.path_ptr[one.path + 1]:
        one.hop += 1
        push(core.calendar, arrival, one.touched, one.origin, one.handle, one.rep, one.row, m + 1)
        return
    complete(core, one.handle, one.rep, one.row, one.origin, arrival, one.touched)
    _forget(legs, m)


@once
def _new(core: Core, legs: Legs, at: int) -> int:
    """The message of a start."""
    counts = legs.counts[0]
    event = core.calendar.events[at]
    m = counts.free
    if m == NONE:
        m = counts.used
        counts.used = m + 1
    else:
        counts.free = legs.messages[m].next
    counts.under_way += 1
    one = legs.messages[m]
    one.origin = core.state[0].instant
    one.handle = event.handle
    one.rep = event.rep
    one.row = event.row
    one.path = legs.path_now[core.store.groups[event.handle].path + event.row]
    one.hop = 0
    one.sending = 0
    return int(m)


@once
def _take_one(core: Core, legs: Legs) -> None:
    """The next event of the instant: a mark completes, a message starts, or comes to its next link."""
    state = core.state[0]
    at = legs.instant[state.cursor]
    state.cursor += 1
    state.num_events += 1
    now = state.instant
    event = core.calendar.events[at]
    path = core.store.groups[event.handle].path + event.row
    m = event.hop - 1
    if m == NONE:
        state.num_started += 1
        if core.path_ptr[path] == core.path_ptr[path + 1]:  # a mark, or two participants on one endpoint
            complete(core, event.handle, event.rep, event.row, now, now, event.cause)
            free(core.calendar, at)
            return
        m = _new(core, legs, at)
    else:
        follow(core, legs, m)
    free(core.calendar, at)
    reach(core, legs, m, now)


@once
def _take_starts(core: Core, legs: Legs) -> None:
    """Go to the next instant of the calendar: who comes first at a link is served first."""
    state = core.state[0]
    state.instant = core.calendar.heap[0].time
    at = take_instant(core.calendar)
    found = 0
    while at != NONE:
        legs.instant[found] = at
        found += 1
        at = core.calendar.events[at].next
    state.cursor = 0
    state.instant_size = found
    if legs.counts[0].in_turn != 0:
        sort_instant(core, legs.instant, legs.spare, legs.other, found)


@once
def _take_change(core: Core, legs: Legs) -> int:
    """The next change: of a link's rate, at once; or of the routes, which are found outside of the loop."""
    counts = legs.counts[0]
    one = legs.changes[begin_change(core, legs)]
    if one.link == ROUTES:
        return NEED_ROUTES
    for m in range(counts.used):
        if legs.messages[m].sending != 0 and is_on(core, legs, m, one.link):
            count(core, legs, m, left_at(legs, m, one.time), one.time)
    legs.lanes[one.link].rate = one.rate / 8.0 / 1e9
    for m in range(counts.used):
        if legs.messages[m].sending != 0 and is_on(core, legs, m, one.link):
            set_rate(core, legs, m, one.time)
    return end_change(legs)


@once
def _what_is_short(core: Core, legs: Legs) -> int:
    """Let dependents follow; :data:`DONE` where there is room for what comes next, or what is short."""
    counts = legs.counts[0]
    status = release(core)
    if status != DONE:
        return status
    if not room(core.calendar, 1):
        return NEED_CALENDAR
    if core.state[0].num_pending == len(core.pending):
        return NEED_PENDING
    if counts.free == NONE and counts.used == len(legs.messages):
        return NEED_MESSAGES
    return DONE


def run_changing(core: Core, legs: Legs, horizon: int) -> int:
    """Run every instant before the horizon and before any completion's reaction could matter."""
    state = core.state[0]
    counts = legs.counts[0]
    while True:
        status = _what_is_short(core, legs)
        if status != DONE:
            return status
        if state.cursor < state.instant_size:
            _take_one(core, legs)
            continue
        limit = min(horizon, state.bound)
        next_start = core.calendar.heap[0].time if core.calendar.state[0].num_instants > 0 else NEVER
        drain = legs.drains[0].time if counts.num_drains > 0 else NEVER
        change = next_change(core, legs, counts.under_way == 0)
        coming = min(next_start, change)
        state.next = min(coming, drain)
        if state.num_pending >= state.report_at and state.next > state.instant:
            return DONE
        # A drain follows from the past, so it may lie at the limit; the caller may still give starts there.
        if counts.num_drains > 0 and drain <= coming and drain <= limit:
            _drain(core, legs)
            continue
        in_vain = is_in_vain(legs, min(next_start, drain))
        if coming >= limit or (limit == NEVER and in_vain):
            # Nobody has to wait for it: of two networks in one run each would for the other, for ever.
            state.next = NEVER if in_vain else state.next
            return DONE
        if change <= next_start:
            status = _take_change(core, legs)
            if status != DONE:
                return status
            continue
        if len(legs.instant) < len(core.calendar.events):
            return NEED_MORE
        _take_starts(core, legs)
