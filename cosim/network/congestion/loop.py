"""The loop of the congestion network: begin, start, ask, apply, drain.

Each turn of the loop does one thing and goes round, so that it may stop for room anywhere, and to have the
control asked. Time leaves an instant only when all that happened in it is in force (``apply``).
"""

from __future__ import annotations

from cosim.network.calendar import free, room, take_instant
from cosim.network.congestion.apply import apply as apply_changes
from cosim.network.congestion.apply import wake
from cosim.network.congestion.changes import change, tell
from cosim.network.congestion.columns import EMPTY, START, UPDATE, Fluid
from cosim.network.congestion.delays import arrival, path_rtt
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
from cosim.network.core import DONE, NEED_CALENDAR, NEED_MORE, NEED_PENDING, Core, complete, release
from cosim.network.drains import set_drain
from cosim.network.flows import F64
from cosim.network.jit import call_at, compiled, inlined
from cosim.network.order import sort_instant
from cosim.units import NEVER

ASK, NEED_FLOWS, NEED_ROWS, DEADLOCK = 30, 31, 32, 33
"""What the loop stops for: the control's answer on the batch, or more room."""

_NONE = -1


@inlined
def begin(core: Core, fluid: Fluid, c: int, now: int) -> None:
    """The first flow that waits on a connection begins to send."""
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
        one.attached = 1
        for k in range(one.hop, one.hop + one.hops):
            hop = hops[k]
            hop.port = one.priority * len(fluid.links) + hop.link
            port = fluid.ports[hop.port]
            hop.before = _NONE
            hop.after = port.first
            if port.first != _NONE:
                hops[port.first].before = k
            port.first = k
            if k < one.hop + one.hops - 1:
                fluid.links[hop.link].onward += 1
        if fluid.settings[0].lossless != 0.0:
            for k in range(one.hop + 1, one.hop + one.hops):
                if fluid.ports[hops[k].port].full != 0:
                    pause_from(core, fluid, k, now)
    if one.known == 0:
        first_round(fluid, c, now)
        one.due = _NONE
        return
    if one.due < 0:
        one.seen_rtt = path_rtt(fluid, c)
        if one.settled != 0 and not (is_unlimited(fluid, one) and is_clean(one)):
            one.settled = 0
        open_round(fluid, c, now)
        fluid.updated[counts.num_updated] = c
        counts.num_updated += 1
    if fresh:
        one.bursts = 1
    change(fluid, c)


