"""Intervals: how long was what under way, for many keys (ranks) and a few layers at once.

One sort of all starts and ends, then cumulative sums: a million intervals take a fraction of a second,
and sums are exact, being integers throughout.

A job communicates while one of its collectives is under way, from its last rank's arrival, or one of its
sends. Jobs overlap where two or more run and communicate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import Records
from cosim.results.collective_columns import CollectiveColumns
from cosim.results.optable import OpTable
from cosim.workload.program import OpKind

I8 = NDArray[np.int8]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


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


@dataclass(frozen=True)
class Overlap:
    """How much of the time in which any job communicates several do: in the first quarter of the time in
    which several run, and in its last.
    """

    first_quarter: float
    last_quarter: float


def find_overlap(records: Records, table: OpTable, collectives: CollectiveColumns) -> Overlap | None:
    """None where no two jobs run at the same time, nobody communicates, or not all ranks were recorded."""
    if len(records.jobs) < 2 or records.recorded is not None:
        return None
    starts = sorted(job.start_ps for job in records.jobs)
    ends = sorted(int(finish.max(initial=0)) for finish in records.finish_ps)
    edges = np.linspace(starts[1], ends[-2], 5).astype(np.int64)
    spans = [_communication(records, table, collectives, j) for j in range(len(records.jobs))]
    if edges[0] >= edges[-1] or (np.diff(edges) <= 0).any() or not any(map(len, spans)):
        return None
    anyone = covered(union(*np.concatenate(spans).T), edges)
    several = covered(where_several(spans), edges)
    if anyone[0] == 0 or anyone[-1] == 0:
        return None
    return Overlap(float(several[0] / anyone[0]), float(several[-1] / anyone[-1]))


def _communication(records: Records, table: OpTable, collectives: CollectiveColumns, job: int) -> I64:
    """When a job communicates: int64[n, 2], apart from each other."""
    ops = records.ops
    sends = np.flatnonzero((ops.job == job) & table.is_kind(OpKind.SEND)[table.rows(ops)])
    mine = collectives.job == job
    start = np.concatenate([ops.start_ps[sends], collectives.ready_ps[mine]])
    end = np.concatenate([ops.end_ps[sends], collectives.end_ps[mine]])
    return union(start, end)


def union(start: I64, end: I64) -> I64:
    """Intervals that cover exactly what these cover, apart from each other: int64[n, 2]."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    if not len(start):
        return np.zeros((0, 2), np.int64)
    reach = np.maximum.accumulate(end)
    first = np.concatenate([[True], start[1:] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return np.stack([start[first], reach[last]], axis=1)


def where_several(unions: list[I64]) -> I64:
    """Where two or more of several sets of intervals overlap."""
    edges = np.concatenate([u.reshape(-1) for u in unions])
    steps = np.concatenate([np.tile([1, -1], len(u)) for u in unions])
    order = np.lexsort((steps, edges))
    depth = np.cumsum(steps[order])
    at = edges[order]
    inside = np.flatnonzero((depth[:-1] >= 2) & (at[1:] > at[:-1]))
    return union(at[inside], at[inside + 1])


def covered(intervals: I64, edges: I64) -> F64:
    """The part of each bin that intervals apart from each other cover."""
    inside = np.clip(intervals, edges[0], edges[-1])
    points = np.concatenate([[edges[0]], inside.reshape(-1), [edges[-1]]]).astype(np.float64)
    lengths = np.concatenate([[0.0], np.cumsum(np.diff(points) * (np.arange(len(points) - 1) % 2))])
    return np.asarray(np.diff(np.interp(edges, points, lengths)) / np.diff(edges), np.float64)
