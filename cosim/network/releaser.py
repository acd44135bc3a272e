"""Releasing dependent flows outside a network: the same store, and so the same times, as within one.

For the engine (``release: engine``), and for dependencies that lead from one network to another.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosim.network.flows import I32, I64, FlowGroup
from cosim.network.jit import compiled
from cosim.network.store import DRAINED, NEED_OUT, STARTED, FlowStore, Store, drain, note


@compiled
def _note_all(store: Store, handle: I32, rep: I32, row: I32, time: I64, kind: int) -> None:
    for k in range(len(handle)):
        r = store.rows[row[k]]
        if (kind == STARTED and r.middle < r.last) or (kind != STARTED and r.first < r.middle):
            note(store, handle[k], rep[k], row[k], time[k], kind)


@compiled
def _drain(store: Store) -> int:
    return drain(store)


class Releaser:
    """Follows the dependencies of groups. Starts come out as columns."""

    def __init__(self) -> None:
        self._store = FlowStore()

    def open(self, group: FlowGroup) -> None:
        """Follow a group's dependencies."""
        self._store.open(replace(group, release="network"))

    def close(self, handle: int) -> None:
        """Forget a group that ended."""
        self._store.close(handle)

    def feed(self, handle: I32, index: I64, time_ps: I64, kind: int) -> list[tuple[I32, I64, I64, I64]]:
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
