"""How much of a large group is given to a network that holds a bounded number of flows.

A group that the network releases is given piece by piece. Dependencies reach back only, so a flow may be
given when those that it waits for were; but the network must not run past the start of a flow that it
doesn't know yet. A flow held back is *safe* while one of its dependencies is held back too, or is a
completion still to come: the network stops there, for the flow that completes is given a reaction delay of at
most the delay of what waits for it here. Whatever is not safe any more must be given next, and can be: all
that it waits for was. Beyond that, the lowest flows are given ahead, as many as there is room for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cosim.network.flows import I8, I64, ON_COMPLETION, FlowGroup, FlowTable
from cosim.units import NEVER

Dependencies = tuple[I64, I64, I8]
"""CSR: (ptr, which flow, kind)."""


def dependencies(table: FlowTable, index: I64) -> Dependencies:
    """What the flows wait for, by their numbers in the group."""
    row = index if table.is_flat else table.row_of(index)
    degree = np.diff(table.dep_ptr)[row]
    ptr = np.zeros(len(index) + 1, np.int64)
    np.cumsum(degree, out=ptr[1:])
    at = np.arange(ptr[-1]) + np.repeat(table.dep_ptr[row] - ptr[:-1], degree)
    return ptr, np.repeat(index, degree) - table.dep_distance[at], table.dep_kind[at]


class PartialGroup:
    """What the network knows of one group: all flows below ``low``, and some up to ``high`` - 1."""

    def __init__(self, group: FlowGroup) -> None:
        self.group = group
        self.low = self.high = 0
        self.sent = 0
        self.completed = 0
        self._reach = int(group.table.dep_distance.max()) if len(group.table.dep_distance) else 0
        self._whole: int | None = None
        # By flow; zeroed memory that is not touched costs nothing. Ids are kept + 1: 0 is not given.
        self._ids: I64 = np.zeros(0, np.int64)
        self._done: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._required: I64 | None = None

    @property
    def left(self) -> int:
        """Flows that are held back."""
        return self.group.table.num_flows - self.sent

    def note_completed(self, index: I64) -> None:
        """Flows of the group completed; of interest only where some are held back."""
        if len(index):
            self.completed += len(index)
            self._required = None
            if len(self._done):
                self._done[index] = True

    def knows(self, index: I64) -> NDArray[np.bool_]:
        """Which flows were given."""
        if self._whole is not None:
            return np.ones(len(index), np.bool_)
        return self._ids[index] > 0 if self.sent else np.zeros(len(index), np.bool_)

    def ids(self, index: I64) -> I64:
        """Ids of flows that were given."""
        return index + self._whole if self._whole is not None else self._ids[index] - 1

    def oldest(self) -> int | None:
        """The lowest id that what is held back may wait for; None: nothing of the kind."""
        if not self.left or not self.sent:
            return None
        known = np.arange(max(0, self.low - self._reach), self.high)
        known = known[self.knows(known)]
        return int(self.ids(known).min()) if len(known) else None

    def required(self, started: I64) -> I64:
        """Flows that must be given now: those that the caller starts, and those that are not safe.

        Ascending. ``started`` are given flows; those that the network knows don't count.
        """
        # What was found holds until something completes or starts: nothing else makes a flow unsafe.
        new_starts = started[~self.knows(started)]
        if len(new_starts):
            self._required = None
        if self._required is not None:
            return self._required
        table, found = self.group.table, np.unique(new_starts)
        top = max(self.high, int(found[-1]) + 1 if len(found) else 0)
        # A flow that must be given is known from then on, and may so expose others that waited for it.
        while True:
            # Nothing beyond waits for what is known: only these can be unsafe.
            to = min(top + self._reach, table.num_flows)
            held = np.arange(self.low, to)
            mine = self.knows(held)
            # Flows below `low` are known, so that none of `found` is.
            mine[found - self.low] = True
            held = held[~mine]
            ptr, other, kind = dependencies(table, held)
            unknown = ~self.knows(other) & ~np.isin(other, found)
            # One dependency is enough: the network can't pass the start of a flow while one of those is still
            # to come.
            safe = unknown | (kind == ON_COMPLETION)
            if len(self._done):  # else nothing has completed
                past = np.flatnonzero(safe & ~unknown)
                safe[past] = ~self._done[other[past]]
            saved = np.zeros(len(held), np.bool_)
            saved[np.repeat(np.arange(len(held)), np.diff(ptr))[safe]] = True
            # Flows that wait for nothing are started by the caller, and are in `started` when they are.
            exposed = held[(np.diff(ptr) > 0) & ~saved]
            if not len(exposed):
                break
            found = np.union1d(found, exposed)
            top = max(top, int(found[-1]) + 1)
        self._required = found if not len(new_starts) else None
        return found

    def ahead(self, required: I64, count: int) -> I64:
        """``required`` and ``count`` more, the lowest that are not given. Ascending."""
        if not count:
            return required
        table = self.group.table
        held = np.arange(self.low, min(table.num_flows, self.high + len(required) + count))
        held = held[~self.knows(held)]
        held = held[~np.isin(held, required)] if len(required) else held
        return np.union1d(required, held[:count])

    def give(self, index: I64, first_id: int) -> Dependencies:
        """Give flows, ascending, as ``first_id`` and so on; their dependencies by id."""
        table = self.group.table
        ptr, other, kind = dependencies(table, index)
        self._required = None
        # A group that is given whole needs no columns: its ids follow its flows.
        if not self.sent and len(index) == table.num_flows:
            self._whole = first_id
        else:
            if not len(self._ids):
                self._ids = np.zeros(table.num_flows, np.int64)
                self._done = np.zeros(table.num_flows, np.bool_)
            self._ids[index] = np.arange(first_id, first_id + len(index)) + 1
        self.sent += len(index)
        self.high = max(self.high, int(index[-1]) + 1)
        # `low` moves up to the first gap, so that what is looked through stays as small as what is held back.
        if self.left:
            gaps = np.flatnonzero(self._ids[self.low : self.high] == 0)
            self.low = self.low + int(gaps[0]) if len(gaps) else self.high
        else:
            self.low = self.high
        return ptr, self.ids(other), kind

    def reactions(self, reaction: I64, index: I64) -> I64:
        """Reaction delays of flows that were just given, lowered for what is held back."""
        if not self.left:
            return reaction
        table = self.group.table
        held = np.arange(self.low, min(self.high + self._reach, table.num_flows))
        held = held[~self.knows(held)]
        ptr, other, kind = dependencies(table, held)
        delay = np.repeat(table.delay_ps[held if table.is_flat else table.row_of(held)], np.diff(ptr))
        place = np.minimum(np.searchsorted(index, other), len(index) - 1)
        ours = (index[place] == other) & (kind == ON_COMPLETION)
        least = np.full(len(index), NEVER, np.int64)
        np.minimum.at(least, place[ours], delay[ours])
        return np.minimum(reaction, least)
