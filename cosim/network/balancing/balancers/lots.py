"""Drawing a path by lot, among those that are up."""

from __future__ import annotations

from typing import Any

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
