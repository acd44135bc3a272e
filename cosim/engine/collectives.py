"""Collectives, compiled: who meets whom, and what is written down when the last one leaves."""

from __future__ import annotations

from cosim.engine.chunks import come, leave_part
from cosim.engine.messages import ends_now
from cosim.engine.state import (
    COLLECTIVE_LOG_N,
    NONE,
    PLACE,
    RENDEZVOUS_FREE,
    RENDEZVOUS_TOP,
    SERIAL,
    WHICH,
    WORDS_TOP,
    State,
)
from cosim.network.flows import I32, I64
from cosim.network.jit import compiled, internal, once

MET, UNKNOWN_GROUP, UNKNOWN_PLAN, MISMATCH, EARLY_EXIT = range(5)
"""What may come of it."""

COMM_BITS, WHAT_BITS, TURN_BITS = 25, 24, 14
"""Of a plan's key."""
_SCATTER = 0x9E3779B97F4A7C1  # odd, and near 2**60 over the golden ratio (Knuth's multiplicative hashing)


@once
def plan_key(comm: int, what: int, turn: int) -> int:
    """The key of the plan of a group, as its members name it, for a kind of collective at a turn."""
    # 25 + 24 + 14 bits: never negative, so that NONE can stand for an empty slot.
    return (comm << (WHAT_BITS + TURN_BITS)) | (what << TURN_BITS) | turn


@internal
def plan_slot(keys: I64, key: int) -> int:
    """Where a plan is in the hash table, or where it belongs."""
    mask = len(keys) - 1
    # Of the product the bits from 40 on, which depend on all parts of a key: its group stands at the top, and
    # reaches none below. Those beyond 64, in which the product differs where it is interpreted and does not
    # wrap round, are not looked at: 2**24 places are as many as it has.
    slot = (key * _SCATTER >> 40) & mask
    # It ends: the table always has an empty slot, and nothing is ever taken out of it.
    while keys[slot] != NONE and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@compiled
def add_plan(keys: I64, values: I32, comm: int, what: int, turn: int, plan: int) -> None:
    """Put a plan into the hash table, which has room."""
    key = plan_key(comm, what, turn)
    slot = plan_slot(keys, key)
    keys[slot] = key
    values[slot] = plan


@compiled
def move_plans(old_keys: I64, old_values: I32, keys: I64, values: I32) -> None:
    """Put all plans of a hash table into a larger one."""
    for k in range(len(old_keys)):
        if old_keys[k] != NONE:
            slot = plan_slot(keys, old_keys[k])
            keys[slot] = old_keys[k]
            values[slot] = old_values[k]


@internal
def meet(state: State, number: int, op: int, now: int) -> int:
    """A rank starts its part of a collective; :data:`MET`, or why it can't: nothing was changed."""
    rank = state.ranks[number]
    one = state.ops[state.programs[rank.program].op0 + op]
    member = state.members[rank.ref0 + one.ref]
    if member.comm == NONE:
        return UNKNOWN_GROUP
    comm = state.comms[member.comm]
    iteration = state.slots[rank.slot0 + one.slot].iteration
    found = int(comm.open)
    # Few are open at once: as many as a group's collectives overlap.
    while found != NONE:
        met = state.rendezvous[found]
        if met.occurrence == one.occurrence and met.iteration == iteration:
            break
        found = int(met.next)
    if found == NONE:
        found = _first(state, number, op, now)
        if found == NONE:
            return UNKNOWN_PLAN
    met = state.rendezvous[found]
    # The first to come says what is done; another size or root is a mistake of the program.
    if met.what != one.what:
        state.meta[WHICH] = found
        return MISMATCH
    # That it has come, and which operation ends when it leaves.
    state.words[met.words + member.position] = op
    met.arrived += 1
    if met.arrived == comm.size:
        met.ready = now
    come(state, found, int(member.position))
    return MET


@once
def _free_rendezvous(state: State) -> int:
    """A row for one more rendezvous; there is room."""
    meta = state.meta
    found = meta[RENDEZVOUS_FREE]
    if found == NONE:
        found = meta[RENDEZVOUS_TOP]
        meta[RENDEZVOUS_TOP] += 1
    else:
        meta[RENDEZVOUS_FREE] = state.rendezvous[found].next
    return int(found)


