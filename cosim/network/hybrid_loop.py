"""Two compiled networks in one loop: what starts goes to the one that carries it, what completes comes back.

A part knows the whole's groups, but without dependencies: those are followed here, in the whole's store,
whichever part a dependent is in.

**Time.** A part runs by itself up to the other's next event, for before that nothing can come from there; it
stops sooner at a completion that something may follow from. Where both have something at the same instant,
they do one round of it each (what starts then, and what completes at once) before either is given what
follows: each is given a mark of our own that starts then, at whose completion it stops. Where a round lets
nothing more start, both leave the instant. So two parts of a model do what one network of it would, order
within an instant included.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cosim.network.arrays import Arrays
from cosim.network.calendar import Records, free, push, room, take_instant
from cosim.network.core import DONE, NEED_CALENDAR, NEED_PENDING, Core, Reported, complete, release, report_to
from cosim.network.dependencies import DRAINED, NEED_WORK, close_group, open_group
from cosim.network.flows import I32, I64
from cosim.network.jit import ask_at, inlined, internal, once

NEED_PART, NEED_REPORTED, PAST = 40, 41, 42
"""What the loop stops for: what a part stopped for (``PAIR.status``), room for what one reports, or a flow
that it would have to be given for its past: a mistake of ours."""
MARK = 0
"""The handle of the mark that ends a round. A part knows groups by the whole's handles plus one."""

PAIR = np.dtype([("round", "i8"), ("step", "i8"), ("over", "i8"), ("which", "i8"), ("status", "i8")])
"""``round``: the instant of the round under way, of whose steps ``step`` comes next (a mark and a run of each
part); ``over``: the instant whose rounds are over. ``status``: what part ``which`` stopped for."""
STEPS = 4
PART = np.dtype([("loop", "i8"), ("next", "i8"), ("granted", "i8"), ("marks", "i8")])
"""Where a part's loop is, when it goes on, how far it is granted, and how many marks it was given."""


class Pair(Arrays):
    """Both parts. By row of the whole's paths and part: ``path``, where that row is in the part's paths, -1
    where the other carries it; ``flows``, how many flows of a binding it carries, at the binding's first row.
    ``tables`` and ``traits``: the part's numbers of the whole's tables and traits.
    """

    core0: Core
    core1: Core
    columns0: Any
    columns1: Any
    state: Records
    parts: Records
    path: I64
    flows: I64
    tables: I32
    traits: I32
    reported: Reported


@inlined
def _stop_for(pair: Pair, which: int, status: int) -> int:
    """Stop for what a part needs."""
    pair.state[0].which = which
    pair.state[0].status = status
    return NEED_PART


@internal
def _hand_on(core: Core, pair: Pair, at: int, which: int) -> int:
    """Put a start into a part's calendar, its group opened there where it is not; or say what is short."""
    inner = pair.core0 if which == 0 else pair.core1
    if not room(inner.calendar, 1):
        return NEED_CALENDAR
    event = core.calendar.events[at]
    group = core.store.groups[event.handle]
    whole = core.store.tables[group.table]
    number = int(pair.tables[group.table, which])
    part = inner.store.tables[number]
    row = event.row - whole.row + part.row
    handle = int(event.handle) + 1
    if handle >= len(inner.store.groups) or inner.store.groups[handle].reps == 0:
        path = int(pair.path[group.path + event.row, which]) - row
        traits = int(pair.traits[group.traits, which])
        status = open_group(inner.store, handle, number, group.key_high, group.key_low, path, traits, False)
        if status != DRAINED:
            return status
        inner.store.groups[handle].left = pair.flows[group.path + whole.row, which]
    start = core.state[0].instant
    push(inner.calendar, start, event.cause, start, handle, event.rep - whole.rep + part.rep, row, 0)
    return DONE


@once
def _hand_on_all(core: Core, pair: Pair) -> int:
    """Give the parts all that is to start; :data:`DONE`, or what is short."""
    state = core.state[0]
    calendar = core.calendar
    # ``cursor`` is the next event of the instant that was taken, plus one, so that it may stop between two.
    while state.cursor != 0 or calendar.state[0].num_instants > 0:
        if state.cursor == 0:
            state.instant = calendar.heap[0].time
            state.cursor = take_instant(calendar) + 1
        at = state.cursor - 1
        event = calendar.events[at]
        which = 0 if pair.path[core.store.groups[event.handle].path + event.row, 0] >= 0 else 1
        part = pair.parts[which]
        if state.instant < part.granted:
            return PAST
        status = _hand_on(core, pair, at, which)
        if status != DONE:
            return _stop_for(pair, which, status)
        part.next = min(part.next, state.instant)
        # It lets something start at an instant that both were about to leave: another round.
        if state.instant == pair.state[0].over:
            pair.state[0].over = -1
        state.cursor = event.next + 1
        free(calendar, at)
    return DONE


