"""What was decided for jobs that share a cluster: who waited, and what a scheduler told whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cosim.topology.graph import Topology

if TYPE_CHECKING:
    from cosim.cluster.schedulers.contract import Decision
    from cosim.cluster.schedulers.profile import Placed
    from cosim.cluster.sharing import Cluster, Moment


@dataclass(frozen=True)
class ScheduledJob:
    """One job of a decision. ``communicates``: share of its period in which it does, by itself; None: not
    said. ``paths``: pairs of endpoints whose path was chosen.
    """

    name: str
    period_ps: int
    communicates: float
    shift_ps: int | None
    intensity: float | None
    priority: int | None
    paths: int


@dataclass(frozen=True)
class SharedLink:
    """A link that jobs stand in each other's way on. ``score`` is 1 where they don't, shifted as decided;
    ``unshifted``: if all started together; ``links``: so many that they share alike.
    """

    name: str
    jobs: tuple[str, ...]
    perimeter_ps: int
    score: float
    unshifted: float
    links: int


@dataclass(frozen=True)
class Scheduling:
    """What a queue, a scheduler, or both did in a run.

    ``decisions`` were made; ``jobs``, ``links`` and ``notes`` are of the first for the most jobs, at
    ``time_ps``. ``arrived_ps`` and ``waited_ps`` are of each job that came, by name.
    """

    scheduler: str
    queue: str
    decisions: int
    time_ps: int
    jobs: tuple[ScheduledJob, ...]
    links: tuple[SharedLink, ...]
    notes: tuple[str, ...]
    arrived_ps: dict[str, int]
    waited_ps: dict[str, int]
    unscheduled_ps: dict[str, float] = field(default_factory=dict)
    """Mean iteration of each job without the scheduler, where that was run too."""


def scheduling(cluster: Cluster) -> Scheduling:
    """What a cluster's director did in a run that is over."""
    moment, queue = cluster.busiest, cluster.queue
    names = [job.name for job in cluster.jobs]
    return Scheduling(
        scheduler="" if cluster.scheduler is None else cluster.scheduler.name,
        queue="" if queue is None else queue.order + (" with backfill" if queue.backfill else ""),
        decisions=cluster.num_decisions,
        time_ps=0 if moment is None else moment.time_ps,
        jobs=() if moment is None else _jobs(moment),
        links=() if moment is None else _links(moment, cluster.topology),
        notes=() if moment is None else (*moment.decision.notes, *_undecided(cluster)),
        arrived_ps={names[job]: time for job, time in sorted(cluster.arrived_ps.items())},
        waited_ps={
            names[job]: cluster.started_ps[job] - time
            for job, time in sorted(cluster.arrived_ps.items())
            if job in cluster.started_ps
        },
    )


def _undecided(cluster: Cluster) -> list[str]:
    """Names of jobs that have no profile."""
    names = [job.name for job in cluster.jobs if job.profile is None]
    return [f"{name} is background traffic: nothing is decided for it" for name in names]


def _jobs(moment: Moment) -> tuple[ScheduledJob, ...]:
    decision = moment.decision
    shift = {job: one for shifts in decision.shifts for job, one in shifts.shift_ps.items()}
    return tuple(_job(job, shift.get(job.number), decision) for job in moment.jobs)


def _job(job: Placed, shift_ps: int | None, decision: Decision) -> ScheduledJob:
    return ScheduledJob(
        name=job.name,
        period_ps=job.profile.period_ps,
        communicates=job.profile.communicates,
        shift_ps=shift_ps,
        intensity=decision.intensities.get(job.number),
        priority=decision.priorities.get(job.number),
        paths=len(decision.paths.get(job.number, ())),
    )


def _links(moment: Moment, topology: Topology) -> tuple[SharedLink, ...]:
    names = {job.number: job.name for job in moment.jobs}
    return tuple(
        SharedLink(
            topology.link_name(link.link),
            tuple(names[job] for job in link.jobs),
            link.perimeter_ps,
            link.score,
            link.unshifted,
            link.links,
        )
        for link in moment.decision.links
    )
