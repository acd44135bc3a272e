"""Overlap: how much of their communication several jobs do at the same time, early and late in a run.

A job communicates while one of its collectives is under way, from its last rank's arrival, or one of its
sends. Looked at is the time in which two jobs or more run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import Records
from cosim.results.collective_columns import CollectiveColumns
from cosim.results.optable import OpTable
from cosim.workload.program import OpKind

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Overlap:
    """Of the time in which any job communicates, the part in which several do: in the first quarter of the
    time in which several run, and in its last.
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
