"""Rows of whole numbers in columns, sorted: by as few keys as hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.network.flows import I64
from cosim.network.jit import compiled


def order_of_rows(*columns: NDArray[Any]) -> I64:
    """Positions of all rows, sorted by the first column, then by the next, and so on; equal rows stay."""
    return _sorted(*columns)[0]


def unique_rows(*columns: NDArray[Any]) -> tuple[I64, I64]:
    """(Positions of one row of each kind, in ascending order of kinds; int64[rows]: the kind of each row)."""
    order, keys = _sorted(*columns)
    one, kind = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    return one[: int(_number_kinds(keys, len(keys), order, one, kind))], kind


def _sorted(*columns: NDArray[Any]) -> tuple[I64, I64]:
    """The order of rows, and the few keys that it is the order of."""
    given = np.empty((len(columns), len(columns[0])), np.int64)
    for row, column in zip(given, columns, strict=True):
        row[:] = column
    keys = np.empty_like(given)
    used, values = _pack(given, keys)
    keys = keys[:used]
    return np.lexsort(keys[::-1]) if used > 1 else _order(keys[0], values), keys


def _order(key: I64, values: int) -> I64:
    """Positions of rows, sorted by numbers from 0 to below ``values``; equal rows stay.

    Numbers of 16 bits are counted by numpy, and not compared.
    """
    return (key.astype(np.uint16) if values <= 1 << 16 else key).argsort(kind="stable")


@compiled
def _pack(columns: I64, keys: I64) -> tuple[int, int]:
    """Columns of which rows are equal, and in order, where those of ``columns`` are: as few as hold them,
    since it is sorted by each; (how many, how many values the last of them may have).
    """
    values = _ROOM  # of the last key
    used = 0
    for k in range(columns.shape[0]):
        low = _ROOM
        high = -_ROOM
        for row in range(columns.shape[1]):
            low = min(low, columns[k, row])
            high = max(high, columns[k, row])
        # Not their difference, which might leave int64.
        wide = high // 2 - low // 2 >= _ROOM // 2 - 1
        width = _ROOM if wide else max(high - low, 0) + 1
        if not wide and values <= (_ROOM - 1) // width:
            for row in range(columns.shape[1]):
                keys[used - 1, row] = keys[used - 1, row] * width + (columns[k, row] - low)
            values *= width
            continue
        if wide:
            low = 0
        for row in range(columns.shape[1]):
            keys[used, row] = columns[k, row] - low
        used += 1
        values = width
    return used, values


@compiled
def _number_kinds(keys: I64, few: int, order: I64, one: I64, kind: I64) -> int:
    """Say the first row of each kind in an order of all rows, and the kind of each; how many there are."""
    kinds = 0
    for k in range(len(order)):
        fresh = k == 0
        for key in range(few):
            fresh = fresh or keys[key, order[k]] != keys[key, order[k - 1]]
        if fresh:
            one[kinds] = order[k]
            kinds += 1
        kind[order[k]] = kinds - 1
    return kinds


_ROOM = 1 << 62
"""Fewer values than this are an int64."""