@compiled
def run_congestion(core: Core, fluid: Fluid, horizon: int, kernel: int, parameters: F64) -> int:
    """Run every instant before the horizon and before any completion's reaction could matter.

    ``kernel``: where the control is, if it is compiled; else 0.
    """
    state = core.state[0]
    counts = fluid.counts[0]
    calendar = core.calendar
    events = calendar.events
    heap = calendar.heap
    rows = core.store.rows
    groups = core.store.groups
    path_ptr = core.path_ptr
    conns = fluid.conns
    flows = fluid.flows
    hops = fluid.hops
    drains = fluid.drains
    instant = fluid.instant
    never = int(NEVER)
    while True:
        status = release(core)
        if status != DONE:
            return status
        if state.num_pending == len(core.pending):
            return NEED_PENDING
        if counts.free_flow == _NONE and counts.flows_used == len(flows):
            return NEED_FLOWS
        if counts.stuck != 0:
            return DEADLOCK
        now = state.instant

        if counts.num_waiting > 0:
            # The control has answered.
            counts.num_waiting = 0
            answer(fluid, now)
            counts.open = 1
            continue

        if counts.begin != 0:
            c = counts.begin - 1
            counts.begin = 0
            f = conns[c].flow
            row = rows[flows[f].row]
            trait = fluid.traits[flows[f].handle]
            one = conns[c]
            one.remaining = float(row.size)
            one.size = float(row.size)
            one.sent = 0
            one.coflow = trait.coflow
            one.weight = trait.weight
            one.job = trait.job
            if one.attached == 0:
                one.priority = trait.priority
            if row.size == 0:
                counts.num_drains = set_drain(counts.num_drains, drains, conns, c, now)
            else:
                begin(core, fluid, c, now)
            continue

        if state.cursor < state.instant_size:
            if state.cursor == 0 and state.instant_size > len(fluid.rows):
                return NEED_ROWS
            at = instant[state.cursor]
            state.cursor += 1
            state.num_events += 1
            event = events[at]
            handle = event.handle
            rep = event.rep
            row_number = event.row
            kind = event.hop
            free(calendar, at)
            if kind == UPDATE:
                c = row_number
                if conns[c].due == now:
                    conns[c].due = _NONE
                    end_round(core, fluid, c, now)
                continue
            if kind == EMPTY:
                if fluid.ports[row_number].empties == now:
                    fluid.ports[row_number].empties = 0
                    link = fluid.ports[row_number].link
                    settle_link(core, fluid, link, now)
                    tell(fluid, row_number)
                continue
            if kind != START:
                if fluid.ports[row_number].check == now:
                    fluid.ports[row_number].check = 0
                    at_threshold(core, fluid, row_number, now)
                continue
            state.num_started += 1
            path = groups[handle].path + row_number
            if path_ptr[path] == path_ptr[path + 1]:  # a mark, or two participants on one endpoint
                complete(core, handle, rep, row_number, now, now, now)
                continue
            f = counts.free_flow
            if f == _NONE:
                f = counts.flows_used
                counts.flows_used = f + 1
            else:
                counts.free_flow = flows[f].next
            flow = flows[f]
            flow.handle = handle
            flow.rep = rep
            flow.row = row_number
            flow.origin = now
            flow.next = _NONE
            c = int(fluid.channel_of[path])
            if conns[c].flow == _NONE:
                conns[c].flow = f
                counts.begin = c + 1
            else:
                flows[conns[c].tail].next = f
            conns[c].tail = f
            continue

        if counts.batch_size > 0:
            ask(fluid)
            counts.num_waiting = counts.batch_size
            if kernel == 0:
                return ASK
            call_at(kernel, (counts.num_waiting, fluid.rows, fluid.telemetry, fluid.state, parameters))
            continue

        limit = min(horizon, state.bound)
        next_start = heap[0].time if calendar.state[0].num_instants > 0 else NEVER
        drain = drains[0].time if counts.num_drains > 0 else NEVER
        if counts.open != 0 and min(next_start, drain) > now:
            # Time leaves the instant.
            if limit <= now:
                return DONE
            if not room(calendar, 4 * counts.num_active + 2 * len(fluid.links) * counts.num_classes + 64):
                return NEED_CALENDAR
            apply_changes(core, fluid, now)
            continue
        if state.num_pending >= state.report_at and min(next_start, drain) > now:
            return DONE

        if counts.num_drains > 0 and drain <= next_start and drain <= limit:
            if not room(calendar, 1):
                return NEED_CALENDAR
            c = int(drains[0].flow)
            counts.num_drains = set_drain(counts.num_drains, drains, conns, c, never)
            state.instant = drain
            state.num_events += 1
            now = drain
            one = conns[c]
            f = one.flow
            flow = flows[f]
            settle_conn(fluid, c, now)
            for k in range(one.hop, one.hop + one.hops):
                settle_link(core, fluid, hops[k].link, now)
            if one.budget <= 0.5 and one.remaining > 0.5:
                # The window is used up: nothing more before the round ends.
                one.spent = 1
                change(fluid, c)
                continue
            handle = flow.handle
            row_number = flow.row
            size = rows[row_number].size
            if size > 0:
                if fluid.settings[0].lossless == 0.0:
                    lost = count_losses(fluid, c, now)
                    if lost > 0:
                        # Sent again when the round ends and the loss is known.
                        one.remaining = min(lost * fluid.settings[0].mss, one.size)
                        one.spent = 1
                        change(fluid, c)
                        continue
                if one.coflow >= 0:
                    fluid.coflows[one.coflow].sent += size - one.sent
                one.sent = size
                one.round_sent += one.remaining
                one.remaining = 0.0
            path = groups[handle].path + row_number
            for k in range(path_ptr[path], path_ptr[path + 1]):
                core.link_bytes[core.path_link[k]] += size
            arrives = arrival(fluid, c, size, now)
            one.flow = flow.next
            if flow.next != _NONE:
                counts.begin = c + 1
            elif one.active != 0:
                if one.settled != 0 and met_nothing(fluid, one):
                    # Nothing to tell the control when the round ends: it ends here.
                    one.asleep = 0
                    one.due = _NONE
                elif one.asleep != 0:
                    wake(fluid, c, now)
                one.active = 0
                change(fluid, c)
                counts.num_active -= 1
            rep = flow.rep
            origin = flow.origin
            flow.next = counts.free_flow
            counts.free_flow = f
            complete(core, handle, rep, row_number, origin, arrives, now)
            continue

        if next_start >= limit:
            return DONE
        if len(instant) < len(events):
            return NEED_MORE
        state.instant = next_start
        state.serial += 1
        at = take_instant(calendar)
        found = 0
        starts = 0
        clash = False
        while at != _NONE:
            event = events[at]
            if event.hop == START:
                fluid.spare[starts] = at
                starts += 1
                if rows[event.row].src != rows[event.row].dst:
                    c = fluid.channel_of[groups[event.handle].path + event.row]
                    clash = clash or conns[c].seen == state.serial
                    conns[c].seen = state.serial
            else:
                instant[found] = at
                found += 1
            at = event.next
        # Rounds end before flows start; flows of one connection start in their order.
        if clash:
            sort_instant(core, fluid.spare, fluid.other, fluid.third, starts)
        for k in range(starts):
            instant[found + k] = fluid.spare[k]
        state.cursor = 0
        state.instant_size = found + starts
