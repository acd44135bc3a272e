"""Changes of links, as the kernel takes them, and where rows go meanwhile.

A row keeps its own path unless a dead link is on it, then takes one around links that routing knows to be
dead, and comes back when the link does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.fabric.changes import LinkChange, RouteChange
from cosim.kernel import Columns, kernel, record
from cosim.topology.graph import F64, I32, I64, Topology

MOST_IN_VAIN: int = kernel.MOST_IN_VAIN
"""So many changes in a row with nothing to do between them: nothing will ever come of it."""
_AT_ONCE = 1024  # as many are drawn ahead: a run's changes may go on for ever


class ChangeList(Columns):
    """The changes that a loop has at hand, and how far it is."""

    def to_come(self) -> bool:
        """Whether there are changes to come of which something may come."""
        state = self.state[0]
        left = state["next"] < len(self.changes) or state["more"]
        return bool(left and state["in_vain"] <= MOST_IN_VAIN)


class ChangeTable:
    """Reads changes as far as they are asked for; networks that look ahead share it with their copy."""

    def __init__(self, changes: Iterable[LinkChange | RouteChange] | None) -> None:
        self._left = iter(changes or ())
        self._rows: NDArray[Any] = np.zeros(0, record("change"))
        self._dead: list[tuple[int, ...]] = []
        """What routes avoid from a change of routes on, whose ``rate`` is its number here."""
        self.ends = changes is None
        """Whether there are no more than were asked for."""

    def beyond(self, count: int) -> NDArray[Any]:
        """The first changes, more than ``count`` of them where there are more."""
        if count >= len(self._rows) and not self.ends:
            self._rows = np.concatenate([self._rows, self._as_rows(islice(self._left, _AT_ONCE))])
        self.ends = count >= len(self._rows)
        return self._rows

    def fill(self, at_hand: ChangeList) -> None:
        """Have more changes at hand, where there are more."""
        at_hand.put(changes=self.beyond(len(at_hand.changes)))
        at_hand.state["more"] = not self.ends

    def add(self, at_hand: ChangeList, changes: Sequence[LinkChange | RouteChange]) -> None:
        """Have more changes, which nobody knew of before; all others are at hand."""
        done = int(at_hand.state["next"][0])
        rows = np.concatenate([self._rows[done:], self._as_rows(changes)])
        # At one time, links come first.
        order = np.lexsort((rows["link"] == kernel.ROUTES, rows["time"]))
        self._rows = np.concatenate([self._rows[:done], rows[order]])
        at_hand.put(changes=self._rows)

    def rates_at(self, at_hand: ChangeList, time_ps: int, rates: F64) -> F64:
        """Rates of links once all changes up to then have happened, which now are ``rates``."""
        found = rates.copy()
        for row in self._rows[int(at_hand.state["next"][0]) :]:
            if row["time"] <= time_ps and row["link"] != kernel.ROUTES:
                found[row["link"]] = row["rate"]
        return found

    def dead(self, row: int) -> tuple[int, ...]:
        """The links that routes avoid from this row on."""
        return self._dead[int(self._rows["rate"][row])]

    def _as_rows(self, changes: Iterable[LinkChange | RouteChange]) -> NDArray[Any]:
        rows: list[tuple[int, int, float]] = []
        for one in changes:
            if isinstance(one, RouteChange):
                rows.append((one.time_ps, kernel.ROUTES, float(len(self._dead))))
                self._dead.append(one.dead)
            else:
                rows.append(one)
        return np.array(rows, self._rows.dtype)


def find_detours(
    topology: Topology, dead: Iterable[int], ends: I32, first: I64, end: I64, links: I32
) -> tuple[I64, I64, I32]:
    """Rows that have dead links on their path, and a detour for each: int64[R], and the detours as CSR.

    ``ends`` is int32[3, rows]: source, destination, channel; the path of row r is ``links[first[r]:end[r]]``.
    """
    is_dead = np.zeros(topology.num_links, np.bool_)
    is_dead[list(dead)] = True
    on = np.concatenate([[0], np.cumsum(is_dead[links])])
    hit = np.flatnonzero(on[end] > on[first])
    if not len(hit):
        return hit, np.zeros(1, np.int64), np.zeros(0, np.int32)
    ptr, around = topology.routing.around(topology, is_dead, *ends[:, hit])
    # Without any path left a row keeps its own path, and waits.
    there = np.flatnonzero(np.diff(ptr))
    return hit[there], np.concatenate([ptr[:1], ptr[there + 1]]), around


class RowPaths:
    """Where the rows of a network go: each by its own path, or round links that routing knows to be dead.

    ``core`` has what the network's loop has of it, by row: ``path_ptr``, ``path_link``, ``path_source``, and,
    on a topology that has ``changes``, ``path_now``: the row whose links it takes now.
    """

    def __init__(self, topology: Topology, core: Columns) -> None:
        self._topology, self._core = topology, core
        self._rows = self._links = 0
        self._row = np.zeros(0, np.int64)
        self._ends = np.zeros((3, 0), np.int32)
        self._bound: list[tuple[int, I32, I32, I32]] = []
        self._found: dict[tuple[int, ...], tuple[int, I64, I64]] = {}
        """By dead links: how many rows were looked at; which go round, and the rows whose links they take."""
        self.dead: tuple[int, ...] = ()

    def copy(self, core: Columns) -> RowPaths:
        """For a network that looks ahead: what it finds meanwhile is forgotten."""
        other = RowPaths(self._topology, core)
        own = {"_core": core, "_found": dict(self._found), "_bound": list(self._bound)}
        vars(other).update({**vars(self), **own})
        return other

    def bind(self, src: I32, dst: I32, channel: I32) -> int:
        """Find the paths of rows; the number of the first one."""
        first = self.append(*self._topology.paths(src, dst, channel))
        self._core.path_source[first : first + len(src)] = src
        if self._topology.changes is not None:
            self._bound.append((first, src, dst, channel))
            self._number(first + len(src), len(self._core.path_now))
        return first

    def append(self, ptr: I64, links: I32) -> int:
        """Keep paths; the number of the first one."""
        first, rows = self._rows, len(ptr)
        at, core = self._links, self._core
        core.lengthen("path_source", first + rows)
        core.lengthen("path_ptr", first + rows)[first : first + rows] = ptr + at
        core.lengthen("path_link", at + len(links))[at : at + len(links)] = links
        self._rows += rows
        self._links += len(links)
        return first

    def avoid(self, dead: tuple[int, ...]) -> I64:
        """Have rows go round these links, and no others; where they went so far: ``path_now``."""
        self.dead = dead
        so_far: I64 = self._core.path_now
        self._core.put(path_now=np.arange(len(so_far)))
        self._number(len(so_far), len(so_far))
        return so_far

    def moved(self) -> I64:
        """The rows that go round something."""
        now = self._core.path_now
        return np.flatnonzero(now != np.arange(len(now)))

    def _number(self, rows: int, old: int) -> None:
        """Have ``path_now`` say where rows from ``old`` on go now, and which go round something."""
        core = self._core
        now = core.lengthen("path_now", rows)  # and more, in advance
        now[old:] = np.arange(old, len(now))
        if self.dead:
            self._gather()
            begin, moved, theirs = self._found.get(self.dead, (0, self._row[:0], self._row[:0]))
            if begin < len(self._row):
                row, ptr = self._row[begin:], core.path_ptr
                hit, round_ptr, links = find_detours(
                    self._topology, self.dead, self._ends[:, begin:], ptr[row], ptr[row + 1], core.path_link
                )
                moved = np.concatenate([moved, row[hit]])
                theirs = np.concatenate([theirs, self.append(round_ptr, links) + np.arange(len(hit))])
                self._found[self.dead] = len(self._row), moved, theirs
            core.path_now[moved] = theirs

    def _gather(self) -> None:
        """Have rows that were bound since as columns, too."""
        if self._bound:
            rows = [first + np.arange(len(src)) for first, src, _, _ in self._bound]
            ends = [np.stack(one[1:]) for one in self._bound]
            self._row = np.concatenate([self._row, *rows])
            self._ends = np.concatenate([self._ends, *ends], axis=1)
            self._bound = []
