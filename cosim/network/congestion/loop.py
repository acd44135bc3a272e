"""The loop of the congestion network: begin, start, ask, apply, drain.

Each turn of the loop does one thing and goes round, so that it may stop for room anywhere, and to have the
control asked. Time leaves an instant only when all that happened in it is in force (``apply``).
"""

from __future__ import annotations

from cosim.network.calendar import HEAP_N, free, room, take_instant
from cosim.network.congestion.apply import apply as apply_changes
from cosim.network.congestion.apply import wake
from cosim.network.congestion.changes import change, tell
from cosim.network.congestion.columns import (
    ACTIVE_N,
    BATCH_N,
    BEGIN,
    CLASSES,
    DRAIN_N,
    EMPTY,
    FLOW_FREE,
    FLOW_TOP,
    LOSSLESS,
    MSS,
    OPEN,
    START,
    STUCK,
    UPDATE,
    UPDATED_N,
    WAITING_N,
    Fluid,
)
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
from cosim.network.core import (
    BOUND,
    CURSOR,
    DONE,
    EVENTS_N,
    INSTANT,
    INSTANT_N,
    NEED_CALENDAR,
    NEED_MORE,
    NEED_PENDING,
    PENDING_N,
    REPORT_N,
    SERIAL,
    STARTED_N,
    Core,
    complete,
    release,
)
from cosim.network.drains import set_drain
from cosim.network.flows import F64, I64
from cosim.network.jit import call_at, compiled, inlined
from cosim.network.order import sort_instant
from cosim.units import NEVER

ASK, NEED_FLOWS, NEED_ROWS, DEADLOCK = 30, 31, 32, 33
"""What the loop stops for: the control's answer on the batch, or more room."""

_NONE = -1


@inlined
def begin(meta: I64, busy: I64, fluid: Fluid, c: int, now: int) -> None:
    """The first flow that waits on a connection begins to send."""
    conns = fluid.conns
    hops = fluid.hops
    one = conns[c]
    one.touched = now
    fresh = one.active == 0
    if fresh:
        one.active = 1
        meta[ACTIVE_N] += 1
    for k in range(one.hop, one.hop + one.hops):
        hop = hops[k]
        settle_link(meta, busy, fluid.links, fluid.ports, fluid.histogram, fluid.settings, hop.link, now)
        if hop.back >= 0 and is_hot(meta, fluid.links, fluid.ports, hop.back):
            settle_link(meta, busy, fluid.links, fluid.ports, fluid.histogram, fluid.settings, hop.back, now)
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
        if fluid.settings[LOSSLESS] != 0.0:
            for k in range(one.hop + 1, one.hop + one.hops):
                if fluid.ports[hops[k].port].full != 0:
                    pause_from(meta, busy, fluid, k, now)
    if one.known == 0:
        first_round(meta, fluid, c, now)
        one.due = _NONE
        return
    if one.due < 0:
        one.seen_rtt = path_rtt(conns, hops, fluid.links, fluid.ports, c)
        if one.settled != 0 and not (is_unlimited(one, fluid.settings) and is_clean(one)):
            one.settled = 0
        open_round(conns, hops, fluid.sights, fluid.ports, fluid.settings, c, now)
        fluid.updated[meta[UPDATED_N]] = c
        meta[UPDATED_N] += 1
    if fresh:
        one.bursts = 1
    change(meta, conns, fluid.changed, c)


