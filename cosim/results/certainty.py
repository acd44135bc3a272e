"""How certain an iteration time is: an interval around it, and the probability that one job is faster than
another.

A compute model's relative error is taken to be log-normal, with a part that all jobs of a GPU share (its
peaks, its clock) and a part of each job's own (what the model leaves out). An interval has both; of two jobs
on one GPU the common part is the same on both sides and says nothing about which is faster. What the network
model is off by isn't in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import erf, exp, log, sqrt

_Z = {0.5: 0.6745, 0.8: 1.2816, 0.9: 1.6449, 0.95: 1.96}
"""Half widths of the central intervals of a normal distribution, in sigmas."""
LEVEL = 0.8


def interval_ps(time_ps: int, error: Sequence[float], level: float = LEVEL) -> tuple[int, int]:
    """Lower and upper end of the central interval, picoseconds; ``error``: common and own sigma, relative."""
    wide = exp(_Z[level] * sqrt(sum(part * part for part in error)))
    return round(time_ps / wide), round(time_ps * wide)


def faster(a_ps: int, a: Sequence[float], b_ps: int, b: Sequence[float], *, alike: bool = False) -> float:
    """The probability that A takes less time than B; ``alike``: on one kind of GPU."""
    parts = [a[1], b[1]] if alike else [*a, *b]
    sigma = sqrt(sum(part * part for part in parts))
    apart = log(b_ps / a_ps)
    if not sigma:
        return 0.5 if a_ps == b_ps else float(apart > 0)
    return 0.5 * (1 + erf(apart / sigma / sqrt(2)))
