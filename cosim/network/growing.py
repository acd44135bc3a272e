"""Arrays of compiled loops by name, which grow in Python between two calls of a loop that found one short."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import c_int64
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

CACHE_LINE = 64  # bytes: a record of that size that begins at one is read in one access
_LEAST = 16  # rows: growing from fewer would copy more often than it saves

# What one run lets go of is there for the next: glibc gives large pieces of memory back to the system, and
# takes them from it anew, page by page as they are touched, until a larger one was let go of (mallopt(3),
# M_MMAP_THRESHOLD), as here, untouched.
np.empty(8 << 20, np.uint8)


_HEAD = object.__basicsize__
_word_at = c_int64.from_address


def address_of(array: NDArray[Any]) -> int:
    """Where the values of an array are.

    It is the first field of numpy's ``PyArrayObject``, behind what every object begins with: read there, for
    a run asks a hundred times, and ``array.ctypes.data`` makes an object each time.
    """
    return _word_at(id(array) + _HEAD).value


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array that begins with a cache line, so that records of 64 bytes lie in one each."""
    (made,) = zeros_of({"": (shape, np.dtype(dtype))}).values()
    return made


def zeros_of(rows: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]) -> dict[str, NDArray[Any]]:
    """Several such arrays, of one piece of memory: by name, shape and type."""
    sizes = [prod(shape) * kind.itemsize for shape, kind in rows.values()]
    room = np.zeros(sum(sizes) + CACHE_LINE * len(sizes), np.uint8)
    at = -address_of(room) % CACHE_LINE
    made = {}
    for (name, (shape, kind)), size in zip(rows.items(), sizes, strict=True):
        made[name] = np.ndarray(shape, kind, room, at)
        at += size + -size % CACHE_LINE
    return made


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
        if len(old):
            new[: len(old)] = old
        self[name] = new
        return True
