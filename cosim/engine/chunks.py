"""A collective's chunks, phases and queues on each of its ranks, compiled.

A rank brings its chunks in order; each waits in the queue that its phase names. At most ``active`` phases
run in a queue of a rank at once. There is one order on all ranks: that in which each phase first came to the
queue on any of them. A phase that comes may begin while there is a place for it and for each one before it
that has yet to come. Where ranks are in step, or there are places enough, this is first come, first served,
as in ASTRA-sim; elsewhere, first come on each rank could have chunks wait for each other in a circle. A
phase's flows exist from its first rank's arrival to its last one's exit.

Words of a rendezvous of n ranks, with q queues and p parts (chunk by chunk, phase by phase): n operations by
position (NONE: has not come; -2 - operation: is done), n counts of chunks left, the handle of each part's
sub-groups; and, where there is more than one part, q lengths of the queues' orders, q times p places of
those, p flags of parts that are in one, n times q counts of phases running, n times q of those begun in
order, n times p states (0, WAITING in its queue, or begun AHEAD of its turn).
"""

from __future__ import annotations

from cosim.engine.flows import let_go, open_flows, start_flow
from cosim.engine.state import ENTER_N, NONE, OF_COLLECTIVE, PUMP_N, State
from cosim.network.calendar import Records
from cosim.network.jit import internal, once

WAITING, AHEAD = 1, 2


@once
def _queues_at(plan: Records, words: int) -> int:
    """Where the words about queues begin."""
    return int(words + 2 * plan.ranks + plan.instances)


@internal
def come(state: State, number: int, position: int) -> None:
    """A rank is here, with its chunks."""
    one = state.rendezvous[number]
    plan = state.plans[one.plan]
    # A single part has nothing to wait behind: no queue is kept of it.
    if plan.chunks * plan.phases == 1:
        _enter_later(state, number, 0, position)
        return
    for chunk in range(plan.chunks):
        part = chunk * plan.phases
        _queue(state, number, part, position)
        _pump_later(state, number, int(state.parts[plan.part0 + part].queue), position)


@internal
def _enter_later(state: State, number: int, part: int, position: int) -> None:
    task = state.enters[state.meta[ENTER_N]]
    task.owner = number
    task.part = part
    task.position = position
    state.meta[ENTER_N] += 1


@internal
def _pump_later(state: State, number: int, queue: int, position: int) -> None:
    task = state.pumps[state.meta[PUMP_N]]
    task.owner = number
    task.part = queue
    task.position = position
    state.meta[PUMP_N] += 1


@internal
def _queue(state: State, number: int, part: int, position: int) -> None:
    """A rank's part comes to its queue."""
    plan = state.plans[state.rendezvous[number].plan]
    words = state.words
    queues = _queues_at(plan, state.rendezvous[number].words)
    parts = plan.chunks * plan.phases
    order = queues + plan.queues
    ordered = order + plan.queues * parts
    states = ordered + parts + 2 * plan.ranks * plan.queues
    words[states + position * parts + part] = WAITING
    if words[ordered + part] == 0:
        # The first rank that brings it gives it its place in the order of all ranks.
        words[ordered + part] = 1
        queue = state.parts[plan.part0 + part].queue
        words[order + queue * parts + words[queues + queue]] = part
        words[queues + queue] += 1


@internal
def pump(state: State, number: int, queue: int, position: int) -> None:
    """Begin what has come to a queue of a rank, while places are left for all that come before it."""
    plan = state.plans[state.rendezvous[number].plan]
    words = state.words
    queues = _queues_at(plan, state.rendezvous[number].words)
    parts = plan.chunks * plan.phases
    order = queues + plan.queues + queue * parts
    running = queues + plan.queues + plan.queues * parts + parts + position * plan.queues + queue
    begun = running + plan.ranks * plan.queues
    states = (
        queues + plan.queues + plan.queues * parts + parts + 2 * plan.ranks * plan.queues + position * parts
    )
    length = words[queues + queue]
    at = words[begun]
    kept = 0
    while at < length and words[running] + kept < plan.active:
        part = words[order + at]
        if words[states + part] == WAITING:
            words[states + part] = AHEAD
            words[running] += 1
            _enter_later(state, number, part, position)
        elif words[states + part] != AHEAD:
            kept += 1  # a place for what has yet to come
        at += 1
    # What has begun up to a gap is out of the way for good: the next look begins behind it.
    while words[begun] < length and words[states + words[order + words[begun]]] == AHEAD:
        words[states + words[order + words[begun]]] = 0
        words[begun] += 1


@internal
def enter(state: State, number: int, part: int, position: int, now: int) -> None:
    """A rank begins a part: its arrival starts, in flows that the first one opens."""
    one = state.rendezvous[number]
    plan = state.plans[one.plan]
    phase = state.parts[plan.part0 + part]
    place = state.where[phase.where0 + position]
    sub = state.subs[phase.sub0 + place.sub]
    slot = one.words + 2 * plan.ranks + phase.instance0 + place.sub
    handle = int(state.words[slot])
    # Who is first opens the flows of all of a sub-group; each rank starts its own.
    if handle == NONE:
        # Their names say what they are, not when they were opened: digests and ties go by names.
        job = int(state.ranks[one.rank].job)
        key_high = (job << 51) | (int(one.iteration) << 31) | int(one.number)
        key_low = (int(sub.lowest) << 44) | (part << 32)
        iteration = int(one.iteration)
        handle = open_flows(state, int(sub.binding), key_high, key_low, OF_COLLECTIVE, number, iteration)
        state.words[slot] = handle
        opened = state.handles[handle]
        opened.part = part
        opened.sub = place.sub
        opened.exits = sub.size
    start_flow(state, handle, int(place.place), now, now)


@internal
def leave_part(state: State, handle: int, index: int) -> int:
    """A rank exits a part: on to its next phase, and let the next chunk in. Its position if that was its last
    chunk, else NONE.
    """
    flow = state.handles[handle]
    number = int(flow.owner)
    one = state.rendezvous[number]
    plan = state.plans[one.plan]
    part = int(flow.part)
    phase = state.parts[plan.part0 + part]
    position = int(state.positions[state.subs[phase.sub0 + flow.sub].position0 + index])
    flow.exits -= 1
    # The engine is told of all that it waits for: what is left of the group is the network's.
    if flow.exits == 0:
        state.words[one.words + 2 * plan.ranks + phase.instance0 + flow.sub] = NONE
        let_go(state, handle)
    is_last = (part + 1) % plan.phases == 0
    if is_last:
        left = one.words + plan.ranks + position
        state.words[left] -= 1
        if state.words[left] == 0:
            return position
    if plan.chunks * plan.phases > 1:
        queues = _queues_at(plan, one.words)
        parts = plan.chunks * plan.phases
        running = queues + plan.queues + plan.queues * parts + parts + position * plan.queues
        state.words[running + phase.queue] -= 1
        if is_last:
            _pump_later(state, number, int(phase.queue), position)
        else:
            # As ASTRA-sim: into the next queue first, then the freed place is filled.
            _queue(state, number, part + 1, position)
            _pump_later(state, number, int(phase.queue), position)
            _pump_later(state, number, int(state.parts[plan.part0 + part + 1].queue), position)
    return NONE
