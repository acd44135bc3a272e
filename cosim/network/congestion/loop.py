"""The loop of the congestion network: begin, start, ask, apply, drain.

Each turn of the loop does one thing and goes round, so that it may stop for room anywhere, and to have the
control asked. Time leaves an instant only when all that happened in it is in force (``apply``).
"""

from __future__ import annotations

from cosim.network.balancing.choosing import choose_at_end
from cosim.network.calendar import free, room, take_instant
from cosim.network.changes import is_in_vain, next_change
from cosim.network.congestion.apply import apply, wake
from cosim.network.congestion.changes import change, tell
from cosim.network.congestion.classes import look_after
from cosim.network.congestion.credits import ask_for_credit
from cosim.network.congestion.delays import arrival
from cosim.network.congestion.fronts import pass_fronts
from cosim.network.congestion.last_bytes import has_left, has_room, send_last
from cosim.network.congestion.pauses import at_threshold
from cosim.network.congestion.ports import least_queue, settle_link
from cosim.network.congestion.rounds import (
    answer,
    ask,
    count_losses,
    end_round,
    fall_silent,
    met_nothing,
    settle_conn,
)
from cosim.network.congestion.sending import look_ahead, send
from cosim.network.congestion.state import AGAIN, CROSS, EMPTY, FRONT_PASSES, START, UPDATE, CongestionState
from cosim.network.congestion.strands import count_bytes, is_cut
from cosim.network.core import DONE, NEED_CALENDAR, NEED_MORE, NEED_PENDING, Core, complete, release
from cosim.network.drains import set_drain
from cosim.network.jit import ask_at, call_at, once
from cosim.network.order import sort_instant
from cosim.units import NEVER

ASK, NEED_FLOWS, NEED_ROWS, DEADLOCK, NEED_CHANGE, NEED_FRONTS, NEED_LASTS = 30, 31, 32, 33, 34, 37, 38
"""What the loop stops for: the control's answer on the batch, more room, or a link that changes."""

_NONE = -1
_AGAIN = -1
"""The loop goes round once more."""


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
    one.counted = 0
    one.coflow = trait.coflow
    one.weight = trait.weight
    one.job = trait.job
    # While its bytes stand in queues of a class it can't change to another: they would change with it.
    if one.attached == 0:
        one.priority = trait.priority
    now = core.state[0].instant
    # A message without bytes takes its turn, too: it arrives when those before it have been sent.
    if row.size == 0 and not is_cut(fluid, c):
        counts.num_drains = set_drain(counts.num_drains, fluid.drains, c, now)
    elif fluid.settings[0].balanced != 0.0:
        choose_at_end(fluid.balance, c, 1)  # and sends when it has chosen
    else:
        send(core, fluid, c, now)


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
            # Over a dead link nothing comes back that its control could be told.
            if fluid.conns[number].held == 0:
                end_round(core, fluid, number, now)
    elif kind == AGAIN:
        if fluid.balance.routes[number].due == now:
            choose_at_end(fluid.balance, number, 0)
    elif kind == EMPTY:
        if fluid.ports[number].empties == now:
            fluid.ports[number].empties = 0
            settle_link(core, fluid, fluid.ports[number].link, now)
            tell(fluid, number)
            look_after(fluid, number)
    elif kind == FRONT_PASSES:
        if fluid.lines[number].due == now:
            pass_fronts(core, fluid, number, least_queue(fluid), now)
    elif fluid.ports[number].check == now:
        fluid.ports[number].check = 0
        at_threshold(core, fluid, number, now)


