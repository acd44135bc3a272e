"""The loop over instants, compiled: all that ended, then all starts, in rounds until neither is left.

Starts of a round go by (job, rank, stream, operation). Each turn of the loop does one thing and goes round,
so that it may stop for room, or for something that only Python can make, anywhere.
"""

from __future__ import annotations

import numpy as np

from cosim.engine.chunks import enter, pump
from cosim.engine.collectives import EARLY_EXIT, MET, MISMATCH, UNKNOWN_GROUP, leave, meet
from cosim.engine.counters import count_operation
from cosim.engine.flows import let_go, open_flows, start_flow
from cosim.engine.heap import is_before, pop, push
from cosim.engine.messages import MESSAGE_PART, ends_now, post, reached, send_out
from cosim.engine.ranks import begin, end, may_begin, take_ready
from cosim.engine.state import (
    ACCESS,
    AGENDA_N,
    AT_LANE,
    AT_OP,
    AT_RANK,
    BEGIN_AT,
    BEGIN_N,
    BURST,
    COLLECTIVE,
    COLLECTIVE_LOG_N,
    COMPUTE,
    DISPATCH_AT,
    DISPATCH_N,
    ENDING_N,
    ENTER_AT,
    ENTER_N,
    HANDLE_TOP,
    LOG_N,
    MESSAGE_TOP,
    MOST_WORDS,
    NONE,
    NOW,
    OF_ACCESS,
    OF_COLLECTIVE,
    OPENED_N,
    PUMP_AT,
    PUMP_N,
    REACTIONS_N,
    REMOTE,
    RENDEZVOUS_TOP,
    ROUND,
    START_AT,
    STARTS_N,
    TOUCHED_N,
    WORDS_TOP,
    State,
)
from cosim.network.flows import I64
from cosim.network.jit import inlined, internal, once
from cosim.units import NEVER

(
    DONE,
    NEED_ROOM,
    NEED_PACE,
    NEED_GROUP,
    NEED_PLAN,
    NO_PEER,
    WRONG_SIZE,
    WRONG_COLLECTIVE,
    TOO_EARLY,
    TOO_LATE,
    NEED_TRAITS,
    NEED_REPORTS,
    NEED_REPORT,
    NO_PROGRESS,
    PAUSED,
    NEED_START,
    NEED_ACCESS,
) = (0, *range(100, 116))
"""Why the loop stopped: nothing is left up to the limit; an array may be too short; durations, a group or a
plan are not known; a rank has no peer; two ends disagree on the size, ranks on a collective; a rank left one
before it came; time would pass NEVER. With a network in the same loop: what a job's iteration is called there
is not known; there is no room for what is reported, or what it may report has to be asked for; it stands
still; so much was done that others may want a word; whoever directs a job has to say when a rank may go on;
the flows of an access to a memory node are not known.
(Below 100: what networks stop for.)"""


_MANY = 32


@once
def turns_with_room(state: State) -> int:
    """How many turns of the loop are sure to find the room that they need: many, 1, or 0: one might not."""
    # A turn adds at most a burst of tasks, but one message, one rendezvous, one line of a log. Asked before
    # so many turns, it lets no turn stop in the midst of what it does.
    meta = state.meta
    burst = meta[BURST]
    bursts = min(
        len(state.agenda) - meta[AGENDA_N],
        len(state.ending) - meta[ENDING_N],
        len(state.enters) - meta[ENTER_N],
        len(state.pumps) - meta[PUMP_N],
        len(state.dispatches) - meta[DISPATCH_N],
        len(state.handles) - meta[HANDLE_TOP],
        len(state.opened) - meta[OPENED_N],
        len(state.starts) - meta[STARTS_N],
    )
    singles = min(
        len(state.rendezvous) - meta[RENDEZVOUS_TOP],
        len(state.messages) - meta[MESSAGE_TOP],
        len(state.log) - meta[LOG_N],
        len(state.collective_log) - meta[COLLECTIVE_LOG_N],
    )
    words = len(state.words) - meta[WORDS_TOP]
    most = meta[MOST_WORDS]
    if bursts >= _MANY * burst and singles >= _MANY and words >= _MANY * most:
        return _MANY
    return 1 if bursts >= burst and singles >= 1 and words >= most else 0


@once
def next_instant(state: State) -> int:
    """When something ends next, as far as is known here; NEVER: nothing will."""
    meta = state.meta
    time = int(np.int64(NEVER))
    if meta[AGENDA_N] > 0:
        time = min(time, state.agenda[0].time)
    if meta[REACTIONS_N] > 0:
        time = min(time, state.reactions[0].time)
    return time


@inlined
def _next_of(meta: I64, at: int, end: int) -> int:
    """The place of the next in a list; NONE: none is left, and it is filled from its beginning again. Most
    turns find a list empty, and write nothing.
    """
    if meta[end] == 0:
        return NONE
    if meta[at] < meta[end]:
        return int(meta[at])
    meta[at] = 0
    meta[end] = 0
    return NONE


