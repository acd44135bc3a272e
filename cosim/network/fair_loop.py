"""The loop of ``fair_share``: begin, start, share, drain, in the order that its text gives.

Each turn of the loop does one thing and goes round, so that it may stop for room anywhere.
"""

from __future__ import annotations

import numpy as np

from cosim.network.balancing.choosing import choose_at_end
from cosim.network.calendar import Records, free, take_instant
from cosim.network.changes import is_in_vain, next_change
from cosim.network.core import DONE, NEED_MORE, NEED_PENDING, Core, add_share, complete, release
from cosim.network.dense_turns import NEED_COLUMNS, wants_columns
from cosim.network.drains import set_drain
from cosim.network.fair_routes import AGAIN, NEED_MEMBERS, begin_on_route
from cosim.network.fluid import NONE, Fluid
from cosim.network.jit import ask_at, compiled, once
from cosim.network.membership import is_alive, join_path, leave_path
from cosim.network.order import sort_instant
from cosim.network.rerouting import take_change
from cosim.network.sharing import share
from cosim.units import NEVER

NEED_FLOWS = 20
"""What the loop stops for: more room."""


@once
def _begin(core: Core, fluid: Fluid) -> bool:
    """The first flow of a channel begins to transfer; False where there is no room for its memberships."""
    counts = fluid.counts[0]
    f = counts.begin - 1
    flow = fluid.flows[f]
    path = fluid.path_now[core.store.groups[flow.handle].path + flow.row]
    hops = core.path_ptr[path + 1] - core.path_ptr[path]
    if counts.num_members + hops > len(fluid.members):
        return False
    counts.begin = 0
    now = core.state[0].instant
    balanced = fluid.balance.counts[0].on != 0
    # Nothing to transfer: it needs no place on its links, only its turn in the channel.
    if flow.remaining == 0.0 and (balanced or is_alive(core, fluid, path)):
        counts.num_drains = set_drain(counts.num_drains, fluid.drains, f, now)
        return True
    flow.touched = now
    if balanced:  # its path is chosen when time leaves the instant
        begin_on_route(fluid, flow.channel)
        return True
    join_path(core, fluid, f, path)
    return True


@once
def _start(core: Core, fluid: Fluid) -> None:
    """The next start of the instant: a mark completes, a flow goes to the end of its channel."""
    state = core.state[0]
    counts = fluid.counts[0]
    at = fluid.instant[state.cursor]
    state.cursor += 1
    state.num_started += 1
    state.num_events += 1
    now = state.instant
    event = core.calendar.events[at]
    handle = event.handle
    rep = event.rep
    row = event.row
    free(core.calendar, at)  # before a completion releases what may need the place
    path = core.store.groups[handle].path + row
    if core.path_ptr[path] == core.path_ptr[path + 1]:  # a mark, or two participants on one endpoint
        complete(core, handle, rep, row, now, now, now)
        return
    f = counts.free_flow
    if f == NONE:
        f = counts.flows_used
        counts.flows_used = f + 1
    else:
        counts.free_flow = fluid.flows[f].next
    flow = fluid.flows[f]
    flow.handle = handle
    flow.rep = rep
    flow.row = row
    flow.origin = now
    flow.touched = now
    flow.weight = fluid.classes[core.store.groups[handle].traits].weight
    flow.priority = fluid.classes[core.store.groups[handle].traits].priority
    flow.channel = fluid.channel_of[path]
    flow.remaining = core.store.rows[row].size
    flow.rate = 0.0
    # No level yet: a filling knows by it that the flow is new.
    flow.level = -1.0
    flow.member = NONE
    flow.next = NONE
    queue = fluid.channels[flow.channel]
    # A channel transfers one message at a time, in the order of their starts; the others wait behind it.
    if queue.head == NONE:
        queue.head = f
        counts.begin = f + 1
    else:
        fluid.flows[queue.tail].next = f
    queue.tail = f


@once
def _drain(core: Core, fluid: Fluid) -> None:
    """The next drain: the flow leaves its links, and the next one of its channel begins."""
    counts = fluid.counts[0]
    now = fluid.drains[0].time
    f = fluid.drains[0].flow
    never = int(np.int64(NEVER))  # as a literal it would have the heap compiled twice, by its type
    counts.num_drains = set_drain(counts.num_drains, fluid.drains, f, never)
    core.state[0].instant = now
    core.state[0].num_events += 1
    flow = fluid.flows[f]
    path = fluid.path_now[core.store.groups[flow.handle].path + flow.row]
    arrival = now
    if fluid.balance.counts[0].on != 0 and flow.member != NONE:
        arrival = ask_at(fluid.balance.counts[0].end, (core, fluid, f))
    else:
        for k in range(core.path_ptr[path], core.path_ptr[path + 1]):
            link = core.path_link[k]
            core.link_bytes[link] += core.store.rows[flow.row].size
            arrival += fluid.links[link].latency
    leave_path(fluid, f)
    fluid.channels[flow.channel].head = flow.next
    # Next of the channel, or 0: nobody. It begins in the next turn of the loop, at this very instant.
    counts.begin = flow.next + 1
    flow.next = counts.free_flow
    counts.free_flow = f
    complete(core, flow.handle, flow.rep, flow.row, flow.origin, arrival, now)


