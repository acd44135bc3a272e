"""How much longer an iteration is on more GPUs, measured and here, and how exact a measured slope is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.lab.validation.fsdp_jobs import Row

VARIES = ("gpus", "gbs", "fsdp", "tokens_s_gpu", "tflops_gpu", "mfu", "hfu", "extra")
"""Columns in which jobs of a series may differ."""
BAR = 0.02
Series = dict[str, list[tuple[int, float, float]]]


def name_without_size(row: Row) -> str:
    """What jobs share that differ in their number of GPUs alone."""
    return " ".join(value for column, value in row.job.items() if column not in VARIES)


def series(found: Sequence[tuple[Row, float]]) -> Series:
    """GPUs, seconds measured and here, fewest GPUs first, of jobs that differ in nothing but their number.

    ``found``: rows, and what their times here are of the measured ones.
    """
    alike: Series = {}
    for row, ratio in found:
        alike.setdefault(name_without_size(row), []).append((row.gpus, row.seconds, row.seconds * ratio))
    return {name: sorted(jobs) for name, jobs in alike.items()}


def run_error(alike: Series) -> float:
    """Relative error of a single measured iteration, one sigma, where the loss grows with the GPUs' number.

    Of each three neighbouring sizes the middle one's distance from the line through the two others, which has
    the variance of one run times ``1 + weight ** 2 + (1 - weight) ** 2``.
    """
    squares = []
    for jobs in alike.values():
        sizes = sorted({gpus: measured for gpus, measured, _ in jobs}.items())
        for (few, low), (some, middle), (many, high) in zip(sizes, sizes[1:], sizes[2:], strict=False):
            weight = (some - few) / (many - few)
            off = middle / low - (1 - weight) - weight * high / low
            squares.append(off**2 / (1 + weight**2 + (1 - weight) ** 2))
    return float(np.sqrt(np.mean(squares))) if squares else float("nan")


def report(found: Sequence[tuple[Row, float]]) -> list[str]:
    """A line for each slope, and how many are near, by the bar and by what a measured slope is off by."""
    alike, lines, off = series(found), [], []
    for name, jobs in alike.items():
        fewest, *more = jobs
        for gpus, measured, simulated in more:
            if gpus > fewest[0]:
                slopes = measured / fewest[1] - 1, simulated / fewest[2] - 1
                off.append(abs(slopes[1] - slopes[0]))
                grew = f"{slopes[0]:+.1%} measured, {slopes[1]:+.1%} here"
                lines.append(f"{name}: {fewest[0]} to {gpus} GPUs {grew}")
    error = 2**0.5 * run_error(alike)
    for bar, what in ((BAR, ""), (BAR + error, f", the bar and a measured slope's error of {error:.1%}")):
        near = sum(one <= bar for one in off)
        lines.append(f"{near} of {len(off)} slopes within {100 * bar:.1f} points{what}")
    return lines
