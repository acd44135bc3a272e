"""The loop of the congestion network: begin, start, ask, apply, drain.

Each turn of the loop does one thing and goes round, so that it may stop for room anywhere, and to have the
control asked. Time leaves an instant only when all that happened in it is in force (``apply``).
"""

from __future__ import annotations

from cosim.network.calendar import free, room, take_instant
from cosim.network.congestion.apply import apply, wake
from cosim.network.congestion.changes import change, tell
from cosim.network.congestion.delays import arrival, path_rtt
from cosim.network.congestion.last_bytes import follow, has_left
from cosim.network.congestion.pauses import at_threshold, pause_from
from cosim.network.congestion.ports import is_hot, settle_link
from cosim.network.congestion.rounds import (
    answer,
    ask,
    count_losses,
    end_round,
    first_round,
    is_clean,
    is_unlimited,
    met_nothing,
    open_round,
    settle_conn,
)
from cosim.network.congestion.state import CROSS, EMPTY, START, UPDATE, CongestionState
from cosim.network.core import DONE, NEED_CALENDAR, NEED_MORE, NEED_PENDING, Core, complete, release
from cosim.network.drains import set_drain
from cosim.network.jit import call_at, once
from cosim.network.order import sort_instant
from cosim.units import NEVER

ASK, NEED_FLOWS, NEED_ROWS, DEADLOCK = 30, 31, 32, 33
"""What the loop stops for: the control's answer on the batch, or more room."""

_NONE = -1
_AGAIN = -1
"""The loop goes round once more."""


@once
def _take_place(fluid: CongestionState, c: int) -> None:
    """Put a connection on the ports of its path."""
    hops = fluid.hops
    one = fluid.conns[c]
    one.attached = 1
    for k in range(one.hop, one.hop + one.hops):
        hop = hops[k]
        hop.port = one.priority * len(fluid.links) + hop.link
        port = fluid.ports[hop.port]
        # At the head of the port's list, doubly linked through hops: no search, here or when it leaves.
        hop.before = _NONE
        hop.after = port.first
        if port.first != _NONE:
            hops[port.first].before = k
        port.first = k
        if k < one.hop + one.hops - 1:
            fluid.links[hop.link].onward += 1


@once
def _send(core: Core, fluid: CongestionState, c: int, now: int) -> None:
    """A connection that took its next flow begins to send it."""
    counts = fluid.counts[0]
    hops = fluid.hops
    one = fluid.conns[c]
    one.touched = now
    fresh = one.active == 0
    if fresh:
        one.active = 1
        counts.num_active += 1
    for k in range(one.hop, one.hop + one.hops):
        hop = hops[k]
        settle_link(core, fluid, hop.link, now)
        if hop.back >= 0 and is_hot(fluid, hop.back):
            settle_link(core, fluid, hop.back, now)
    if one.attached == 0:
        _take_place(fluid, c)
        # A port that was full before this connection came pauses what feeds it, and now that is one more.
        if fluid.settings[0].lossless != 0.0:
            for k in range(one.hop + 1, one.hop + one.hops):
                if fluid.ports[hops[k].port].full != 0:
                    pause_from(core, fluid, k, now)
    if one.known == 0:
        # Its control has to say first what it may send.
        first_round(fluid, c, now)
        one.due = _NONE
        return
    if one.due < 0:
        one.seen_rtt = path_rtt(fluid, c)
        # After a silence the window may mean another rate than it did: what was settled need not be.
        if one.settled != 0 and not (is_unlimited(fluid, one) and is_clean(one)):
            one.settled = 0
        open_round(fluid, c, now)
        fluid.updated[counts.num_updated] = c
        counts.num_updated += 1
    if fresh:
        one.bursts = 1
    change(fluid, c)


@once
def _begin(core: Core, fluid: CongestionState) -> None:
    """A connection takes its next flow."""
    counts = fluid.counts[0]
    c = counts.begin - 1
    counts.begin = 0
    one = fluid.conns[c]
    flow = fluid.flows[one.flow]
    row = core.store.rows[flow.row]
    trait = fluid.traits[core.store.groups[flow.handle].traits]
    one.remaining = float(row.size)
    one.size = float(row.size)
    one.sent = 0
    one.coflow = trait.coflow
    one.weight = trait.weight
    one.job = trait.job
    # While its bytes stand in queues of a class it can't change to another: they would change with it.
    if one.attached == 0:
        one.priority = trait.priority
    now = core.state[0].instant
    # A message without bytes takes its turn, too: it arrives when those before it have been sent.
    if row.size == 0:
        counts.num_drains = set_drain(counts.num_drains, fluid.drains, fluid.conns, c, now)
    else:
        _send(core, fluid, c, now)


