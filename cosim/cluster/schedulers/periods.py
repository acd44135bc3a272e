"""Periods that go together: a little longer, where their least common multiple would be too long."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

MOST_PERIODS = 1000
"""Of the shortest on a circle."""
_PARTS = (1e-4, 1e-3, 0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1)


def fitting(
    period_ps: Mapping[int, int], circles: Sequence[Sequence[int]], tolerance: float
) -> dict[int, int] | None:
    """Periods of jobs, each as it is or longer by at most ``tolerance`` of the shortest, so that on each
    circle the least common multiple is at most :data:`MOST_PERIODS` of the shortest; None where there are
    none.
    """
    shortest = min(period_ps.values())
    for part in (0.0, *(part for part in _PARTS if part <= tolerance)):
        unit = max(1, int(part * shortest))
        rounded = {job: -(-period // unit) * unit for job, period in period_ps.items()}
        if all(_rounds([rounded[job] for job in circle]) <= MOST_PERIODS for circle in circles):
            return rounded
    return None


def _rounds(periods: Sequence[int]) -> int:
    return math.lcm(*periods) // min(periods)
