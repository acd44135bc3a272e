"""Which points can't be beaten: Pareto fronts of losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


def moved(losses: F64, slack: float) -> F64:
    """Losses that are worse by a share, better where it is below 0: of gains (below 0) as of costs."""
    factor = 1 + slack
    return np.where(losses >= 0, losses * factor, losses / factor)


def is_beaten(bounds: Sequence[float], found: F64, slack: float = 0.0) -> bool:
    """Whether some of ``found`` (float64[points, objectives]), made worse by the slack, is nowhere above the
    bounds: then what has these bounds can't be better.
    """
    if not len(found):
        return False
    return bool((moved(found, slack) <= np.array(bounds)).all(axis=1).any())


def front(losses: F64) -> list[int]:
    """Rows that no other beats: none is as good everywhere and better somewhere; of equals the first."""
    kept: list[int] = []
    order = np.lexsort(losses.T[::-1])
    for row in order.tolist():
        if np.isfinite(losses[row]).all() and not is_beaten(losses[row].tolist(), losses[kept]):
            kept.append(row)
    return kept
