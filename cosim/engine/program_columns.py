"""Programs as columns, compiled: each operation's row once for each slot, successors instead of dependencies,
lanes, and which operations have the same end of messages.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cosim.engine.slots import Slots
from cosim.engine.state import ACCESS, COLLECTIVE, COMPUTE, NONE, RECV, REMOTE, SEND, State
from cosim.network.arrays import Arrays
from cosim.network.flows import I32, I64
from cosim.network.jit import compiled, inlined, internal
from cosim.workload.operation import NO_STREAM, STORE, Operation, OpKind
from cosim.workload.table import OperationTable

F64 = NDArray[np.float64]

_KIND = {OpKind.COLLECTIVE: COLLECTIVE, OpKind.SEND: SEND, OpKind.RECV: RECV}


class TableColumns(Arrays):
    """A job's operations as its table has them, and what is found of them on the way.

    ``first``, ``like``, ``duration``, ``size``, ``peer``, ``tag``, ``dep_first``, ``dep``, ``lagged`` are the
    table's; ``kind`` (as the engine has it), ``stream`` (in ascending order of names, the last is no stream)
    and ``end`` (ends of messages of the same number differ by columns alone; NONE: it is none) are by
    prototypes. Found are the ends of each program, one after the other from ``end_first[program]`` on, as the
    first of the rows that have it, ``end_row``. The others hold what is true for a moment.
    """

    first: I64
    like: I32
    duration: I64
    size: I64
    peer: I64
    tag: I64
    dep_first: I64
    dep: I32
    lagged: I64
    kind: I32
    stream: I32
    end: I32
    end_first: I32
    end_row: I32
    hashes: I32
    seen: I32
    count: I32
    lane: I32


def source_of(table: OperationTable, *, over_fabric: bool) -> TableColumns:
    """The operations of a table; with ``over_fabric`` accesses to remote memory are messages."""
    prototypes = table.prototypes
    access = REMOTE if over_fabric else ACCESS
    kind = [access if one.access else _KIND.get(one.kind, COMPUTE) for one in prototypes]
    streams = sorted({one.stream for one in prototypes} - {NO_STREAM})
    number = {name: k for k, name in enumerate(streams)}
    ends: dict[object, int] = {}
    end = [
        ends.setdefault(_said(one), len(ends)) if of in (SEND, RECV, REMOTE) else NONE
        for one, of in zip(prototypes, kind, strict=True)
    ]
    by_prototype = np.array(end, np.int32)
    most = int(np.count_nonzero(by_prototype[table.like] != NONE)) if ends else 0
    columns = (table.first, table.like, table.duration_ps, table.size_bytes, table.peer, table.tag)
    return TableColumns(
        *map(np.ascontiguousarray, (*columns, table.dep_first, table.dep, _each_once(table.lagged))),
        np.array(kind, np.int32),
        np.array([number.get(one.stream, len(streams)) for one in prototypes], np.int32),
        by_prototype,
        np.zeros(table.num_programs + 1, np.int32),
        np.empty(most, np.int32),
        room_to_hash(most),
        np.zeros(len(table) if len(table.dep) else 0, np.int32),
        *np.empty((2, len(streams) + 1), np.int32),
    )


def room_to_hash(count: int) -> I32:
    """Where numbers of up to ``count`` rows are found by what is in these; no more than half full."""
    return np.full(2 << count.bit_length(), NONE, np.int32)


def _said(one: Operation) -> object:
    peer = None if one.peer is None else (one.peer.axis, one.peer.offset)
    return one.kind, peer, one.channel, one.access == STORE


def _each_once(lagged: I64) -> I64:
    return np.unique(lagged, axis=0) if len(lagged) else lagged


def most_rows(source: TableColumns, slots: Slots) -> dict[str, int]:
    """How many rows :func:`write_programs` adds at most."""
    rows, programs = len(source.like), len(source.first) - 1
    return {
        "ops": slots.count * rows,
        "successors": slots.count * (len(source.dep) + len(source.lagged)),
        "programs": programs,
        "lane_base": min(programs * len(source.lane), rows + programs),
        "roots": rows,
    }


@inlined
def step(hashed: np.uint64, value: int) -> np.uint64:
    """The hash of what came before and a value more."""
    hashed = (hashed + np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    return hashed ^ (hashed >> np.uint64(29))


@internal
def _write_lanes(state: State, source: TableColumns, program: int, lane0: int, slots: int) -> int:
    """Number a program's streams, and say where each one's heap is in a rank's cells; how many lanes."""
    last = len(source.count) - 1
    for stream in range(last + 1):
        source.count[stream] = 0
    for row in range(source.first[program], source.first[program + 1]):
        source.count[source.stream[source.like[row]]] += 1
    lanes = 0
    before = 0
    for stream in range(last + 1):
        # The last is there in every program, if only for nothing.
        if source.count[stream] > 0 or stream == last:
            source.lane[stream] = lanes
            # All slots of a rank are ready in one lane: it has room for each operation once a slot.
            state.lane_base[lane0 + lanes] = slots * before
            before += source.count[stream]
            lanes += 1
    return lanes


