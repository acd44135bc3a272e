"""Sums that may leave 64 bits: of times, each of which may be 53 days."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def exact_sum(values: NDArray[np.int64]) -> int:
    """The sum of int64 values, exact however large it is: high and low halves are summed apart."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
