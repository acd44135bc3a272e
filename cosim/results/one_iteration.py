"""Operations of one iteration of a job: when each began and ended, what it followed, and who met whom."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine.programs import Naming, ReadyProgram, ready_programs
from cosim.engine.records import MessageRecords, OpRecords, Records
from cosim.engine.rows import rows_of_kinds
from cosim.workload.program import NO_STREAM, Operation, OpKind

I64 = NDArray[np.int64]
Place = tuple[int, int]
"""A rank of the job, and the number of an operation in its program."""
UNKNOWN = -1
"""Row of an operation that was not recorded, and when it began."""


def rows_of(records: OpRecords | MessageRecords, job: int, iteration: int) -> I64:
    """Rows of an iteration of a job."""
    return np.flatnonzero((records.job == job) & (records.iteration == iteration))


def rows_of_each(records: OpRecords | MessageRecords, iterations: I64) -> list[I64]:
    """Rows of one iteration of each job, ``iterations[job]``, found in one go."""
    if len(iterations) == 1:  # no column of the same length beside it, where a run is large
        return [np.flatnonzero(records.iteration == iterations[0])]
    mine = np.flatnonzero(records.iteration == iterations[records.job])
    return [mine[at] for at in rows_of_kinds(records.job[mine], len(iterations))]


class OneIteration:
    """Iteration ``iteration`` of job ``job``, which all its ranks ended.

    Parameters
    ----------
    records
        Of the run.
    job, iteration
        Numbers, from 0.
    rows
        Of the iteration, among the records of operations; looked for if not given.
    """

    def __init__(self, records: Records, job: int, iteration: int, rows: I64 | None = None) -> None:
        self.info = records.jobs[job]
        self.workload = self.info.workload
        ends, program_of = records.iteration_end_ps[job], self.workload.program_of
        self.start_ps = int(ends[iteration - 1].max()) if iteration else self.info.start_ps
        self.rank_ends: I64 = ends[iteration]
        self.end_ps = int(self.rank_ends.max())
        table, ops = self.workload.table, records.ops
        counts = np.diff(table.first)[program_of]
        mine = rows_of(ops, job, iteration) if rows is None else rows
        small = max(int(counts.sum()), len(ops.op)) < np.iinfo(np.int32).max
        kind: np.dtype[Any] = np.dtype(
            np.int32 if small else np.int64
        )  # as long as all operations, of which a path meets few
        self._base = np.concatenate([[0], np.cumsum(counts)]).astype(kind)
        self._row = np.full(int(self._base[-1]), UNKNOWN, kind)
        self._row[self._base[ops.rank[mine]] + ops.op[mine]] = mine
        self._ops = ops
        self._programs = ready_programs(self.info.whole_workload)
        self._groups: dict[tuple[int, Naming], Naming] = {}
        self._ends: dict[int, I64] = {}
        """When the operations of each rank that a path met ended."""

    @cached_property
    def _stream(self) -> I64:
        """The stream of each row of the table; each operation without one has one of its own."""
        table = self.workload.table
        limited = np.array([name != NO_STREAM for name in table.streams], np.bool_)[table.stream]
        return np.where(limited, table.stream, -1 - np.arange(len(table)))

    def operation(self, place: Place) -> Operation:
        """What the program says."""
        return self.workload.program(place[0]).operations[place[1]]

    def began(self, place: Place) -> int:
        """When it started, picoseconds, or :data:`UNKNOWN`."""
        return self._time(self._ops.start_ps, place)

    def ended(self, place: Place) -> int:
        """When it ended, picoseconds, or :data:`UNKNOWN`."""
        return self._time(self._ops.end_ps, place)

    def _time(self, times: I64, place: Place) -> int:
        row = self._row[self._base[place[0]] + place[1]]
        return UNKNOWN if row == UNKNOWN else int(times[row])

    def ending_at(self, rank: int, time_ps: int) -> list[Place]:
        """Operations of a rank that ended then."""
        if rank not in self._ends:
            mine = self._row[self._base[rank] : self._base[rank + 1]]
            known = np.flatnonzero(mine != UNKNOWN)
            self._ends[rank] = np.full(len(mine), UNKNOWN, np.int64)
            self._ends[rank][known] = self._ops.end_ps[mine[known]]
        return [(rank, op) for op in np.flatnonzero(self._ends[rank] == time_ps).tolist()]

    def before(self, place: Place) -> list[Place]:
        """What an operation waited for until the instant at which it started: dependencies, then its
        stream.
        """
        rank, op = place
        table = self.workload.table
        first = int(table.first[self.workload.program_of[rank]])
        row = first + op
        needed = set(table.dep[table.dep_first[row] : table.dep_first[row + 1]].tolist())
        ending = [one for _, one in self.ending_at(rank, self.began(place)) if one != op]
        on_stream = {one for one in ending if self._stream[first + one] == self._stream[row]}
        return [(rank, one) for one in ending if one in needed] + [
            (rank, one) for one in ending if one in on_stream - needed
        ]

    def members(self, place: Place) -> list[Place]:
        """The operations of one collective, rank by rank, with which its ranks take part in it."""
        rank, op = place
        program = self._program(rank)
        name, turn = program.naming[op], program.occurrence[op]
        if not name:
            return [place]
        if (rank, name) not in self._groups:
            by_axes = tuple(one for one in name if isinstance(one, str))
            self._groups[rank, name] = self.workload.mesh.group(rank, by_axes) if by_axes else name
        ranks = self._groups[rank, name]
        return [(int(one), self._program(int(one)).collective[name, turn]) for one in ranks]

    def _program(self, rank: int) -> ReadyProgram:
        return self._programs[int(self.workload.program_of[rank])]

    def other_end(self, place: Place) -> Place | None:
        """The send whose arrival ended a receive, or the receive that took a send; None: not in this
        iteration.
        """
        operation, (rank, _) = self.operation(place), place
        there = self._peer(rank, operation)
        wanted = OpKind.RECV if operation.kind is OpKind.SEND else OpKind.SEND
        for one in self.ending_at(there, self.ended(place)):
            other = self.operation(one)
            if other.kind is wanted and other.tag == operation.tag and self._peer(there, other) == rank:
                return one
        return None

    def _peer(self, rank: int, operation: Operation) -> int:
        peer = operation.peer
        assert peer is not None  # of a send or a receive
        if peer.rank is not None:
            return peer.rank
        mesh = self.workload.mesh
        where = mesh.coordinates(rank)
        where[peer.axis or ""] += peer.offset
        return mesh.rank(where)
