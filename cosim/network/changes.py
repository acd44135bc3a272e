"""Changes of links and of routes, as a compiled network takes them: a table that grows as time goes on."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.network.core import DONE, Core
from cosim.network.growing import GrowingArrays
from cosim.network.jit import inlined
from cosim.topology.changes import LinkChange, LinkChanges, RouteChange
from cosim.units import NEVER

CHANGE = np.dtype([("time", "i8"), ("link", "i8"), ("rate", "f8")])
"""A link has ``rate`` (bits/s; 0: it is dead) from ``time`` on; with link :data:`ROUTES`, routes change."""
ROUTES = -1
NEED_CHANGES, NEED_ROUTES = 22, 23
"""What a loop stops for: more of the table, or the routes of the change that it has come to."""

_AT_ONCE = 1024  # as many as are drawn ahead: a run's changes may go on for ever
MOST_IN_VAIN = 100_000
"""So many changes in a row with nothing to do between them: nothing will ever come of it."""


class ChangeTable:
    """Reads changes as far as they are asked for; networks that look ahead share it with their copy."""

    def __init__(self, changes: LinkChanges | None) -> None:
        self._left = iter(changes or ())
        self._rows = np.zeros(0, CHANGE)
        self._dead: dict[int, tuple[int, ...]] = {}
        self.ends = changes is None
        """Whether there are no more than were asked for."""

    def beyond(self, count: int) -> NDArray[Any]:
        """The first changes, more than ``count`` of them where there are more."""
        if count >= len(self._rows) and not self.ends:
            first = len(self._rows)
            new = [self._row(first + k, one) for k, one in enumerate(islice(self._left, _AT_ONCE))]
            self._rows = np.concatenate([self._rows, np.array(new, CHANGE)])
        self.ends = count >= len(self._rows)
        return self._rows

    def fill(self, fluid: GrowingArrays) -> None:
        """Have more changes at hand in a network's arrays, where there are more."""
        counts = fluid["counts"][0]
        fluid["changes"] = self.beyond(int(counts["num_changes"]))
        counts["num_changes"] = len(fluid["changes"])
        counts["more_changes"] = not self.ends

    def dead(self, row: int) -> tuple[int, ...]:
        """The links that routes avoid from this row on."""
        return self._dead[row]

    def _row(self, number: int, one: LinkChange | RouteChange) -> tuple[int, int, float]:
        if isinstance(one, RouteChange):
            self._dead[number] = one.dead
            return one.time_ps, ROUTES, 0.0
        return one


def to_come(counts: Any) -> bool:
    """Whether a network's table has changes to come of which something may come."""
    left = counts["change"] < counts["num_changes"] or counts["more_changes"]
    return bool(left and counts["in_vain"] <= MOST_IN_VAIN)


@inlined
def next_change(core: Core, fluid: Any, is_idle: bool) -> int:
    """When the next change comes; NEVER where it matters to nobody, for there is no flow (``is_idle``)."""
    counts = fluid.counts[0]
    if counts.change == counts.num_changes:
        return int(NEVER)
    if is_idle and core.calendar.state[0].num_instants == 0:
        return int(NEVER)
    return int(fluid.changes[counts.change].time)


@inlined
def is_in_vain(fluid: Any, else_ps: int) -> bool:
    """Whether nothing will ever come of the changes that are left; ``else_ps``: when anything else comes."""
    return bool(else_ps == NEVER and fluid.counts[0].in_vain > MOST_IN_VAIN)


@inlined
def end_change(fluid: Any) -> int:
    """A link's change was taken: whether the loop goes on, or stops for more of the table."""
    counts = fluid.counts[0]
    return NEED_CHANGES if counts.change == counts.num_changes and counts.more_changes != 0 else DONE


@inlined
def begin_change(core: Core, fluid: Any) -> int:
    """Go to the next change; its row."""
    counts = fluid.counts[0]
    state = core.state[0]
    counts.change += 1
    state.instant = fluid.changes[counts.change - 1].time
    counts.in_vain = counts.in_vain + 1 if counts.progress == state.num_events else 0
    counts.progress = state.num_events
    return int(counts.change - 1)
