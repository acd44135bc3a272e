"""What jobs gain by turns: the same jobs simulated with them and without, over some rounds of their circle.

Each link is shared max-min between jobs, up to what each wants of it. A job goes on as fast as the link
allows on which it gets the least.

Not modelled: how many flows a demand is made of. A network shares a link between jobs by them, where each
wants more than its part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.cluster.schedulers.demand import Demand

ROUNDS = 32
"""Periods of the longest job that are simulated at least, and at most twice as many for a whole circle."""
_NO_WORSE = 1e-3
_DUST_PS = 1e-3


@dataclass(frozen=True, slots=True)
class Turns:
    """A job starts an iteration at ``first_ps`` plus whole periods, or up to ``late_ps`` after."""

    first_ps: int
    period_ps: int
    late_ps: float

    def start(self, ready_ps: float) -> float:
        """When an iteration starts that is ready."""
        late = (ready_ps - self.first_ps) % self.period_ps
        return ready_ps + (self.period_ps - late if late > self.late_ps else 0.0)


@dataclass(frozen=True, slots=True)
class _Phases:
    """An iteration of a job alone: how long each phase takes, and what it wants of each link meanwhile."""

    length_ps: list[float]
    wants: list[dict[int, float]]


def _phases(demands: Mapping[int, Demand]) -> _Phases:
    """A job's phases, by link."""
    edges = np.unique(np.concatenate([one.edges_ps for one in demands.values()]))
    lengths, wants = [], []
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        rates = {
            link: float(one.rate_bps[np.searchsorted(one.edges_ps, begin, "right") - 1])
            for link, one in demands.items()
        }
        lengths.append(float(end - begin))
        wants.append({link: rate for link, rate in rates.items() if rate > 0.0})
    return _Phases(lengths, wants)


def _speeds(wants: Sequence[Mapping[int, float]], capacity_bps: Mapping[int, float]) -> list[float]:
    """Each job's speed; 1: as if it were alone."""
    found = [1.0] * len(wants)
    for link, capacity in capacity_bps.items():
        mine = sorted((one[link], job) for job, one in enumerate(wants) if link in one)
        room = capacity
        for at, (rate, job) in enumerate(mine):
            got = min(rate, room / (len(mine) - at))
            room -= got
            found[job] = min(found[job], got / rate)
    return found


def ends_ps(
    demands: Sequence[Mapping[int, Demand]],
    capacity_bps: Mapping[int, float],
    until_ps: float,
    turns: Sequence[Turns] | None = None,
) -> list[list[float]]:
    """When iterations of each job end, up to ``until_ps``. Without turns each starts when the one before
    ends.

    ``demands[job][link]``; all jobs are ready at 0.
    """
    jobs = [_phases(one) for one in demands]
    ends: list[list[float]] = [[] for _ in jobs]
    now, phase = 0.0, [0] * len(jobs)
    left = [one.length_ps[0] for one in jobs]
    starts = [turns[job].start(0.0) if turns is not None else 0.0 for job in range(len(jobs))]
    while now < until_ps:
        runs = [start <= now + _DUST_PS for start in starts]
        wants = [job.wants[phase[n]] if runs[n] else {} for n, job in enumerate(jobs)]
        speed = _speeds(wants, capacity_bps)
        step = min(left[n] / speed[n] if runs[n] else starts[n] - now for n in range(len(jobs)))
        now += step
        for n, job in enumerate(jobs):
            if not runs[n]:
                continue
            left[n] -= step * speed[n]
            if left[n] > _DUST_PS:
                continue
            phase[n] = (phase[n] + 1) % len(job.length_ps)
            left[n] = job.length_ps[phase[n]]
            if phase[n] == 0:
                ends[n].append(now)
                starts[n] = turns[n].start(now) if turns is not None else now
    return ends


def losses(
    demands: Sequence[Mapping[int, Demand]],
    capacity_bps: Mapping[int, float],
    turns: Sequence[Turns],
    perimeter_ps: int,
) -> dict[int, tuple[float, float]]:
    """(Mean iteration with turns, without) of jobs that would be slower with them, ps."""
    longest = max(one.period_ps for one in turns)
    until = float(min(max(perimeter_ps, ROUNDS * longest), 2 * ROUNDS * longest))
    with_turns = ends_ps(demands, capacity_bps, until, turns)
    without = ends_ps(demands, capacity_bps, until)
    found = {}
    for job, (held, free) in enumerate(zip(with_turns, without, strict=True)):
        number = min(len(held), len(free))
        if not number:
            continue
        took, alone = held[number - 1] / number, free[number - 1] / number
        if took > alone * (1 + _NO_WORSE):
            found[job] = took, alone
    return found
