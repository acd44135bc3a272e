"""What the loops of compiled networks share: state, the way in, the way out, statistics of links."""

from __future__ import annotations

import numpy as np

from cosim.network.arrays import Arrays
from cosim.network.calendar import Calendar, Records, push, room
from cosim.network.dependencies import COMPLETED, DRAINED, NEED_OUT, NEED_WORK, STARTED, Store, drain, note
from cosim.network.flows import I32, I64
from cosim.network.jit import compiled, inlined, internal, is_enough, once
from cosim.units import NEVER

STATE = np.dtype(
    [
        ("grant", "i8"),
        ("bound", "i8"),
        ("num_pending", "i8"),
        ("report_at", "i8"),
        ("cursor", "i8"),
        ("instant_size", "i8"),
        ("instant", "i8"),
        ("serial", "i8"),
        ("num_started", "i8"),
        ("num_completed", "i8"),
        ("num_events", "i8"),
        ("bin_bits", "i8"),
        ("looking", "i8"),
        ("too_late", "i8"),
        ("next", "i8"),
    ]
)
"""``bound``: the first time at which a completion's reaction could matter. ``report_at``: pending completions
to stop at. ``instant``: the time of the instant under way, ``serial`` its number, ``instant_size`` its
events, of which ``cursor`` are done. A bin is 2^``bin_bits`` ps wide: a division would take longer than all
else that counts a link's use. ``looking``: 1 where the loop runs on a copy, to find its first completion
(``bound``, then). ``too_late``: 1 where something would complete at :data:`~cosim.units.NEVER` or later.
``next``: where a loop that is done would go on, :data:`~cosim.units.NEVER` where nothing is left."""

DONE, NEED_CALENDAR, NEED_PENDING, NEED_MORE, NEED_COMPILER, TOO_LATE = 0, 10, 11, 12, 13, 19
REPORT_LIMIT = 1 << 18
"""Completions after which an advance returns (or twice as many as stayed), so that reports stay small."""

PENDING = np.dtype(
    [
        ("time", "i8"),
        ("start", "i8"),
        ("cause", "i8"),
        ("handle", "i4"),
        ("rep", "i4"),
        ("row", "i4"),
        ("pad", "i4"),
    ]
)
"""A completion that is certain, since ``cause``, but not reported."""


class Core(Arrays):
    """State that every compiled model has; ``state`` is one record. A row's links are
    ``path_link[path_ptr[p]:path_ptr[p + 1]]`` with p = ``groups[handle].path + row``, its endpoint is
    ``path_source[p]``; ``link_busy`` is [bins, links].
    """

    state: Records
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
    store = core.store
    # All are looked at before any is taken: a batch that is refused leaves nothing behind.
    for k in range(len(handle)):
        waits = store.groups[handle[k]].release and store.rows[row[k]].waits > 0
        if start[k] < core.state[0].grant or waits:
            return k
    for k in range(len(handle)):
        push(core.calendar, start[k], cause[k], start[k], handle[k], rep[k], row[k], 0)
        # Its start is certain from now on: what waits for that need not wait until the calendar gets there.
        if store.groups[handle[k]].release and store.rows[row[k]].middle < store.rows[row[k]].last:
            note(store, handle[k], rep[k], row[k], start[k], STARTED)
    return -1


@compiled
def give_one(core: Core, handle: int, number: int, start: int, cause: int) -> int:
    """Put a given start of an open group into the calendar; :data:`DONE`, or what must grow first."""
    store = core.store
    # Both before anything is changed: the call is repeated when there is room.
    if not room(core.calendar, 1):
        return NEED_CALENDAR
    if store.state[0].num_work == len(store.work):
        return NEED_WORK
    group = store.groups[handle]
    rep = int(group.rep)
    while number >= store.reps[rep].base + store.reps[rep].rows:
        rep += 1
    row = int(store.reps[rep].row + number - store.reps[rep].base)
    push(core.calendar, start, cause, start, handle, rep, row, 0)
    if group.release and store.rows[row].middle < store.rows[row].last:
        note(store, handle, rep, row, start, STARTED)
    return DONE


@once
def release(core: Core) -> int:
    """Let dependents follow what is known; :data:`DONE`, or what must grow; or :data:`TOO_LATE`."""
    if core.state[0].too_late != 0:
        return TOO_LATE
    # A copy that looks ahead has addresses of its own: it goes on as it began.
    if is_enough() and core.state[0].looking == 0:
        return NEED_COMPILER
    state = core.store.state[0]
    while True:
        status = drain(core.store)
        released = state.num_out
        if released > 0:
            # Until there is room for all of it ``out`` stays as it is, for the next call.
            if not room(core.calendar, released):
                return NEED_CALENDAR
            for k in range(released):
                o = core.store.out[k]
                push(core.calendar, o.start, o.cause, o.start, o.handle, o.rep, o.row, 0)
            state.num_out = 0
        if status == DRAINED:
            return DONE
        # It stopped for a full ``out``, which is empty now; one that is too small for a single row stays so.
        if status != NEED_OUT or released == 0:
            return status


@inlined
def _reaction(core: Core, row: int, time: int) -> int:
    """The earliest that the caller may react to a completion."""
    return int(min(time + min(core.store.rows[row].reaction, NEVER), NEVER))


