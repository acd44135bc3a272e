"""Intervals of 80 % for systems of which nothing was measured: as wide as the other systems' errors are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.lab.validation import fsdp_jobs, megatron_jobs

Row = fsdp_jobs.Row | megatron_jobs.Row
COVER = 0.8


def by_system(found: Sequence[tuple[Row, float]]) -> list[str]:
    """A line for each system, dense jobs and those with experts apart, and for all.

    ``found``: rows and what their times here are of the measured ones. An interval reaches as far to both
    sides as 80 % of the jobs of the same kind on all other systems are off: none of the system's own counts.
    """
    kinds = [(row.gpu, row.has_experts) for row, _ in found]
    off = np.array([abs(1 / ratio - 1) for _, ratio in found])
    within = np.zeros(len(found), np.bool_)
    lines = [f"{'left out':20s} rows  interval  covered"]
    for gpu, experts in sorted(set(kinds)):
        own = np.array([kind == (gpu, experts) for kind in kinds])
        others = np.array([kind[0] != gpu and kind[1] is experts for kind in kinds])
        if not others.any():
            continue
        width = float(np.quantile(off[others], COVER))
        within[own] = off[own] <= width
        name = f"{gpu} {'experts' if experts else 'dense'}"
        lines.append(f"{name:20s} {own.sum():4d}  +-{width:6.1%}  {within[own].mean():7.0%}")
    lines.append(f"{'all':20s} {len(found):4d}  {'':8s}  {within.mean():7.0%}")
    return lines
