"""Extremely randomised trees: regression that assumes nothing of the function, not even that it is smooth.

Each tree splits all its rows at thresholds drawn at random, of several features' the one that leaves the
least variance, until they are alike; the mean of many trees is the prediction (Geurts, Ernst, Wehenkel,
"Extremely randomized trees", Machine Learning 63, 2006, doi:10.1007/s10994-006-6226-1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
TREES = 40
"""How many are averaged."""
SAME = 1e-9
"""Below which two rows' features are the same."""


def predicted(known: F64, values: F64, asked: F64) -> F64:
    """Values at the rows of ``asked``, of which ``known`` rows have ``values``; the same on each call."""
    rng = np.random.default_rng(0)
    total = np.zeros(len(asked))
    for _ in range(TREES):
        _grow(rng, known, values, asked, np.arange(len(asked)), total)
    return total / TREES


def _grow(
    rng: np.random.Generator, known: F64, values: F64, asked: F64, rows: NDArray[np.int64], to: F64
) -> None:
    """Add to ``to`` what a tree of ``known`` rows says of ``asked`` ones."""
    if not len(rows):
        return
    low, high = known.min(axis=0), known.max(axis=0)
    (open_,) = np.nonzero(high - low > SAME)
    if len(values) < 2 or not len(open_) or values.min() == values.max():
        to[rows] += values.mean()
        return
    tried = rng.choice(open_, max(1, int(0.6 * len(open_))), replace=False)
    cuts = rng.uniform(low[tried], high[tried])
    left = known[:, tried] <= cuts
    many = left.sum(axis=0)
    sums = values @ left
    explained = sums**2 / many + (values.sum() - sums) ** 2 / (len(values) - many)
    best = int(np.argmax(explained))
    side, goes = left[:, best], asked[rows, tried[best]] <= cuts[best]
    _grow(rng, known[side], values[side], asked, rows[goes], to)
    _grow(rng, known[~side], values[~side], asked, rows[~goes], to)
