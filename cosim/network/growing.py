"""Arrays of compiled loops by name, which grow in Python between two calls of a loop that found one short."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import c_int64
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

CACHE_LINE = 64  # bytes: a record of that size that begins at one is read in one access
LEAST_ROWS = 16  # rows: growing from fewer would copy more often than it saves
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


class ArrayLayout:
    """Where several such arrays lie: those that are small in one piece of memory, which goes with the last.

    >>> layout = ArrayLayout({"one": ((2,), np.dtype(np.int64)), "other": ((1, 3), np.dtype(np.int8))})
    >>> made = layout.zeros()
    >>> made["one"], made["other"]
    (array([0, 0]), array([[0, 0, 0]], dtype=int8))
    """

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self._small: list[tuple[str, tuple[int, ...], np.dtype[Any], int]] = []
        self._large: list[tuple[str, tuple[int, ...], np.dtype[Any], int]] = []
        at = 0
        for name, (shape, kind) in shapes.items():
            size = prod(shape) * kind.itemsize
            if size > _SMALL:
                self._large.append((name, shape, kind, size))
            else:
                self._small.append((name, shape, kind, at))
                at += size + -size % CACHE_LINE
        self._room = at + CACHE_LINE if self._small else 0

    def zeros(self) -> dict[str, NDArray[Any]]:
        """New arrays, all zero."""
        made: dict[str, NDArray[Any]] = {}
        if self._small:
            shared = np.zeros(self._room, np.uint8)
            first = -address_of(shared) % CACHE_LINE
            for name, shape, kind, at in self._small:
                made[name] = np.ndarray(shape, kind, shared, first + at)
        for name, shape, kind, size in self._large:
            made[name] = _placed(shape, kind, size)
        return made


def _longer(old: NDArray[Any], need: int) -> tuple[int, ...]:
    return (max(need, 2 * len(old), LEAST_ROWS), *old.shape[1:])


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
        shapes: dict[str, Shape] = {}
        for name, need in needs.items():
            old = self[name]
            if need > len(old):
                shapes[name] = _longer(old, need), old.dtype
        if shapes:
            news = ArrayLayout(shapes).zeros()
            for name, new in news.items():
                old = self[name]
                if len(old):
                    new[: len(old)] = old
            self.update(news)
            self.stamp += 1
        return [*shapes]
