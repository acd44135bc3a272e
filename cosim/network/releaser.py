"""Releasing dependent flows outside a network: the same store, and so the same times, as within one.

For the engine (``release: engine``), and for dependencies that lead from one network to another.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.kernel import kernel
from cosim.kernel.columns import longer
from cosim.network.flows import I32, I64, Completions, FlowGroup
from cosim.network.store import COMPLETED, FlowStore

Starts = tuple[I32, I64, I64, I64]
"""Columns: handle, index, start, cause."""


class Releaser:
    """Follows the dependencies of groups. Starts come out as columns."""

    def __init__(self) -> None:
        self._store = FlowStore()
        self._left = np.zeros(0, np.int64)  # flows to complete, by handle
        self.num_followed = 0
        """Groups under way."""

    def open(self, group: FlowGroup) -> None:
        """Follow the dependencies of a group."""
        self._store.open(replace(group, release="network"))
        self._left = longer(self._left, group.handle + 1)
        self._left[group.handle] = group.table.num_flows
        self.num_followed += 1

    def close(self, handle: int) -> None:
        """Forget a group that ended."""
        self._store.close(handle)
        self._left[handle] = 0
        self.num_followed -= 1

    def follows(self, handle: I32) -> NDArray[np.bool_]:
        """Whether each handle's dependencies are followed here."""
        left = self._left
        known = (handle >= 0) & (handle < len(left))
        return known & (left[np.where(known, handle, 0)] > 0) if len(left) else known

    def complete(self, done: Completions) -> tuple[int, list[Starts]]:
        """Flows completed: the earliest time at which the caller may react to one, and what may start now.

        To what isn't followed the caller may react at once; groups are closed with their last flow.
        """
        order = np.argsort(done.handle, kind="stable")
        handle, index, time_ps = done.handle[order], done.index[order], done.time_ps[order]
        known = np.zeros(len(order), np.int8)
        given = len(self._left), self._left, len(order), handle, index, time_ps, known
        bound = int(kernel.count_down(self._store.columns, *given))
        at = np.flatnonzero(known)
        released = self.released_by(handle[at], index[at], time_ps[at], COMPLETED) if len(at) else []
        for one in dict.fromkeys(handle[at].tolist()):
            if not self._left[one]:
                self.close(one)
        return bound, released

    def released_by(self, handle: I32, index: I64, time_ps: I64, kind: int) -> list[Starts]:
        """Flows completed or started; batches of (handle, index, start, cause) that may start now."""
        rep, row = self._store.locate(handle, index)
        store = self._store.columns
        kernel.note_flows(store, len(handle), handle, rep, row, time_ps, kind)
        released = []
        is_more = True
        while is_more:
            is_more = kernel.drain_some(store)
            state = store.state[0]
            if count := int(state["num_released"]):
                out = store.released[:count]
                state["num_released"] = 0
                place = store.reps[out["rep"]]
                number = np.asarray(place["base"] + out["row"] - place["row"], np.int64)
                released.append((out["handle"].copy(), number, out["start"].copy(), out["cause"].copy()))
        return released
