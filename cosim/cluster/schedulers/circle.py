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

from cosim.cluster.schedulers.demand import Demand, wrapped
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
        """The perimeter of the circle."""
        return math.lcm(*self.period_ps)

    def scores(self, shifts: Sequence[int]) -> list[float]:
        """The score of each link: 1 - excess / (perimeter x capacity)."""
        return [
            1.0 - self._excess(link, [*range(len(shifts))], shifts) for link in range(len(self.capacity_bps))
        ]

    def excess(self, jobs: Sequence[int], shifts: Sequence[int]) -> float:
        """What these jobs want beyond capacities, all links together; 1: a capacity."""
        return sum(self._excess(link, jobs, shifts) for link in range(len(self.capacity_bps)))

    def excess_at(
        self, job: int, points: Sequence[int] | I64, others: Sequence[int], shifts: Sequence[int]
    ) -> list[float]:
        """:meth:`excess` of ``others`` and a job, for each shift of the job among ``points``.

        What the others leave of a link is integrated once for each rate that the job wants; a shift is then a
        difference of two integrals.
        """
        at = np.asarray(points, np.int64)
        total = np.zeros(len(at))
        for link in range(len(self.capacity_bps)):
            own = self.demands[link][job]
            beside = [one for one in others if self.demands[link][one] is not None]
            if own is None or not beside:
                total += self._excess(link, [*others, job], shifts)
            else:
                total += self._excess_beside(link, own, self.period_ps[job], at, beside, shifts)
        return [*map(float, total)]

    def _excess_beside(
        self, link: int, own: Demand, period: int, at: I64, others: Sequence[int], shifts: Sequence[int]
    ) -> F64:
        time, wanted = self._wanted(link, others, shifts)
        capacity, around = self.capacity_bps[link], int(time[-1])
        again = math.gcd(period, around)  # a shift by this meets the others as before
        over = np.zeros(len(at))
        for begin, end, rate in zip(own.edges_ps[:-1], own.edges_ps[1:], own.rate_bps, strict=True):
            height = np.maximum(wanted + rate - capacity * (1 + _DUST), 0.0)
            edges, folded = wrapped(time[:-1], time[1:], height, again)
            until = np.concatenate([[0.0], np.cumsum(folded * np.diff(edges))])

            def integral(to: I64, edges: I64 = edges, until: F64 = until) -> F64:
                rounds, rest = np.divmod(to, again)
                return np.asarray(rounds * until[-1] + np.interp(rest, edges, until), np.float64)

            over += integral(at + end) - integral(at + begin)
        return np.asarray(over / (math.lcm(period, around) * capacity), np.float64)

    def _excess(self, link: int, jobs: Sequence[int], shifts: Sequence[int]) -> float:
        time, wanted = self._wanted(link, jobs, shifts)
        capacity = self.capacity_bps[link]
        over = np.maximum(wanted - capacity * (1 + _DUST), 0.0) @ np.diff(time)
        return float(over) / (int(time[-1]) * capacity)

    def _wanted(self, link: int, jobs: Sequence[int], shifts: Sequence[int]) -> tuple[I64, F64]:
        """(Times round the circle of these jobs, int64[n + 1]; what they want between them, float64[n])."""
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
        return time[order], base + np.cumsum(change[order])[:-1]

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
        for shifts in _combinations(shared, [0], order[:-1], [0] * number):
            last, others = order[-1], [0, *order[:-1]]
            points = shared.candidates(last, others, shifts)
            for shift, now in zip(
                points.tolist(), shared.excess_at(last, points, others, shifts), strict=True
            ):
                tried += 1
                if tried > _MOST_TRIED:
                    return None
                if now < value - _DUST:
                    best, value = [*shifts], now
                    best[last] = shift
                if value <= _DUST:
                    return best
    return best


def _combinations(
    shared: Shared, placed: list[int], left: Sequence[int], shifts: list[int]
) -> Iterator[list[int]]:
    """Shifts of these jobs, in turn; of the others as they are."""
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
    best, value = shifts[job], shared.excess_at(job, [shifts[job]], others, shifts)[0]
    if value <= _DUST:
        return best
    points = _points(shared, job, others, shifts, grid)
    for shift, now in zip(points.tolist(), shared.excess_at(job, points, others, shifts), strict=True):
        if now < value - _DUST:
            best, value = shift, now
        if value <= _DUST:
            break
    return best


def _middle(shared: Shared, job: int, shifts: Sequence[int]) -> int:
    """The middle of the longest range of shifts as good as a job's: as far as can be from where it gets
    worse.
    """
    others = [k for k in range(len(shifts)) if k != job]
    value = shared.excess_at(job, [shifts[job]], others, shifts)[0]
    points = shared.candidates(job, others, shifts)
    round_ = math.gcd(shared.period_ps[job], math.lcm(*(shared.period_ps[k] for k in others)))
    ends = np.append(points[1:], points[0] + round_)
    looked_at = np.concatenate([points, ends, (points + ends) // 2]) % round_
    alike = np.array(shared.excess_at(job, looked_at, others, shifts)) <= value + _DUST
    good = np.asarray(alike.reshape(3, -1).all(axis=0), np.bool_)
    spans = zip(points[good].tolist(), ends[good].tolist(), strict=True)
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
