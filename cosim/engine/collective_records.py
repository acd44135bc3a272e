"""Records of collectives, as columns that show themselves as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from cosim.engine.engine import Engine
from cosim.engine.groups import Comm, Planned
from cosim.engine.programs import ReadyJob
from cosim.engine.records import I64, CollectiveRecord
from cosim.engine.rows import order_of_rows
from cosim.kernel import record
from cosim.workload.program import Operation


def kinds(*columns: NDArray[Any]) -> tuple[I64, I64]:
    """(A row of each kind, the first of it; the kind of each row): int64[kinds], int64[rows].

    Columns hold whole numbers from 0 on. Kinds are numbered in the order in which they first come.

    >>> kinds(np.array([7, 3, 7, 7]), np.array([0, 0, 1, 0]))
    (array([0, 1, 2]), array([0, 1, 2, 0]))
    """
    rows = len(columns[0])
    kind, count = np.zeros(rows, np.int64), 1
    for column in columns:
        values, most = _numbered(column, int(column.max(initial=0)) + 1)
        kind, count = (values, most) if count == 1 else _numbered(kind * most + values, count * most)
    first = np.full(count if rows else 0, rows, np.int64)
    first[kind[::-1]] = np.arange(rows)[::-1]  # of several, the last one written stays
    order = np.argsort(first)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return first[order], number[kind]


def _numbered(values: NDArray[Any], limit: int) -> tuple[I64, int]:
    """Values below ``limit`` numbered without gaps, in their order; how many there are. By a table where it
    is no longer than the values, which takes a fraction of the time of sorting them.
    """
    if limit > 4 * len(values):
        found = np.unique(values)
        return np.searchsorted(found, values), max(len(found), 1)
    is_there = np.zeros(limit, np.bool_)
    is_there[values] = True
    number = np.cumsum(is_there) - 1
    return number[values], max(int(is_there.sum()), 1)


def _by_time(rows: NDArray[Any], job: I64, group: I64) -> I64:
    """Positions of rows by their end; those of an instant by job, iteration, number and group."""
    found: I64 = rows["end"].argsort(kind="stable")  # those that were repeated are out of order
    is_later = np.ones(len(rows) + 1, np.bool_)
    is_later[1:-1] = np.diff(rows["end"][found]) != 0
    # Only rows of an instant have to be compared, and mostly there is one.
    tied = np.flatnonzero(~(is_later[:-1] & is_later[1:]))
    at, instant = found[tied], np.cumsum(is_later[:-1])[tied]
    found[tied] = at[order_of_rows(instant, job[at], rows["iteration"][at], rows["number"][at], group[at])]
    return found


class CollectiveRecords(Sequence[CollectiveRecord]):
    """Collectives that ended, in the order in which they did. A row is made when it is looked at."""

    def __init__(
        self,
        rows: NDArray[Any],
        comms: Sequence[Comm],
        plans: Sequence[Planned],
        jobs: Sequence[ReadyJob],
        ranks: NDArray[Any],
    ) -> None:
        self._rows = rows
        self._comms = comms
        self._plans = plans
        self._jobs = jobs
        self._numbers, self._programs = ranks["number"].copy(), ranks["program"].copy()

    @classmethod
    @cache
    def none(cls) -> CollectiveRecords:
        """The records of a run that has no collectives."""
        return cls(np.zeros(0, record("ended_collective")), (), (), (), np.zeros(0, record("rank")))

    @classmethod
    def of(cls, engine: Engine) -> CollectiveRecords:
        """Those of a run, taken out of it."""
        rows, comms = engine.columns.collectives(), engine.groups.comms
        job = np.array([comm.job for comm in comms], np.int64)
        # Ties go by the group's ranks, as tuples do.
        by_ranks = sorted(range(len(comms)), key=lambda k: comms[k].group.ranks)
        order = np.empty(len(comms), np.int64)
        order[by_ranks] = np.arange(len(comms))
        rows = rows[_by_time(rows, job[rows["comm"]], order[rows["comm"]])]
        ranks = engine.columns.ranks[: engine.columns.used("ranks")]
        return cls(rows, comms, engine.groups.planned, engine.jobs, ranks)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[CollectiveRecord]:
        for row in self._rows.tolist():
            yield self._record(*row)

    @overload
    def __getitem__(self, at: int) -> CollectiveRecord: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[CollectiveRecord, ...]: ...

    def __getitem__(self, at: int | slice) -> CollectiveRecord | tuple[CollectiveRecord, ...]:
        if isinstance(at, slice):
            return tuple(self._record(*row) for row in self._rows[at].tolist())
        return self._record(*self._rows[at].item())

    def kinds(self, *names: str) -> tuple[I64, I64]:
        """(A row of each kind, the kind of each row), where rows of a kind have equal ``names`` of ``comm``,
        ``plan``, ``program`` and ``op``. Kinds are numbered in the order in which they first come.
        """
        columns = (
            self._programs[self._rows["rank"]] if name == "program" else self._rows[name] for name in names
        )
        return kinds(*columns)

    def operations(self, rows: I64) -> list[Operation]:
        """The operation that some rows are of."""
        mine = self._rows[rows]
        places = zip(
            mine["comm"].tolist(), self._numbers[mine["rank"]].tolist(), mine["op"].tolist(), strict=True
        )
        jobs, comms = self._jobs, self._comms
        return [jobs[comms[comm].job].program(rank).operations[op] for comm, rank, op in places]

    def column(self, name: str) -> I64:
        """``iteration``, ``number`` (a record's ``op``), ``start``, ``ready`` or ``end`` of each row."""
        return self._rows[name].astype(np.int64, copy=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"<{len(self)} collectives>"

    def _record(
        self,
        start: int,
        ready: int,
        end: int,
        comm: int,
        iteration: int,
        number: int,
        plan: int,
        rank: int,
        op: int,
    ) -> CollectiveRecord:
        group, job = self._comms[comm].group, self._jobs[self._comms[comm].job]
        planned = self._plans[plan]
        operation = job.program(int(self._numbers[rank])).operations[op]
        return CollectiveRecord(
            job=job.number,
            iteration=iteration,
            op=number,
            name=operation.name,
            collective=operation.collective,
            algorithm=planned.plan.algorithm,
            ranks=group.ranks,
            size_bytes=operation.size_bytes,
            messages=planned.num_messages,
            start_ps=start,
            ready_ps=ready,
            end_ps=end,
            copies=job.info.copies * len(group.ranks) // len(group.members),
            folded=len(group.members) // len(group.ranks),
        )
