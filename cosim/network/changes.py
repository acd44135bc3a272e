"""Changes of links and of routes, as the kernel takes them: a table that grows as time goes on.

A row keeps its own path unless a dead link is on it, then takes one around links that routing knows to be
dead, and comes back when the link does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.kernel import Columns, kernel, record
from cosim.network.flows import F64, I32, I64
from cosim.topology.changes import LinkChange, RouteChange
from cosim.topology.graph import Topology

NONE: int = kernel.NONE
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
        self._dead: dict[int, tuple[int, ...]] = {}
        self.ends = changes is None
        """Whether there are no more than were asked for."""

    def beyond(self, count: int) -> NDArray[Any]:
        """The first changes, more than ``count`` of them where there are more."""
        if count >= len(self._rows) and not self.ends:
            first = len(self._rows)
            new = [self._row(first + k, one) for k, one in enumerate(islice(self._left, _AT_ONCE))]
            self._rows = np.concatenate([self._rows, np.array(new, self._rows.dtype)])
        self.ends = count >= len(self._rows)
        return self._rows

    def fill(self, at_hand: ChangeList) -> None:
        """Have more changes at hand, where there are more."""
        at_hand.put(changes=self.beyond(len(at_hand.changes)))
        at_hand.state["more"] = not self.ends

    def add(self, at_hand: ChangeList, changes: Sequence[LinkChange | RouteChange]) -> None:
        """Have more changes, which nobody knew of before; all others are at hand."""
        done = int(at_hand.state["next"][0])
        rows = self._rows[done:].tolist() + [self._row(NONE, one) for one in changes]
        dead = [self._dead.get(done + k, ()) for k in range(len(self._rows) - done)]
        dead += [one.dead if isinstance(one, RouteChange) else () for one in changes]
        # At one time, links come first.
        order = sorted(range(len(rows)), key=lambda k: (rows[k][0], rows[k][1] == kernel.ROUTES))
        self._rows = np.concatenate([self._rows[:done], np.array([rows[k] for k in order], self._rows.dtype)])
        self._dead.update({done + place: dead[k] for place, k in enumerate(order)})
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
        return self._dead[row]

    def _row(self, number: int, one: LinkChange | RouteChange) -> tuple[int, int, float]:
        if isinstance(one, RouteChange):
            self._dead[number] = one.dead
            return one.time_ps, kernel.ROUTES, 0.0
        return one


_Found = tuple[int, I64, I64]
"""How many rows were looked at; rows that have a detour, and where its links are."""


class Detours:
    """Rows that got a path, and their detours."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._row = np.zeros(0, np.int64)
        self._ends = np.zeros((3, 0), np.int32)
        self._bound: list[tuple[int, I32, I32, I32]] = []
        self._found: dict[tuple[int, ...], _Found] = {}
        self.dead: tuple[int, ...] = ()

    def copy(self) -> Detours:
        """For a network that looks ahead: what it finds meanwhile is forgotten."""
        other = Detours(self._topology)
        vars(other).update(vars(self), _found=dict(self._found), _bound=list(self._bound))
        return other

    def add(self, first: int, src: I32, dst: I32, channel: I32) -> None:
        """Rows from ``first`` on got their own paths."""
        self._bound.append((first, src, dst, channel))

    def places(self, ptr: I64, links: I32, append: Callable[[I64, I32], int]) -> tuple[I64, I64]:
        """Rows that take another path now, and its place, by the network's ``ptr`` and ``links``, to which
        ``append`` adds paths and says where.
        """
        none = np.zeros(0, np.int64)
        if not self.dead:
            return none, none
        self._gather()
        begin, rows, places = self._found.get(self.dead, (0, none, none))
        if begin == len(self._row):
            return rows, places
        dead = np.zeros(self._topology.num_links, np.bool_)
        dead[list(self.dead)] = True
        on = np.concatenate([[0], np.cumsum(dead[links])])
        new = self._row[begin:]
        hit = begin + np.flatnonzero(on[ptr[new + 1]] > on[ptr[new]])
        routing = self._topology.routing
        found, way = routing.around(self._topology, dead, *self._ends[:, hit])
        first = append(found, way)
        there = np.flatnonzero(np.diff(found))
        rows = np.concatenate([rows, self._row[hit[there]]])
        places = np.concatenate([places, first + there])
        self._found[self.dead] = len(self._row), rows, places
        return rows, places

    def _gather(self) -> None:
        """Have rows that were bound since as columns, too."""
        if self._bound:
            rows = [first + np.arange(len(src)) for first, src, _, _ in self._bound]
            ends = [np.stack(one[1:]) for one in self._bound]
            self._row = np.concatenate([self._row, *rows])
            self._ends = np.concatenate([self._ends, *ends], axis=1)
            self._bound = []
