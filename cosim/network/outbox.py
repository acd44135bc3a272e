"""What there is for a network since it was last asked: new groups and starts, in one batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cosim.network.flows import I32, I64, FlowBatch, FlowGroup


class Outbox:
    """Collects groups and starts, one by one or as columns, in the order given."""

    def __init__(self) -> None:
        self._groups: list[FlowGroup] = []
        self._single: list[tuple[int, int, int, int]] = []
        self._columns: list[tuple[I32, I64, I64, I64]] = []

    @property
    def is_empty(self) -> bool:
        """Nothing to give."""
        return not (self._groups or self._single or self._columns)

    def open(self, group: FlowGroup) -> None:
        """Make a group known."""
        self._groups.append(group)

    def start(self, handle: int, index: int, start_ps: int, cause_ps: int) -> None:
        """Start one flow."""
        self._single.append((handle, index, start_ps, cause_ps))

    def start_many(self, handle: I32, index: I64, start_ps: I64, cause_ps: I64) -> None:
        """Start flows."""
        self._columns.append((handle, index, start_ps, cause_ps))

    def add(self, batch: FlowBatch) -> None:
        """All of a batch."""
        self._groups += batch.groups
        if len(batch.start_handle):
            self._columns.append((batch.start_handle, batch.start_index, batch.start_ps, batch.cause_ps))

    def take(self) -> FlowBatch:
        """All of it, as one batch; the outbox is empty afterwards."""
        if self.is_empty:
            return FlowBatch()
        columns = self._columns
        if self._single:
            rows: NDArray[np.int64] = np.array(self._single, np.int64)
            columns = [*columns, (rows[:, 0].astype(np.int32), rows[:, 1], rows[:, 2], rows[:, 3])]
        groups = self._groups
        self._groups, self._single, self._columns = [], [], []
        if not columns:
            return FlowBatch(groups)
        if len(columns) == 1:
            return FlowBatch(groups, *columns[0])
        return FlowBatch(
            groups,
            np.concatenate([c[0] for c in columns]),
            np.concatenate([c[1] for c in columns]),
            np.concatenate([c[2] for c in columns]),
            np.concatenate([c[3] for c in columns]),
        )
