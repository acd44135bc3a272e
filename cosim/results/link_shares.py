"""Link shares: who had how much of a link when, from messages' starts, ends and sizes alone.

Between two starts or ends all rates are taken to be constant. Where a link was busy without a gap, and what
it carried then fills it, it was full throughout: rates are then those nearest to even ones that fill it and
carry each message whole (iterative proportional fitting, W. Deming and F. Stephan, 1940,
doi:10.1214/aoms/1177731829; of two messages that overlap, exactly what they had). Elsewhere, and where there
are too many messages at once, each flows evenly from its start to its end. Not known: how rates moved between
two such instants.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cosim.units import PS_PER_S

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_FULL = 0.9
"""What a link has carried of what it could where it was full: ends lie latencies after the last bit."""
_ROUNDS = 100
_MOST_CELLS = 1_000_000


def link_shares(
    start_ps: I64, end_ps: I64, size_bytes: I64, owner: I64, owners: int, rate_bps: float, edges_ps: I64
) -> F64:
    """Bits per second of each owner in each bin: float64[owners, len(edges_ps) - 1]."""
    some = size_bytes > 0
    if not some.any():
        return np.zeros((owners, len(edges_ps) - 1))
    start, size, who = start_ps[some], size_bytes[some].astype(np.float64), owner[some]
    end = np.maximum(end_ps[some], start + 1)
    times = np.unique(np.concatenate([start, end]))
    first = np.searchsorted(times, start)
    count = np.searchsorted(times, end) - first
    if count.sum() > _MOST_CELLS:
        volumes = [_even(start[who == k], end[who == k], size[who == k], times) for k in range(owners)]
    else:
        message = np.repeat(np.arange(len(start)), count)
        span = np.arange(len(message)) - np.repeat(np.cumsum(count) - count - first, count)
        length = np.diff(times).astype(np.float64)
        volume = (size / (end - start))[message] * length[span]
        volume = _filled(volume, message, span, size, length * rate_bps / 8 / PS_PER_S)
        each = np.bincount(who[message] * len(length) + span, volume, owners * len(length))
        volumes = list(each.reshape(owners, -1).cumsum(axis=1))
    reached = [np.interp(edges_ps, times, np.concatenate([[0.0], one])) for one in volumes]
    return np.asarray(np.diff(reached, axis=1) / np.diff(edges_ps) * 8 * PS_PER_S, np.float64)


def _even(start: I64, end: I64, size: F64, times: I64) -> F64:
    """Bytes of messages that flow evenly, up to each of ``times`` but the first."""
    speed = size / (end - start)
    change = np.bincount(np.searchsorted(times, start), speed, len(times))
    change -= np.bincount(np.searchsorted(times, end), speed, len(times))
    return np.asarray(np.cumsum(np.cumsum(change)[:-1] * np.diff(times)), np.float64)


def _filled(volume: F64, message: I64, span: I64, size: F64, room: F64) -> F64:
    """Bytes of each message in each span, after filling periods without a gap in which there was enough."""
    busy = np.bincount(span, minlength=len(room)) > 0
    period = np.cumsum(np.concatenate([[True], busy[1:] & ~busy[:-1]])) - 1
    carried = np.bincount(period[span], volume)
    could = np.bincount(period[busy], room[busy], len(carried))
    part = np.divide(carried, could, out=np.zeros(len(carried)), where=could > 0)
    full = part[period[span]] > _FULL
    message, span, moved = message[full], span[full], volume[full]
    if not len(moved):
        return volume
    target = (part[period] * room)[span]
    whole = size[message]
    for _ in range(_ROUNDS):
        moved *= target / np.bincount(span, moved)[span]
        moved *= whole / np.bincount(message, moved)[message]
    volume = volume.copy()
    volume[full] = moved
    return volume
