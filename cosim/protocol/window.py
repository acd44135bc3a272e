"""How much of a large group is given to a network that holds a bounded number of flows.

A group that the network releases is given in prefixes of its flows. Dependencies reach back only, so a prefix
is complete in itself; but the network must not run past the start of a flow that it doesn't know yet. A flow
held back is *safe* while one of its dependencies is held back too, or is a completion still to come: the
network stops there, for the flow that completes is given a reaction delay of at most the delay of what waits
for it here. Whatever is not safe any more must be given next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cosim.network.flows import I8, I64, ON_COMPLETION, FlowGroup, FlowTable
from cosim.units import NEVER


def dependencies(table: FlowTable, low: int, high: int) -> tuple[I64, I64, I8]:
    """Of flows ``low`` to ``high`` - 1: CSR of (which flow, kind)."""
    index = np.arange(low, high, dtype=np.int64)
    row = index if table.is_flat else table.row_of(index)
    degree = np.diff(table.dep_ptr)[row]
    ptr = np.zeros(len(index) + 1, np.int64)
    np.cumsum(degree, out=ptr[1:])
    at = np.arange(ptr[-1]) + np.repeat(table.dep_ptr[row] - ptr[:-1], degree)
    return ptr, np.repeat(index, degree) - table.dep_distance[at], table.dep_kind[at]


class Window:
    """The prefix of one group that the network knows; ``sent`` flows, numbered from ``ids[k]`` on in
    segment k.
    """

    def __init__(self, group: FlowGroup) -> None:
        self.group = group
        self.sent = 0
        self.completed = 0
        self._needed: int | None = None
        self._reach = int(group.table.dep_distance.max()) if len(group.table.dep_distance) else 0
        self._segments: list[int] = []
        self._ids: list[int] = []
        self._done: NDArray[np.bool_] | None = None

    @property
    def left(self) -> int:
        """Flows that are held back."""
        return self.group.table.num_flows - self.sent

    def note_completed(self, index: I64) -> None:
        """Flows of the group completed; of interest only where some are held back."""
        if len(index):
            self.completed += len(index)
            self._needed = None
            if self._done is not None:
                self._done[index] = True

    def needed(self) -> int:
        """How long the prefix must be so that all flows beyond it are safe."""
        if self._needed is None:
            self._needed = self._safe_length()
        return self._needed

    def _safe_length(self) -> int:
        table = self.group.table
        to = self.sent
        while to < table.num_flows:
            ptr, other, kind = dependencies(table, to, min(to + max(self._reach, 1), table.num_flows))
            safe = (other >= to) | (kind == ON_COMPLETION)
            if self._done is not None:
                past = np.flatnonzero(safe & (other < self.sent))
                safe[past] = ~self._done[other[past]]
            saved = np.zeros(len(ptr) - 1, np.bool_)
            saved[np.repeat(np.arange(len(saved)), np.diff(ptr))[safe]] = True
            exposed = np.flatnonzero((np.diff(ptr) > 0) & ~saved)
            if not len(exposed):
                break
            to += int(exposed[-1]) + 1
        return to

    def extend(self, to: int, first_id: int) -> tuple[I64, I64, I8]:
        """Give flows up to ``to`` - 1, as ``first_id`` and so on; their dependencies by id."""
        ptr, other, kind = dependencies(self.group.table, self.sent, to)
        self._segments.append(self.sent)
        self._ids.append(first_id)
        self.sent = to
        self._needed = None
        if self.left and self._done is None:
            self._done = np.zeros(self.group.table.num_flows, np.bool_)
        return ptr, self.ids(other), kind

    def ids(self, index: I64) -> I64:
        """Ids of flows that were given."""
        if len(self._ids) == 1:
            return index + (self._ids[0] - self._segments[0])
        first = np.array(self._segments, np.int64)
        at = np.searchsorted(first, index, side="right") - 1
        return index - first[at] + np.array(self._ids, np.int64)[at]

    def reactions(self, reaction: I64, low: int) -> I64:
        """Reaction delays of the flows from ``low`` to the prefix's end, lowered for what is held back."""
        if not self.left:
            return reaction
        table = self.group.table
        high = min(self.sent + self._reach, table.num_flows)
        ptr, other, kind = dependencies(table, self.sent, high)
        index = np.arange(self.sent, high)
        delay = table.delay_ps[index if table.is_flat else table.row_of(index)]
        ours = (other >= low) & (other < self.sent) & (kind == ON_COMPLETION)
        least = np.full(self.sent - low, NEVER, np.int64)
        np.minimum.at(least, other[ours] - low, np.repeat(delay, np.diff(ptr))[ours])
        return np.minimum(reaction, least)