@once
def _take_starts(core: Core, fluid: Fluid) -> None:
    """Go to the next starts; those of one channel in their order."""
    state = core.state[0]
    state.instant = core.calendar.heap[0].time
    state.serial += 1
    at = take_instant(core.calendar)
    found = 0
    clash = False
    while at != NONE:
        event = core.calendar.events[at]
        if event.hop == AGAIN:  # a connection wanted to choose again, unless it did meanwhile
            if fluid.balance.routes[event.row].due == state.instant:
                choose_at_end(fluid.balance, event.row, 0)
            after = event.next
            free(core.calendar, at)
            at = after
            continue
        fluid.instant[found] = at
        found += 1
        row = core.store.rows[event.row]
        # The order of starts is seen by channels only: where no channel has two, nothing is sorted.
        if row.src != row.dst:
            channel = fluid.channels[fluid.channel_of[core.store.groups[event.handle].path + event.row]]
            clash = clash or channel.seen == state.serial
            channel.seen = state.serial
        at = event.next
    state.cursor = 0
    state.instant_size = found
    if clash:
        sort_instant(core, fluid.instant, fluid.spare, fluid.other, found)


@once
def _what_is_short(core: Core, fluid: Fluid) -> int:
    """Let dependents follow; :data:`DONE` where there is room for the next, or what is short."""
    counts = fluid.counts[0]
    status = release(core)
    if status != DONE:
        return status
    if core.state[0].num_pending == len(core.pending):
        return NEED_PENDING
    if counts.free_flow == NONE and counts.flows_used == len(fluid.flows):
        return NEED_FLOWS
    return DONE


def run_fair(core: Core, fluid: Fluid, horizon: int) -> int:
    """Run every instant before the horizon and before any completion's reaction could matter."""
    state = core.state[0]
    counts = fluid.counts[0]
    while True:
        status = _what_is_short(core, fluid)
        if status != DONE:
            return status
        # The rest of the instant, one flow a turn: where one begins, nothing follows that others wait for.
        if counts.begin != 0 and not _begin(core, fluid):
            return NEED_MEMBERS
        if state.cursor < state.instant_size:
            _start(core, fluid)
            continue
        # Time leaves the instant: rates are worked out once, for all that began and drained in it.
        limit = min(horizon, state.bound)
        next_start = core.calendar.heap[0].time if core.calendar.state[0].num_instants > 0 else NEVER
        drain = fluid.drains[0].time if counts.num_drains > 0 else NEVER
        change = next_change(core, fluid, counts.num_members == 0)
        coming = min(next_start, change)
        state.next = min(coming, drain)
        if fluid.balance.counts[0].num_choosing > 0 and state.next > state.instant:
            if limit <= state.instant:
                state.next = state.instant
                return DONE
            status = int(ask_at(fluid.balance.counts[0].choose, (core, fluid, state.instant)))
            if status != DONE:
                return status
            continue
        if counts.num_dirty > 0 and state.next > state.instant:
            if limit <= state.instant:  # the caller may still give starts here
                state.next = state.instant
                return DONE
            share(core, fluid, state.instant)
            if wants_columns(fluid):
                return NEED_COLUMNS
            continue
        if state.num_pending >= state.report_at and state.next > state.instant:
            return DONE
        # A drain follows from the past, so it may lie at the limit; the caller may still give starts there.
        if counts.num_drains > 0 and drain <= coming and drain <= limit:
            _drain(core, fluid)
            continue
        in_vain = is_in_vain(fluid, min(next_start, drain))
        if coming >= limit or (limit == NEVER and in_vain):
            # Nobody has to wait for it: of two networks in one run each would for the other, for ever.
            state.next = NEVER if in_vain else state.next
            return DONE
        if change <= next_start:
            status = take_change(core, fluid)
            if status != DONE:
                return status
            continue
        if len(fluid.instant) < len(core.calendar.events):
            return NEED_MORE
        _take_starts(core, fluid)


@compiled
def settle(core: Core, links: Records, now: int) -> None:
    """Count the use of links up to ``now``, for statistics."""
    for link in range(len(links)):
        if links[link].used > 0.0:
            fraction = links[link].used / links[link].capacity
            add_share(core, link, links[link].since, now, fraction)