@once
def _start(core: Core, fluid: CongestionState, handle: int, rep: int, row: int) -> None:
    """A flow starts: a mark completes, any other goes to the end of its connection."""
    counts = fluid.counts[0]
    flows = fluid.flows
    now = core.state[0].instant
    core.state[0].num_started += 1
    path = core.store.groups[handle].path + row
    if core.path_ptr[path] == core.path_ptr[path + 1]:  # a mark, or two participants on one endpoint
        complete(core, handle, rep, row, now, now, now)
        return
    f = counts.free_flow
    if f == _NONE:
        f = counts.flows_used
        counts.flows_used = f + 1
    else:
        counts.free_flow = flows[f].next
    flow = flows[f]
    flow.handle = handle
    flow.rep = rep
    flow.row = row
    flow.origin = now
    flow.next = _NONE
    c = fluid.channel_of[path]
    one = fluid.conns[c]
    # Flows of a connection go one after another, as on a queue pair or a socket.
    if one.flow == _NONE:
        one.flow = f
        counts.begin = c + 1
    else:
        flows[one.tail].next = f
    one.tail = f


@once
def _serve(core: Core, fluid: CongestionState) -> None:
    """The next event of the instant. One whose connection or port expects another time by now is stale."""
    state = core.state[0]
    now = state.instant
    at = fluid.instant[state.cursor]
    event = core.calendar.events[at]
    handle = event.handle
    rep = event.rep
    number = event.row
    kind = event.hop
    if kind == CROSS and fluid.ports[number].check == now and has_left(core, fluid, number, now):
        return  # and again: others may leave with it
    state.cursor += 1
    state.num_events += 1
    free(core.calendar, at)
    if kind == START:
        _start(core, fluid, handle, rep, number)
    elif kind == UPDATE:
        if fluid.conns[number].due == now:
            fluid.conns[number].due = _NONE
            end_round(core, fluid, number, now)
    elif kind == EMPTY:
        if fluid.ports[number].empties == now:
            fluid.ports[number].empties = 0
            settle_link(core, fluid, fluid.ports[number].link, now)
            tell(fluid, number)
    elif fluid.ports[number].check == now:
        fluid.ports[number].check = 0
        at_threshold(core, fluid, number, now)


@once
def _is_sent(fluid: CongestionState, c: int, size: int, now: int) -> bool:
    """Whether a flow has drained: neither is its window used up, nor was a part of it lost."""
    one = fluid.conns[c]
    if one.budget <= 0.5 and one.remaining > 0.5:
        # The window is used up: nothing more before the round ends.
        one.spent = 1
        change(fluid, c)
        return False
    if size == 0:
        return True
    if fluid.settings[0].lossless == 0.0:
        lost = count_losses(fluid, c, now)
        if lost > 0:
            # Sent again when the round ends and the loss is known.
            one.remaining = min(lost * fluid.settings[0].mss, one.size)
            one.spent = 1
            change(fluid, c)
            return False
    if one.coflow >= 0:
        fluid.coflows[one.coflow].sent += size - one.sent
    one.sent = size
    one.round_sent += one.remaining
    one.remaining = 0.0
    return True


@once
def _fall_idle(fluid: CongestionState, c: int, now: int) -> None:
    """A connection has nothing more to send."""
    one = fluid.conns[c]
    if one.settled != 0 and met_nothing(fluid, one):
        # Nothing to tell the control when the round ends: it ends here.
        one.asleep = 0
        one.due = _NONE
    elif one.asleep != 0:
        wake(fluid, c, now)
    one.active = 0
    change(fluid, c)
    fluid.counts[0].num_active -= 1


@once
def _drain(core: Core, fluid: CongestionState) -> None:
    """The next drain: all that a connection has, or may send, has left."""
    counts = fluid.counts[0]
    now = fluid.drains[0].time
    c = fluid.drains[0].flow
    counts.num_drains = set_drain(counts.num_drains, fluid.drains, fluid.conns, c, int(NEVER))
    core.state[0].instant = now
    core.state[0].num_events += 1
    one = fluid.conns[c]
    f = one.flow
    flow = fluid.flows[f]
    settle_conn(fluid, c, now)
    for k in range(one.hop, one.hop + one.hops):
        settle_link(core, fluid, fluid.hops[k].link, now)
    size = core.store.rows[flow.row].size
    if not _is_sent(fluid, c, size, now):
        return
    path = core.store.groups[flow.handle].path + flow.row
    for k in range(core.path_ptr[path], core.path_ptr[path + 1]):
        core.link_bytes[core.path_link[k]] += size
    arrives = arrival(fluid, c, size, now)
    one.flow = flow.next
    if flow.next != _NONE:
        counts.begin = c + 1
    elif one.active != 0:
        _fall_idle(fluid, c, now)
    if arrives == NEVER:
        flow.conn = c
        flow.priority = one.priority
        follow(core, fluid, f, one.hop, now)
        return
    flow.next = counts.free_flow
    counts.free_flow = f
    complete(core, flow.handle, flow.rep, flow.row, flow.origin, arrives, now)


