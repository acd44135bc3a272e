"""What a rank may start, compiled: its program's dependencies and streams, iteration after iteration."""

from __future__ import annotations

from cosim.engine.heap import push
from cosim.engine.state import LOG_N, NONE, OPS_DONE, ROUND, TOUCHED_N, State
from cosim.network.calendar import Records
from cosim.network.jit import internal


@internal
def touch(state: State, rank: int) -> None:
    """Look at a rank in the next round of starts."""
    if state.ranks[rank].touched == 0:
        state.ranks[rank].touched = 1
        meta = state.meta
        meta[TOUCHED_N] = push(state.touched, meta[TOUCHED_N], meta[ROUND] + 1, rank, 0, 0, rank, 0)


@internal
def _make_ready(state: State, rank: Records, program: Records, op: int) -> None:
    """Put an operation into the heap of its lane, lowest number first."""
    cells = state.cells
    lane_number = state.ops[program.op0 + op].lane
    lane = state.lanes[rank.lane0 + lane_number]
    base = rank.cell0 + state.lane_base[program.lane0 + lane_number]
    at = int(lane.count)
    lane.count += 1
    while at > 0:
        parent = (at - 1) >> 1
        if cells[base + parent].ready <= op:
            break
        cells[base + at].ready = cells[base + parent].ready
        at = parent
    cells[base + at].ready = op


@internal
def take_ready(state: State, number: int, lane_number: int) -> int:
    """Take the lowest operation that is ready in a lane of a rank, which has one."""
    rank = state.ranks[number]
    cells = state.cells
    lane = state.lanes[rank.lane0 + lane_number]
    base = rank.cell0 + state.lane_base[state.programs[rank.program].lane0 + lane_number]
    lane.count -= 1
    count = int(lane.count)
    taken = int(cells[base].ready)
    last = cells[base + count].ready
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and cells[base + child + 1].ready < cells[base + child].ready:
            child += 1
        if cells[base + child].ready >= last:
            break
        cells[base + at].ready = cells[base + child].ready
        at = child
    cells[base + at].ready = last
    return taken


@internal
def begin(state: State, number: int, now: int) -> None:
    """Begin a rank's next iteration, if there is one; an empty program ends as it begins."""
    rank = state.ranks[number]
    program = state.programs[rank.program]
    job = state.jobs[rank.job]
    while rank.iteration + 1 < job.iterations:
        rank.iteration += 1
        if program.ops > 0:
            rank.left = program.ops
            for op in range(program.ops):
                state.cells[rank.cell0 + op].waits = state.ops[program.op0 + op].waits
            for k in range(program.root0, program.root0 + program.roots):
                _make_ready(state, rank, program, state.roots[k])
            touch(state, number)
            return
        state.iteration_ends[job.end0 + rank.iteration * job.ranks + rank.number] = now
        rank.finish = now


@internal
def end(state: State, number: int, op: int, now: int, cause: int) -> bool:
    """An operation ended: write it down, free its stream, let its successors follow; whether it was the
    iteration's last.
    """
    meta = state.meta
    rank = state.ranks[number]
    program = state.programs[rank.program]
    one = state.ops[program.op0 + op]
    cell = state.cells[rank.cell0 + op]
    record = state.log[meta[LOG_N]]
    meta[LOG_N] += 1
    meta[OPS_DONE] += 1
    record.rank = number
    record.op = op
    record.iteration = rank.iteration
    record.start = cell.started
    record.end = now
    cell.started = NONE
    rank.cause = max(rank.cause, cause)
    if one.lane + 1 < program.lanes:
        state.lanes[rank.lane0 + one.lane].busy = NONE
    for k in range(one.first, one.last):
        successor = state.successors[k]
        waiting = state.cells[rank.cell0 + successor]
        waiting.waits -= 1
        if waiting.waits == 0:
            _make_ready(state, rank, program, successor)
    rank.left -= 1
    rank.finish = now
    touch(state, number)
    if rank.left > 0:
        return False
    job = state.jobs[rank.job]
    state.iteration_ends[job.end0 + rank.iteration * job.ranks + rank.number] = now
    return True
