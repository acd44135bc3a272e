"""What a rank may start, compiled: its program's dependencies and streams, iteration after iteration."""

from __future__ import annotations

from cosim.engine.heap import push
from cosim.engine.state import LOG_N, NONE, OPS_DONE, ROUND, TOUCHED_N, State
from cosim.network.calendar import Records
from cosim.network.jit import internal


@internal
def touch(state: State, rank: int) -> None:
    """Look at a rank in the next round of starts."""
    # Once a round is enough: it will look at all that is ready by then.
    if state.ranks[rank].touched == 0:
        state.ranks[rank].touched = 1
        meta = state.meta
        meta[TOUCHED_N] = push(state.touched, meta[TOUCHED_N], meta[ROUND] + 1, rank, 0, 0, rank, 0)


@internal
def _before(rank: Records, one: int, other: int) -> bool:
    """Whether an operation goes before another: by iteration, then by number. Slots go round, so those before
    the oldest iteration's are of later ones.
    """
    if (one >= rank.origin) == (other >= rank.origin):
        return bool(one < other)
    return bool(one >= rank.origin)


@internal
def _make_ready(state: State, rank: Records, program: Records, op: int) -> bool:
    """Put an operation into the heap of its lane, the first of the oldest iteration first; whether it may
    start, for nothing holds its stream.
    """
    cells = state.cells
    lane_number = state.ops[program.op0 + op].lane
    lane = state.lanes[rank.lane0 + lane_number]
    base = rank.cell0 + state.lane_base[program.lane0 + lane_number]
    at = int(lane.count)
    lane.count += 1
    while at > 0:
        parent = (at - 1) >> 1
        if _before(rank, int(cells[base + parent].ready), op):
            break
        cells[base + at].ready = cells[base + parent].ready
        at = parent
    cells[base + at].ready = op
    # The last lane is no stream: nobody holds it.
    return bool(lane.busy == NONE or lane_number + 1 == program.lanes)


@internal
def take_ready(state: State, number: int, lane_number: int) -> int:
    """Take the first operation that is ready in a lane of a rank, which has one."""
    rank = state.ranks[number]
    cells = state.cells
    lane = state.lanes[rank.lane0 + lane_number]
    base = rank.cell0 + state.lane_base[state.programs[rank.program].lane0 + lane_number]
    lane.count -= 1
    count = int(lane.count)
    taken = int(cells[base].ready)
    last = int(cells[base + count].ready)
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        ready = int(cells[base + child].ready)
        if child + 1 < count and _before(rank, int(cells[base + child + 1].ready), ready):
            child += 1
            ready = int(cells[base + child].ready)
        if not _before(rank, ready, last):
            break
        cells[base + at].ready = ready
        at = child
    cells[base + at].ready = last
    return taken


@internal
def may_begin(state: State, number: int) -> bool:
    """Whether a rank has an iteration left to begin, and may now."""
    rank = state.ranks[number]
    job = state.jobs[rank.job]
    return bool(rank.iteration + 1 < job.iterations and rank.iteration + 1 - rank.oldest < job.open)


@internal
def begin(state: State, number: int, now: int) -> None:
    """Begin a rank's next iteration, which it may; an empty program ends as it begins."""
    rank = state.ranks[number]
    program = state.programs[rank.program]
    slots = 2 * state.jobs[rank.job].open - 1
    if rank.iteration == NONE:
        # No iteration comes before the first: nothing waits for one.
        for op in range(slots * program.ops):
            one = state.ops[program.op0 + op]
            state.cells[rank.cell0 + op].waits = one.waits - one.early
    rank.iteration += 1
    slot = rank.iteration % slots
    state.slots[rank.slot0 + slot].iteration = rank.iteration
    state.slots[rank.slot0 + slot].left = program.ops
    first = slot * program.ops
    # What depends on nothing waits for its iteration alone.
    for k in range(program.root0, program.root0 + program.roots):
        root = first + state.roots[k]
        waiting = state.cells[rank.cell0 + root]
        waiting.waits -= 1
        if waiting.waits == 0:
            _make_ready(state, rank, program, root)
    if program.ops > 0:
        touch(state, number)
    elif rank.oldest == rank.iteration:
        rank.finish = now
        _close(state, number, now)


@internal
def _close(state: State, number: int, now: int) -> None:
    """A rank's oldest iteration has ended, and with it those after it that ended before: have their slots
    ready for the next.
    """
    rank = state.ranks[number]
    program = state.programs[rank.program]
    job = state.jobs[rank.job]
    slots = 2 * job.open - 1
    while rank.oldest <= rank.iteration:
        slot = rank.oldest % slots
        if state.slots[rank.slot0 + slot].left > 0:
            break
        state.iteration_ends[job.end0 + rank.oldest * job.ranks + rank.number] = now
        first = slot * program.ops
        # The slot is the next iteration's to come: from now on, ends of iterations before that one count
        # here.
        for op in range(first, first + program.ops):
            state.cells[rank.cell0 + op].waits = state.ops[program.op0 + op].waits
        rank.oldest += 1
    rank.origin = rank.oldest % slots * program.ops


@internal
def end(state: State, number: int, op: int, now: int, cause: int) -> bool:
    """An operation ended: write it down, free its stream, let its successors follow; whether the rank's
    oldest iteration ended with it.
    """
    meta = state.meta
    rank = state.ranks[number]
    program = state.programs[rank.program]
    one = state.ops[program.op0 + op]
    cell = state.cells[rank.cell0 + op]
    slot = state.slots[rank.slot0 + one.slot]
    record = state.log[meta[LOG_N]]
    meta[LOG_N] += 1
    meta[OPS_DONE] += 1
    record.rank = number
    record.op = one.number
    record.iteration = slot.iteration
    record.start = cell.started
    record.end = now
    cell.started = NONE
    # Of the ends of a round; those of rounds before have let start what they could.
    if rank.cause_round != meta[ROUND] + 1:
        rank.cause_round = meta[ROUND] + 1
        rank.cause = 0
    rank.cause = max(rank.cause, cause)
    # Whether there is something to start: most ends let nothing follow, and to look costs as much as to end.
    starts = False
    if one.lane + 1 < program.lanes:
        lane = state.lanes[rank.lane0 + one.lane]
        lane.busy = NONE
        starts = lane.count > 0
    for k in range(one.first, one.last):
        successor = state.successors[k]
        waiting = state.cells[rank.cell0 + successor]
        waiting.waits -= 1
        if waiting.waits == 0 and _make_ready(state, rank, program, successor):
            starts = True
    slot.left -= 1
    rank.finish = now
    if starts:
        touch(state, number)
    # An iteration that ends before an older one keeps its slot until that has ended: slots are a ring.
    if slot.left > 0 or slot.iteration > rank.oldest:
        return False
    _close(state, number, now)
    return True
