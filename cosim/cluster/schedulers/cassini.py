"""CASSINI: jobs that share links start their iterations shifted, so that they send when others compute.

S. Rajasekaran, M. Ghobadi, A. Akella, "CASSINI: Network-Aware Job Scheduling in Machine Learning Clusters",
NSDI 2024, arXiv:2308.00852. Jobs that don't fit, whose score is worse than 1 - ``drift``, are not held to
shifts, nor are jobs of which one would be slower with turns than without: both are simulated
(:mod:`cosim.cluster.schedulers.gains`), as a score over the circle doesn't say how late an iteration is over
its own period. Not modelled: the time that agents take to measure and agree; paths and priorities are left
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import lcm

import numpy as np
from pydantic import Field

from cosim.cluster.schedulers.affinity import LoopError, Vertex, components, contended, joined
from cosim.cluster.schedulers.circle import Shared, best_shifts
from cosim.cluster.schedulers.contract import Decision, LinkScore, Scheduler, Shifts
from cosim.cluster.schedulers.demand import Demand
from cosim.cluster.schedulers.gains import Turns, losses
from cosim.cluster.schedulers.periods import MOST_PERIODS, fitting
from cosim.cluster.schedulers.profile import JobProfile, Placed
from cosim.topology.graph import I32, Topology
from cosim.units import format_time

_DUST = 1e-9


class Cassini(Scheduler):
    """Iterations shifted so that jobs send when others compute; of candidate placements the one that fits
    best
    """

    candidates: int = Field(
        1,
        ge=1,
        le=10,
        description="placements of a job that starts from a queue to choose from; the first is its own",
    )
    drift: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="an iteration later than this part of its period waits for its next turn",
    )
    grid: int | None = Field(
        None, ge=2, description="look at so many shifts of each period; omitted: at all where edges meet"
    )
    tolerance: float = Field(
        0.05, ge=0, lt=1, description="periods may be rounded up by this part of the shortest to go together"
    )

    def num_candidates(self) -> int:
        """See :class:`~cosim.cluster.schedulers.contract.Scheduler`."""
        return self.candidates

    def choose(
        self,
        candidates: Sequence[I32],
        name: str,
        profile: JobProfile,
        jobs: Sequence[Placed],
        topology: Topology,
    ) -> int:
        """The candidate with the best mean score over its links that makes no loop; the first of the best."""
        number = max((job.number for job in jobs), default=-1) + 1
        best, value = 0, -1.0
        for at, endpoints in enumerate(candidates):
            decision = self.decide([*jobs, Placed(number, name, profile, endpoints)], topology)
            scores = [link.score for link in decision.links if number in link.jobs]
            mean = float(np.mean(scores)) if scores else 1.0
            looped = any(note.startswith("a loop") for note in decision.notes)
            if not looped and mean > value + 1e-9:
                best, value = at, mean
            if value >= 1:
                break
        return best

    def decide(self, jobs: Sequence[Placed], topology: Topology) -> Decision:
        """See :class:`~cosim.cluster.schedulers.contract.Scheduler`."""
        by_number = {job.number: job for job in jobs}
        shifts, links = [], []
        notes = [f"{job.name} sends nothing: it is in nobody's way" for job in jobs if not job.profile.sends]
        steady = [job for job in jobs if job.profile.is_periodic and job.profile.sends]
        # Jobs that meet on no link, not even through others, are shifted without each other.
        for component in components(contended(steady, topology)):
            names = {job: by_number[job].name for vertex in component for job in vertex.jobs}
            wanted = {job: by_number[job].profile.period_ps for job in names}
            periods = fitting(wanted, [vertex.jobs for vertex in component], self.tolerance)
            if periods is None:
                who = ", ".join(names.values())
                notes.append(
                    f"no shifts for {who}: their periods meet again after over {MOST_PERIODS} of the "
                    f"shortest, and rounding by {self.tolerance:.0%} doesn't help"
                )
                continue
            notes += _rounded(wanted, periods, names)
            on_links = [self._on(vertex, periods, topology) for vertex in component]
            try:
                together = joined(component, on_links, periods, names, topology)
            except LoopError as error:
                notes.append(f"{error.message}: no shifts for these jobs")
                continue
            scores = [one for vertex in component for one in _scores(vertex, together, periods, topology)]
            links += scores
            worst = min(scores, key=lambda one: one.score)
            if worst.score < 1 - self.drift - _DUST:
                notes.append(
                    f"no shift helps {', '.join(names.values())}: they want {1 - worst.score:.0%} more than "
                    f"{topology.link_name(worst.link)} has at best, and would lose turn after turn"
                )
                continue
            if slower := self._slower(component, together, periods, names, topology):
                notes.append(slower)
                continue
            shifts.append(Shifts(together, periods))
        return Decision(
            shifts=tuple(shifts),
            drift=self.drift,
            links=tuple(links),
            notes=tuple(notes),
            warnings=_uneven(jobs),
        )

    def _slower(
        self,
        component: Sequence[Vertex],
        shifts: dict[int, int],
        periods: dict[int, int],
        names: dict[int, str],
        topology: Topology,
    ) -> str:
        """Which job of them would lose by turns; empty: none."""
        wants: dict[int, dict[int, Demand]] = {job: {} for job in names}
        capacity: dict[int, float] = {}
        known: set[tuple[float, tuple[tuple[int, bytes, bytes], ...]]] = set()
        for vertex in component:
            for link, demands in zip(vertex.links, vertex.demands, strict=True):
                rate = float(topology.link_rate_bps[link])
                said = ((job, one.edges_ps.tobytes(), one.rate_bps.tobytes()) for job, one in demands.items())
                alike = rate, tuple(said)
                if alike in known:
                    continue
                known.add(alike)
                capacity[link] = rate
                for job, demand in demands.items():
                    wants[job][link] = demand
        turns = [Turns(shifts[job], periods[job], self.drift * periods[job]) for job in names]
        found = losses([*wants.values()], capacity, turns, lcm(*periods.values()))
        if not found:
            return ""
        who, (took, without) = max(found.items(), key=lambda one: one[1][0] / one[1][1])
        return (
            f"no shift helps {', '.join(names.values())}: an iteration of {[*names.values()][who]} would "
            f"take {format_time(round(took))}, and takes {format_time(round(without))} without turns"
        )

    def _on(self, vertex: Vertex, periods: dict[int, int], topology: Topology) -> dict[int, int]:
        """The best shifts on a vertex by itself."""
        found = _search(_key(vertex, periods, topology), self.grid)
        return dict(zip(vertex.jobs, found, strict=True))


_Key = tuple[tuple[tuple[tuple[bytes, bytes] | None, ...], ...], tuple[float, ...], tuple[int, ...]]


def _key(vertex: Vertex, periods: dict[int, int], topology: Topology) -> _Key:
    """What jobs want of links, once where links are alike: the same circles come up again and again."""
    # Hundreds of links of a fabric carry the same two jobs: their circle is looked at once.
    alike: dict[tuple[tuple[tuple[bytes, bytes] | None, ...], float], None] = {}
    for link, demands in zip(vertex.links, vertex.demands, strict=True):
        said = tuple(_bytes(demands.get(job), periods[job]) for job in vertex.jobs)
        alike[said, float(topology.link_rate_bps[link])] = None
    return (
        tuple(said for said, _ in alike),
        tuple(rate for _, rate in alike),
        tuple(periods[job] for job in vertex.jobs),
    )


def _bytes(demand: Demand | None, period_ps: int) -> tuple[bytes, bytes] | None:
    if demand is None:
        return None
    longer = demand.stretched(period_ps)
    return longer.edges_ps.tobytes(), longer.rate_bps.tobytes()


def _shared(key: _Key) -> Shared:
    demands = [
        [
            None if one is None else Demand(np.frombuffer(one[0], np.int64), np.frombuffer(one[1]))
            for one in link
        ]
        for link in key[0]
    ]
    return Shared(demands, key[1], key[2])


@lru_cache(maxsize=4096)
def _search(key: _Key, grid: int | None) -> tuple[int, ...]:
    return tuple(best_shifts(_shared(key), grid))


def _scores(
    vertex: Vertex, shifts: dict[int, int], periods: dict[int, int], topology: Topology
) -> list[LinkScore]:
    """The score of each link of a vertex; of those that are alike, the first's."""
    found: dict[tuple[object, ...], LinkScore] = {}
    for link, demands in zip(vertex.links, vertex.demands, strict=True):
        jobs = tuple(demands)
        one = _key(Vertex(jobs, (link,), (demands,)), periods, topology)
        known = found.get((one, jobs))
        if known is None:
            shared = _shared(one)
            score = shared.scores([shifts[job] for job in jobs])[0]
            unshifted = shared.scores([0] * len(jobs))[0]
            known = LinkScore(link, jobs, shared.perimeter_ps, score, unshifted, 0)
        found[one, jobs] = LinkScore(
            known.link, jobs, known.perimeter_ps, known.score, known.unshifted, known.links + 1
        )
    return [*found.values()]


def _uneven(jobs: Sequence[Placed]) -> list[str]:
    """Jobs that no shift would hold to."""
    return [
        f"{job.name} is not periodic: its iterations alone differ by {job.profile.unevenness:.0%}; it is not "
        "shifted, nor others for it"
        for job in jobs
        if job.profile.sends and not job.profile.is_periodic
    ]


def _rounded(wanted: dict[int, int], periods: dict[int, int], names: dict[int, str]) -> list[str]:
    changed = [
        f"{names[job]} {format_time(wanted[job])} to {format_time(period)}"
        for job, period in periods.items()
        if period != wanted[job]
    ]
    return [f"periods rounded up so that they meet again: {', '.join(changed)}"] if changed else []
