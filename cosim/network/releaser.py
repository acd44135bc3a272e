"""Releasing dependent flows outside a network: the same store, and so the same times, as within one.

For the engine (``release: engine``), and for dependencies that lead from one network to another.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosim.network.calendar import Records
from cosim.network.flows import I32, I64, FlowGroup
from cosim.network.jit import compiled
from cosim.network.store import DRAINED, NEED_OUT, OUT_N, STARTED, FlowStore, Store, drain, note


@compiled
def _note_all(
    count: I64, work: Records, rows: Records, handle: I32, rep: I32, row: I32, time: I64, kind: int
) -> None:
    for k in range(len(handle)):
        r = rows[row[k]]
        if (kind == STARTED and r.middle < r.last) or (kind != STARTED and r.first < r.middle):
            note(count, work, handle[k], rep[k], row[k], time[k], kind)


@compiled
def _drain(store: Store) -> int:
    return drain(*store)


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
        counts, rows, _, _, _, _, _, _, work, _ = self._store.view()
        _note_all(counts, work, rows, handle, rep, row, time_ps, kind)
        released = []
        while True:
            store = self._store.view()
            status = _drain(store)
            counts, _, _, reps, _, _, _, _, _, buffer = store
            if counts[OUT_N]:
                out = buffer[: int(counts[OUT_N])].copy()
                counts[OUT_N] = 0
                place = reps[out["rep"]]
                number = np.asarray(place["base"] + out["row"] - place["row"], np.int64)
                released.append((out["handle"].copy(), number, out["start"].copy(), out["cause"].copy()))
            if status == DRAINED:
                return released
            if status != NEED_OUT or not released:
                self._store.grow(int(status))
