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
_SMALL = 1 << 17  # bytes
Shape = tuple[tuple[int, ...], np.dtype[Any]]
"""Of an array: its lengths, and what its values are."""

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
    return _placed(shape, np.dtype(dtype), prod(shape) * np.dtype(dtype).itemsize)


def _placed(shape: tuple[int, ...], kind: np.dtype[Any], size: int) -> NDArray[Any]:
    room = np.zeros(size + CACHE_LINE, np.uint8)
    return np.ndarray(shape, kind, room, -address_of(room) % CACHE_LINE)


def zeros_of(shapes: Mapping[str, Shape]) -> dict[str, NDArray[Any]]:
    """Several such arrays; those that are small are of one piece of memory, which goes with the last.

    >>> made = zeros_of({"one": ((2,), np.dtype(np.int64)), "other": ((1, 3), np.dtype(np.int8))})
    >>> made["one"], made["other"]
    (array([0, 0]), array([[0, 0, 0]], dtype=int8))
    """
    sizes = [prod(shape) * kind.itemsize for shape, kind in shapes.values()]
    small = [size + CACHE_LINE for size in sizes if size <= _SMALL]
    shared = np.zeros(sum(small), np.uint8) if small else None
    at = 0 if shared is None else -address_of(shared) % CACHE_LINE
    made = {}
    for (name, (shape, kind)), size in zip(shapes.items(), sizes, strict=True):
        if shared is not None and size <= _SMALL:
            made[name] = np.ndarray(shape, kind, shared, at)
            at += size + -size % CACHE_LINE
        else:
            made[name] = _placed(shape, kind, size)
    return made


def _longer(old: NDArray[Any], need: int) -> tuple[int, ...]:
    return (max(need, 2 * len(old), _LEAST), *old.shape[1:])


class GrowingArrays(dict[str, Any]):
    """Arrays by name; what was taken from here before :meth:`reserve` may be stale after it.

    One that grows at least doubles, so that rows that come one by one are copied a bounded number of times;
    rows that are new are zeros, in pages that nobody pays for before they are touched. ``stamp`` is another
    one after each array that was put in the place of one.
    """

    stamp = 0

    def __setitem__(self, name: str, array: Any) -> None:
        self.stamp += 1
        super().__setitem__(name, array)

    def reserve(self, name: str, need: int) -> bool:
        """Have room for ``need`` rows; whether the array had to be replaced."""
        old = self[name]
        if need <= len(old):
            return False
        new = zeros(_longer(old, need), old.dtype)
        if len(old):
            new[: len(old)] = old
        self[name] = new
        return True

    def reserve_all(self, needs: Mapping[str, int]) -> list[str]:
        """Have room for so many rows of each array; which had to be replaced."""
        short = [name for name, need in needs.items() if need > len(self[name])]
        shapes = {name: (_longer(self[name], needs[name]), self[name].dtype) for name in short}
        for name, new in zeros_of(shapes).items():
            old = self[name]
            if len(old):
                new[: len(old)] = old
            self[name] = new
        return short
