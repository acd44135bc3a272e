"""Where arrays are and how long, of many at once: read from numpy's own records of them.

A run hands some 150 arrays to compiled code. Asked one by one in Python, that takes longer than many a small
run's loop; so one compiled call reads what numpy's C interface lays down as ``PyArrayObject``, behind what
every object begins with: where the values are, how many dimensions there are, where their lengths are; and
further on its type and flags.

Source: numpy/ndarraytypes.h, ``struct tagPyArrayObject_fields``, the same in all of NumPy 1 and 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cosim.network.flows import I64
from cosim.network.jit import compiled, word_at

PART = -1
"""Of an object that is no array, but made of some."""
MOST_WORDS = 3
"""Of an array: its address, and the lengths of up to two dimensions."""

_HEAD = object.__basicsize__
_DIMENSIONS, _SHAPE, _KIND, _FLAGS = (_HEAD + 8 * k for k in (1, 2, 5, 6))
_CONTIGUOUS = 1
_INT = (1 << 32) - 1


@compiled
def _describe(objects: I64, array: int, table: I64, kinds: I64) -> bool:
    """Write the words of each object, and its kind: where numpy's type of its values is, and dimensions;
    False: one has no words.
    """
    at = 0
    for k in range(len(objects)):
        one = objects[k]
        if word_at(one + _HEAD - 8) != array:
            kinds[k] = PART
            at += 1
            continue
        dimensions = word_at(one + _DIMENSIONS) & _INT
        if dimensions + 1 > MOST_WORDS or word_at(one + _FLAGS) & _CONTIGUOUS == 0:
            return False
        kinds[k] = word_at(one + _KIND) + dimensions
        table[at] = word_at(one + _HEAD)
        at += 1
        for dimension in range(dimensions):
            table[at] = word_at(word_at(one + _SHAPE) + 8 * dimension)
            at += 1
    return True


def describe(objects: Sequence[Any], table: I64) -> bytes:
    """Write the address and shape of each array into a table, a word of any value for each :data:`PART`; what
    kinds these are: equal for equal types and numbers of dimensions, as long as those types are held.
    """
    count = len(objects)
    kinds = np.empty(count, np.int64)
    described = _describe(np.fromiter(map(id, objects), np.int64, count), id(np.ndarray), table, kinds)
    assert described, "an array that is not in one piece, or of more than two dimensions"
    return kinds.tobytes()