@internal
def _run(pair: Pair, which: int, horizon: int) -> int:
    """Run a part; :data:`DONE`, or :data:`NEED_PART`, after which the same call goes on."""
    part = pair.parts[which]
    if which == 0:
        status = int(ask_at(part.loop, (pair.core0, pair.columns0, horizon)))
        inner = pair.core0.state[0]
    else:
        status = int(ask_at(part.loop, (pair.core1, pair.columns1, horizon)))
        inner = pair.core1.state[0]
    if status != DONE:
        return _stop_for(pair, which, status)
    limit = min(horizon, inner.bound)
    # It stopped sooner where it has much to report: what completes then is not all known.
    part.granted = max(part.granted, limit if inner.next >= limit else inner.next - 1)
    return DONE


@internal
def _mark(pair: Pair, which: int, now: int) -> int:
    """Have a part stop when it has done one round of an instant."""
    inner = pair.core0 if which == 0 else pair.core1
    if not room(inner.calendar, 1):
        return _stop_for(pair, which, NEED_CALENDAR)
    group = inner.store.groups[MARK]
    row = inner.store.tables[group.table].row
    push(inner.calendar, now, now, now, MARK, group.rep, row, 0)
    pair.parts[which].marks += 1
    return DONE


@once
def _go_round(pair: Pair) -> int:
    """One round of an instant in both parts, or their last of it; :data:`NEED_PART`: it goes on there."""
    both = pair.state[0]
    while both.step < STEPS:
        which = both.step >> 1
        status = DONE
        if both.step & 1 == 1:
            status = _run(pair, which, both.round + 1)
            if status == DONE and both.over != both.round:
                # The mark was no event of its: changes of links would never seem to be in vain.
                inner = pair.core0 if which == 0 else pair.core1
                inner.state[0].num_events -= 1
            elif status == DONE:
                # What the other completes now, where nothing has latency, may let something start here.
                pair.parts[which].granted = min(pair.parts[which].granted, both.round)
        elif both.over != both.round:
            status = _mark(pair, which, both.round)
        if status != DONE:
            return status
        both.step += 1
    return DONE


@internal
def _take(core: Core, pair: Pair, which: int) -> None:
    """Take what a part has completed by now."""
    inner = pair.core0 if which == 0 else pair.core1
    found = pair.reported
    count, closed = report_to(inner, pair.parts[which].granted, found)
    for k in range(count):
        handle = int(found.handle[k]) - 1
        if handle < 0:
            continue
        whole = core.store.tables[core.store.groups[handle].table]
        part = inner.store.tables[inner.store.groups[handle + 1].table]
        rep = found.rep[k] - part.rep + whole.rep
        row = found.row[k] - part.row + whole.row
        complete(core, handle, rep, row, found.start[k], found.time[k], found.cause[k])
    for k in range(closed):
        close_group(inner.store, int(found.closed[k]))
    # What it still has to report has to be taken before something follows from it.
    pair.parts[which].next = min(inner.state[0].next, inner.state[0].bound)


@once
def _what_is_short(core: Core, pair: Pair) -> int:
    """Follow dependencies and give what starts; :data:`DONE` where there is room for all that the parts may
    complete, or what is short.
    """
    status = release(core)
    if status == DONE:
        status = _hand_on_all(core, pair)
    if status != DONE:
        return status
    # Each may complete what it has in flight, which is no more than what it may have pending.
    most = len(pair.core0.pending) + len(pair.core1.pending)
    if core.state[0].num_pending + most > len(core.pending):
        return NEED_PENDING
    if most > len(core.store.work):
        return NEED_WORK
    return DONE if most <= len(pair.reported.handle) else NEED_REPORTED


@once
def _in_turn(pair: Pair, limit: int) -> tuple[int, int]:
    """(Part, time): who runs by itself next, and how far; -1: none, as both have come to that time."""
    next0 = pair.parts[0].next
    next1 = pair.parts[1].next
    now = min(next0, next1)
    if now < limit and next0 != next1:
        return (0 if next0 < next1 else 1), min(max(next0, next1), limit)
    # What completes at an instant comes before what starts at it, in either: both are taken so far.
    now = min(now, limit)
    if pair.parts[0].granted < now:
        return 0, now
    return (1 if pair.parts[1].granted < now else -1), now


def run_hybrid(core: Core, pair: Pair, horizon: int) -> int:
    """Run every instant before the horizon and before any completion's reaction could matter."""
    state = core.state[0]
    both = pair.state[0]
    while True:
        status = _what_is_short(core, pair)
        if status != DONE:
            return status
        if both.step < STEPS:
            status = _go_round(pair)
            if status != DONE:
                return status
            both.over = both.round
            # Of both only now: what one has completed must not reach the other in its round.
            _take(core, pair, 0)
            _take(core, pair, 1)
            continue
        state.next = min(pair.parts[0].next, pair.parts[1].next)
        if state.num_pending >= state.report_at:
            return DONE
        limit = min(horizon, state.bound)
        which, until = _in_turn(pair, limit)
        if which >= 0:
            status = _run(pair, which, until)
            if status != DONE:
                return status
            _take(core, pair, which)
        elif until >= limit:
            return DONE
        else:
            both.round = until
            both.step = 0
