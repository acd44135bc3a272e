"""The journal: operations and collectives as they end, and the columns made of them."""

from __future__ import annotations

import numpy as np

from cosim.engine.records import CollectiveRecord, OpRecords
from cosim.engine.tally import mix_columns
from cosim.network.flows import I64


class Journal:
    """Rows of ended operations; collectives."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int, int, int]] = []
        self.collectives: list[CollectiveRecord] = []

    @property
    def num_operations(self) -> int:
        """Operations that ended so far."""
        return len(self._rows)

    def ended(self, job: int, iteration: int, rank: int, op: int, start_ps: int, end_ps: int) -> None:
        """An operation ended."""
        self._rows.append((job, iteration, rank, op, start_ps, end_ps))

    def operations(self) -> tuple[OpRecords, tuple[int, int]]:
        """All, in the order in which they ended, and their part of the digest."""
        rows: I64 = np.array(self._rows, np.int64).reshape(-1, 6)
        rows = rows[np.lexsort((rows[:, 3], rows[:, 2], rows[:, 0], rows[:, 5]))]
        job, iteration, rank, op = (rows[:, c].astype(np.int32) for c in range(4))
        sums = mix_columns(*(rows[:, c] for c in range(6))) if len(rows) else (0, 0)
        return OpRecords(job, iteration, rank, op, rows[:, 4], rows[:, 5]), sums

    def ended_collectives(self) -> tuple[CollectiveRecord, ...]:
        """All, in the order in which they ended."""
        order = sorted(self.collectives, key=lambda c: (c.end_ps, c.job, c.iteration, c.op, c.ranks))
        return tuple(order)