@once
def _is_sent(fluid: CongestionState, c: int, size: int, now: int) -> bool:
    """Whether a flow has drained: neither is its window used up, nor was a part of it lost."""
    one = fluid.conns[c]
    if one.budget <= 0.5 and one.remaining > 0.5:
        # The window is used up: nothing more before the round ends.
        if fluid.settings[0].trims != 0.0:
            # Of the burst that it was, not of the silence after it, so much was cut.
            lost = count_losses(fluid, c, now)
            one.remaining = min(one.remaining + lost * fluid.settings[0].mss, one.size)
        fall_silent(fluid, c, now)
        change(fluid, c)
        return False
    if size == 0:
        return True
    if fluid.settings[0].lossless == 0.0:
        lost = count_losses(fluid, c, now)
        if lost > 0:
            # Sent again when the round ends and the loss is known.
            one.remaining = min(lost * fluid.settings[0].mss, one.size)
            fall_silent(fluid, c, now)
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
    if fluid.settings[0].credits != 0.0:
        ask_for_credit(fluid, c)
    change(fluid, c)
    fluid.counts[0].num_active -= 1


@once
def _drain(core: Core, fluid: CongestionState) -> None:
    """The next drain: all that a connection has, or may send, has left."""
    counts = fluid.counts[0]
    now = fluid.drains[0].time
    c = fluid.drains[0].flow
    counts.num_drains = set_drain(counts.num_drains, fluid.drains, c, int(NEVER))
    core.state[0].instant = now
    core.state[0].num_events += 1
    one = fluid.conns[c]
    f = one.flow
    flow = fluid.flows[f]
    settle_conn(fluid, c, now)
    look_ahead(core, fluid, c, now)
    size = core.store.rows[flow.row].size
    if not _is_sent(fluid, c, size, now):
        return
    count_bytes(core, fluid, c, size)
    arrives = arrival(fluid, c, size, now)
    if fluid.settings[0].balanced != 0.0:
        ask_at(fluid.balance.counts[0].end, (core, fluid, c))
    one.flow = flow.next
    if flow.next != _NONE:
        counts.begin = c + 1
    elif one.active != 0:
        _fall_idle(fluid, c, now)
    if arrives == NEVER:
        send_last(core, fluid, f, c, now)
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
    coming = NEVER
    if fluid.settings[0].changing != 0.0:
        coming = next_change(core, fluid, counts.num_active == 0)
    start = core.calendar.heap[0].time if core.calendar.state[0].num_instants > 0 else NEVER
    next_event = min(start, coming)
    drain = fluid.drains[0].time if counts.num_drains > 0 else NEVER
    state.next = min(next_event, drain)
    balanced = fluid.settings[0].balanced != 0.0
    if balanced and fluid.balance.counts[0].num_choosing > 0 and state.next > state.instant:
        if limit <= state.instant:
            state.next = state.instant
            return DONE
        status = int(ask_at(fluid.balance.counts[0].choose, (core, fluid, state.instant)))
        return _AGAIN if status == DONE else status
    if counts.open != 0 and state.next > state.instant:
        if limit <= state.instant:
            state.next = state.instant
            return DONE
        most = 4 * counts.num_active + 2 * len(fluid.links) * counts.num_classes + 64
        if fluid.settings[0].traced != 0.0:
            most += len(fluid.links) * counts.num_classes
            if counts.num_fronts + len(fluid.hops) > len(fluid.fronts):
                return NEED_FRONTS
        if not room(core.calendar, most):
            return NEED_CALENDAR
        apply(core, fluid, state.instant)
        return _AGAIN
    if state.num_pending >= state.report_at and state.next > state.instant:
        return DONE
    # A drain follows from the past, so it may lie at the limit; the caller may still give starts there.
    if counts.num_drains > 0 and drain <= next_event and drain <= limit:
        if not room(core.calendar, 1):
            return NEED_CALENDAR
        if not has_room(fluid, fluid.drains[0].flow):
            return NEED_LASTS
        _drain(core, fluid)
        return _AGAIN
    in_vain = is_in_vain(fluid, min(start, drain))
    if next_event >= limit or (limit == NEVER and in_vain):
        state.next = NEVER if in_vain else state.next
        return DONE
    if coming <= start:
        return NEED_CHANGE
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
