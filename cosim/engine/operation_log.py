"""Operations that ended, as the columns that results are made of: of all ranks, or of some of each job."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine.kept_columns import KeptColumn, SpilledColumn
from cosim.engine.records import OpRecords
from cosim.engine.state import LOG
from cosim.network.calendar import Records as Rows
from cosim.network.flows import I32, I64
from cosim.network.jit import compiled

_KINDS = np.int32, np.int32, np.int32, np.int32, np.int64, np.int64
"""Of the columns: job, iteration, rank, operation, start and end."""


def evenly(world: int, count: int | None) -> I64:
    """``count`` of a job's ranks, evenly spread from rank 0 on; all of them where there are no more, or None.

    >>> evenly(8, 3)
    array([0, 2, 5])
    """
    if count is None or count >= world:
        return np.arange(world, dtype=np.int64)
    return np.arange(count, dtype=np.int64) * world // count


class OperationLog:
    """Takes rows of :data:`~cosim.engine.state.LOG` as they fill up; 32 bytes are kept of each.

    Parameters
    ----------
    worlds
        How many ranks each job has.
    kept
        Of which of them operations are written down, job by job.
    expected
        How many these are, at most.
    spill
        A folder for what is written down; None: it is kept in memory.

    Raises
    ------
    ScenarioError
        The folder can't be written to, or is full; also of :meth:`take` and :meth:`records`.
    """

    def __init__(
        self, worlds: Sequence[int], kept: Sequence[I64], expected: int, spill: Path | None = None
    ) -> None:
        bases = [*accumulate(worlds, initial=0)]
        self._job, self._number = np.zeros(bases[-1], np.int32), np.arange(bases[-1], dtype=np.int32)
        for job, base in enumerate(bases[1:-1], 1):
            self._job[base : bases[job + 1]] = job
            self._number[base : bases[job + 1]] -= base
        self._keeps_all = [*map(len, kept)] == [*worlds]
        self._is_kept = np.zeros(0 if self._keeps_all else len(self._job), np.bool_)
        if not self._keeps_all:
            for base, ranks in zip(bases, kept, strict=False):
                self._is_kept[base + ranks] = True
        self._instant = np.zeros(0, LOG)
        self._columns = [
            KeptColumn(kind, expected) if spill is None else SpilledColumn(kind, spill) for kind in _KINDS
        ]
        self.end_ps = 0
        """When the last operation ended, whether it was kept or not."""

    def take(self, rows: NDArray[Any]) -> None:
        """Write down rows, in the order in which they came: by time, and by rounds within an instant. These
        may be overwritten after.
        """
        if not len(rows):
            return
        rows = self._with_instant(rows)
        end = np.ascontiguousarray(rows["end"])
        over = int(np.searchsorted(end, end[-1]))  # the last instant may go on
        self._instant = rows[over:].copy()
        self._write(rows[:over])

    def records(self, rows: NDArray[Any]) -> OpRecords:
        """All that were kept, these last rows among them, in the order in which they ended, then by job, rank
        and operation; let go of here.
        """
        self._write(self._with_instant(rows))
        self._instant = self._instant[:0]
        columns, self._columns = self._columns, []
        return OpRecords(*[column.whole() for column in columns])

    def close(self) -> None:
        """Let go of what :meth:`records` was not asked for."""
        for column in self._columns:
            column.close()
        self._columns = []

    def _with_instant(self, rows: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([self._instant, rows]) if len(self._instant) else rows

    def _write(self, rows: NDArray[Any]) -> None:
        if not len(rows):
            return
        self.end_ps = int(rows["end"][-1])
        if not self._keeps_all:
            rows = rows[self._is_kept[rows["rank"]]]
        columns: list[Any] = [np.empty(len(rows), kind) for kind in _KINDS]
        if not _split(rows, self._job, self._number, *columns):
            _split(_in_order(rows), self._job, self._number, *columns)
        for kept, column in zip(self._columns, columns, strict=True):
            kept.append(column)


@compiled
def _split(
    rows: Rows, jobs: I32, numbers: I32, job: I32, iteration: I32, rank: I32, op: I32, start: I64, end: I64
) -> bool:
    """Write rows as columns; whether those of each instant are in the order of (rank, operation)."""
    in_order = True
    for k in range(len(rows)):
        row = rows[k]
        job[k] = jobs[row.rank]
        iteration[k] = row.iteration
        rank[k] = numbers[row.rank]
        op[k] = row.op
        start[k] = row.start
        end[k] = row.end
        if k > 0 and row.end == rows[k - 1].end:
            before = rows[k - 1]
            if row.rank < before.rank or (row.rank == before.rank and row.op < before.op):
                in_order = False
    return in_order


def _in_order(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows in the order of time, by (rank, operation) within each instant.

    They come by time, and within an instant by rounds, nearly all of which have one: only the other instants
    are sorted.
    """
    end, who = np.ascontiguousarray(rows["end"]), (rows["rank"].astype(np.int64) << 32) | rows["op"]
    goes_on = end[1:] == end[:-1]
    late = np.flatnonzero(goes_on & (who[1:] < who[:-1])) + 1
    if not len(late):
        return rows
    starts = np.concatenate([[0], np.flatnonzero(~goes_on) + 1])
    several = np.zeros(len(starts), np.bool_)
    several[np.searchsorted(starts, late, side="right") - 1] = True
    chosen = np.flatnonzero(np.repeat(several, np.diff(starts, append=len(rows))))
    order = np.arange(len(rows))
    order[chosen] = chosen[np.lexsort((who[chosen], end[chosen]))]
    return rows[order]