@compiled
def run_congestion(core: Core, fluid: Fluid, horizon: int, kernel: int, parameters: F64) -> int:
    """Run every instant before the horizon and before any completion's reaction could matter.

    ``kernel``: where the control is, if it is compiled; else 0.
    """
    meta = core.meta
    cal_meta, events, buckets, hashes, heap = core.calendar
    count, rows, successors, reps, groups, pages, cells, unused, work, out = core.store
    pending = core.pending
    path_ptr = core.path_ptr
    busy = core.link_busy
    conns = fluid.conns
    flows = fluid.flows
    hops = fluid.hops
    drains = fluid.drains
    instant = fluid.instant
    never = int(NEVER)
    while True:
        status = release(
            cal_meta,
            events,
            buckets,
            hashes,
            heap,
            count,
            rows,
            successors,
            reps,
            groups,
            pages,
            cells,
            unused,
            work,
            out,
        )
        if status != DONE:
            return status
        if meta[PENDING_N] == len(pending):
            return NEED_PENDING
        if meta[FLOW_FREE] == _NONE and meta[FLOW_TOP] == len(flows):
            return NEED_FLOWS
        if meta[STUCK] != 0:
            return DEADLOCK
        now = meta[INSTANT]

        if meta[WAITING_N] > 0:
            # The control has answered.
            meta[WAITING_N] = 0
            answer(meta, fluid, now)
            meta[OPEN] = 1
            continue

        if meta[BEGIN] != 0:
            c = meta[BEGIN] - 1
            meta[BEGIN] = 0
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
                meta[DRAIN_N] = set_drain(meta[DRAIN_N], drains, conns, c, now)
            else:
                begin(meta, busy, fluid, c, now)
            continue

        if meta[CURSOR] < meta[INSTANT_N]:
            if meta[CURSOR] == 0 and meta[INSTANT_N] > len(fluid.rows):
                return NEED_ROWS
            at = instant[meta[CURSOR]]
            meta[CURSOR] += 1
            meta[EVENTS_N] += 1
            event = events[at]
            handle = event.handle
            rep = event.rep
            row_number = event.row
            kind = event.hop
            free(cal_meta, events, at)
            if kind == UPDATE:
                c = row_number
                if conns[c].due == now:
                    conns[c].due = _NONE
                    end_round(meta, busy, fluid, c, now)
                continue
            if kind == EMPTY:
                if fluid.ports[row_number].empties == now:
                    fluid.ports[row_number].empties = 0
                    link = fluid.ports[row_number].link
                    settle_link(
                        meta, busy, fluid.links, fluid.ports, fluid.histogram, fluid.settings, link, now
                    )
                    tell(meta, fluid, row_number)
                continue
            if kind != START:
                if fluid.ports[row_number].check == now:
                    fluid.ports[row_number].check = 0
                    at_threshold(meta, busy, fluid, row_number, now)
                continue
            meta[STARTED_N] += 1
            path = groups[handle].path + row_number
            if path_ptr[path] == path_ptr[path + 1]:  # a mark, or two participants on one endpoint
                complete(
                    meta, pending, count, rows, reps, groups, work, handle, rep, row_number, now, now, now
                )
                continue
            f = meta[FLOW_FREE]
            if f == _NONE:
                f = meta[FLOW_TOP]
                meta[FLOW_TOP] = f + 1
            else:
                meta[FLOW_FREE] = flows[f].next
            flow = flows[f]
            flow.handle = handle
            flow.rep = rep
            flow.row = row_number
            flow.origin = now
            flow.next = _NONE
            c = int(fluid.channel_of[path])
            if conns[c].flow == _NONE:
                conns[c].flow = f
                meta[BEGIN] = c + 1
            else:
                flows[conns[c].tail].next = f
            conns[c].tail = f
            continue

        if meta[BATCH_N] > 0:
            ask(meta, fluid)
            meta[WAITING_N] = meta[BATCH_N]
            if kernel == 0:
                return ASK
            call_at(kernel, (meta[WAITING_N], fluid.rows, fluid.telemetry, fluid.state, parameters))
            continue

        limit = min(horizon, meta[BOUND])
        next_start = heap[0].time if cal_meta[HEAP_N] > 0 else NEVER
        drain = drains[0].time if meta[DRAIN_N] > 0 else NEVER
        if meta[OPEN] != 0 and min(next_start, drain) > now:
            # Time leaves the instant.
            if limit <= now:
                return DONE
            if not room(cal_meta, events, 4 * meta[ACTIVE_N] + 2 * len(fluid.links) * meta[CLASSES] + 64):
                return NEED_CALENDAR
            apply_changes(meta, busy, cal_meta, events, buckets, hashes, heap, fluid, now)
            continue
        if meta[PENDING_N] >= meta[REPORT_N] and min(next_start, drain) > now:
            return DONE

        if meta[DRAIN_N] > 0 and drain <= next_start and drain <= limit:
            if not room(cal_meta, events, 1):
                return NEED_CALENDAR
            c = int(drains[0].flow)
            meta[DRAIN_N] = set_drain(meta[DRAIN_N], drains, conns, c, never)
            meta[INSTANT] = drain
            meta[EVENTS_N] += 1
            now = drain
            one = conns[c]
            f = one.flow
            flow = flows[f]
            settle_conn(conns, fluid.coflows, c, now)
            for k in range(one.hop, one.hop + one.hops):
                settle_link(
                    meta, busy, fluid.links, fluid.ports, fluid.histogram, fluid.settings, hops[k].link, now
                )
            if one.budget <= 0.5 and one.remaining > 0.5:
                # The window is used up: nothing more before the round ends.
                one.spent = 1
                change(meta, conns, fluid.changed, c)
                continue
            handle = flow.handle
            row_number = flow.row
            size = rows[row_number].size
            if size > 0:
                if fluid.settings[LOSSLESS] == 0.0:
                    lost = count_losses(conns, hops, fluid.links, fluid.ports, fluid.settings, c, now)
                    if lost > 0:
                        # Sent again when the round ends and the loss is known.
                        one.remaining = min(lost * fluid.settings[MSS], one.size)
                        one.spent = 1
                        change(meta, conns, fluid.changed, c)
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
                meta[BEGIN] = c + 1
            elif one.active != 0:
                if one.settled != 0 and met_nothing(meta, one, hops, fluid.links, fluid.ports):
                    # Nothing to tell the control when the round ends: it ends here.
                    one.asleep = 0
                    one.due = _NONE
                elif one.asleep != 0:
                    wake(meta, fluid, c, now)
                one.active = 0
                change(meta, conns, fluid.changed, c)
                meta[ACTIVE_N] -= 1
            rep = flow.rep
            origin = flow.origin
            flow.next = meta[FLOW_FREE]
            meta[FLOW_FREE] = f
            complete(
                meta, pending, count, rows, reps, groups, work, handle, rep, row_number, origin, arrives, now
            )
            continue

        if next_start >= limit:
            return DONE
        if len(instant) < len(events):
            return NEED_MORE
        meta[INSTANT] = next_start
        meta[SERIAL] += 1
        at = take_instant(cal_meta, buckets, hashes, heap)
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
                    clash = clash or conns[c].seen == meta[SERIAL]
                    conns[c].seen = meta[SERIAL]
            else:
                instant[found] = at
                found += 1
            at = event.next
        # Rounds end before flows start; flows of one connection start in their order.
        if clash:
            sort_instant(
                events, reps, groups, core.path_source, fluid.spare, fluid.other, fluid.third, starts
            )
        for k in range(starts):
            instant[found + k] = fluid.spare[k]
        meta[CURSOR] = 0
        meta[INSTANT_N] = found + starts
