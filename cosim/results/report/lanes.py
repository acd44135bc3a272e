"""Which ranks and iterations a timeline shows: all, or one of each class that fared exactly alike, and says
so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.results.report.source import I64, ReportSource

MOST_OPERATIONS = 120_000
"""Shown; more would make the file larger than what can be sent."""
MOST_LANES = 256


@dataclass(frozen=True, eq=False)
class Lanes:
    """``ranks`` are shown (numbers over all jobs), each standing for ``alike`` that did the same at the same
    picosecond; ``rows`` are their operations; ``lane_of`` is where each rank is shown, -1 where it isn't;
    ``said`` tells what is left out, empty where nothing is.
    """

    ranks: I64
    alike: I64
    rows: I64
    lane_of: I64
    said: str


def lanes(source: ReportSource) -> Lanes:
    """What a timeline of a run shows.

    One rank of each class whose operations began and ended alike; where those are too many, the ranks of the
    critical path and others evenly spread; of too many iterations the last.
    """
    found = source.columns
    rank = found["job_ptr"][found["op_job"]] + found["op_rank"]
    total = int(found["job_ptr"][-1])
    of_class, first, alike = _classes(found, rank, total)
    counts = np.bincount(rank, minlength=total)
    shown = np.array(sorted(first[counts[first] > 0].tolist()), np.int64)
    classes = len(shown)
    shown = _chosen(source, shown, of_class, first, counts)
    rows = np.flatnonzero(np.isin(rank, shown))
    rows, last_only = _last_iterations(found, rows)
    rows = rows[np.lexsort((found["op_start_ps"][rows], rank[rows]))]
    lane_of_class = np.full(len(first), -1, np.int64)
    lane_of_class[of_class[shown]] = np.arange(len(shown))
    lane_of = lane_of_class[of_class]
    return Lanes(shown, alike[of_class[shown]], rows, lane_of, _said(total, classes, len(shown), last_only))


def _classes(found: Any, rank: I64, total: int) -> tuple[I64, I64, I64]:
    """(The class of each rank, a rank of each class, ranks of each class), by what they did and when."""
    marks = np.zeros((total, 2), np.uint64)
    row = found["rank_row"][rank] + found["op_op"]
    columns = (row, found["op_iteration"], found["op_start_ps"], found["op_end_ps"])
    for k, seed in enumerate((0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)):
        mixed = np.full(len(rank), seed, np.uint64)
        for column in columns:
            mixed = (mixed ^ column.astype(np.int64).view(np.uint64)) * np.uint64(0xFF51AFD7ED558CCD)
            mixed ^= mixed >> np.uint64(29)
        np.add.at(marks[:, k], rank, mixed)
    job = np.repeat(np.arange(len(found["job_ptr"]) - 1), np.diff(found["job_ptr"])).astype(np.uint64)
    _, first, of_class, alike = np.unique(
        np.column_stack([job, marks]), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    return of_class.reshape(-1).astype(np.int64), first.astype(np.int64), alike.astype(np.int64)


def _chosen(source: ReportSource, shown: I64, of_class: I64, first: I64, counts: I64) -> I64:
    """Few enough: the classes of the critical path, then others evenly spread."""
    found = source.columns
    # Whole ranks first: a rank without its last iterations would look as if it had waited.
    per_rank = max(1, int(counts[shown].mean())) if len(shown) else 1
    most = max(8, min(MOST_LANES, 4 * MOST_OPERATIONS // per_rank))
    if len(shown) <= most:
        return shown
    on_path = np.zeros(0, np.int64)
    if len(found["path_rank"]):
        on_path = found["job_ptr"][found["path_job"]] + found["path_rank"]
    kept = np.unique(first[of_class[on_path]])[: most // 2]
    rest = np.setdiff1d(shown, kept)
    evenly = rest[np.arange(most - len(kept)) * len(rest) // (most - len(kept))]
    return np.unique(np.concatenate([kept, evenly]))


def _last_iterations(found: Any, rows: I64) -> tuple[I64, int]:
    """(As many of the last iterations as there is room for, how many those are; 0: all)."""
    if len(rows) <= MOST_OPERATIONS:
        return rows, 0
    iteration = found["op_iteration"][rows]
    each = np.bincount(iteration)
    kept = int(np.searchsorted(np.cumsum(each[::-1]), MOST_OPERATIONS, side="right"))
    kept = max(1, kept)
    return rows[iteration >= len(each) - kept], kept


def _said(total: int, classes: int, shown: int, last_only: int) -> str:
    parts = []
    if classes < total:
        parts.append(
            f"{total:,} simulated ranks are {classes:,} classes that did the same at the same picosecond"
        )
    if shown < classes:
        parts.append(f"{shown:,} of these are drawn: those of the critical path, and others evenly spread")
    if last_only:
        parts.append(f"the last {last_only} iteration{'s' * (last_only != 1)} only")
    return "; ".join(parts)
