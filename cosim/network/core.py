"""What the loops of compiled networks share: state, the way in, the way out, statistics of links."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.network.calendar import Calendar, Records, push, room
from cosim.network.dependencies import COMPLETED, DRAINED, NEED_OUT, OUT_N, STARTED, Store, drain, note
from cosim.network.flows import I32, I64
from cosim.network.jit import compiled, inlined
from cosim.units import NEVER

GRANT, BOUND, PENDING_N, REPORT_N, CURSOR, INSTANT_N, INSTANT, SERIAL = range(8)
STARTED_N, COMPLETED_N, EVENTS_N, BIN_PS, LOOKING, MODEL = range(8, 14)
"""Scalars in ``Core.meta``; a model's own start at MODEL. REPORT_N: pending completions to stop at.
LOOKING: 1 where the loop runs on a copy, to find its first completion (BOUND, then)."""

DONE, NEED_CALENDAR, NEED_PENDING, NEED_MORE = 0, 10, 11, 12
REPORT_LIMIT = 1 << 18
"""Completions after which an advance returns (or twice as many as stayed), so that reports stay small."""

PENDING = np.dtype(
    [("time", "i8"), ("start", "i8"), ("cause", "i8"), ("index", "i8"), ("handle", "i4"), ("row", "i4")]
)
"""A completion that is certain, since ``cause``, but not reported."""


class Core(NamedTuple):
    """State that every compiled model has. A row's links are ``links[ptr[p]:ptr[p + 1]]`` with p =
    ``groups[handle].path + row``, its endpoint is ``path_source[p]``; ``link_busy`` is [bins, links].
    """

    meta: I64
    calendar: Calendar
    store: Store
    pending: Records
    path_ptr: I64
    path_link: I32
    path_source: I32
    link_bytes: I64
    link_busy: I64


@compiled
def give(core: Core, handle: I32, rep: I32, row: I32, start: I64, cause: I64) -> int:
    """Put given starts into the calendar; there is room for them.

    None of them where one is before the grant or has dependencies that the network follows: that one's number
    is returned, else -1.
    """
    cal_meta, events, buckets, hashes, heap = core.calendar
    count, rows, _, _, groups, _, _, _, work, _ = core.store
    for k in range(len(handle)):
        if start[k] < core.meta[GRANT] or (groups[handle[k]].release and rows[row[k]].waits > 0):
            return k
    for k in range(len(handle)):
        push(
            cal_meta,
            events,
            buckets,
            hashes,
            heap,
            start[k],
            cause[k],
            start[k],
            handle[k],
            rep[k],
            row[k],
            0,
        )
        if groups[handle[k]].release and rows[row[k]].middle < rows[row[k]].last:
            note(count, work, handle[k], rep[k], row[k], start[k], STARTED)
    return -1


@inlined
def release(
    cal_meta: I64,
    events: Records,
    buckets: Records,
    hashes: I32,
    heap: Records,
    count: I64,
    rows: Records,
    successors: Records,
    reps: Records,
    groups: Records,
    pages: Records,
    cells: Records,
    unused: I64,
    work: Records,
    out: Records,
) -> int:
    """Let dependents follow what is known; :data:`DONE`, or what must grow."""
    while True:
        status = drain(count, rows, successors, reps, groups, pages, cells, unused, work, out)
        released = count[OUT_N]
        if released > 0:
            if not room(cal_meta, events, released):
                return NEED_CALENDAR
            for k in range(released):
                o = out[k]
                push(
                    cal_meta,
                    events,
                    buckets,
                    hashes,
                    heap,
                    o.start,
                    o.cause,
                    o.start,
                    o.handle,
                    o.rep,
                    o.row,
                    0,
                )
            count[OUT_N] = 0
        if status == DRAINED:
            return DONE
        if status != NEED_OUT or released == 0:
            return status


@inlined
def _react(rows: Records, row: int, time: int) -> int:
    """The earliest that the caller may react to a completion."""
    return int(min(time + min(rows[row].reaction, NEVER), NEVER))


@inlined
def complete(
    meta: I64,
    pending: Records,
    count: I64,
    rows: Records,
    reps: Records,
    groups: Records,
    work: Records,
    handle: int,
    rep: int,
    row: int,
    start: int,
    time: int,
    cause: int,
) -> None:
    """A flow's completion at ``time`` is certain: report it when the grant gets there, tell dependents.

    On a copy that looks for the first completion, dependents need not be told: they start at ``time`` at the
    earliest, and complete no sooner. (What waits for a start was told when that start was given.)
    """
    if meta[LOOKING] != 0:
        meta[BOUND] = min(meta[BOUND], time)
        return
    n = meta[PENDING_N]
    meta[PENDING_N] = n + 1
    one = pending[n]
    one.handle = handle
    one.index = reps[rep].base + row - reps[rep].row
    one.start = start
    one.time = time
    one.cause = cause
    one.row = row
    meta[BOUND] = min(meta[BOUND], _react(rows, row, time))
    if groups[handle].release and rows[row].first < rows[row].middle:
        note(count, work, handle, rep, row, time, COMPLETED)


@compiled
def widen(meta: I64, busy: I64) -> None:
    """Make bins twice as wide."""
    half = len(busy) // 2
    for b in range(half):
        for link in range(busy.shape[1]):
            busy[b, link] = busy[2 * b, link] + busy[2 * b + 1, link]
    busy[half:, :] = 0
    meta[BIN_PS] *= 2


@inlined
def add_busy(meta: I64, busy: I64, link: int, start: int, duration: int) -> None:
    """Count a link as busy in [start, start + duration)."""
    while start + duration > len(busy) * meta[BIN_PS]:
        widen(meta, busy)
    width = meta[BIN_PS]
    b = start // width
    while duration > 0:
        part = min(duration, (b + 1) * width - start)
        busy[b, link] += part
        start += part
        duration -= part
        b += 1


@inlined
def add_share(meta: I64, busy: I64, link: int, start: int, end: int, fraction: float) -> None:
    """Count a fraction of a link as busy in [start, end), to the nearest picosecond at each bin's end."""
    while end > len(busy) * meta[BIN_PS]:
        widen(meta, busy)
    width = meta[BIN_PS]
    b = start // width
    counted = 0
    stop = start
    while stop < end:
        stop = min(end, (b + 1) * width)
        total = int((stop - start) * fraction + 0.5)
        busy[b, link] += total - counted
        counted = total
        b += 1


