"""Periods that go together: a little longer, where their least common multiple would be too long."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

MOST_PERIODS = 1000
"""So many of the shortest period are on a circle at most."""
_FEW_PERIODS = 50
_PARTS = (1e-4, 1e-3, 0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1)


def fitting(
    period_ps: Mapping[int, int], circles: Sequence[Sequence[int]], tolerance: float
) -> dict[int, int] | None:
    """Periods of jobs, each as it is or longer by at most ``tolerance`` of the shortest, so that on each
    circle the least common multiple is at most :data:`MOST_PERIODS` of the shortest; None where there are
    none.
    """
    shortest = min(period_ps.values())
    if _most_rounds(period_ps, circles) <= MOST_PERIODS:
        return {**period_ps}
    units = [int(part * shortest) for part in _PARTS if part <= tolerance]
    tried = [{job: -(-period // unit) * unit for job, period in period_ps.items()} for unit in units if unit]
    for most in (_FEW_PERIODS, MOST_PERIODS):  # once they are rounded, rather to a short circle
        for rounded in tried:
            if _most_rounds(rounded, circles) <= most:
                return rounded
    return None


def _most_rounds(period_ps: Mapping[int, int], circles: Sequence[Sequence[int]]) -> int:
    """How often the shortest period of a circle goes round it, at most."""
    return max(_rounds([period_ps[job] for job in circle]) for circle in circles)


def _rounds(periods: Sequence[int]) -> int:
    return math.lcm(*periods) // min(periods)
