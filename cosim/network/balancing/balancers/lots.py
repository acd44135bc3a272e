"""Drawing a path by lot, among those that are up."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable


@register_jitable
def drawn(row: Any, paths: Any, i: int, lot: float) -> float:
    """A path of row ``i`` by a number from 0 to 1; the next one where it is down."""
    count = int(row.paths)
    start = min(int(lot * count), count - 1)
    for k in range(count):
        path = (start + k) % count
        if paths[i, path].alive != 0.0:
            return float(path)
    return float(start)


@register_jitable
def num_alive(row: Any, paths: Any, i: int) -> int:
    """How many paths of row ``i`` are up."""
    count = 0
    for k in range(int(row.paths)):
        if paths[i, k].alive != 0.0:
            count += 1
    return count


@register_jitable
def hashed_path(row: Any, k: int) -> int:
    """Where switches hash entropy ``k`` of a connection to: a path by lot, always the same (splitmix64)."""
    z = np.uint64(int(row.hash * 2.0**53)) + np.uint64(k + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return int(z >> np.uint64(33)) % int(row.paths)


@register_jitable
def give_out(row: Any, paths: Any, i: int, whole: float, entropies: int) -> None:
    """Add ``whole`` of row ``i`` to the parts of its paths that are up: by as many entropies, which switches
    hash to paths, or to all alike (0).
    """
    count = int(row.paths)
    up = 0
    if entropies == 0:
        up = num_alive(row, paths, i)
    else:
        for k in range(entropies):
            if paths[i, hashed_path(row, k)].alive != 0.0:
                up += 1
    if up == 0:  # what they hash to is down: any other path
        entropies = 0
        up = num_alive(row, paths, i)
    if up == 0:
        for k in range(count):
            paths[i, k].part += whole / count
    elif entropies == 0:
        for k in range(count):
            paths[i, k].part += whole * paths[i, k].alive / up
    else:
        for k in range(entropies):
            path = paths[i, hashed_path(row, k)]
            path.part += whole * path.alive / up