@once
def _take_events(core: Core, fluid: CongestionState) -> None:
    """Go to the next events: rounds end before flows start; flows of one connection start in their order."""
    state = core.state[0]
    # ``serial`` tells connections that were seen in this instant, without clearing marks.
    state.instant = core.calendar.heap[0].time
    state.serial += 1
    at = take_instant(core.calendar)
    found = 0
    starts = 0
    clash = False
    while at != _NONE:
        event = core.calendar.events[at]
        if event.hop == START:
            fluid.spare[starts] = at
            starts += 1
            row = core.store.rows[event.row]
            # Only flows of one connection have an order to keep, and most instants have no two of one.
            if row.src != row.dst:
                one = fluid.conns[fluid.channel_of[core.store.groups[event.handle].path + event.row]]
                clash = clash or one.seen == state.serial
                one.seen = state.serial
        else:
            fluid.instant[found] = at
            found += 1
        at = event.next
    if clash:
        sort_instant(core, fluid.spare, fluid.other, fluid.third, starts)
    for k in range(starts):
        fluid.instant[found + k] = fluid.spare[k]
    state.cursor = 0
    state.instant_size = found + starts


@once
def _make_ready(core: Core, fluid: CongestionState) -> int:
    """What follows from the turn before: dependents that it released, room for what comes. :data:`DONE`, or
    why the loop stops.
    """
    state = core.state[0]
    counts = fluid.counts[0]
    status = release(core)
    if status != DONE:
        return status
    if state.num_pending == len(core.pending):
        return NEED_PENDING
    if counts.free_flow == _NONE and counts.flows_used == len(fluid.flows):
        return NEED_FLOWS
    return DEADLOCK if counts.stuck != 0 else DONE


@once
def _within_instant(core: Core, fluid: CongestionState) -> int:
    """One thing of the instant that is left to do: :data:`_AGAIN`, where nothing is :data:`DONE`, else why
    the loop stops. Controls are asked when all rounds have ended, with one call for all.
    """
    state = core.state[0]
    counts = fluid.counts[0]
    if counts.num_waiting > 0:
        counts.num_waiting = 0
        answer(fluid, state.instant)
        counts.open = 1
        return _AGAIN
    if counts.begin != 0:
        _begin(core, fluid)
        return _AGAIN
    if state.cursor < state.instant_size:
        if state.cursor == 0 and state.instant_size > len(fluid.rows):
            return NEED_ROWS
        _serve(core, fluid)
        return _AGAIN
    if counts.batch_size == 0:
        return DONE
    ask(fluid)
    counts.num_waiting = counts.batch_size
    if counts.kernel == 0:
        return ASK  # Python has the control, and comes back with its answers
    call_at(counts.kernel, (counts.num_waiting, fluid.rows, fluid.telemetry, fluid.state, fluid.parameters))
    return _AGAIN


@once
def _leave_instant(core: Core, fluid: CongestionState, horizon: int) -> int:
    """Time leaves the instant: what changed in it comes into force, once, then the next drain or event is
    taken. :data:`_AGAIN`, or why the loop stops.
    """
    state = core.state[0]
    counts = fluid.counts[0]
    limit = min(horizon, state.bound)
    next_event = core.calendar.heap[0].time if core.calendar.state[0].num_instants > 0 else NEVER
    drain = fluid.drains[0].time if counts.num_drains > 0 else NEVER
    if counts.open != 0 and min(next_event, drain) > state.instant:
        if limit <= state.instant:
            return DONE
        most = 4 * counts.num_active + 2 * len(fluid.links) * counts.num_classes + 64
        if not room(core.calendar, most):
            return NEED_CALENDAR
        apply(core, fluid, state.instant)
        return _AGAIN
    if state.num_pending >= state.report_at and min(next_event, drain) > state.instant:
        return DONE
    # A drain follows from the past, so it may lie at the limit; the caller may still give starts there.
    if counts.num_drains > 0 and drain <= next_event and drain <= limit:
        if not room(core.calendar, 1):
            return NEED_CALENDAR
        _drain(core, fluid)
        return _AGAIN
    if next_event >= limit:
        return DONE
    if len(fluid.instant) < len(core.calendar.events):
        return NEED_MORE
    _take_events(core, fluid)
    return _AGAIN


def run_congestion(core: Core, fluid: CongestionState, horizon: int) -> int:
    """Run every instant before the horizon and before any completion's reaction could matter."""
    while True:
        status = _make_ready(core, fluid)
        if status == DONE:
            status = _within_instant(core, fluid)
        if status == DONE:
            status = _leave_instant(core, fluid, horizon)
        if status != _AGAIN:
            return status
