"""Intervals of 80 % for systems of which nothing was measured: as wide as the other systems' errors are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from cosim.gpu.catalogue import read
from tests.lab.validation import fsdp_jobs, megatron_jobs

Row = fsdp_jobs.Row | megatron_jobs.Row
COVER, BAND, LEAST = 0.8, (0.75, 0.85), 8
"""The share of rows that intervals should hold; what counts as met; in groups of so many rows and more."""


def by_system(found: Sequence[tuple[Row, float]]) -> list[str]:
    """A line for each system, dense jobs and those with experts apart, and for all.

    ``found``: rows and what their times here are of the measured ones. An interval reaches as far to both
    sides as 80 % of the jobs of the same kind on all other systems are off: none of the system's own counts;
    of a GPU known by a neighbour alone, beside it, as 80 % of jobs on other such GPUs are. ``by chance``: how
    often so many rows, independent and each covered with 80 %, are covered 75 to 85 %.
    """
    kinds = [(row.gpu, row.has_experts) for row, _ in found]
    off = np.array([abs(1 / ratio - 1) for _, ratio in found])
    alike = {gpu: read(gpu).calibration is None for gpu, _ in kinds}
    within = np.zeros(len(found), np.bool_)
    chances = []
    lines = [f"{'left out':20s} rows  interval  covered  by chance  by neighbours' rows"]
    for gpu, experts in sorted(set(kinds)):
        own = np.array([kind == (gpu, experts) for kind in kinds])
        others = np.array([kind[0] != gpu and kind[1] is experts for kind in kinds])
        if not others.any():
            continue
        width, covered = _covered(off, own, others)
        within[own] = off[own] <= width
        chance = met_by_chance(int(own.sum()))
        chances += [chance] if own.sum() >= LEAST else []
        name = f"{gpu} {'experts' if experts else 'dense'}"
        line = f"{name:20s} {own.sum():4d}  +-{width:6.1%}  {covered:7.0%}  {chance:9.0%}"
        if alike[gpu]:
            neighbours = np.array([kind[0] != gpu and alike[kind[0]] for kind in kinds])
            width, covered = _covered(off, own, neighbours)
            line += f"  +-{width:6.1%}  {covered:7.0%}"
        lines.append(line)
    if chances:
        often = f"{sum(chances):.1f} on average, all of them once in {1 / np.prod(chances):,.0f} times"
        lines.append(f"of {len(chances)} such groups 75 to 85 % would be covered by chance in {often}")
    lines.append(f"{'all':20s} {len(found):4d}  {'':8s}  {within.mean():7.0%}")
    return lines


def met_by_chance(rows: int) -> float:
    """The probability that 75 to 85 % of independent rows are covered, each being with 80 %."""
    counts = np.arange(rows + 1)
    counts = counts[(counts >= BAND[0] * rows) & (counts <= BAND[1] * rows)]
    return float(binom.pmf(counts, rows, COVER).sum())


def _covered(
    off: NDArray[np.float64], own: NDArray[np.bool_], others: NDArray[np.bool_]
) -> tuple[float, float]:
    width = float(np.quantile(off[others], COVER))
    return width, float((off[own] <= width).mean())
