"""Bytes over time: what transfers, each at an even rate, bring in each bin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cosim.captures.traffic import I64, Transfers

F64 = NDArray[np.float64]


def in_bins(transfers: Transfers, edges_ps: I64) -> F64:
    """Bytes in [``edges_ps[i]``, ``edges_ps[i + 1]``): float64[edges - 1].

    A transfer's bytes lie evenly between its start and its end.
    """
    start, end = transfers.start_ps, np.maximum(transfers.end_ps, transfers.start_ps + 1)
    rate = transfers.size_bytes / (end - start)
    return np.diff(_ramps(start, rate, edges_ps) - _ramps(end, rate, edges_ps))


def _ramps(begin: I64, rate: F64, at: I64) -> F64:
    """The sum of ``rate * (at - begin)`` over all that began before ``at``."""
    order = np.argsort(begin, kind="stable")
    begin, rate = begin[order], rate[order]
    zero = int(at[0])
    rates = np.append(0.0, np.cumsum(rate))
    moments = np.append(0.0, np.cumsum(rate * (begin - zero)))
    reached = np.searchsorted(begin, at, side="right")
    return np.asarray(rates[reached] * (at - zero) - moments[reached], np.float64)


def busy_ps(start_ps: I64, end_ps: I64) -> int:
    """How long at least one of the intervals lasts."""
    first, last = joined(start_ps, end_ps, 0)
    return int((last - first).sum())


def joined(start_ps: I64, end_ps: I64, gap_ps: int) -> tuple[I64, I64]:
    """Starts and ends of intervals, of which those at most ``gap_ps`` apart are one."""
    order = np.argsort(start_ps, kind="stable")
    start, end = start_ps[order], end_ps[order]
    reach = np.maximum.accumulate(end) if len(end) else end
    fresh = np.append(True, start[1:] > reach[:-1] + gap_ps)[: len(start)]
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(start))[: len(first)] - 1
    return start[first], reach[last]
