"""The flow store: owns tables, groups and dependencies of the flows in flight, for the kernel's loops.

One store serves two masters: a network that releases dependent flows by itself, and the engine where it
releases them (``release="caller"``). Both so follow the same rules (``dependencies``), and give the same
times, bit for bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.errors import NetworkError
from cosim.kernel import Columns, kernel, record
from cosim.network.flows import I32, I64, FlowGroup, FlowTable

COMPLETED: int = kernel.COMPLETED
STARTED: int = kernel.STARTED
_NONE = -1
_SIZES_OF_RUNS = 64


class Store(Columns):
    """Tables, groups and dependencies of flows, as the kernel has them."""


class FlowStore:
    """Tables and groups by name and handle, in front of a :class:`Store`."""

    def __init__(self) -> None:
        self.columns = Store(unused=np.full(_SIZES_OF_RUNS, _NONE))
        self._used = {"tables": 0, "rows": 0, "successors": 0, "reps": 0}
        self._tables: dict[int, _NumberedTable] = {}
        self._open: dict[int, _NumberedTable] = {}

    def _append(self, name: str, count: int) -> tuple[int, NDArray[Any]]:
        """(First, view) of ``count`` more entries."""
        first = self._used[name]
        self._used[name] = first + count
        return first, self.columns.lengthen(name, first + count)[first : first + count]

    def table(self, table: FlowTable) -> _NumberedTable:
        """Register a table, once."""
        known = self._tables.get(id(table))
        if known is not None:
            return known
        sizes, first = table.block_row[1:] - table.block_row[:-1], table.block_row[:-1]
        if not table.is_flat:
            sizes, first = sizes.repeat(table.block_repeat), first.repeat(table.block_repeat)
        row0, rows = self._append("rows", table.num_rows)
        rep0, reps = self._append("reps", len(sizes))
        number, tables = self._append("tables", 1)
        rows["src"], rows["dst"] = table.src, table.dst
        rows["size"], rows["delay"], rows["reaction"] = table.size_bytes, table.delay_ps, table.reaction_ps
        # Of each repetition the first flow's index: a flow is found in them by bisection.
        reps["rows"], reps["row"], reps["base"] = sizes, row0 + first, sizes.cumsum() - sizes
        if len(table.dep_distance):
            # Counted down as what it waits for happens; it starts at the last of them.
            rows["waits"] = np.diff(table.dep_ptr)
            self._add_successors(table, row0, rows)
            starts = self._cell_rows(table, rows["waits"])
            reps["cell_row"], reps["cell_rows"] = starts[0] + row0, starts[1]
        cells = 0
        # A flat group is under way as a whole: its cells are taken when it opens. Of repeated blocks, only
        # what is under way.
        pages = len(reps) if len(table.dep_distance) and (rows["waits"] > 1).any() else 0
        if pages and table.is_flat:
            cells = sum(_page_size(rows) for rows in reps["cell_rows"].tolist())
        tables[0] = (table.num_flows, cells, _NONE, rep0, len(reps), pages, row0)
        made = _NumberedTable(table, number, row0)
        self._tables[id(table)] = made
        return made

    @staticmethod
    def _cell_rows(table: FlowTable, waits: I32) -> tuple[I64, I64]:
        """The first row of each repetition that waits for several, and how many rows up to the last one."""
        several = np.flatnonzero(waits > 1)
        low, high = (np.searchsorted(several, table.block_row[k:][: len(table.block_repeat)]) for k in (0, 1))
        found = np.append(several, 0)
        count = np.where(high > low, found[high - 1] - found[np.minimum(low, len(several))] + 1, 0)
        first = np.where(high > low, found[np.minimum(low, len(several))], 0)
        return first.repeat(table.block_repeat), count.repeat(table.block_repeat)

    def single_flows(self, size_bytes: I64) -> tuple[int, int]:
        """Register tables of one flow each, from participant 0 to 1, to which the caller reacts at once;
        (number of the first, its row).
        """
        count = len(size_bytes)
        row0, rows = self._append("rows", count)
        rep0, reps = self._append("reps", count)
        number, tables = self._append("tables", count)
        each = np.arange(count)
        rows["dst"], rows["size"] = 1, size_bytes
        reps["rows"], reps["row"] = 1, row0 + each
        tables["flows"], tables["free"], tables["reps"] = 1, _NONE, 1
        tables["rep"], tables["row"] = rep0 + each, row0 + each
        return number, row0

    def _add_successors(self, table: FlowTable, row0: int, rows: NDArray[Any]) -> None:
        all_of, of_completion = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        columns = (
            self.columns,
            row0,
            len(table.block_repeat),
            table.block_row,
            table.block_repeat,
            table.block_base,
            table.dep_ptr,
            table.dep_distance,
            table.dep_kind,
        )
        # Twice: to count, and, with places made of the counts, to fill.
        total = kernel.turn_round(*columns, all_of, of_completion, False, np.empty(0, record("successor")))
        first, successors = self._append("successors", total)
        last = np.cumsum(all_of)
        middle = last - all_of + of_completion
        rows["first"], rows["middle"], rows["last"] = first + last - all_of, first + middle, first + last
        kernel.turn_round(*columns, middle, last - all_of, True, successors)

    def open(self, group: FlowGroup, path: int = 0, traits: int = 0) -> _NumberedTable:
        """Make a group known, whose row r (absolute) finds its links at ``path + r``.

        Raises
        ------
        NetworkError
            Its handle is still in use.
        """
        handle = group.handle
        if handle in self._open:
            raise NetworkError(f"flow group handle {handle} is still in use")
        table = self.table(group.table)
        what = handle, table.number, *group.key, path, traits, group.release == "network"
        kernel.open_group(self.columns, *what)
        self._open[handle] = table
        return table

    def close(self, handle: int) -> None:
        """Forget a group whose flows have all completed."""
        self._open.pop(handle, None)
        kernel.close_group(self.columns, handle)

    def open_handles(self) -> list[int]:
        """Handles in use, ascending."""
        return sorted(self._open)

    def locate(self, handle: I32, index: I64) -> tuple[I32, I32]:
        """(repetition, row), both absolute, of flows given by (handle, index).

        Raises
        ------
        NetworkError
            An unknown handle, or an index beyond its table.
        """
        rep, row = np.empty(len(handle), np.int32), np.empty(len(handle), np.int32)
        wrong = kernel.find_flows(self.columns, len(handle), handle, index, rep, row)
        if wrong != _NONE:
            one = int(handle[wrong])
            if one not in self._open:
                raise NetworkError(f"a flow of unknown group handle {one}")
            flows = self._open[one].table.num_flows
            raise NetworkError(f"flow index beyond the {flows} flows of group {one}")
        return rep, row


def _page_size(rows: int) -> int:
    return 1 << (rows - 1).bit_length()


class _NumberedTable(NamedTuple):
    """A registered table: its number, its first absolute row."""

    table: FlowTable
    number: int
    row0: int
