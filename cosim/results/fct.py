"""Flow completion times: percentiles from the histogram, within one bin's width (1/64) of the exact ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.engine.records import FctHistogram


@dataclass(frozen=True)
class FctSummary:
    """Percentiles of the flow completion time; minimum, mean and maximum are exact."""

    count: int
    min_ps: int
    mean_ps: int
    p50_ps: int
    p90_ps: int
    p99_ps: int
    p999_ps: int
    max_ps: int


def percentile_ps(fct: FctHistogram, per_mille: int) -> int:
    """The nearest-rank percentile: the smallest time that ``per_mille``/1000 of the flows don't exceed.

    The bin is exact; inside the bin, flows are taken as evenly spread.
    """
    below = np.cumsum(fct.counts)
    total = int(below[-1]) if len(below) else 0
    if total == 0:
        return 0
    nth = max(1, -(-per_mille * total // 1000))
    if nth == total:
        return fct.max_ps
    if nth == 1:
        return fct.min_ps
    i = int(np.searchsorted(below, nth))
    before, inside = (int(below[i - 1]) if i else 0), int(fct.counts[i])
    low, high = int(fct.edges_ps[i]), int(fct.edges_ps[i + 1])
    value = low + (high - low) * (2 * (nth - before) - 1) // (2 * inside)
    return min(max(value, fct.min_ps), fct.max_ps)


def summarize_fct(fct: FctHistogram) -> FctSummary | None:
    """None where no flow completed."""
    count = int(fct.counts.sum())
    if count == 0:
        return None
    return FctSummary(
        count=count,
        min_ps=fct.min_ps,
        mean_ps=round(fct.sum_ps / count),
        p50_ps=percentile_ps(fct, 500),
        p90_ps=percentile_ps(fct, 900),
        p99_ps=percentile_ps(fct, 990),
        p999_ps=percentile_ps(fct, 999),
        max_ps=fct.max_ps,
    )
