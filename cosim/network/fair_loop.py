"""The loop of ``fair_share``: begin, start, share, drain, in the order that its text gives.

Each turn of the loop does one thing and goes round, so that it may stop for room anywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.network.calendar import HEAP_N, Records, free, take_instant
from cosim.network.core import (
    BOUND,
    CURSOR,
    DONE,
    EVENTS_N,
    INSTANT,
    INSTANT_N,
    NEED_MORE,
    NEED_PENDING,
    PENDING_N,
    REPORT_N,
    SERIAL,
    STARTED_N,
    Core,
    add_share,
    complete,
    release,
)
from cosim.network.drains import set_drain
from cosim.network.flows import I32, I64
from cosim.network.jit import compiled
from cosim.network.order import sort_instant
from cosim.network.sharing import (
    BEGIN,
    DIRTY_N,
    DRAIN_N,
    FLOW_FREE,
    FLOW_TOP,
    MEMBER_FREE,
    MEMBER_N,
    MEMBER_TOP,
    mark,
    share,
)
from cosim.units import NEVER

NEED_FLOWS, NEED_MEMBERS = 20, 21

_NONE = -1

CLASS = np.dtype([("weight", "i8"), ("priority", "i8")])
"""What a group's flows weigh, in billionths, and their class."""


class Fluid(NamedTuple):
    """The model's state; ``channel_of`` runs beside ``path_ptr``, ``classes`` beside the groups."""

    flows: Records
    members: Records
    links: Records
    drains: Records
    levels: Records
    channels: Records
    classes: Records
    channel_of: I32
    dirty: I32
    full: I32
    touched: I32
    found: I32
    reached: I32
    instant: I32
    spare: I32
    other: I32


