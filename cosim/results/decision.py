"""Which of several designs is best, and how sure that is.

Two things make it unsure. Seeds: their mean may lie elsewhere with other seeds; all points are drawn the same
seeds again, as the same seed gives all the same offsets (a paired bootstrap: B. Efron, R. Tibshirani, "An
Introduction to the Bootstrap", 1993). And the compute model, whose relative error is taken to be log-normal
(:mod:`~cosim.results.certainty`): the part that designs on one kind of GPU have in common moves all of them
alike and decides nothing; each design's own part is drawn for each. What the network model is off by isn't in
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.results.certainty import LEVEL
from cosim.results.quantities import QUANTITIES
from cosim.results.search import SearchRun, TriedPoint

DRAWS = 20_000
_FEW = 3
"""Below so many seeds they say nothing of how far a mean may lie from that of all."""


@dataclass(frozen=True)
class Chance:
    """A point's central 80 % interval of the first objective, and the probability that it is the best."""

    low: float
    high: float
    best: float


_NOTHING = 0.0005
"""Differences below this share aren't named."""


def chances(points: Sequence[TriedPoint], name: str, seed: int = 0) -> list[Chance]:
    """The chance of each point, by the quantity ``name``; the same for the same points and seed.

    Raises
    ------
    ValueError
        There is no point.
    """
    if not points:
        raise ValueError("no point to choose from")
    drawn = np.random.default_rng(seed)
    values = [np.array(one.seeds.get(name) or [one.values[name]], np.float64) for one in points]
    count = min(map(len, values))
    if count >= _FEW:
        picked = drawn.integers(0, count, (DRAWS, count))
        means = np.array([one[:count][picked].mean(axis=1) for one in values])
    else:
        means = np.repeat([[one.mean()] for one in values], DRAWS, axis=1)
    if QUANTITIES[name].needs:
        common, own = np.array([one.model_error for one in points]).T
        means = means * np.exp(drawn.normal(size=DRAWS) * common[:, None])
        means = means * np.exp(drawn.normal(size=means.shape) * own[:, None])
    losses = QUANTITIES[name].sign * means
    # Equal ones share the chance: two that are the same are each best in half of all draws.
    best = losses == losses.min(axis=0)
    share = (best / best.sum(axis=0)).mean(axis=1)
    ends = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    return [Chance(float(a), float(b), float(p)) for a, b, p in zip(*ends, share, strict=True)]


def reasons(done: SearchRun) -> dict[tuple[str, ...], str]:
    """Why each point that was run, refused or left out is not the first of the ranking, in words."""
    first = done.best
    found = {one.labels: one.error for one in done.tried if one.error}
    found |= dict(done.refused)
    if first is None:
        return found
    for one in done.tried:
        if not one.error and one.labels != first.labels:
            below = len(done.levels) - 1 - one.level
            found[one.labels] = _against(one, first) if not below else "worse at a quicker fidelity"
    for labels, bounds in done.untried:
        name = done.objectives[0]
        bound = bounds[name]
        said = f"at best {QUANTITIES[name].unit.show(bound)}" if bound == bound else "no bound is known"
        found[labels] = f"not run: {said}"
    return found


def _against(one: TriedPoint, first: TriedPoint) -> str:
    """What a point has worse than the first one, then what it has better."""
    worse: list[str] = []
    better: list[str] = []
    for name in one.seeds:
        mine, its = float(np.mean(one.seeds[name])), float(np.mean(first.seeds[name]))
        if not its or abs(mine / its - 1) < _NOTHING:
            continue
        change = f"{name} {100 * abs(mine / its - 1):.3g} % {'more' if mine > its else 'less'}"
        (worse if (mine - its) * QUANTITIES[name].sign > 0 else better).append(change)
    if not worse and not better:
        return "as good in all that was measured"
    return "; but ".join(filter(None, (", ".join(worse), ", ".join(better))))