@internal
def _do_at_once(state: State, now: int) -> bool:
    """One of the things that an end or a start called for; False: none is left."""
    meta = state.meta
    place = _next_of(meta, ENTER_AT, ENTER_N)
    if place != NONE:
        task = state.enters[place]
        meta[ENTER_AT] = place + 1
        enter(state, int(task.owner), int(task.part), int(task.position), now)
        return True
    place = _next_of(meta, PUMP_AT, PUMP_N)
    if place != NONE:
        task = state.pumps[place]
        meta[PUMP_AT] = place + 1
        pump(state, int(task.owner), int(task.part), int(task.position))
        return True
    place = _next_of(meta, DISPATCH_AT, DISPATCH_N)
    if place != NONE:
        task = state.dispatches[place]
        meta[DISPATCH_AT] = place + 1
        send_out(state, int(task.owner), int(task.part), now, int(task.cause))
        return True
    return False


@once
def _next_rank(state: State) -> None:
    """The next rank of this round of starts, or of the next round if this one is over; or NONE."""
    meta = state.meta
    meta[AT_RANK] = NONE
    if meta[TOUCHED_N] == 0:
        return
    number = int(state.touched[0].a)
    meta[ROUND] = state.touched[0].time
    meta[TOUCHED_N] = pop(state.touched, meta[TOUCHED_N])
    # What it starts now may touch it again: that is another round.
    rank = state.ranks[number]
    rank.touched = 0
    # Ends of other rounds have let nothing start in this one.
    if rank.cause_round != meta[ROUND]:
        rank.cause = 0
    meta[AT_RANK] = number
    meta[AT_LANE] = 0


@internal
def _choose(state: State, number: int, now: int) -> None:
    """AT_OP: the next that a rank starts, the lowest of each idle stream, then all without one; or NONE."""
    meta = state.meta
    rank = state.ranks[number]
    last = state.programs[rank.program].lanes - 1
    while meta[AT_LANE] <= last:
        at = meta[AT_LANE]
        lane = state.lanes[rank.lane0 + at]
        # A stream does one thing at a time; the last lane is of what is in no stream, and is emptied.
        if lane.count > 0 and (at == last or lane.busy == NONE):
            op = take_ready(state, number, at)
            state.cells[rank.cell0 + op].started = now
            meta[AT_OP] = op
            if at < last:
                lane.busy = op
                meta[AT_LANE] = at + 1
            return
        meta[AT_LANE] = at + 1


@internal
def _ask_node(state: State, number: int, op: int, now: int) -> int:
    """Start an access to a memory node; DONE, or that its flows are not known."""
    rank = state.ranks[number]
    one = state.ops[state.programs[rank.program].op0 + op]
    binding = state.ports[rank.port0 + one.ref].binding
    if binding == NONE:
        return NEED_ACCESS
    iteration = int(state.slots[rank.slot0 + one.slot].iteration)
    # As a message of this operation would be named: it has no other.
    key_high = (int(rank.job) << 51) | (iteration << 31) | int(one.number)
    key_low = (int(rank.number) << 44) | (MESSAGE_PART << 32)
    handle = open_flows(state, int(binding), key_high, key_low, OF_ACCESS, number, iteration)
    state.handles[handle].part = op
    start_flow(state, handle, 0, now, rank.cause)
    return DONE


@internal
def _start(state: State, number: int, op: int, now: int) -> int:
    """Start an operation; DONE, or what stands in the way."""
    meta = state.meta
    rank = state.ranks[number]
    one = state.ops[state.programs[rank.program].op0 + op]
    if one.kind == COMPUTE:
        duration = one.duration if rank.pace0 == NONE else state.pace[rank.pace0 + op]
        # Not now + duration >= NEVER: the sum might leave int64.
        if duration >= NEVER - now:
            return TOO_LATE
        meta[AGENDA_N] = push(state.agenda, meta[AGENDA_N], now + duration, number, op, now, number, op)
        return DONE
    if one.kind == ACCESS:
        began = now
        if rank.device != NONE:
            # Who comes first is served first, and how long that takes is known: no queue need be kept.
            began = max(began, state.free_at[rank.device])
        if one.duration >= NEVER - began:
            return TOO_LATE
        ended = began + one.duration
        if rank.device != NONE:
            state.free_at[rank.device] = ended
        meta[AGENDA_N] = push(state.agenda, meta[AGENDA_N], ended, number, op, now, number, op)
        return DONE
    if one.kind == COLLECTIVE:
        # Where it needs what Python makes, nothing was changed: the same turn comes again.
        came = meet(state, number, op, now)
        if came == MET:
            return DONE
        if came == MISMATCH:
            return WRONG_COLLECTIVE
        return NEED_GROUP if came == UNKNOWN_GROUP else NEED_PLAN
    if one.kind == REMOTE:
        return _ask_node(state, number, op, now)
    if state.ports[rank.port0 + one.ref].channel == NONE:
        return NO_PEER
    return DONE if post(state, number, op, now) else WRONG_SIZE


