"""Demands of several jobs on a link, rolled on one circle, and the shifts at which they exceed it least.

The circle's perimeter is the least common multiple of the periods. The excess is a piecewise linear function
of the shifts: it is least where edges of demands meet, so those points are all that is looked at. S.
Rajasekaran et al., "CASSINI: Network-Aware Job Scheduling in Machine Learning Clusters", NSDI 2024,
arXiv:2308.00852, searches angles on a grid instead, which is an option here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from cosim.cluster.schedulers.demand import Demand
from cosim.topology.graph import F64, I64

_MOST_TRIED = 1024
"""Combinations that are all tried; of more, one job after the other is moved to its best place until none
gains.
"""
_ROUNDS = 8
_DUST = 1e-9


@dataclass(frozen=True, eq=False)
class Shared:
    """Demands that meet on links: ``demands[link][job]``, None where a job doesn't use the link;
    ``capacity_bps[link]``; ``period_ps[job]``.
    """

    demands: Sequence[Sequence[Demand | None]]
    capacity_bps: Sequence[float]
    period_ps: Sequence[int]

    @property
    def perimeter_ps(self) -> int:
        """Of the circle."""
        return math.lcm(*self.period_ps)

    def scores(self, shifts: Sequence[int]) -> list[float]:
        """Of each link: 1 - excess / (perimeter x capacity)."""
        return [
            1.0 - self._excess(link, [*range(len(shifts))], shifts) for link in range(len(self.capacity_bps))
        ]

    def excess(self, jobs: Sequence[int], shifts: Sequence[int]) -> float:
        """What these jobs want beyond capacities, all links together; 1: a capacity."""
        return sum(self._excess(link, jobs, shifts) for link in range(len(self.capacity_bps)))

    def _excess(self, link: int, jobs: Sequence[int], shifts: Sequence[int]) -> float:
        mine = [(self.demands[link][job], job) for job in jobs]
        perimeter = math.lcm(*(self.period_ps[job] for one, job in mine if one is not None), 1)
        times, changes, base = [np.array([0, perimeter], np.int64)], [np.zeros(2)], 0.0
        for demand, job in mine:
            if demand is not None:
                at, change, begin = _unrolled(demand, shifts[job], self.period_ps[job], perimeter)
                times.append(at)
                changes.append(change)
                base += begin
        time, change = np.concatenate(times), np.concatenate(changes)
        order = np.argsort(time, kind="stable")
        wanted = base + np.cumsum(change[order])[:-1]
        capacity = self.capacity_bps[link]
        over = np.maximum(wanted - capacity * (1 + _DUST), 0.0) @ np.diff(time[order])
        return float(over) / (perimeter * capacity)

    def candidates(self, job: int, others: Sequence[int], shifts: Sequence[int]) -> I64:
        """Shifts of a job at which an edge of it meets one of the others, ascending, int64."""
        known = math.gcd(self.period_ps[job], math.lcm(*(self.period_ps[one] for one in others)))
        found = [np.zeros(1, np.int64)]
        for link in range(len(self.capacity_bps)):
            own = self.demands[link][job]
            for one in others if own is not None else ():
                theirs = self.demands[link][one]
                if theirs is None or own is None:
                    continue
                again = np.arange(known // math.gcd(known, self.period_ps[one])) * self.period_ps[one]
                edges = (theirs.edges_ps[:-1] + shifts[one])[:, None] + again
                found.append(((edges.reshape(-1)[:, None] - own.edges_ps[:-1]) % known).reshape(-1))
        return np.unique(np.concatenate(found))


def _unrolled(demand: Demand, shift: int, period: int, perimeter: int) -> tuple[I64, F64, float]:
    """(Times, changes of rate there, rate at the beginning) of a shifted demand all round the circle."""
    rate = demand.rate_bps
    change = rate - np.roll(rate, 1)
    rounds = np.arange(perimeter // period, dtype=np.int64) * period
    at = (demand.edges_ps[:-1] + shift) % period
    times = (at + rounds[:, None]).reshape(-1)
    begin = float(rate[(np.searchsorted(demand.edges_ps, (-shift) % period, "right") - 1) % len(rate)])
    changes = np.tile(np.where(at == 0, 0.0, change), len(rounds))
    if len(rounds) > 1:  # what changes at a period's very beginning is known of the first only
        changes[len(at) :] = np.tile(change, len(rounds) - 1)
    return times, changes, begin


def best_shifts(shared: Shared, grid: int | None = None) -> list[int]:
    """A shift of each job, the first 0, at which links are exceeded least; of a range of equally good ones
    its middle.

    ``grid`` looks at so many points of each period instead of those where edges meet.
    """
    shifts = [0] * len(shared.period_ps)
    if len(shifts) < 2:
        return shifts
    found = _tried(shared) if grid is None else None
    shifts = _one_by_one(shared, grid) if found is None else found
    for job in range(1, len(shifts) if grid is None else 0):
        shifts[job] = _middle(shared, job, shifts)
    return shifts


def _tried(shared: Shared) -> list[int] | None:
    """The best of all combinations; None where there are too many. Each job meets one before it, in any
    order.
    """
    number = len(shared.period_ps)
    best, value, tried = [0] * number, shared.excess([*range(number)], [0] * number), 0
    for order in permutations(range(1, number)):
        for shifts in _combinations(shared, [0], order, [0] * number):
            tried += 1
            if tried > _MOST_TRIED:
                return None
            now = shared.excess([*range(number)], shifts)
            if now < value - _DUST:
                best, value = [*shifts], now
            if value <= _DUST:
                return best
    return best


def _combinations(
    shared: Shared, placed: list[int], left: Sequence[int], shifts: list[int]
) -> Iterator[list[int]]:
    if not left:
        yield shifts
        return
    for shift in shared.candidates(left[0], placed, shifts).tolist():
        shifts[left[0]] = shift
        yield from _combinations(shared, [*placed, left[0]], left[1:], shifts)


def _one_by_one(shared: Shared, grid: int | None) -> list[int]:
    """Each job in turn at its best place beside those before, then beside all others until none gains."""
    number = len(shared.period_ps)
    shifts = [0] * number
    for job in range(1, number):
        shifts[job] = _best_place(shared, job, [*range(job)], shifts, grid)
    for _ in range(_ROUNDS):
        before = [*shifts]
        for job in range(1, number):
            shifts[job] = _best_place(shared, job, [k for k in range(number) if k != job], shifts, grid)
        if shifts == before:
            break
    return shifts


def _points(shared: Shared, job: int, others: Sequence[int], shifts: Sequence[int], grid: int | None) -> I64:
    if grid is not None:
        return np.arange(grid, dtype=np.int64) * shared.period_ps[job] // grid
    return shared.candidates(job, others, shifts)


def _best_place(shared: Shared, job: int, others: list[int], shifts: Sequence[int], grid: int | None) -> int:
    """Where the excess is least, as it is unless somewhere is better."""
    moved = [*shifts]
    best, value = moved[job], shared.excess([*others, job], moved)
    for shift in _points(shared, job, others, shifts, grid).tolist():
        if value <= _DUST:
            break
        moved[job] = shift
        now = shared.excess([*others, job], moved)
        if now < value - _DUST:
            best, value = shift, now
    return best


def _middle(shared: Shared, job: int, shifts: Sequence[int]) -> int:
    """The middle of the longest range of shifts as good as a job's: as far as can be from where it gets
    worse.
    """
    everybody = [*range(len(shifts))]
    others = [k for k in everybody if k != job]
    moved = [*shifts]
    value = shared.excess(everybody, moved)
    points = shared.candidates(job, others, shifts)
    round_ = math.gcd(shared.period_ps[job], math.lcm(*(shared.period_ps[k] for k in others)))

    def is_good(shift: int) -> bool:
        moved[job] = shift % round_
        return shared.excess(everybody, moved) <= value + _DUST

    ends = [*points[1:].tolist(), int(points[0]) + round_]
    spans = [
        (begin, end)
        for begin, end in zip(points.tolist(), ends, strict=True)
        if is_good(begin) and is_good(end) and is_good((begin + end) // 2)
    ]
    joined: list[tuple[int, int]] = []
    for begin, end in spans:
        if joined and joined[-1][1] == begin:
            begin = joined.pop()[0]
        joined.append((begin, end))
    if len(joined) > 1 and joined[-1][1] == joined[0][0] + round_:  # over the top of the circle
        joined.append((joined.pop()[0], joined.pop(0)[1] + round_))
    if not joined or joined[0][1] - joined[0][0] >= round_:
        return shifts[job]
    begin, end = max(joined, key=lambda span: span[1] - span[0])
    return (begin + end) // 2 % shared.period_ps[job]
