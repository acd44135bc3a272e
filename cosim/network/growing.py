"""Arrays of compiled loops by name, which grow in Python between two calls of a loop that found one short."""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

CACHE_LINE = 64  # bytes: a record of that size that begins at one is read in one access
_LEAST = 16  # rows: growing from fewer would copy more often than it saves


_ANY_ROOM: Any = ctypes.c_char * 0


def address_of(array: NDArray[Any]) -> int:
    """Where the values of a C-contiguous array are."""
    if array.flags.writeable:
        return ctypes.addressof(_ANY_ROOM.from_buffer(array))
    return array.ctypes.data  # four times as slow, and asked for of each array of a run


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array that begins with a cache line, so that records of 64 bytes lie in one each."""
    size = prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + CACHE_LINE, np.uint8)
    skip = -address_of(room) % CACHE_LINE
    return np.ndarray(shape, dtype, room, skip)


class GrowingArrays(dict[str, Any]):
    """Arrays by name; what was taken from here before :meth:`reserve` may be stale after it."""

    def reserve(self, name: str, need: int) -> bool:
        """Have room for ``need`` rows; whether the array had to be replaced.

        It at least doubles, so that rows that come one by one are copied a bounded number of times; rows that
        are new are zeros, in pages that nobody pays for before they are touched.
        """
        old = self[name]
        if need <= len(old):
            return False
        new = zeros((max(need, 2 * len(old), _LEAST), *old.shape[1:]), old.dtype)
        new[: len(old)] = old
        self[name] = new
        return True
