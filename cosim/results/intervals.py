"""Intervals: how long was what under way, for many keys (ranks) and a few layers at once.

One sort of all starts and ends, then cumulative sums: a million intervals take a fraction of a second,
and sums are exact, being integers throughout.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

I8 = NDArray[np.int8]
I64 = NDArray[np.int64]


def time_in_states(key: I64, layer: I8, start_ps: I64, end_ps: I64, num_keys: int, num_layers: int) -> I64:
    """Time that each key spends in each combination of layers.

    Interval i covers [``start_ps[i]``, ``end_ps[i]``) in layer ``layer[i]`` of key ``key[i]``; intervals of
    one layer may overlap, and count once.

    Returns
    -------
    int64[num_keys, 2**num_layers]
        Column s is the time during which exactly the layers of the bits of s have an interval; column 0,
        the time without any, stays 0 because a key has no first and no last moment here.
    """
    out = np.zeros((num_keys, 1 << num_layers), np.int64)
    some = end_ps > start_ps
    count = int(some.sum())
    if count == 0:
        return out
    keys = np.tile(key[some].astype(np.int64), 2)
    layers = np.tile(layer[some], 2)
    times = np.concatenate([start_ps[some], end_ps[some]])
    order = _order(keys, times, num_keys)
    keys, times, layers = keys[order], times[order], layers[order]
    step = np.where(order < count, 1, -1).astype(np.int32)
    state = np.zeros(2 * count, np.int64)
    for bit in range(num_layers):
        # Every interval that a key opens it closes, so the sum is 0 again where the next key begins.
        under_way = np.cumsum(np.where(layers == bit, step, 0)) > 0
        state |= under_way.astype(np.int64) << bit
    lasting = state[:-1] > 0
    np.add.at(out, (keys[:-1][lasting], state[:-1][lasting]), np.diff(times)[lasting])
    return out


def _order(keys: I64, times: I64, num_keys: int) -> I64:
    """Permutation that sorts by (key, time); the order of equals doesn't matter to a sum of lengths."""
    low, span = int(times.min()), int(times.max()) - int(times.min()) + 1
    if num_keys * span < 1 << 62:
        return np.argsort(keys * span + (times - low))
    return np.lexsort((times, keys))


def lanes(start_ps: I64, end_ps: I64) -> I64:
    """Lane of each interval, so that no two in a lane overlap; the lowest free lane is taken, in start order.

    Returns
    -------
    int64[n]
    """
    out = np.zeros(len(start_ps), np.int64)
    free_at: list[int] = []
    for i in np.lexsort((end_ps, start_ps)):
        begin = int(start_ps[i])
        lane = next((k for k, free in enumerate(free_at) if free <= begin), len(free_at))
        if lane == len(free_at):
            free_at.append(0)
        free_at[lane] = int(end_ps[i])
        out[i] = lane
    return out
