"""When bytes went over a link, where only their arrival is known: spread over the time before it.

Traffic is booked when a message arrives. What the link carried over time is known too, from the network, and
can't be more than its rate. So what arrived is put back: to the latest time at or before its arrival at which
the link carried something that is nobody's yet. Where several wait for one such time, each has its share of
what waits. Of messages that shared a link evenly, one behind the other or side by side, that is exactly what
happened; of others, who had how much within a busy time may differ, its sum doesn't.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


def carried_in(busy_ps: I64, bin_ps: int, rate_bps: F64, edges_ps: I64) -> F64:
    """Bytes that links carried, all together, between ``edges_ps``: float64[edges - 1].

    ``busy_ps`` is int64[bins, links], ``rate_bps`` float64[links].
    """
    each = busy_ps @ (rate_bps / 8e12)
    reached = np.concatenate([[0.0], np.cumsum(each)])
    found = np.interp(edges_ps, np.arange(len(reached)) * float(bin_ps), reached)
    return np.asarray(np.diff(found), np.float64)


def spread(arrived: I64, carried: F64) -> I64:
    """Bytes of each row in each bin as they were sent, int64[rows, bins], of int64[rows, bins] as they
    arrived; ``carried`` is what all rows were sent over carried, float64[bins].

    Each bin has at most what was carried in it. What was carried beyond all rows' bytes, as headers, is taken
    off evenly.
    """
    total, room = float(arrived.sum()), np.asarray(carried, np.float64)
    part = min(1.0, total / room.sum()) if room.sum() else 0.0
    out = np.zeros(arrived.shape)
    left = arrived.astype(np.float64)
    for some in (room * part, room * (1 - part)):  # headers aren't even over time: what they leave is filled
        waiting = np.zeros(len(arrived))
        for k in range(arrived.shape[1] - 1, -1, -1):
            waiting += left[:, k]
            share = min(1.0, some[k] / waiting.sum()) if waiting.any() else 0.0
            out[:, k] += share * waiting
            left[:, k] = 0.0
            waiting *= 1 - share
        left[:, -1] += waiting
    return np.rint(out).astype(np.int64)
