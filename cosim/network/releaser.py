"""Releasing dependent flows outside a network: the same store, and so the same times, as within one.

For the engine (``release: engine``), and for dependencies that lead from one network to another.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.network.dependencies import find_flows
from cosim.network.flows import I8, I32, I64, Completions, FlowGroup
from cosim.network.growing import GrowingArrays
from cosim.network.jit import compiled
from cosim.network.store import COMPLETED, DRAINED, NEED_OUT, STARTED, FlowStore, Store, drain, note
from cosim.units import NEVER

Starts = tuple[I32, I64, I64, I64]
"""Columns: handle, index, start, cause."""


@compiled
def _note_all(store: Store, handle: I32, rep: I32, row: I32, time: I64, kind: int) -> None:
    for k in range(len(handle)):
        r = store.rows[row[k]]
        if (kind == STARTED and r.middle < r.last) or (kind != STARTED and r.first < r.middle):
            note(store, handle[k], rep[k], row[k], time[k], kind)


@compiled
def _drain(store: Store) -> int:
    return drain(store)


@compiled
def _count(store: Store, left: I64, handle: I32, index: I64, time: I64, known: I8, rep: I32, row: I32) -> int:
    """Count completions down; the earliest reaction to one. ``known``: which are of flows that are open;
    ``rep`` and ``row`` have room for one.
    """
    bound = NEVER
    for k in range(len(handle)):
        one = handle[k]
        if not 0 <= one < len(left) or left[one] == 0:
            continue
        if find_flows(store.groups, store.reps, handle[k : k + 1], index[k : k + 1], rep, row) >= 0:
            continue
        known[k] = 1
        left[one] -= 1
        reaction = store.rows[row[0]].reaction
        # Compared before it is added: a reaction of NEVER and a time would leave 64 bits.
        if reaction < bound - time[k]:
            bound = time[k] + reaction
    return bound


class Releaser:
    """Follows the dependencies of groups. Starts come out as columns."""

    def __init__(self) -> None:
        self._store = FlowStore()
        self._columns = GrowingArrays(left=np.zeros(0, np.int64), followed=np.zeros(0, np.int8))

    def open(self, group: FlowGroup, *, followed: bool = True) -> None:
        """Know a group; ``followed``: and its dependencies."""
        self._store.open(replace(group, release="network" if followed else "caller"))
        for name, value in (("left", group.table.num_flows), ("followed", followed)):
            self._columns.reserve(name, group.handle + 1)
            self._columns[name][group.handle] = value

    def close(self, handle: int) -> None:
        """Forget a group that ended."""
        self._store.close(handle)
        self._columns["left"][handle] = 0

    def follows(self, handle: I32) -> NDArray[np.bool_]:
        """Of which handles the dependencies are followed here; of those that nobody knows they aren't."""
        left, followed = self._columns["left"], self._columns["followed"]
        known = (handle >= 0) & (handle < len(left))
        at = np.where(known, handle, 0)
        return known & (left[at] > 0) & (followed[at] > 0) if len(left) else known

    def complete(self, done: Completions) -> tuple[int, list[Starts]]:
        """Flows completed: the earliest time at which the caller may react to one, and what may start now.

        What isn't under way is left out, for the caller to refuse; groups are closed with their last flow.
        """
        order = np.argsort(done.handle, kind="stable")
        handle, index, time_ps = done.handle[order], done.index[order], done.time_ps[order]
        followed = self.follows(handle)
        known = np.zeros(len(order), np.int8)
        columns = self._columns["left"], handle, index, time_ps, known
        bound = int(_count(self._store.view(), *columns, np.empty(1, np.int32), np.empty(1, np.int32)))
        at = np.flatnonzero(followed & (known > 0))
        released = self.feed(handle[at], index[at], time_ps[at], COMPLETED) if len(at) else []
        for one in np.unique(handle[known > 0]).tolist():
            if not self._columns["left"][one]:
                self._store.close(one)
        return bound, released

    def feed(self, handle: I32, index: I64, time_ps: I64, kind: int) -> list[Starts]:
        """Flows completed or started; batches of (handle, index, start, cause) that may start now."""
        rep, row = self._store.locate(handle, index)
        self._store.reserve_work(len(handle))
        _note_all(self._store.view(), handle, rep, row, time_ps, kind)
        released = []
        while True:
            store = self._store.view()
            status = _drain(store)
            state = store.state[0]
            if state["num_out"]:
                out = store.out[: int(state["num_out"])].copy()
                state["num_out"] = 0
                place = store.reps[out["rep"]]
                number = np.asarray(place["base"] + out["row"] - place["row"], np.int64)
                released.append((out["handle"].copy(), number, out["start"].copy(), out["cause"].copy()))
            if status == DRAINED:
                return released
            if status != NEED_OUT or not released:
                self._store.grow(int(status))
