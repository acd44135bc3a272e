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
    times = np.concatenate([start_ps[some], end_ps[some]])
    first, span = int(times.min()), int(times.max()) - int(times.min()) + 1
    moments = None
    kinds = 2 * num_layers
    if num_keys * span * kinds >= 1 << 62:
        moments, times = np.unique(times, return_inverse=True)
        first, span = 0, len(moments)
    # One number for each start and end, so that they are sorted as they are and not by their places.
    kind = np.concatenate([layer[some].astype(np.int64), layer[some].astype(np.int64) + num_layers])
    events = (np.tile(key[some].astype(np.int64), 2) * span + times - first) * kinds + kind
    events.sort()
    when, kind = np.divmod(events, kinds)
    state = np.zeros(2 * count, np.int64)
    for bit in range(num_layers):
        step = np.zeros(kinds, np.int32)
        step[[bit, bit + num_layers]] = 1, -1
        # Every interval that a key opens it closes, so the sum is 0 again where the next key begins.
        state |= (np.cumsum(step[kind]) > 0).astype(np.int64) << bit
    lasting = np.flatnonzero(state[:-1])
    keys, times = np.divmod(when[lasting], span)
    lengths = when[lasting + 1] - when[lasting]
    if moments is not None:
        lengths = moments[times + lengths] - moments[times]
    np.add.at(out.reshape(-1), (keys << num_layers) + state[lasting], lengths)
    return out


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
