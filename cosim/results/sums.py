"""Sums that may leave 64 bits: of times, each of which may be 53 days."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LOW = 32
"""Bits of the lower half of a number."""
_SMALL = 1 << 30
"""Higher halves below it leave room in 64 bits for what lower ones carry."""


def exact_sum(values: NDArray[np.int64]) -> int:
    """The sum of int64 values, exact however large it is: high and low halves are summed apart."""
    return (int((values >> _LOW).sum()) << _LOW) + int((values & ((1 << _LOW) - 1)).sum())


class ExactSums:
    """Sums of int64 values, ``count`` of them, each as :func:`exact_sum`."""

    def __init__(self, count: int) -> None:
        self._high, self._low = np.zeros(count, np.int64), np.zeros(count, np.int64)

    def add(self, places: NDArray[np.int64], values: NDArray[np.int64]) -> None:
        """``values[k]`` is added to the sum at ``places[k]``."""
        np.add.at(self._high, places, values >> _LOW)
        np.add.at(self._low, places, values & ((1 << _LOW) - 1))

    def total(self) -> NDArray[Any]:
        """int64[count]; Python's integers where one is beyond it."""
        high = self._high
        if (np.abs(high) >= _SMALL).any():
            high = high.astype(object)
        return np.asarray((high << _LOW) + self._low)
