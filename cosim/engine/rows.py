"""Rows of whole numbers in columns, sorted: by as few keys as hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.network.flows import I64

_ROOM = 1 << 62
"""Fewer values than this are an int64."""


def order_of_rows(*columns: NDArray[Any]) -> I64:
    """Positions of all rows, sorted by the first column, then by the next, and so on; equal rows stay."""
    return _sorted(*columns)[0]


def rows_of_kinds(kind: NDArray[np.integer[Any]], count: int) -> list[I64]:
    """Positions of the rows of each of ``count`` kinds, in their order.

    >>> rows_of_kinds(np.array([1, 0, 1]), 3)
    [array([1]), array([0, 2]), array([], dtype=int64)]
    """
    ends = np.cumsum(np.bincount(kind, minlength=count))
    return np.split(np.argsort(kind, kind="stable"), ends[:-1])


def unique_rows(*columns: NDArray[Any]) -> tuple[I64, I64]:
    """(Positions of one row of each kind, in ascending order of kinds; int64[rows]: the kind of each row)."""
    order, keys = _sorted(*columns)
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0)
    kind = np.empty(len(order), np.int64)
    kind[order] = np.cumsum(is_first) - 1
    return order[is_first], kind


def _sorted(*columns: NDArray[Any]) -> tuple[I64, list[I64]]:
    """The order of rows, and the few keys that it is the order of."""
    keys, values = _pack(*columns)
    return np.lexsort(keys[::-1]) if len(keys) > 1 else _order(keys[0], values), keys


def _order(key: I64, values: int) -> I64:
    """Positions of rows, sorted by numbers from 0 to below ``values``; equal rows stay.

    Numbers of 16 bits are counted by numpy, and not compared.
    """
    return (key.astype(np.uint16) if values <= 1 << 16 else key).argsort(kind="stable")


def _pack(*columns: NDArray[Any]) -> tuple[list[I64], int]:
    """Keys of which rows are equal, and in order, where those of ``columns`` are: as few as hold them; how
    many values the last of them may have.
    """
    keys: list[I64] = []
    values = _ROOM
    for column in columns:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        width = high - low + 1
        if width >= _ROOM:
            keys.append(column.astype(np.int64))
            values = _ROOM
        elif values <= (_ROOM - 1) // width:
            keys[-1] = keys[-1] * width + (column.astype(np.int64) - low)
            values *= width
        else:
            keys.append(column.astype(np.int64) - low)
            values = width
    return keys, values