@once
def _free_words(state: State, plan_number: int) -> int:
    """Words for one more rendezvous of a plan, as they are before anyone comes: where they begin."""
    words = state.words
    plan = state.plans[plan_number]
    first = int(plan.free)
    # What ended is a list: the first word of each names the one that ended before it.
    if first != NONE:
        plan.free = words[first]
    else:
        first = state.meta[WORDS_TOP]
        state.meta[WORDS_TOP] += plan.words
    for k in range(first, first + plan.ranks):
        words[k] = NONE
        words[k + plan.ranks] = plan.chunks
    handles = first + 2 * plan.ranks
    for k in range(handles, handles + plan.instances):
        words[k] = NONE
    for k in range(handles + plan.instances, first + plan.words):
        words[k] = 0
    return int(first)


@internal
def _first(state: State, number: int, op: int, now: int) -> int:
    """A group's first rank comes: its rendezvous, or NONE where its plan is not known."""
    meta = state.meta
    rank = state.ranks[number]
    one = state.ops[state.programs[rank.program].op0 + op]
    comm_number = int(state.members[rank.ref0 + one.ref].comm)
    comm = state.comms[comm_number]
    group = state.groups[comm.group]
    iteration = state.slots[rank.slot0 + one.slot].iteration
    # Turns go on within an iteration, and begin anew with the next: all iterations fare alike.
    turn = int(group.turn) if group.iteration == iteration else 0
    slot = plan_slot(state.plan_keys, plan_key(comm_number, int(one.what), turn))
    if state.plan_keys[slot] == NONE:
        return NONE
    plan_number = int(state.plan_values[slot])
    plan = state.plans[plan_number]
    group.turn = plan.turn
    group.iteration = iteration
    found = _free_rendezvous(state)
    met = state.rendezvous[found]
    met.comm = comm_number
    met.occurrence = one.occurrence
    met.iteration = iteration
    met.plan = plan_number
    # A stable operation number: that of the group's lowest rank, which all members agree on.
    met.number = state.numbers[comm.op0 + one.occurrence] if one.occurrence < comm.ops else one.number
    met.what = one.what
    met.rank = number
    met.op = one.number
    met.start = now
    met.ready = NONE
    met.arrived = 0
    met.left = 0
    met.serial = meta[SERIAL]
    meta[SERIAL] += 1
    met.next = comm.open
    comm.open = found
    met.words = _free_words(state, plan_number)
    return int(found)


@internal
def leave(state: State, handle: int, index: int, now: int, cause: int) -> int:
    """A rank exits a part of a collective; :data:`EARLY_EXIT` where it is done before it came."""
    number = int(state.handles[handle].owner)
    position = leave_part(state, handle, index)
    if position == NONE:
        return MET
    met = state.rendezvous[number]
    op = int(state.words[met.words + position])
    comm = state.comms[met.comm]
    # Its last flow is there before the rank is: the algorithm doesn't wait for what the rank brings.
    if op == NONE:
        state.meta[WHICH] = number
        state.meta[PLACE] = position
        return EARLY_EXIT
    # Nobody may leave twice, and the place still says which operation it was.
    state.words[met.words + position] = -2 - op
    ends_now(state, int(state.comm_ranks[comm.rank0 + position]), op, now, cause)
    met.left += 1
    if met.left == comm.size:
        _over(state, number, now)
    return MET


@internal
def _over(state: State, number: int, now: int) -> None:
    """The last rank is done: write the collective down, forget it."""
    meta = state.meta
    met = state.rendezvous[number]
    record = state.collective_log[meta[COLLECTIVE_LOG_N]]
    meta[COLLECTIVE_LOG_N] += 1
    record.comm = met.comm
    record.iteration = met.iteration
    record.number = met.number
    record.plan = met.plan
    record.rank = met.rank
    record.op = met.op
    record.start = met.start
    record.ready = met.ready
    record.end = now
    comm = state.comms[met.comm]
    if comm.open == number:
        comm.open = met.next
    else:
        at = int(comm.open)
        while state.rendezvous[at].next != number:
            at = int(state.rendezvous[at].next)
        state.rendezvous[at].next = met.next
    # All rendezvous of a plan have as many words: the next one takes these.
    plan = state.plans[met.plan]
    state.words[met.words] = plan.free
    plan.free = met.words
    met.next = meta[RENDEZVOUS_FREE]
    meta[RENDEZVOUS_FREE] = number
