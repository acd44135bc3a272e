"""The flow store: owns tables, groups and dependencies of the flows in flight, for compiled loops.

One store serves two masters: a network that releases dependent flows by itself, and the engine where it
releases them (``release="caller"``). Both so follow the same rules (``dependencies``), and give the same
times, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.errors import NetworkError
from cosim.network.dependencies import (
    CELL,
    COMPLETED,
    DRAINED,
    GROUP,
    NEED_GROUPS,
    NEED_OUT,
    NEED_PAGES,
    NEED_POOL,
    NEED_WORK,
    OUT,
    PAGE,
    REPETITION,
    ROW,
    STARTED,
    STATE,
    SUCCESSOR,
    TABLE,
    WORK,
    Store,
    close_group,
    drain,
    find_flows,
    note,
    open_group,
    turn_round,
)
from cosim.network.flows import I32, I64, FlowGroup, FlowTable
from cosim.network.growing import ArrayLayout, GrowingArrays

__all__ = [
    "COMPLETED",
    "DRAINED",
    "NEED_GROUPS",
    "NEED_OUT",
    "NEED_PAGES",
    "NEED_POOL",
    "NEED_WORK",
    "STARTED",
    "FlowStore",
    "Store",
    "drain",
    "note",
]

_NONE = -1

_DTYPES: dict[str, Any] = {
    "state": STATE,
    "tables": TABLE,
    "rows": ROW,
    "successors": SUCCESSOR,
    "reps": REPETITION,
    "groups": GROUP,
    "pages": PAGE,
    "cells": CELL,
    "unused": np.int64,
    "work": WORK,
    "out": OUT,
}
_GROWS = {
    NEED_WORK: "work",
    NEED_OUT: "out",
    NEED_POOL: "cells",
    NEED_PAGES: "pages",
    NEED_GROUPS: "groups",
}

_FIRST_ROWS = dict.fromkeys(("rows", "groups", "pages", "cells", "work", "out"), 1024) | {"state": 1}
"""Of what is under way there is room before any of it is: a loop stops for each that is short."""
_FIRST = ArrayLayout({name: ((_FIRST_ROWS.get(name, 64),), np.dtype(kind)) for name, kind in _DTYPES.items()})


_NO_ROOM: dict[str, int] = {}


class FlowStore:
    """Owns the arrays, and grows them; compiled loops see them as a :class:`Store`."""

    def __init__(self) -> None:
        self._arrays = GrowingArrays(_FIRST.zeros())
        self._state = self._arrays["state"][0]
        # No repetition of any table has more cells: room for one is enough for a flow that is told.
        self._state["max_page"] = 1
        self._arrays["unused"][:] = _NONE
        self._used = {"tables": 0, "rows": 0, "successors": 0, "reps": 0}
        self._tables: dict[int, _NumberedTable] = {}
        self._open: dict[int, _NumberedTable] = {}
        self._view: Store | None = None
        self._seen = 0  # the stamp of the arrays that the view is of

    def view(self) -> Store:
        """The arrays as they are now; stale after anything here was called."""
        if self._view is None or self._seen != self._arrays.stamp:
            self._view, self._seen = Store.of(self._view, **self._arrays), self._arrays.stamp
        return self._view

    def _append(self, name: str, count: int) -> tuple[int, NDArray[Any]]:
        """(First, view) of ``count`` more entries."""
        ((first, rows),) = self._append_all({name: count})
        return first, rows

    def _append_all(
        self, counts: Mapping[str, int], room: dict[str, int] = _NO_ROOM
    ) -> list[tuple[int, NDArray[Any]]]:
        """The same of several; with ``room`` for so many of others."""
        used = self._used
        self._arrays.reserve_all({name: used[name] + count for name, count in counts.items()} | room)
        made = [(used[name], self._arrays[name][used[name] :][:count]) for name, count in counts.items()]
        for name, count in counts.items():
            used[name] += count
        return made

    def grow(self, what: int) -> None:
        """Double what a compiled function found too small."""
        self._arrays.reserve(_GROWS[what], max(4096, 2 * len(self._arrays[_GROWS[what]])))

    def reserve_work(self, count: int) -> None:
        """Make room to :func:`note` ``count`` more flows."""
        self._arrays.reserve("work", int(self._state["num_work"]) + count)

    def table(self, table: FlowTable) -> _NumberedTable:
        """Register a table, once."""
        known = self._tables.get(id(table))
        if known is not None:
            return known
        sizes, first = table.block_row[1:] - table.block_row[:-1], table.block_row[:-1]
        if not table.is_flat:
            sizes, first = sizes.repeat(table.block_repeat), first.repeat(table.block_repeat)
        needs = {"rows": table.num_rows, "reps": len(sizes), "tables": 1}
        (row0, rows), (rep0, reps), (number, tables) = self._append_all(needs)
        rows["src"], rows["dst"] = table.src, table.dst
        rows["size"], rows["delay"], rows["reaction"] = table.size_bytes, table.delay_ps, table.reaction_ps
        # Of each repetition the first flow's index: a flow is found in them by bisection.
        reps["rows"], reps["row"], reps["base"] = sizes, row0 + first, sizes.cumsum() - sizes
        if len(table.dep_distance):
            # Counted down as what it waits for happens; it starts at the last of them.
            rows["waits"] = np.diff(table.dep_ptr)
            self._add_successors(table, row0, rows)
        cells = 0
        # A flat group is under way as a whole: its cells are taken when it opens. Of repeated blocks, only
        # what is under way.
        pages = len(reps) if len(table.dep_distance) and (rows["waits"] > 1).any() else 0
        if pages and table.is_flat:
            cells = sum(_page_size(rows) for rows in sizes.tolist())
        elif pages:
            self._state["max_page"] = max(int(self._state["max_page"]), _page_size(int(sizes.max())))
        tables[0] = (table.num_flows, cells, _NONE, rep0, len(reps), pages, row0)
        made = _NumberedTable(table, number, row0)
        self._tables[id(table)] = made
        return made

    def single_flows(self, size_bytes: I64) -> tuple[int, int]:
        """Register tables of one flow each, from participant 0 to 1, to which the caller reacts at once;
        (number of the first, its row).
        """
        count = len(size_bytes)
        needs = dict.fromkeys(("rows", "reps", "tables"), count)
        pages = int(self._state["pages_used"]) + count
        (row0, rows), (rep0, reps), (number, tables) = self._append_all(needs, {"pages": pages})
        each = np.arange(count)
        rows["dst"], rows["size"] = 1, size_bytes
        reps["rows"], reps["row"] = 1, row0 + each
        tables["flows"], tables["free"], tables["reps"] = 1, _NONE, 1
        tables["rep"], tables["row"] = rep0 + each, row0 + each
        return number, row0

    def _add_successors(self, table: FlowTable, row0: int, rows: NDArray[Any]) -> None:
        all_of, of_completion = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        columns = (
            row0,
            table.block_row,
            table.block_repeat,
            table.block_base,
            table.dep_ptr,
            table.dep_distance,
            table.dep_kind,
        )
        # Twice: to count, and, with places made of the counts, to fill.
        total = turn_round(*columns, all_of, of_completion, np.empty(0, SUCCESSOR))
        first, successors = self._append("successors", total)
        last = np.cumsum(all_of)
        middle = last - all_of + of_completion
        rows["first"], rows["middle"], rows["last"] = first + last - all_of, first + middle, first + last
        turn_round(*columns, middle, last - all_of, successors)

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
        # It takes nothing before it has room for all: after growing, it is asked again from the beginning.
        while (status := int(open_group(self.view(), *what))) != DRAINED:
            self.grow(status)
        self._open[handle] = table
        return table

    def close(self, handle: int) -> None:
        """Forget a group whose flows have all completed."""
        self._open.pop(handle, None)
        close_group(self.view(), handle)

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
        wrong = find_flows(self._arrays["groups"], self._arrays["reps"], handle, index, rep, row)
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
