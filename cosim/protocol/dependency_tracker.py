"""Releasing flat flows when what they wait for is there: for a server whose network doesn't."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.kernel import Columns, kernel, record
from cosim.network.flows import I64
from cosim.protocol.flat_flows import FlatFlows
from cosim.protocol.pages import Pages

FLOW = record("awaited_flow")
NO = kernel.NONE


class _Edges(Columns):
    """Who waits for whom: a list for each flow that somebody waits for."""

    container = "edges"


class DependencyTracker:
    """Flows by id, and who waits for whom. Rows are ``rows[slots(ids)]``; they go when :meth:`finish` and
    :meth:`forget` have both passed them.
    """

    def __init__(self) -> None:
        self._pages = Pages(FLOW)
        self._edges = _Edges(unused=NO)
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
        return self._pages.held + len(self._edges.edges)

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
        out = np.empty(count, np.int64)
        others = self.slots(flows.dependency_id)
        columns = flows.dependency_ptr, others, flows.dependency_kind
        free = kernel.await_others(self._edges, rows, count, slots, *columns, out)
        self._waiting += int((np.diff(flows.dependency_ptr) > 0).sum()) - free
        return slots, out[:free]

    def released_by(self, slots: I64, times: I64, kind: int) -> I64:
        """Slots of flows that wait no more now that these completed (0) or started (1)."""
        # Most servers' flows wait for nothing: then nothing is looked through.
        if not self._edges.live:
            return np.empty(0, np.int64)
        # No more can become free than wait.
        out = np.empty(self._waiting, np.int64)
        free = kernel.tell_awaiting(self._edges, self._pages.rows, len(slots), slots, times, kind, out)
        self._waiting -= free
        return out[:free]

    def finish(self, ids: I64) -> None:
        """These have completed, and were told."""
        self._pages.done(ids)

    def forget(self, oldest: int) -> None:
        """No flow given from now on waits for one of a lower id."""
        self._pages.forget(oldest)
