"""A scenario's cluster: who queues and who schedules, made of what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from cosim.cluster.arrange import Request, seats
from cosim.cluster.contract import I32
from cosim.errors import ScenarioError
from cosim.experiment.build import Built
from cosim.experiment.scenario import Scenario
from cosim.plugin_file import at
from cosim.topology.graph import I64
from cosim.topology.scale_up import host_domains

if TYPE_CHECKING:
    from cosim.cluster.sharing import Cluster


def shared_cluster(scenario: Scenario, built: Built) -> tuple[Built, Cluster | None]:
    """The cluster that directs the jobs, None where nobody does; and what was built, its paths open to be
    pinned.

    Raises
    ------
    InputError
        A scheduler that doesn't go with the network; a job that can't be run alone.
    """
    scheduler, queue = scenario.scheduler, scenario.queue
    if scheduler is None and queue is None:
        return built, None
    check_scheduler(scenario, built)
    from cosim.experiment.profiles import profiles

    known = profiles(scenario, built) if scheduler is not None else [None] * len(built.jobs)
    if scheduler is not None and scheduler.pins_paths:
        from cosim.fabric.pinned import PinnedPaths

        routed = replace(built.topology, routing=PinnedPaths(built.topology.routing))
        built = replace(built, topology=routed)
    from cosim.cluster.sharing import Cluster, Submitted

    jobs = [
        Submitted(job.name, job.endpoints, profile, job.priority)
        for job, profile in zip(built.jobs, known, strict=True)
    ]
    candidates = (
        PossiblePlacements(scenario, built) if queue is not None and not scenario.share_endpoints else None
    )
    return built, Cluster(jobs, built.topology, queue, scheduler, candidates)


def check_scheduler(scenario: Scenario, built: Built) -> None:
    """Refuse paths that the network would not go.

    Raises
    ------
    ScenarioError
        Names the network, or the balancer.
    """
    scheduler = scenario.scheduler
    if scheduler is None or not scheduler.pins_paths:
        return
    where = scenario.locate("scheduler")
    if any(network.elsewhere for network in built.network.parts()):
        raise ScenarioError(
            f"{type(scheduler).__name__} pins paths, which a simulator elsewhere can't be told: "
            "it routes by itself",
            location=where,
            hint="fair_share and congestion take them; cassini decides nothing about paths",
        )
    if scenario.network.chooses_paths():
        raise ScenarioError(
            f"{type(scheduler).__name__} pins paths, but network.balancer chooses them too",
            location=where,
            hint="take one of the two away",
        )


class PossiblePlacements:
    """Placements that a job of the scenario could have, by number of the job."""

    def __init__(self, scenario: Scenario, built: Built) -> None:
        self._scenario = scenario
        self._jobs = built.jobs
        self._entry = [number for number, job in enumerate(scenario.jobs) for _ in range(job.count)]
        self._num_endpoints = built.topology.num_endpoints
        most = scenario.scheduler.num_candidates() if scenario.scheduler is not None else 1
        self._near = most > 1 or any(job.placement.needs_domains for job in scenario.jobs)
        self._topology = built.topology

    @cached_property
    def _domains(self) -> tuple[I32, ...]:
        if not self._near:
            return ()
        from cosim.cluster.locality import domains

        return domains(self._topology)

    @cached_property
    def _scale_up(self) -> I64 | None:
        return host_domains(self._topology)

    def __call__(self, job: int, free: I32, most: int) -> Sequence[I32]:
        """At most so many, among endpoints that are free; none: it has to wait."""
        number, info = self._entry[job], self._jobs[job]
        placement = self._scenario.jobs[number].placement
        request = Request(info.name, len(info.endpoints), placement, info.workload.mesh)
        with at(self._scenario.locate("jobs", number, "placement")):
            return seats(
                request,
                free,
                self._num_endpoints,
                most,
                domains=self._domains,
                scale_up=self._scale_up,
                context=self._scenario.context,
            )
