"""Orders of a sweep's choices: which is better than which, beyond what seeds explain, and where that changes.

Two choices are compared seed by seed: the same seed gives both the same offsets, jitter and paths, so that
only their difference has to stand out. One is better where Student's 95 % interval of the mean difference
leaves out zero; with a single seed, where its value is less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_letters

from cosim.results.sweep import Column, SweepRun, cell_of


def better(sweep: SweepRun, one: str, two: str, column: Column, measure: str) -> int:
    """1 where choice ``one`` of the first axis is better than ``two`` in a column, -1 where worse, else 0."""
    mine, others = (sweep.values((label, *column), measure) for label in (one, two))
    seeds = [seed for seed in mine if seed in others]
    if not seeds:
        return 0
    difference = cell_of([sweep.sign(measure) * (others[seed] - mine[seed]) for seed in seeds])
    if abs(difference.mean) <= (difference.half_width or 0.0):
        return 0
    return 1 if difference.mean > 0 else -1


def letters(sweep: SweepRun, column: Column, measure: str) -> dict[str, str]:
    """Letters of the first axis' choices in a column: two that share one can't be told apart by
    :func:`better`. The best choice has an a; with one seed nothing can, so there are none.

    H.-P. Piepho, "An Algorithm for a Letter-Based Representation of All-Pairwise Comparisons", J. Comput.
    Graph. Stat. 13 (2004), doi:10.1198/1061860043515: a pair that differs splits each group that has both.
    """
    order = sweep.order(column, measure)
    if any(len(sweep.values((label, *column), measure)) < 2 for label in order):
        return {}
    groups = [frozenset(order)]
    for k, one in enumerate(order):
        for two in order[k + 1 :]:
            if better(sweep, one, two, column, measure):
                split = [group - {name} for group in groups if {one, two} <= group for name in (one, two)]
                whole = [group for group in groups if not {one, two} <= group]
                found = list(dict.fromkeys(whole + split))
                groups = [group for group in found if not any(group < other for other in found)]
    groups.sort(key=lambda group: sorted(map(order.index, group)))
    names = [(ascii_letters + "".join(map(chr, range(0x3B1, 0x3B1 + k))))[k] for k in range(len(groups))]
    return {
        label: "".join(name for name, group in zip(names, groups, strict=True) if label in group)
        for label in order
    }


def shown_order(sweep: SweepRun, column: Column, measure: str) -> str:
    """``dctcp < swift ~ hpcc``: best first; ``~`` where seeds explain the difference of two neighbours."""
    order = sweep.order(column, measure)
    text = order[0] if order else ""
    for before, after in pairwise(order):
        text += f" {'<' if better(sweep, before, after, column, measure) > 0 else '~'} {after}"
    return text


def agreement(sweep: SweepRun, one: Column, two: Column, measure: str) -> float | None:
    """Kendall's tau-b of two columns' orders: 1 alike, 0 unrelated, -1 reversed; None where one has no order.

    M. Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945),
    doi:10.1093/biomet/33.3.239. A pair is tied where seeds explain its difference.
    """
    both = first = second = 0
    for a, b in _pairs(sweep):
        x, y = (better(sweep, a, b, column, measure) for column in (one, two))
        both, first, second = both + x * y, first + x * x, second + y * y
    return both / math.sqrt(first * second) if first and second else None


@dataclass(frozen=True)
class Reversal:
    """A choice that is better than another in some columns and worse in others, beyond what seeds explain."""

    one: str
    two: str
    better_in: tuple[Column, ...]
    worse_in: tuple[Column, ...]


def reversals(sweep: SweepRun, measure: str) -> list[Reversal]:
    """Every pair whose order turns round, in the order of the axis."""
    found = []
    for a, b in _pairs(sweep):
        signs = {column: better(sweep, a, b, column, measure) for column in sweep.columns}
        up = tuple(column for column, sign in signs.items() if sign > 0)
        down = tuple(column for column, sign in signs.items() if sign < 0)
        if up and down:
            found.append(Reversal(a, b, up, down))
    return found


def _pairs(sweep: SweepRun) -> Iterator[tuple[str, str]]:
    labels = sweep.axes[0][1]
    for k, one in enumerate(labels):
        for two in labels[k + 1 :]:
            yield one, two
