"""Operations that ended, as the columns that results are made of: of all ranks, or of some of each job."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import OpRecords
from cosim.kernel import Columns, kernel
from cosim.network.flows import I64
from cosim.units import NEVER

_KINDS = {
    "job": np.int32,
    "iteration": np.int32,
    "rank": np.int32,
    "op": np.int32,
    "start": np.int64,
    "end": np.int64,
}


def marked(worlds: Sequence[int], kept: Sequence[I64]) -> NDArray[np.int8]:
    """Whether each rank's operations are kept, job by job; empty where those of all are.

    >>> marked([2, 3], [np.array([0]), np.array([0, 2])])
    array([1, 0, 1, 0, 1], dtype=int8)
    """
    found = np.zeros(0 if [*map(len, kept)] == [*worlds] else sum(worlds), np.int8)
    if len(found):
        for base, ranks in zip(accumulate(worlds, initial=0), kept, strict=False):
            found[base + ranks] = True
    return found


def evenly(world: int, count: int | None) -> I64:
    """``count`` of a job's ranks, evenly spread from rank 0 on; all of them where there are no more, or None.

    >>> evenly(8, 3)
    array([0, 2, 5])
    """
    if count is None or count >= world:
        return np.arange(world, dtype=np.int64)
    return np.arange(count, dtype=np.int64) * world // count


class KeptOperations(Columns):
    """Operations that ended, as the kernel writes them down."""


class OperationLog:
    """Takes rows of ``ended_operation`` as they fill up; 32 bytes are kept of each.

    Parameters
    ----------
    worlds
        How many ranks each job has.
    expected
        How many operations are written down, at most.
    spill
        A folder for what is written down; None: it is kept in memory.
    grows
        There may be more than expected.

    Raises
    ------
    ScenarioError
        The folder can't be written to, or is full; also of :meth:`take` and :meth:`records`.
    """

    def __init__(
        self,
        worlds: Sequence[int],
        expected: int,
        spill: Path | None = None,
        *,
        grows: bool = False,
    ) -> None:
        bases = [*accumulate(worlds, initial=0)]
        jobs = np.repeat(np.arange(len(worlds), dtype=np.int32), worlds)
        numbers = np.arange(len(jobs), dtype=np.int32) - np.array(bases, np.int32)[jobs]
        self._columns = KeptOperations(jobs=jobs, numbers=numbers)
        self._grows = grows
        self._files: list[SpilledColumn] = []
        if spill is None:  # what is not written to costs nothing
            self._columns.put(**{name: np.empty(expected, kind) for name, kind in _KINDS.items()})
        else:
            from cosim.engine.spilled_column import SpilledColumn

            self._files = [SpilledColumn(kind, spill) for kind in _KINDS.values()]

    def add(self, world: int) -> None:
        """Take operations of one more job, too."""
        columns = self._columns
        jobs = int(columns.jobs.max(initial=-1)) + 1
        columns.put(
            jobs=np.append(columns.jobs, np.full(world, jobs, np.int32)),
            numbers=np.append(columns.numbers, np.arange(world, dtype=np.int32)),
        )
        self._grows = True

    def take(self, rows: NDArray[Any], settled_ps: int = NEVER) -> int:
        """Write down rows that ended before ``settled_ps``: no other comes that did.

        The others are left, at the beginning; how many they are.
        """
        columns = self._columns
        for name in _KINDS:  # of driven jobs nobody knows before how many there will be
            columns.lengthen(name, columns.count + len(rows) if self._files or self._grows else 0)
        left = int(kernel.keep_operations(columns, len(rows), rows, settled_ps))
        for name, file in zip(_KINDS, self._files, strict=False):
            file.append(getattr(columns, name)[: columns.count])
        if self._files:
            columns.count = 0
        return left

    def records(self, rows: NDArray[Any]) -> OpRecords:
        """All that were kept, these last rows among them, in the order in which they ended, then by job, rank
        and operation; let go of here.
        """
        self.take(rows)
        files, self._files = self._files, []
        if files:
            return OpRecords(*[file.whole() for file in files])
        return OpRecords(*[getattr(self._columns, name)[: self._columns.count] for name in _KINDS])

    def close(self) -> None:
        """Let go of what :meth:`records` was not asked for."""
        for file in self._files:
            file.close()
        self._files = []