@compiled
def report(
    meta: I64,
    pending: Records,
    rows: Records,
    groups: Records,
    grant: int,
    handle: I32,
    index: I64,
    start: I64,
    time: I64,
    cause: I64,
    closed: I32,
) -> tuple[int, int]:
    """Move completions up to ``grant`` out of the pending ones; (how many, how many groups ended)."""
    kept = 0
    out = 0
    num_closed = 0
    bound = NEVER
    for k in range(meta[PENDING_N]):
        if pending[k].time <= grant:
            one = pending[k].handle
            handle[out] = one
            index[out] = pending[k].index
            start[out] = pending[k].start
            time[out] = pending[k].time
            cause[out] = pending[k].cause
            out += 1
            groups[one].left -= 1
            if groups[one].left == 0:
                closed[num_closed] = one
                num_closed += 1
        else:
            pending[kept].handle = pending[k].handle
            pending[kept].index = pending[k].index
            pending[kept].start = pending[k].start
            pending[kept].time = pending[k].time
            pending[kept].cause = pending[k].cause
            pending[kept].row = pending[k].row
            bound = min(bound, _react(rows, pending[k].row, pending[k].time))
            kept += 1
    meta[PENDING_N] = kept
    meta[REPORT_N] = max(REPORT_LIMIT, 2 * kept)
    meta[BOUND] = bound
    meta[GRANT] = grant
    meta[COMPLETED_N] += out
    return out, num_closed
