"""Who has which endpoints while a run goes on: jobs queue, start, and are scheduled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cosim.cluster.contract import I32, Queue
from cosim.cluster.schedulers.check import checked
from cosim.cluster.schedulers.contract import Decision, Scheduler
from cosim.cluster.schedulers.profile import JobProfile, Placed
from cosim.engine.directing import Director, JobOrder
from cosim.fabric.pinned import PinnedPaths
from cosim.topology.graph import Topology

Candidates = Callable[[int, I32, int], Sequence[I32]]
"""(Job, free endpoints, at most how many) to placements of the job, its own first; none: it has to wait."""


@dataclass(frozen=True, eq=False)
class Submitted:
    """A job of a shared cluster. ``endpoints`` are those it gets where nobody queues; ``profile``: None where
    nobody schedules; ``priority``: the scenario's.
    """

    name: str
    endpoints: I32
    profile: JobProfile | None = None
    priority: int = 0


@dataclass(frozen=True, eq=False)
class Moment:
    """A decision: when, for whom, and what."""

    time_ps: int
    jobs: tuple[Placed, ...]
    decision: Decision


@dataclass(eq=False)
class Cluster(Director):
    """Directs jobs: who waits, who starts where, and what a scheduler has them do.

    Attributes
    ----------
    arrived_ps, started_ps
        When each job came, and when it was given endpoints.
    busiest
        The first decision for the most jobs.
    num_decisions
        How often the scheduler was asked.
    warnings
        Of all decisions, each once.
    """

    jobs: Sequence[Submitted]
    topology: Topology
    queue: Queue | None = None
    scheduler: Scheduler | None = None
    candidates: Candidates | None = None
    arrived_ps: dict[int, int] = field(default_factory=dict)
    started_ps: dict[int, int] = field(default_factory=dict)
    busiest: Moment | None = None
    num_decisions: int = 0
    warnings: dict[str, None] = field(default_factory=dict)
    _waiting: list[int] = field(default_factory=list)
    _running: dict[int, I32] = field(default_factory=dict)
    _seen: dict[int, Placed] = field(default_factory=dict)
    """The same as a scheduler sees them, with what was found out about them."""
    _turns: dict[int, tuple[int, int]] = field(default_factory=dict)
    """(Start of a turn, time between two) of each job that has turns."""
    _begun: dict[int, int] = field(default_factory=dict)
    """When the last iteration of each began."""
    _pinned: dict[int, object] = field(default_factory=dict)
    _drift: float = 0.0

    def arrived(self, jobs: Sequence[int], now_ps: int) -> list[JobOrder]:
        """See :class:`~cosim.engine.directing.Director`."""
        self.arrived_ps.update(dict.fromkeys(jobs, now_ps))
        self._waiting += jobs
        return self._go_on(now_ps)

    def ended(self, job: int, now_ps: int) -> list[JobOrder]:
        """See :class:`~cosim.engine.directing.Director`."""
        del self._running[job]
        self._seen.pop(job, None)
        self._turns.pop(job, None)
        self._begun.pop(job, None)
        return self._go_on(now_ps)

    def delays(self, job: int) -> bool:  # noqa: ARG002 - all have turns, or none
        """See :class:`~cosim.engine.directing.Director`: only who schedules has jobs take turns."""
        return self.scheduler is not None

    def starts(self, job: int, iteration: int, now_ps: int) -> int:  # noqa: ARG002 - each has its turn
        """See :class:`~cosim.engine.directing.Director`: at its turn, or up to ``drift`` later."""
        start = now_ps
        if job in self._turns:
            turn, period = self._turns[job]
            late = (now_ps - turn) % period
            if late > self._drift * period:
                start += period - late
        self._begun[job] = start
        return start

    # -- who starts ----------------------------------------------------------------------------------

    def _go_on(self, now: int) -> list[JobOrder]:
        """Start who can, and have the scheduler say what all do from now on."""
        started: dict[int, I32] = {}
        free = self._free()
        for job in [*self._waiting]:
            endpoints = self._seats(job, free)
            if endpoints is None:
                if self.queue is None or not self.queue.backfill:
                    break
                continue
            self._waiting.remove(job)
            self._running[job] = started[job] = endpoints
            self.started_ps[job] = now
            free = self._free()
        told = self._decide(now, bool(started)) if self.scheduler is not None and self._running else {}
        return [
            JobOrder(job, started.get(job), *told.get(job, (None, None)))
            for job in self._running
            if job in started or job in told
        ]

    def _free(self) -> I32:
        """Endpoints that nobody has."""
        taken = np.zeros(self.topology.num_endpoints, np.bool_)
        if self._running:
            taken[np.concatenate([*self._running.values()])] = True
        return np.flatnonzero(~taken).astype(np.int32)

    def _seats(self, job: int, free: I32) -> I32 | None:
        """Where a job may start now; None: it has to wait."""
        mine = self.jobs[job]
        if self.candidates is None:
            return mine.endpoints
        most = 1 if self.scheduler is None else self.scheduler.num_candidates()
        found = self.candidates(job, free, most)
        if not found:
            return None
        if self.scheduler is None or len(found) == 1 or mine.profile is None:
            return found[0]
        return found[self.scheduler.choose(found, mine.name, mine.profile, self._placed(), self.topology)]

    # -- what they are told --------------------------------------------------------------------------

    def _placed(self) -> tuple[Placed, ...]:
        """The jobs that run, in the order in which they started; background traffic is none."""
        for job, endpoints in self._running.items():
            profile = self.jobs[job].profile
            if profile is not None and job not in self._seen:
                self._seen[job] = Placed(job, self.jobs[job].name, profile, endpoints)
        return tuple(self._seen[job] for job in self._running if job in self._seen)

    def _decide(self, now: int, starts: bool) -> dict[int, tuple[int | None, int | None]]:
        """(Priority, channel) of each job that runs; its turns are kept here. ``starts``: one has started."""
        assert self.scheduler is not None
        placed = self._placed()
        if not placed:
            return {}
        said = self.scheduler.decide(placed, self.topology)
        decision = checked(self.scheduler, said, placed, self.topology)
        self.num_decisions += 1
        self.warnings.update(dict.fromkeys(decision.warnings))
        if self.busiest is None or len(placed) > len(self.busiest.jobs):
            self.busiest = Moment(now, placed, decision)
        self._take_turns(decision, now, starts)
        return {
            job.number: (
                decision.priorities.get(job.number, self.jobs[job.number].priority),
                self._pin(job, decision),
            )
            for job in placed
        }

    def _take_turns(self, decision: Decision, now: int, starts: bool) -> None:
        """Turns of jobs, so that whoever runs longest keeps its own. Where jobs have only left, those that
        stay are in each other's way no more than before: they keep their turns.
        """
        before = dict(self._turns)
        self._turns.clear()
        self._drift = decision.drift
        for shifts in decision.shifts:
            kept = {job: before[job] for job in shifts.shift_ps if job in before}
            alike = all(kept[job][1] == shifts.period_ps[job] for job in kept)
            if not starts and len(kept) == len(shifts.shift_ps) and alike:
                self._turns.update(kept)
                continue
            known = [job for job in self._running if job in shifts.shift_ps and job in self._begun]
            begun = self._begun[known[0]] - shifts.shift_ps[known[0]] if known else now
            for job, shift in shifts.shift_ps.items():
                self._turns[job] = begun + shift, shifts.period_ps[job]

    def _pin(self, job: Placed, decision: Decision) -> int | None:
        """Pin a job's paths; the channel of its messages to come, None where they go as before."""
        paths = decision.paths.get(job.number, {})
        if self._pinned.get(job.number, {}) == paths:
            return None
        self._pinned[job.number] = paths
        routing = self.topology.routing
        assert isinstance(routing, PinnedPaths)
        return routing.pin(paths)
