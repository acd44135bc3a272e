"""Repeated blocks of a sequence: layers, micro-batches, one parameter after another.

A row of blocks is a stretch that is like itself, shifted by one block. Of rows within rows the inner ones are
taken where they make up half of a block, so that layers are found within micro-batches; a few equal
operations within a layer are no blocks.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
_MOST = 8192
"""Operations of a block."""
_SHARE = 0.5
_OTHERS = 0.25


def find_blocks(token: I32) -> list[list[int]]:
    """Rows of equal blocks, in order: the places where each block begins, and where the last one ends.

    ``token`` is int32[operations]: equal for operations that are alike. Of blocks that are alike, all rows
    together have a quarter as many operations as the largest such, or as many repetitions.
    """
    rows = _nested(token)
    names = [token[row[0] : row[1]].tobytes() for row in rows]
    size: Counter[bytes] = Counter()
    repeats: Counter[bytes] = Counter()
    for name, row in zip(names, rows, strict=True):
        size[name] += row[-1] - row[0]
        repeats[name] = max(repeats[name], len(row) - 1)
    largest = max(size, key=lambda name: size[name], default=b"")
    return [
        row
        for name, row in zip(names, rows, strict=True)
        if size[name] >= _OTHERS * size[largest] or repeats[name] >= repeats[largest]
    ]


def _nested(token: I32) -> list[list[int]]:
    rows = []
    for begin, period, end in _rows(token):
        inner = _nested(token[begin : begin + period]) if period > 1 else []
        if sum(one[-1] - one[0] for one in inner) >= _SHARE * period:
            for first in range(begin, end, period):
                rows += [[first + at for at in one] for one in inner]
        else:
            rows.append([*range(begin, end + 1, period)])
    return rows


def _rows(token: I32) -> list[tuple[int, int, int]]:
    """(begin, period, end) of rows that don't overlap, those that cover most first, then in order."""
    count = len(token)
    found: list[tuple[int, int, int]] = []
    for period in range(1, min(count // 2, _MOST) + 1):
        alike = np.concatenate([[False], token[:-period] == token[period:], [False]])
        edges = np.flatnonzero(alike[1:] != alike[:-1])
        for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            repeats = (end - begin) // period + 1
            if repeats > 1:
                found.append((begin, period, begin + repeats * period))
    found.sort(key=lambda one: (one[0] - one[2], one[1]))
    free = np.ones(count, bool)
    chosen = []
    for begin, period, end in found:
        if free[begin:end].all():
            free[begin:end] = False
            chosen.append((begin, period, end))
    return sorted(chosen)
