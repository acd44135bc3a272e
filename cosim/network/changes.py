"""Changes of links and of routes, as the kernel takes them: a table that grows as time goes on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.kernel import Columns, kernel, record
from cosim.network.flows import F64
from cosim.topology.changes import LinkChange, RouteChange

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