@compiled
def run_fair(core: Core, fluid: Fluid, horizon: int) -> int:
    """Run every instant before the horizon and before any completion's reaction could matter."""
    meta = core.meta
    cal_meta, events, buckets, hashes, heap = core.calendar
    count, rows, successors, reps, groups, pages, cells, unused, work, out = core.store
    pending = core.pending
    path_ptr = core.path_ptr
    path_link = core.path_link
    link_bytes = core.link_bytes
    flows = fluid.flows
    members = fluid.members
    links = fluid.links
    drains = fluid.drains
    channels = fluid.channels
    dirty = fluid.dirty
    instant = fluid.instant
    never = int(np.int64(NEVER))  # as a literal it would have the heap compiled twice, by its type
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
        now = meta[INSTANT]

        if meta[BEGIN] != 0:
            # The first flow of a channel begins to transfer.
            f = meta[BEGIN] - 1
            path = groups[flows[f].handle].path + flows[f].row
            hops = path_ptr[path + 1] - path_ptr[path]
            if meta[MEMBER_N] + hops > len(members):
                return NEED_MEMBERS
            meta[BEGIN] = 0
            if flows[f].remaining == 0.0:
                meta[DRAIN_N] = set_drain(meta[DRAIN_N], drains, flows, f, now)
                continue
            flows[f].touched = now
            meta[MEMBER_N] += hops
            last = _NONE
            for k in range(path_ptr[path], path_ptr[path + 1]):
                link = path_link[k]
                m = meta[MEMBER_FREE]
                if m == _NONE:
                    m = meta[MEMBER_TOP]
                    meta[MEMBER_TOP] = m + 1
                else:
                    meta[MEMBER_FREE] = members[m].after
                first = links[link].first
                member = members[m]
                member.flow = f
                member.link = link
                member.before = _NONE
                member.after = first
                member.sibling = last
                if first != _NONE:
                    members[first].before = m
                links[link].first = m
                last = m
                mark(meta, links, dirty, link)
            flows[f].member = last
            continue

        if meta[CURSOR] < meta[INSTANT_N]:
            # A start.
            at = instant[meta[CURSOR]]
            meta[CURSOR] += 1
            meta[STARTED_N] += 1
            meta[EVENTS_N] += 1
            event = events[at]
            handle = event.handle
            rep = event.rep
            row = event.row
            free(cal_meta, events, at)
            path = groups[handle].path + row
            if path_ptr[path] == path_ptr[path + 1]:  # a mark, or two participants on one endpoint
                complete(meta, pending, count, rows, reps, groups, work, handle, rep, row, now, now, now)
                continue
            f = meta[FLOW_FREE]
            if f == _NONE:
                f = meta[FLOW_TOP]
                meta[FLOW_TOP] = f + 1
            else:
                meta[FLOW_FREE] = flows[f].next
            channel = fluid.channel_of[path]
            flow = flows[f]
            flow.handle = handle
            flow.rep = rep
            flow.row = row
            flow.origin = now
            flow.touched = now
            flow.weight = fluid.classes[handle].weight
            flow.priority = fluid.classes[handle].priority
            flow.channel = channel
            flow.remaining = rows[row].size
            flow.rate = 0.0
            flow.member = _NONE
            flow.place = _NONE
            flow.next = _NONE
            queue = channels[channel]
            if queue.head == _NONE:
                queue.head = f
                meta[BEGIN] = f + 1
            else:
                flows[queue.tail].next = f
            queue.tail = f
            continue

        limit = min(horizon, meta[BOUND])
        next_start = heap[0].time if cal_meta[HEAP_N] > 0 else NEVER
        drain = drains[0].time if meta[DRAIN_N] > 0 else NEVER
        if meta[DIRTY_N] > 0 and min(next_start, drain) > now:
            # Time leaves the instant.
            if limit <= now:
                return DONE
            share(
                meta,
                core.link_busy,
                flows,
                members,
                links,
                drains,
                fluid.levels,
                dirty,
                fluid.full,
                fluid.touched,
                fluid.found,
                fluid.reached,
                now,
            )
            continue
        if meta[PENDING_N] >= meta[REPORT_N] and min(next_start, drain) > now:
            return DONE

        if meta[DRAIN_N] > 0 and drain <= next_start and drain <= limit:
            f = drains[0].flow
            meta[DRAIN_N] = set_drain(meta[DRAIN_N], drains, flows, f, never)
            meta[INSTANT] = drain
            meta[EVENTS_N] += 1
            flow = flows[f]
            handle = flow.handle
            row = flow.row
            path = groups[handle].path + row
            arrival = drain
            for k in range(path_ptr[path], path_ptr[path + 1]):
                link_bytes[path_link[k]] += rows[row].size
                arrival += links[path_link[k]].latency
            m = flow.member
            while m != _NONE:
                member = members[m]
                ahead = member.before
                behind = member.after
                if ahead != _NONE:
                    members[ahead].after = behind
                else:
                    links[member.link].first = behind
                if behind != _NONE:
                    members[behind].before = ahead
                member.after = meta[MEMBER_FREE]
                meta[MEMBER_FREE] = m
                meta[MEMBER_N] -= 1
                mark(meta, links, dirty, member.link)
                m = member.sibling
            channels[flow.channel].head = flow.next
            meta[BEGIN] = flow.next + 1
            flow.next = meta[FLOW_FREE]
            meta[FLOW_FREE] = f
            rep = flow.rep
            origin = flow.origin
            complete(meta, pending, count, rows, reps, groups, work, handle, rep, row, origin, arrival, drain)
            continue

        if next_start >= limit:
            return DONE
        if len(instant) < len(events):
            return NEED_MORE
        # The next starts; those of one channel in their order.
        meta[INSTANT] = next_start
        meta[SERIAL] += 1
        at = take_instant(cal_meta, buckets, hashes, heap)
        found = 0
        clash = False
        while at != _NONE:
            instant[found] = at
            found += 1
            if rows[events[at].row].src != rows[events[at].row].dst:
                channel = fluid.channel_of[groups[events[at].handle].path + events[at].row]
                clash = clash or channels[channel].seen == meta[SERIAL]
                channels[channel].seen = meta[SERIAL]
            at = events[at].next
        meta[CURSOR] = 0
        meta[INSTANT_N] = found
        if clash:
            sort_instant(events, reps, groups, core.path_source, instant, fluid.spare, fluid.other, found)


@compiled
def settle(meta: I64, busy: I64, links: Records, now: int) -> None:
    """Count the use of links up to ``now``, for statistics."""
    for link in range(len(links)):
        if links[link].used > 0.0:
            fraction = links[link].used / links[link].capacity
            add_share(meta, busy, link, links[link].since, now, fraction)