@internal
def _react(state: State, now: int) -> int:
    """Tell the owner of a flow that it has come; DONE, or TOO_EARLY."""
    meta = state.meta
    event = state.reactions[0]
    handle = int(event.a)
    index = int(event.b)
    cause = int(event.cause)
    meta[REACTIONS_N] = pop(state.reactions, meta[REACTIONS_N])
    one = state.handles[handle]
    if one.kind == OF_COLLECTIVE:
        return TOO_EARLY if leave(state, handle, index, now, cause) == EARLY_EXIT else DONE
    kind = int(one.kind)
    owner = int(one.owner)
    part = int(one.part)
    let_go(state, handle)
    if kind == OF_ACCESS:
        ends_now(state, owner, part, now, cause)
        return DONE
    reached(state, kind, owner, now, cause)
    return DONE


@internal
def _end_next(state: State, now: int) -> None:
    """The first of what ends now: an operation, or a rank's wait for its next iteration."""
    meta = state.meta
    is_due = meta[AGENDA_N] > 0 and state.agenda[0].time == now
    from_agenda = is_due and (meta[ENDING_N] == 0 or is_before(state.agenda[0], state.ending[0]))
    event = state.agenda[0] if from_agenda else state.ending[0]
    number = int(event.a)
    op = int(event.b)
    cause = int(event.cause)
    if from_agenda:
        meta[AGENDA_N] = pop(state.agenda, meta[AGENDA_N])
    else:
        meta[ENDING_N] = pop(state.ending, meta[ENDING_N])
    # Without an operation, it is the time at which a rank was told to go on.
    may_go_on = op == NONE
    if not may_go_on:
        may_go_on = end(state, number, op, now, cause)
        count_operation(state)
    if may_go_on:
        state.begins[meta[BEGIN_N]] = number
        meta[BEGIN_N] += 1


@once
def _begin_next(state: State, now: int) -> int:
    """A rank that may go on begins its next iterations; DONE, or what has to be said before."""
    meta = state.meta
    number = int(state.begins[meta[BEGIN_AT]])
    rank = state.ranks[number]
    job = state.jobs[rank.job]
    # Iterations may overlap, and an empty one ends as it begins: as many as may.
    while may_begin(state, number):
        if rank.pace0 != NONE and rank.paced <= rank.iteration + 1:  # of the iteration that begins
            return NEED_PACE
        if job.directed != 0:
            start = meta[START_AT]
            if start == NONE:
                return NEED_START
            meta[START_AT] = NONE
            if start > now:
                meta[BEGIN_AT] += 1
                meta[AGENDA_N] = push(state.agenda, meta[AGENDA_N], start, number, NONE, now, number, NONE)
                return DONE
        begin(state, number, now)
    if job.directed != 0 and rank.oldest == job.iterations:  # it is through, which is told
        if meta[START_AT] == NONE:
            return NEED_START
        meta[START_AT] = NONE
    meta[BEGIN_AT] += 1
    return DONE


@once
def one_turn(state: State) -> int:
    """Do the next thing of the instant under way; DONE if there was one, NONE: it is over; or why not."""
    meta = state.meta
    now = meta[NOW]
    # What an end or a start called for, before anything else ends or starts: queues of collectives depend on
    # the order in which phases come to them, and that is the order of what they follow from.
    if _do_at_once(state, now):
        return DONE
    if _next_of(meta, BEGIN_AT, BEGIN_N) != NONE:
        return _begin_next(state, now)
    # A rank starts all it may, one operation a turn, and the ranks of a round after one another. Only then is
    # looked at what these starts made end at this instant: it may let ranks start again, in the next round.
    if meta[AT_RANK] != NONE:
        number = meta[AT_RANK]
        if meta[AT_OP] == NONE:
            _choose(state, number, now)
        if meta[AT_OP] != NONE:
            status = _start(state, number, meta[AT_OP], now)
            if status == DONE:
                meta[AT_OP] = NONE
            return status
        meta[AT_RANK] = NONE
        if meta[TOUCHED_N] > 0 and state.touched[0].time == meta[ROUND]:
            _next_rank(state)
            return DONE
    # All that ended, whoever says so, before any start: a rank sees the whole instant when it chooses.
    if meta[REACTIONS_N] > 0 and state.reactions[0].time == now:
        return _react(state, now)
    if meta[ENDING_N] > 0 or (meta[AGENDA_N] > 0 and state.agenda[0].time == now):
        _end_next(state, now)
        return DONE
    if meta[TOUCHED_N] > 0:
        _next_rank(state)
        return DONE
    # What ends from here on is of another round, even where nothing was to be started in this one.
    meta[ROUND] += 1
    return NONE
