"""The flow store: owns tables, groups and dependencies of the flows in flight, for compiled loops.

One store serves two masters: a network that releases dependent flows by itself, and the engine where it
releases them (``release="caller"``). Both so follow the same rules (``dependencies``), and give the same
times, bit for bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.errors import NetworkError
from cosim.network.dependencies import (
    CELL,
    COMPLETED,
    DRAINED,
    GROUP,
    NEED_OUT,
    NEED_POOL,
    NEED_WORK,
    OUT,
    PAGE,
    REPETITION,
    ROW,
    STARTED,
    STATE,
    SUCCESSOR,
    WORK,
    Store,
    drain,
    drop_pages,
    find_flows,
    note,
    touch_page,
    turn_round,
)
from cosim.network.flows import I32, I64, FlowGroup, FlowTable

__all__ = [
    "COMPLETED",
    "DRAINED",
    "NEED_OUT",
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
_GROWS = {NEED_WORK: "work", NEED_OUT: "out", NEED_POOL: "cells"}


class FlowStore:
    """Owns the arrays, and grows them; compiled loops see them as a :class:`Store`."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {name: np.zeros(64, dtype) for name, dtype in _DTYPES.items()}
        self._arrays["state"] = np.zeros(1, STATE)
        self._state = self._arrays["state"][0]
        self._state["max_page"] = 1
        self._arrays["unused"][:] = _NONE
        self._used = {"rows": 0, "successors": 0, "reps": 0, "pages": 0}
        self._tables: dict[int, _Table] = {}
        self._open: dict[int, _Table] = {}
        self._free_pages: dict[int, list[int]] = {}
        self._view: Store | None = None
        self.grow(NEED_WORK)
        self.grow(NEED_OUT)

    def view(self) -> Store:
        """The arrays as they are now; stale after anything here was called."""
        if self._view is None:
            self._view = Store(**self._arrays)
        return self._view

    def _reserve(self, name: str, need: int) -> None:
        old = self._arrays[name]
        if need > len(old):
            new = np.zeros(max(need, 2 * len(old)), old.dtype)
            new[: len(old)] = old
            self._arrays[name] = new
            self._view = None

    def _append(self, name: str, count: int) -> tuple[int, NDArray[Any]]:
        """(First, view) of ``count`` more entries."""
        first = self._used[name]
        self._used[name] = first + count
        self._reserve(name, first + count)
        return first, self._arrays[name][first : first + count]

    def grow(self, what: int) -> None:
        """Double what :func:`drain` found too small."""
        self._reserve(_GROWS[what], max(4096, 2 * len(self._arrays[_GROWS[what]])))

    def reserve_work(self, count: int) -> None:
        """Make room to :func:`note` ``count`` more flows."""
        self._reserve("work", int(self._state["num_work"]) + count)

    def table(self, table: FlowTable) -> _Table:
        """Register a table, once."""
        known = self._tables.get(id(table))
        if known is not None:
            return known
        sizes = np.diff(table.block_row)
        row0, rows = self._append("rows", table.num_rows)
        rows["src"], rows["dst"] = table.src, table.dst
        rows["size"], rows["delay"], rows["reaction"] = table.size_bytes, table.delay_ps, table.reaction_ps
        rows["waits"] = np.diff(table.dep_ptr)
        rep0, reps = self._append("reps", int(table.block_repeat.sum()))
        reps["rows"] = np.repeat(sizes, table.block_repeat)
        reps["row"] = row0 + np.repeat(table.block_row[:-1], table.block_repeat)
        reps["base"] = np.cumsum(reps["rows"], dtype=np.int64) - reps["rows"]
        self._add_successors(table, row0, rows)
        if not table.is_flat:
            self._state["max_page"] = max(int(self._state["max_page"]), _page_size(int(sizes.max())))
        pages = tuple(_page_size(rows) for rows in sizes.tolist()) if table.is_flat else ()
        made = _Table(table, row0, rep0, len(reps), pages)
        self._tables[id(table)] = made
        return made

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
        total = turn_round(*columns, all_of, of_completion, np.empty(0, SUCCESSOR))
        first, successors = self._append("successors", total)
        last = np.cumsum(all_of)
        middle = last - all_of + of_completion
        rows["first"], rows["middle"], rows["last"] = first + last - all_of, first + middle, first + last
        if total:
            turn_round(*columns, middle, last - all_of, successors)

    def open(self, group: FlowGroup) -> _Table:
        """Make a group known.

        Raises
        ------
        NetworkError
            Its handle is still in use.
        """
        handle = group.handle
        if handle in self._open:
            raise NetworkError(f"flow group handle {handle} is still in use")
        table = self.table(group.table)
        self._reserve("groups", handle + 1)
        free = self._free_pages.setdefault(table.num_reps, [])
        page = free.pop() if free else self._append("pages", table.num_reps)[0]
        self._arrays["pages"]["cell"][page : page + table.num_reps] = _NONE
        one = self._arrays["groups"][handle]
        one["key_high"], one["key_low"] = group.key
        one["left"], one["page"], one["rep"] = group.table.num_flows, page, table.rep0
        one["reps"] = table.num_reps
        one["release"] = group.release == "network"
        self._open[handle] = table
        if table.pages and group.release == "network":
            self._touch_all(table, page)
        return table

    def _touch_all(self, table: _Table, page: int) -> None:
        for k, size in enumerate(table.pages):
            if self._arrays["unused"][size.bit_length() - 1] == _NONE:
                self._reserve("cells", int(self._state["cells_used"]) + size)
            touch_page(self.view(), page + k, table.rep0 + k)

    def set_path(self, handle: int, path: int) -> None:
        """Say where a group's rows find their links: row r (absolute) at ``path + r``."""
        self._arrays["groups"]["path"][handle] = path

    def close(self, handle: int) -> None:
        """Forget a group whose flows have all completed."""
        table = self._open.pop(handle)
        page = int(self._arrays["groups"]["page"][handle])
        drop_pages(self.view(), page, table.rep0, table.num_reps)
        self._arrays["groups"]["reps"][handle] = 0
        self._free_pages[table.num_reps].append(page)

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


class _Table(NamedTuple):
    """A registered table: its first absolute row and repetition; sizes of the pages that are made at once."""

    table: FlowTable
    row0: int
    rep0: int
    num_reps: int
    pages: tuple[int, ...]
