"""Rows of a kind: equal in several columns of whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]


def kinds(*columns: NDArray[Any]) -> tuple[I64, I64]:
    """(A row of each kind, the first of it; the kind of each row): int64[kinds], int64[rows].

    Columns hold whole numbers from 0 on. Kinds are numbered in the order in which they first come.

    >>> kinds(np.array([7, 3, 7, 7]), np.array([0, 0, 1, 0]))
    (array([0, 1, 2]), array([0, 1, 2, 0]))
    """
    rows = len(columns[0])
    kind, count = np.zeros(rows, np.int64), 1
    for column in columns:
        values, most = _numbered(column.astype(np.int64), int(column.max(initial=0)) + 1)
        kind, count = _numbered(kind * most + values, count * most)
    first = np.full(count if rows else 0, rows, np.int64)
    first[kind[::-1]] = np.arange(rows)[::-1]  # of several, the last one written stays
    order = np.argsort(first)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return first[order], number[kind]


def _numbered(values: I64, limit: int) -> tuple[I64, int]:
    """Values below ``limit`` numbered without gaps, in their order; how many there are. By a table where it
    is no longer than the values, which takes a fraction of the time of sorting them.
    """
    if limit > 4 * len(values):
        found, of = np.unique(values, return_inverse=True)
        return of, max(len(found), 1)
    is_there = np.zeros(limit, np.bool_)
    is_there[values] = True
    number = np.cumsum(is_there) - 1
    return number[values], max(int(is_there.sum()), 1)
