"""Who waits for whom among the flows of a group, and what may start once a flow has started or completed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from cosim.network.flows import ON_START, FlowGroup, FlowTable


class TableRows:
    """A :class:`~cosim.network.flows.FlowTable` as lists, with its dependencies turned round."""

    def __init__(self, table: FlowTable) -> None:
        self.num_flows = table.num_flows
        self.src, self.dst = table.src.tolist(), table.dst.tolist()
        self.size, self.channel = table.size_bytes.tolist(), table.channel.tolist()
        self.delay, self.reaction = table.delay_ps.tolist(), table.reaction_ps.tolist()
        self._row, self._base = table.block_row.tolist(), table.block_base.tolist()
        ends = table.dep_ptr.tolist()
        self.waits = np.diff(table.dep_ptr).tolist()
        # Rows that wait for each row: (how many flows later, for its completion or start, their row).
        self.followers: list[list[tuple[int, int, int]]] = [[] for _ in self.src]
        dependencies = list(zip(table.dep_distance.tolist(), table.dep_kind.tolist(), strict=True))
        for block in range(len(self._row) - 1):
            for row in range(*self._row[block : block + 2]):
                for distance, kind in dependencies[ends[row] : ends[row + 1]]:
                    for before in self._awaited(block, row, distance):
                        self.followers[before].append((distance, kind, row))

    def row_of(self, flow: int) -> int:
        """The row of a flow, whose block may be repeated."""
        block = bisect_right(self._base, flow) - 1
        first = self._row[block]
        return int(first + (flow - self._base[block]) % (self._row[block + 1] - first))

    def _awaited(self, block: int, row: int, distance: int) -> set[int]:
        """The rows that a row waits for: in a block's first repetitions another one than in later ones."""
        first, last = self._base[block : block + 2]
        found = set()
        for flow in range(first + row - self._row[block], last, self._row[block + 1] - self._row[block]):
            found.add(self.row_of(flow - distance))
            if flow - distance >= first:
                break
        return found


@dataclass(eq=False)
class Followed:
    """A group whose dependencies are followed."""

    group: FlowGroup
    rows: TableRows
    waiting: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Flows some of whose dependencies were met: how many are left, and the latest time so far."""

    def tell(self, flow: int, time_ps: int, kind: int) -> Iterator[tuple[int, int, int]]:
        """A flow starts or completes at ``time_ps``: (flow, start, cause) of each that may start now.

        A time may be told before the clock gets there: it only ever goes into the latest of several.
        """
        told = [(flow, time_ps, kind)]
        while told:
            flow, time_ps, kind = told.pop()
            for distance, of_kind, row in self.rows.followers[self.rows.row_of(flow)]:
                later = flow + distance
                if of_kind != kind or later >= self.rows.num_flows or self.rows.row_of(later) != row:
                    continue
                left, latest = self.waiting.pop(later, (self.rows.waits[row], 0))
                latest = max(latest, time_ps)
                if left > 1:
                    self.waiting[later] = left - 1, latest
                    continue
                start = latest + self.rows.delay[row]
                yield later, start, latest
                told.append((later, start, ON_START))


class KnownTables:
    """Tables as lists, each made once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[FlowTable, TableRows]] = {}

    def rows(self, table: FlowTable) -> TableRows:
        """The lists of a table."""
        if id(table) not in self._known:
            self._known[id(table)] = table, TableRows(table)
        return self._known[id(table)][1]
