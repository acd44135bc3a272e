"""Balancers that are built in, again as a user would write them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from cosim.network.balancing.balancers.adaptive import Adaptive
from cosim.network.balancing.balancers.valiant import Valiant
from cosim.network.balancing.balancers.weighted import Weighted


def _drawn(c: Any, lot: Any) -> Any:
    """A path by lot, the next one that is up where it is down."""
    start = np.minimum((lot * c.paths).astype(int), c.paths.astype(int) - 1)
    width = c.path_alive.shape[1]
    path = (start[:, None] + np.arange(width)) % c.paths.astype(int)[:, None]
    up = np.take_along_axis(c.path_alive, path, axis=1) != 0
    first = np.where(up.any(axis=1), up.argmax(axis=1), 0)
    return path[np.arange(len(c)), first]


class NumpyValiant(Valiant):
    """Valiant again"""

    kernel: ClassVar[Any] = None

    def choose(self, c: Any) -> None:
        has = np.maximum(c.path, 0).astype(int)
        moves = (c.begins_message != 0) | (c.path_alive[np.arange(len(c)), has] == 0)
        c.path = np.where(moves, _drawn(c, c.chance), c.path)


class NumpyWeighted(Weighted):
    """Weighted again"""

    kernel: ClassVar[Any] = None

    def choose(self, c: Any) -> None:
        for i in range(len(c)):
            up = np.flatnonzero(c.path_alive[i])
            if (c.path[i] >= 0 and c.path[i] in up) or not len(up):
                c.path[i] = max(c.path[i], 0)
                continue
            left, path = float(c.hash[i]) * float(sum(c.path_rate[i, up].tolist())), up[0]
            for path in up:
                left -= c.path_rate[i, path]
                if left < 0:
                    break
            c.path[i] = path


class NumpyAdaptive(Adaptive):
    """Adaptive again"""

    kernel: ClassVar[Any] = None

    def choose(self, c: Any) -> None:
        base = np.maximum(c.base_rtt, 1.0)[:, None]
        free = c.path_rate * np.maximum(1.0 - c.path_load, 1 / 64) / (1.0 + c.path_queue / base)
        free = free * c.path_alive
        known = c.parts * c.path_alive
        # One after the other, as the kernel adds them up.
        total, kept = (np.cumsum(of, axis=1)[:, -1:] for of in (free, known))
        with np.errstate(invalid="ignore", divide="ignore"):
            moved = 0.5 * c.parts * c.path_alive / kept + 0.5 * free / total
            parts = np.where(kept == 0, free / total, moved)
        inside = np.arange(c.parts.shape[1]) < c.paths[:, None]
        dead = ~(c.path_alive != 0).any(axis=1, keepdims=True)
        c.parts = np.where(inside, np.where(dead, 1.0 / c.paths[:, None], parts), 0.0)
        every, least = self.parameters()
        c.again = every if every > 0 else np.maximum(c.rtt, least)
