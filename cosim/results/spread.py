"""When bytes went over a link, where only their arrival is known: spread over the time before it.

Traffic is booked when a message arrives. What the link carried over time is known too, from the network, and
can't be more than its rate. So what arrived is put back: to the latest time at or before its arrival at which
the link carried something that is nobody's yet. Where several wait for one such time, each has its share of
what waits. Of messages that shared a link evenly, one behind the other or side by side, that is exactly what
happened; of others, who had how much within a busy time may differ, its sum doesn't.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
_COARSE = 4
"""A link's bins may be so many times as long as those in which bytes arrived."""


def sent_over(arrived: I64, busy_ps: I64, bin_ps: int, rate_bps: F64, edges_ps: I64, end_ps: int) -> I64:
    """Bytes of each row between ``edges_ps`` as links sent them, int64[rows, bins], of int64[rows, bins] as
    they arrived.

    Parameters
    ----------
    arrived
        All that these links carried, whose it is by rows.
    busy_ps, bin_ps, rate_bps
        How long the links were busy in bins of their own, int64[bins, links], and their rates.
    edges_ps, end_ps
        Between the bins of ``arrived``, evenly apart; and when the run ended.
    """
    step = int(edges_ps[1] - edges_ps[0])
    if bin_ps > max(step, 1) * _COARSE:  # when they were busy isn't known: no more than they can carry
        return spread(arrived, [np.diff(np.minimum(edges_ps, end_ps)) * rate_bps.sum() / 8e12])
    reached = np.concatenate([[0.0], np.cumsum(busy_ps @ (rate_bps / 8e12))])
    at = np.minimum(np.arange(len(reached)) * float(bin_ps), max(end_ps, 1))
    carried = np.diff(np.interp(edges_ps, at, reached))
    payload = min(1.0, float(arrived.sum() / carried.sum())) if carried.any() else 0.0
    # Headers aren't even over time: what they leave is filled second.
    return spread(arrived, [carried * payload, carried * (1 - payload)])


def spread(arrived: I64, rooms: Sequence[F64]) -> I64:
    """Put what arrived back into each room in turn, at most what it has of each bin: float64[bins] each.

    What arrived before the links had carried as much, by what counters round, takes what is free later.
    """
    out = np.zeros(arrived.shape)
    left = arrived.astype(np.float64)
    for room in (*rooms, None):
        if room is None:
            room = np.maximum(sum(rooms) - out.sum(axis=0), 0.0)
        waiting = np.zeros(len(arrived))
        for k in range(arrived.shape[1] - 1, -1, -1):
            waiting += left[:, k]
            share = min(1.0, room[k] / waiting.sum()) if waiting.any() else 0.0
            out[:, k] += share * waiting
            left[:, k] = 0.0
            waiting *= 1 - share
        left[:, -1] += waiting
    return np.rint(out).astype(np.int64)
