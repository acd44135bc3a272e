"""Releasing flat flows when what they wait for is there: for a server whose network doesn't."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.network.flows import I64
from cosim.network.jit import compiled
from cosim.protocol.flat_flows import FlatFlows
from cosim.protocol.pages import Pages

FLOW = np.dtype(
    [
        ("id", "i8"),
        ("key_high", "i8"),
        ("key_low", "i8"),
        ("reaction", "i8"),
        ("delay", "i8"),
        ("ready", "i8"),
        ("start", "i8"),
        ("time", "i8"),
        ("waits", "i4"),
        ("handle", "i4"),
        ("first", "i8"),
    ]
)
"""A flow by slot. ``start`` and ``time`` are -1 until known; ``first`` heads its list of edges, or is -1."""
EDGE = np.dtype([("to", "i8"), ("next", "i8"), ("kind", "i8")])
NO = -1
_UNUSED, _USED, _LIVE = range(3)
"""Of edges: the first of those given back, how many were ever taken, how many are in lists."""


@compiled
def _link(
    flows: Any, edges: Any, count: I64, slots: I64, ptr: I64, others: I64, kinds: NDArray[np.int8], out: I64
) -> int:
    """Enter dependencies of flows; how many in ``out`` wait for nothing that is not known."""
    free = 0
    for k in range(len(slots)):
        flow = slots[k]
        for at in range(ptr[k], ptr[k + 1]):
            other = others[at]
            # What is already known is taken into account at once, and leaves no edge behind.
            known = flows[other].time if kinds[at] == 0 else flows[other].start
            if known >= 0:
                flows[flow].ready = max(flows[flow].ready, known)
                continue
            flows[flow].waits += 1
            # Edges that served are used again: their number is that of flows that wait, not of all that ever
            # did.
            edge = count[_UNUSED]
            if edge >= 0:
                count[_UNUSED] = edges[edge].next
            else:
                edge = count[_USED]
                count[_USED] += 1
            count[_LIVE] += 1
            edges[edge].to = flow
            edges[edge].kind = kinds[at]
            edges[edge].next = flows[other].first
            flows[other].first = edge
        if ptr[k + 1] > ptr[k] and flows[flow].waits == 0:
            out[free] = flow
            free += 1
    return free


@compiled
def _feed(flows: Any, edges: Any, count: I64, slots: I64, times: I64, kind: int, out: I64) -> int:
    """Flows completed (kind 0) or started (1); how many in ``out`` wait no more. Edges that served go."""
    free = 0
    for k in range(len(slots)):
        flow = slots[k]
        # A flow's list is taken apart: edges that wait for its other time are put together again.
        kept = -1
        at = flows[flow].first
        while at >= 0:
            following = edges[at].next
            if edges[at].kind == kind:
                to = edges[at].to
                flows[to].ready = max(flows[to].ready, times[k])
                flows[to].waits -= 1
                if flows[to].waits == 0:
                    out[free] = to
                    free += 1
                edges[at].next = count[_UNUSED]
                count[_UNUSED] = at
                count[_LIVE] -= 1
            else:
                edges[at].next = kept
                kept = at
            at = following
        flows[flow].first = kept
    return free


class DependencyTracker:
    """Flows by id, and who waits for whom. Rows are ``rows[slots(ids)]``; they go when :meth:`finish` and
    :meth:`forget` have both passed them.
    """

    def __init__(self) -> None:
        self._pages = Pages(FLOW)
        self._edges: Any = np.zeros(1024, EDGE)
        self._count = np.array([NO, 0, 0], np.int64)
        self._waiting = 0
        self.completed = 0

    @property
    def rows(self) -> NDArray[Any]:
        """Rows by slot; stale after :meth:`add`."""
        return self._pages.rows

    @property
    def count(self) -> int:
        """Flows given so far; the next id."""
        return self._pages.count

    @property
    def oldest(self) -> int:
        """The lowest id that a new flow may wait for."""
        return self._pages.oldest

    @property
    def held(self) -> int:
        """Flows and edges that there is room for."""
        return self._pages.held + len(self._edges)

    def slots(self, ids: I64) -> I64:
        """Where rows are, of ids that :meth:`there` has."""
        return self._pages.slots(ids)

    def there(self, ids: I64) -> NDArray[np.bool_]:
        """Which ids have rows."""
        return self._pages.there(ids)

    def add(self, flows: FlatFlows) -> tuple[I64, I64]:
        """Enter flows: their slots, and those of them whose dependencies are all known already."""
        first, count = self.count, flows.count
        slots = self._pages.add(count)
        rows = self._pages.rows
        for name in ("key_high", "key_low"):
            rows[name][slots] = flows.columns[name]
        rows["reaction"][slots] = flows.columns["reaction_delay_ps"]
        rows["delay"][slots] = flows.columns["delay_ps"]
        rows["id"][slots] = np.arange(first, first + count)
        for name in ("start", "time", "first"):
            rows[name][slots] = NO
        if not flows.has_dependencies:
            return slots, np.empty(0, np.int64)
        need = int(self._count[_USED]) + len(flows.dependency_id)
        if need > len(self._edges):
            self._edges = np.concatenate([self._edges, np.zeros(max(need, len(self._edges)), EDGE)])
        out = np.empty(count, np.int64)
        others = self.slots(flows.dependency_id)
        columns = flows.dependency_ptr, others, flows.dependency_kind
        free = _link(rows, self._edges, self._count, slots, *columns, out)
        self._waiting += int((np.diff(flows.dependency_ptr) > 0).sum()) - free
        return slots, out[:free]

    def feed(self, slots: I64, times: I64, kind: int) -> I64:
        """Slots of flows that wait no more now that these completed (0) or started (1)."""
        # Most servers' flows wait for nothing: then nothing is looked through.
        if not self._count[_LIVE]:
            return np.empty(0, np.int64)
        # No more can become free than wait.
        out = np.empty(self._waiting, np.int64)
        free = _feed(self._pages.rows, self._edges, self._count, slots, times, kind, out)
        self._waiting -= free
        return out[:free]

    def finish(self, ids: I64) -> None:
        """These have completed, and were told."""
        self._pages.done(ids)

    def forget(self, oldest: int) -> None:
        """No flow given from now on waits for one of a lower id."""
        self._pages.forget(oldest)
