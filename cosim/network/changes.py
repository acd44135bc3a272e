"""Changes of links and of routes, as a compiled network takes them: a table that grows as time goes on."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.topology.changes import LinkChange, LinkChanges, RouteChange

CHANGE = np.dtype([("time", "i8"), ("link", "i8"), ("rate", "f8")])
"""A link has ``rate`` (bits/s; 0: it is dead) from ``time`` on; with link :data:`ROUTES`, routes change."""
ROUTES = -1

_AT_ONCE = 1024
MOST_IN_VAIN = 100_000
"""So many changes in a row with nothing to do between them: nothing will ever come of it."""


class ChangeTable:
    """Reads changes as far as they are asked for; networks that look ahead share it with their copy."""

    def __init__(self, changes: LinkChanges | None) -> None:
        self._left = iter(changes or ())
        self._rows: list[tuple[int, int, float]] = []
        self._dead: dict[int, tuple[int, ...]] = {}
        self.ends = changes is None
        """Whether there are no more than were asked for."""

    def beyond(self, count: int) -> NDArray[Any]:
        """The first changes, more than ``count`` of them where there are more."""
        if count >= len(self._rows):
            for one in islice(self._left, _AT_ONCE):
                self._add(one)
        self.ends = count >= len(self._rows)
        return np.array(self._rows, CHANGE)

    def dead(self, row: int) -> tuple[int, ...]:
        """The links that routes avoid from this row on."""
        return self._dead[row]

    def _add(self, one: LinkChange | RouteChange) -> None:
        if isinstance(one, RouteChange):
            self._dead[len(self._rows)] = one.dead
            self._rows.append((one.time_ps, ROUTES, 0.0))
        else:
            self._rows.append(one)
