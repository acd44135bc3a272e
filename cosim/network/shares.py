"""A network's share of a table: the rows that it carries, as a table of their own, and numbers both ways."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.network.flows import I32, I64, ON_COMPLETION, FlowTable

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Share:
    """``table`` is what the network is given. ``rows``: the whole's row of each of its rows; None: all."""

    table: FlowTable
    whole: FlowTable
    rows: I64 | None = None
    base: I64 | None = None

    def inward(self, row: I64, index: I64) -> I64:
        """The network's number of the whole's flows, whose rows are given too."""
        if self.rows is None or self.base is None:
            return index
        block = np.searchsorted(self.whole.block_row, row, side="right") - 1
        count = np.diff(self.whole.block_row)
        repetition = (index - self.whole.block_base[block]) // count[block]
        edge = np.searchsorted(self.rows, self.whole.block_row)
        local = np.searchsorted(self.rows, row) - edge[:-1][block]
        return np.asarray(self.base[block] + repetition * np.diff(edge)[block] + local, np.int64)

    def outward(self, index: I64) -> I64:
        """The whole's number of the network's flows."""
        if self.rows is None or self.base is None:
            return index
        edge = np.searchsorted(self.rows, self.whole.block_row)
        mine, count = np.diff(edge), np.diff(self.whole.block_row)
        block = np.searchsorted(self.base, index, side="right") - 1
        repetition, local = np.divmod(index - self.base[block], mine[block])
        row = self.rows[edge[:-1][block] + local]
        offset = row - self.whole.block_row[block]
        return np.asarray(self.whole.block_base[block] + repetition * count[block] + offset, np.int64)


def releasing_reaction(table: FlowTable) -> I64:
    """How soon the caller may react to each row where it is the caller who releases dependents."""
    waits: Any = np.repeat(table.delay_ps, np.diff(table.dep_ptr))[table.dep_kind == ON_COMPLETION]
    return np.minimum(table.reaction_ps, waits.min()) if len(waits) else table.reaction_ps


def without_dependencies(table: FlowTable) -> FlowTable:
    """The same flows, each to be given when its time comes by a caller who releases them."""
    return replace(
        table,
        delay_ps=np.zeros(table.num_rows, np.int64),
        reaction_ps=releasing_reaction(table),
        dep_ptr=np.zeros(table.num_rows + 1, np.int64),
        dep_distance=np.empty(0, np.int64),
        dep_kind=np.empty(0, np.int8),
    )


def share_of(table: FlowTable, chosen: Mask, released: bool) -> Share:
    """Some rows, without their dependencies: each flow is given when its time comes.

    ``released``: dependents are released by the caller, who then reacts after the least of their delays.
    """
    rows = np.flatnonzero(chosen)
    reaction = releasing_reaction(table) if released else table.reaction_ps
    edge = np.searchsorted(rows, table.block_row)
    mine = np.diff(edge)
    base = np.zeros(len(mine) + 1, np.int64)
    np.cumsum(mine * table.block_repeat, out=base[1:])
    some = mine > 0
    given = FlowTable(
        num_participants=table.num_participants,
        src=_some(table.src, rows),
        dst=_some(table.dst, rows),
        size_bytes=table.size_bytes[rows],
        channel=_some(table.channel, rows),
        delay_ps=np.zeros(len(rows), np.int64),
        reaction_ps=reaction[rows],
        dep_ptr=np.zeros(len(rows) + 1, np.int64),
        dep_distance=np.empty(0, np.int64),
        dep_kind=np.empty(0, np.int8),
        block_row=np.concatenate([edge[:1], edge[1:][some]]).astype(np.int64),
        block_repeat=table.block_repeat[some],
    )
    return Share(given, table, rows, base)


def _some(column: I32, rows: I64) -> I32:
    return np.ascontiguousarray(column[rows], np.int32)
