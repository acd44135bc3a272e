"""Instants of the engine and the network between them, compiled, in one loop.

A network of this process is asked here, without Python: its loop is called by its address, so that nothing
of the engine is compiled for each model. For any other, what it is to be given waits in ``opened`` and
``starts``.
"""

from __future__ import annotations

from typing import Any, cast

from numba import int64, typeof

from cosim.engine.counters import count
from cosim.engine.loop import (
    DONE,
    NEED_REPORT,
    NEED_REPORTS,
    NEED_ROOM,
    NEED_TRAITS,
    NO_PROGRESS,
    PAUSED,
    next_instant,
    one_turn,
    turns_with_room,
)
from cosim.engine.state import (
    ARRIVALS_N,
    GRANTED,
    NONE,
    NOW,
    NUM_ADVANCES,
    OF_COLLECTIVE,
    OPENED_AT,
    OPENED_N,
    REACTIONS_N,
    STARTS_AT,
    STARTS_N,
    WHICH,
    State,
)
from cosim.network.core import Core, give_one, report_to
from cosim.network.dependencies import DRAINED, close_group, open_group
from cosim.network.jit import ask_at, compiled, internal
from cosim.units import NEVER


@internal
def _hand_over(state: State, core: Core) -> int:
    """Give the network the groups opened and flows started; DONE, or what it needs first."""
    meta = state.meta
    # Groups before starts, which are of groups that are open. Both go on where they stopped for room.
    while meta[OPENED_AT] < meta[OPENED_N]:
        one = state.opened[meta[OPENED_AT]]
        handle = state.handles[one.handle]
        at = state.jobs[handle.key_high >> 51].trait0 + one.iteration
        if state.traits[at] == NONE:
            meta[WHICH] = at
            return NEED_TRAITS
        bound = state.bindings[handle.binding]
        status = open_group(
            core.store,
            int(one.handle),
            int(bound.table),
            handle.key_high,
            handle.key_low,
            bound.path,
            int(state.traits[at]),
            handle.kind >= OF_COLLECTIVE,
        )
        if status != DRAINED:
            return status
        meta[OPENED_AT] += 1
    while meta[STARTS_AT] < meta[STARTS_N]:
        start = state.starts[meta[STARTS_AT]]
        status = give_one(core, int(start.handle), start.index, start.start, start.cause)
        if status != DONE:
            return status
        meta[STARTS_AT] += 1
    return DONE


@internal
def _advance(state: State, core: Core, loop: int, columns: int, horizon: int) -> int:
    """Have the network go on, at most to ``horizon``, and count what it reports; DONE, or what it needs."""
    meta = state.meta
    status = _hand_over(state, core)
    if status != DONE:
        return status
    status = int(ask_at(loop, (core, columns, horizon)))
    if status != DONE:
        return status
    net = core.state[0]
    most = net.num_pending
    # All that could stop it comes before ``report`` takes anything out: the call may be repeated until here.
    if most >= net.report_at:
        return NEED_REPORT
    if (
        most > len(state.reported.handle)
        or meta[REACTIONS_N] + most > len(state.reactions)
        or meta[ARRIVALS_N] + most > len(state.arrivals)
    ):
        return NEED_REPORTS
    started = meta[STARTS_N]
    meta[OPENED_AT] = 0
    meta[OPENED_N] = 0
    meta[STARTS_AT] = 0
    meta[STARTS_N] = 0
    grant = min(horizon, net.bound)
    done = state.reported
    number, closed = report_to(core, grant, done)
    for k in range(closed):
        close_group(core.store, int(done.closed[k]))
    count(state, done.handle, done.number, done.start, done.time, done.cause, number)
    meta[NUM_ADVANCES] += 1
    # It got nowhere, said nothing and was given nothing: the next time would be the same.
    if grant == meta[GRANTED] and number == 0 and started == 0:
        return NO_PROGRESS
    meta[GRANTED] = grant
    return DONE


@compiled
def run(state: State, core: Core, loop: int, columns: int, until: int, turns: int) -> int:
    """Run every instant up to ``until``; DONE, or why not: PAUSED after so many ``turns`` of the loop.

    ``loop`` is where the loop of a network of this process is, and ``columns`` the address of its state: then
    the network has been asked up to just after ``until`` as well. 0: nobody is asked.
    """
    meta = state.meta
    room = 0
    while True:
        if room == 0:
            room = turns_with_room(state)
            if room == 0:
                return NEED_ROOM
        room -= 1
        turns -= 1
        if turns < 0:
            return PAUSED
        status = one_turn(state)
        if status == DONE:
            continue
        if status != NONE:
            return status
        # The instant is over: the network goes on to the next, unless it has been there.
        time = next_instant(state)
        horizon = min(time, until + 1)
        if loop != 0 and meta[GRANTED] < horizon:
            status = _advance(state, core, loop, columns, horizon)
            if status != DONE:
                return status
        elif time > until or time == NEVER:
            return DONE
        else:
            meta[NOW] = time


def compile_run(state: State, core: Core) -> None:
    """Compile :func:`run` now, for what has these types."""
    cast("Any", run).compile((*map(cast("Any", typeof), (state, core)), int64, int64, int64, int64))