@inlined
def complete(core: Core, handle: int, rep: int, row: int, start: int, time: int, cause: int) -> None:
    """A flow's completion at ``time`` is certain: report it when the grant gets there, tell dependents.

    On a copy that looks for the first completion, dependents need not be told: they start at ``time`` at the
    earliest, and complete no sooner. (What waits for a start was told when that start was given.)
    """
    state = core.state[0]
    store = core.store
    if time >= NEVER:  # beyond it sums leave int64; a copy that looks ahead meets it, too
        state.too_late = 1
        return
    if state.looking != 0:
        state.bound = min(state.bound, time)
        return
    one = core.pending[state.num_pending]
    state.num_pending += 1
    one.handle = handle
    one.rep = rep
    one.start = start
    one.time = time
    one.cause = cause
    one.row = row
    # Beyond it, the caller may have something to say before what this loop would do next.
    state.bound = min(state.bound, _reaction(core, row, time))
    if store.groups[handle].release and store.rows[row].first < store.rows[row].middle:
        note(store, handle, rep, row, time, COMPLETED)


@internal
def widen(core: Core) -> None:
    """Make bins twice as wide."""
    busy = core.link_busy
    # Wider bins instead of more of them: memory is the same however long a run is.
    half = len(busy) // 2
    for b in range(half):
        for link in range(busy.shape[1]):
            busy[b, link] = busy[2 * b, link] + busy[2 * b + 1, link]
    for b in range(half, len(busy)):
        for link in range(busy.shape[1]):
            busy[b, link] = 0
    core.state[0].bin_bits += 1


@inlined
def bins_end(core: Core) -> int:
    """The time up to which there are bins."""
    return int(np.int64(len(core.link_busy)) << core.state[0].bin_bits)


@inlined
def add_busy(core: Core, link: int, start: int, duration: int) -> None:
    """Count a link as busy in [start, start + duration)."""
    busy = core.link_busy
    while start + duration > bins_end(core):
        widen(core)
    bits = core.state[0].bin_bits
    b = start >> bits
    while duration > 0:
        part = min(duration, ((b + 1) << bits) - start)
        busy[b, link] += part
        start += part
        duration -= part
        b += 1


@inlined
def put_share(busy: I64, bits: int, link: int, start: int, end: int, fraction: float) -> None:
    """Count a fraction of a link as busy in [start, end), to the nearest picosecond at each bin's end.

    Bins are 2^``bits`` ps wide, and reach up to ``end``.
    """
    counted = 0
    b = start >> bits
    stop = start
    while stop < end:
        stop = min(end, (b + 1) << bits)
        # Rounded from the start on, not bin by bin, so that bins add up to the whole.
        total = int((stop - start) * fraction + 0.5)
        busy[b, link] += total - counted
        counted = total
        b += 1


@once
def add_share(core: Core, link: int, start: int, end: int, fraction: float) -> None:
    """Count a fraction of a link as busy in [start, end), in bins that reach so far, made here."""
    while end > bins_end(core):
        widen(core)
    put_share(core.link_busy, core.state[0].bin_bits, link, start, end, fraction)


class Reported(Arrays):
    """The columns of completions, and the handles of groups that ended with them: ``rep`` and ``row`` are a
    flow's place in the store, ``number`` is its own in its group.
    """

    handle: I32
    rep: I32
    row: I32
    number: I64
    start: I64
    time: I64
    cause: I64
    closed: I32


def columns_for_reports(count: int) -> tuple[I32, I32, I32, I64, I64, I64, I64, I32]:
    """Columns for ``count`` completions, as :func:`report` fills them."""
    handle, rep, row, closed = np.empty((4, count), np.int32)
    number, start, time, cause = np.empty((4, count), np.int64)
    return handle, rep, row, number, start, time, cause, closed


def room_for_reports(count: int) -> Reported:
    """The same for compiled code that reports."""
    return Reported(*columns_for_reports(count))


@compiled
def report(
    core: Core,
    grant: int,
    handle: I32,
    rep: I32,
    row: I32,
    number: I64,
    start: I64,
    time: I64,
    cause: I64,
    closed: I32,
) -> tuple[int, int]:
    """Move completions up to ``grant`` out of the pending ones, into columns as :class:`Reported` has them;
    (how many, how many groups ended).
    """
    state = core.state[0]
    pending = core.pending
    kept = 0
    out = 0
    num_closed = 0
    bound = NEVER
    for k in range(state.num_pending):
        one = pending[k]
        if one.time <= grant:
            handle[out] = one.handle
            place = core.store.reps[one.rep]
            rep[out] = one.rep
            row[out] = one.row
            number[out] = place.base + one.row - place.row
            start[out] = one.start
            time[out] = one.time
            cause[out] = one.cause
            out += 1
            group = core.store.groups[one.handle]
            group.left -= 1
            if group.left == 0:
                closed[num_closed] = one.handle
                num_closed += 1
        else:
            bound = min(bound, _reaction(core, one.row, one.time))
            # ``kept`` is never ahead of ``k``: what is written over was read.
            stays = pending[kept]
            stays.handle = one.handle
            stays.rep = one.rep
            stays.start = one.start
            stays.time = one.time
            stays.cause = one.cause
            stays.row = one.row
            kept += 1
    state.num_pending = kept
    # Where many stay, looking through all of them for each few that came would take the square of their
    # number.
    state.report_at = max(REPORT_LIMIT, 2 * kept)
    state.bound = bound
    state.grant = grant
    state.num_completed += out
    return out, num_closed


@inlined
def report_to(core: Core, grant: int, to: Reported) -> tuple[int, int]:
    """The same of compiled code that has a :class:`Reported`."""
    return report(core, grant, to.handle, to.rep, to.row, to.number, to.start, to.time, to.cause, to.closed)
