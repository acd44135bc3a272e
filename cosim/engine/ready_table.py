"""A workload's operations made ready to run, as columns: successors instead of dependencies, and lanes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cosim.engine.slots import SlotRows, Slots, in_slots
from cosim.errors import WorkloadError
from cosim.network.flows import I32, I64
from cosim.workload.program import NO_STREAM, Workload
from cosim.workload.table import OperationTable


@dataclass(frozen=True, eq=False, slots=True)
class ReadyTable:
    """What starts what within an iteration, by rows of the table.

    ``waits[row]`` operations must have ended; when row ends, those from ``successor_first[row]`` up to
    ``successor_first[row + 1]`` wait for one less: numbers within its program. ``roots`` wait for none, those
    of program p from ``root_first[p]`` on. ``lane[row]``: position among the streams of its program, in
    ascending order of names, the last of ``lanes[p]`` without limit; ``lane_base`` has how many operations of
    the program are in lanes before, those of program p from ``lane_first[p]`` on.
    """

    table: OperationTable
    waits: I64
    successor_first: I64
    successor: I32
    root_first: I64
    roots: I32
    lane: I64
    lanes: I64
    lane_first: I64
    lane_base: I32

    def in_slots(self, slots: Slots) -> SlotRows:
        """The operations once for each slot of a job, lags and all."""
        before = np.repeat(np.arange(len(self.table)), np.diff(self.successor_first))
        after = self.table.first[self.table.program[before]] + self.successor
        return in_slots(self.table, before, after, slots)

    def of(self, program: int) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        """How many operations each one of a program waits for, and those that wait for it."""
        first, last = self.table.first[program : program + 2].tolist()
        ends = self.successor_first[first : last + 1].tolist()
        after = self.successor[ends[0] : ends[-1]].tolist()
        each = (tuple(after[a - ends[0] : b - ends[0]]) for a, b in pairwise(ends))
        return tuple(self.waits[first:last].tolist()), tuple(each)


def ready_table(workload: Workload) -> ReadyTable:
    """Turn the dependencies of a workload's programs round.

    Raises
    ------
    WorkloadError
        A dependency on an operation that isn't there.
    """
    table = workload.table
    base = table.first[table.program]
    row = np.repeat(np.arange(len(table)), np.diff(table.dep_first))
    _check(workload, row)
    # Both rows in one number: sorting these groups successors by what they wait for, and drops what is said
    # twice, in one go.
    pair = np.unique((base[row] + table.dep) * max(len(table), 1) + row)
    before, after = np.divmod(pair, max(len(table), 1))
    waits = np.bincount(after, minlength=len(table))
    roots = np.flatnonzero(waits == 0)
    return ReadyTable(
        table,
        waits,
        _starts(np.bincount(before, minlength=len(table))),
        (after - base[after]).astype(np.int32),
        _starts(np.bincount(table.program[roots], minlength=table.num_programs)),
        (roots - base[roots]).astype(np.int32),
        *_lanes(table),
    )


def _lanes(table: OperationTable) -> tuple[I64, I64, I64, I32]:
    """``lane``, ``lanes``, ``lane_first`` and ``lane_base`` of :class:`ReadyTable`."""
    limited = sorted({*table.streams} - {NO_STREAM})
    order = {name: k for k, name in enumerate(limited)}
    number = np.array([order.get(name, len(limited)) for name in table.streams], np.int64)
    width, programs = len(limited) + 1, np.arange(table.num_programs)
    unlimited = programs * width + width - 1  # every program has that lane, if only for nothing
    key = table.program * np.int64(width) + (number[table.stream] if len(table) else 0)
    unique, place, count = np.unique(
        np.concatenate([key, unlimited]), return_inverse=True, return_counts=True
    )
    count[place[len(table) :]] -= 1
    program = unique // width
    lanes = np.bincount(program, minlength=table.num_programs)
    first = _starts(lanes)[:-1]
    # From where a rank's cells begin: so it is the same for all ranks of a program.
    base = np.cumsum(count) - count - table.first[program]
    return place[: len(table)] - first[table.program], lanes, first, base.astype(np.int32)


def _starts(lengths: I64) -> I64:
    """int64[n + 1]: where each of parts of these lengths begins, and the end."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def _check(workload: Workload, row: I64) -> None:
    table = workload.table
    own, count = row - table.first[table.program[row]], np.diff(table.first)[table.program[row]]
    wrong = (table.dep < 0) | (table.dep >= count) | (table.dep == own)
    if not wrong.any():
        return
    at = int(wrong.argmax())
    number, op = int(table.program[row[at]]), int(own[at])
    program = workload.programs[number]
    raise WorkloadError(
        f"program {program.name!r}: operation {op} {program.operations[op].name!r} depends on "
        f"{table.dep[at]}, which is not another of its {count[at]} operations"
    )