@internal
def _end_of(source: TableColumns, row: int, begin: int, used: int) -> int:
    """The number among all ends of that of a row, whose program has those from ``begin`` up to ``used``; that
    is the number of a new one.
    """
    mask = len(source.hashes) - 1
    end = source.end[source.like[row]]
    hashed = step(
        step(step(step(np.uint64(begin), end), source.peer[row]), source.tag[row]), source.size[row]
    )
    place = np.int64(hashed >> np.uint64(32)) & mask
    while source.hashes[place] != NONE:
        found = source.hashes[place]
        other = source.end_row[found]
        if (
            found >= begin
            and source.peer[other] == source.peer[row]
            and source.tag[other] == source.tag[row]
            and source.size[other] == source.size[row]
            and source.end[source.like[other]] == end
        ):
            return int(found)
        place = (place + 1) & mask
    source.hashes[place] = used
    source.end_row[used] = row
    return used


@internal
def _write_rows(state: State, source: TableColumns, program: int, op0: int, used: int) -> int:
    """Write a program's operations, but for what waits for what; how many ends there are now."""
    begin = used
    base = source.first[program]
    for row in range(base, source.first[program + 1]):
        like = source.like[row]
        one = state.ops[op0 + row - base]
        one.kind = source.kind[like]
        one.duration = source.duration[row]
        one.size = source.size[row]
        one.lane = source.lane[source.stream[like]]
        one.number = row - base
        if source.end[like] != NONE:
            number = _end_of(source, row, begin, used)
            used = max(used, number + 1)
            one.ref = number - begin
    return used


@internal
def _count_waits(state: State, source: TableColumns, program: int, op0: int) -> int:
    """Count what each operation waits for (``waits``) and what waits for it (``last``) in an iteration;
    NONE, or which dependency is none.
    """
    base = source.first[program]
    length = source.first[program + 1] - base
    for number in range(length):
        row = base + number
        for k in range(source.dep_first[row], source.dep_first[row + 1]):
            other = source.dep[k]
            if not 0 <= other < length or other == number:
                return int(k)
            if source.seen[base + other] != row + 1:  # each once, however often it is said
                source.seen[base + other] = row + 1
                state.ops[op0 + number].waits += 1
                state.ops[op0 + other].last += 1
    return NONE


@internal
def _write_successors(
    state: State, source: TableColumns, program: int, op0: int, lagged: int, slots: int, successor0: int
) -> int:
    """Write what follows each operation, in every slot; where the next program's successors begin. Lagged
    dependencies of the program begin at ``lagged``.
    """
    base = source.first[program]
    length = source.first[program + 1] - base
    for slot in range(1, slots):
        for number in range(length):
            state.ops[op0 + slot * length + number] = state.ops[op0 + number]
            state.ops[op0 + slot * length + number].slot = slot
    at = successor0
    for op in range(op0, op0 + slots * length):
        one = state.ops[op]
        one.first = at
        at += one.last
        one.last = one.first
    for number in range(length):
        row = base + number
        for k in range(source.dep_first[row], source.dep_first[row + 1]):
            other = int(source.dep[k])
            if source.seen[base + other] != -1 - row:
                source.seen[base + other] = -1 - row
                for slot in range(slots):
                    one = state.ops[op0 + slot * length + other]
                    state.successors[one.last] = slot * length + number
                    one.last += 1
    while lagged < len(source.lagged) and source.lagged[lagged, 0] < base + length:
        number = source.lagged[lagged, 0] - base
        lag = source.lagged[lagged, 2]
        for slot in range(slots):
            one = state.ops[op0 + slot * length + source.lagged[lagged, 1]]
            state.successors[one.last] = (slot + lag) % slots * length + number
            one.last += 1
            # What lies before the first iteration has ended, as it were, when that is new.
            if lag > slot:
                state.ops[op0 + slot * length + number].early += 1
        lagged += 1
    return int(at)


@compiled
def write_programs(
    state: State,
    source: TableColumns,
    op0: int,
    successor0: int,
    lane0: int,
    root0: int,
    program0: int,
    slots: int,
) -> int:
    """Write a job's programs from these rows of the columns on, which are zeros; NONE, or which dependency is
    not another operation of its program.
    """
    lagged = 0
    ends = 0
    for program in range(len(source.first) - 1):
        length = source.first[program + 1] - source.first[program]
        lanes = _write_lanes(state, source, program, lane0, slots)
        ends = _write_rows(state, source, program, op0, ends)
        wrong = _count_waits(state, source, program, op0)
        if wrong != NONE:
            return wrong
        roots = 0
        for number in range(length):
            one = state.ops[op0 + number]
            if one.waits == 0:
                one.waits = 1  # the iteration's beginning
                state.roots[root0 + roots] = number
                roots += 1
        late = lagged
        while late < len(source.lagged) and source.lagged[late, 0] < source.first[program + 1]:
            state.ops[op0 + source.lagged[late, 0] - source.first[program]].waits += 1
            state.ops[op0 + source.lagged[late, 1]].last += 1
            late += 1
        successor0 = _write_successors(state, source, program, op0, lagged, slots, successor0)
        lagged = late
        made = state.programs[program0 + program]
        made.op0 = op0
        made.ops = length
        made.lanes = lanes
        made.lane0 = lane0
        made.root0 = root0
        made.roots = roots
        op0 += slots * length
        lane0 += lanes
        root0 += roots
        source.end_first[program + 1] = ends
    return NONE


@compiled
def add_bytes(sends: NDArray[np.bool_], first: I64, like: I32, size: I64, programs: F64) -> None:
    """Add up the bytes of each program's operations whose prototype ``sends``."""
    for program in range(len(programs)):
        for row in range(first[program], first[program + 1]):
            if sends[like[row]]:
                programs[program] += size[row]
