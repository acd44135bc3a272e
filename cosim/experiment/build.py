"""A scenario made into what the engine takes: topology, network, jobs on endpoints, planner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cosim.answers import check_answer, misfit
from cosim.cluster.arrange import Request, arrange, seats
from cosim.cluster.pace import pace
from cosim.context import Context
from cosim.doubts import Doubt
from cosim.engine.records import I32, JobInfo
from cosim.errors import InputError, WorkloadError
from cosim.experiment.doubts import doubts_before
from cosim.experiment.events import check_can_change, with_changes, with_slowdowns
from cosim.experiment.idle import idle_settings
from cosim.experiment.memory import with_memory
from cosim.experiment.scenario import Job, Scenario
from cosim.experiment.sizes import PER_LINK, PER_OPERATION_BUILT, check_size
from cosim.network.named import made_network
from cosim.network.simulator import NetworkSimulator
from cosim.pattern.planner import Planner
from cosim.plugin_file import at
from cosim.topology.graph import Topology
from cosim.topology.scale_up import host_domains, host_shape
from cosim.units import NEVER
from cosim.workload.check import check
from cosim.workload.draws import draw
from cosim.workload.program import Workload

if TYPE_CHECKING:
    from cosim.experiment.workloads import KeptWorkloads


@dataclass(frozen=True, eq=False)
class Built:
    """Ready to run. ``warnings`` are settings that can't affect the result, with their places; ``doubts``
    what can make the answer wrong.
    """

    topology: Topology
    network: NetworkSimulator
    jobs: tuple[JobInfo, ...]
    planner: Planner
    warnings: tuple[str, ...]
    doubts: tuple[Doubt, ...] = ()


def build(scenario: Scenario, kept: KeptWorkloads | None = None, *, held: bool = False) -> Built:
    """Make everything that the scenario names, but for workloads that are kept.

    Jobs that are ``held`` get endpoints when they begin.

    Raises
    ------
    InputError
        Something that can't be made, or doesn't fit together; with its place in the scenario.
    """
    made_up = assembled(scenario, fabric(scenario), kept, held=held)
    topology, jobs = made_up.topology, made_up.jobs
    idle = tuple(idle_settings(scenario, topology, jobs))
    return replace(made_up, warnings=idle, doubts=doubts_before(scenario, topology, jobs))


def assembled(
    scenario: Scenario,
    own: Topology,
    kept: KeptWorkloads | None = None,
    *,
    held: bool = False,
    with_hosts: Topology | None = None,
) -> Built:
    """The same on a topology that was made already, without warnings and doubts.

    Its hosts are looked at in ``with_hosts``, where that is given.

    Raises
    ------
    InputError
        As :func:`build`.
    """
    topology = with_changes(scenario, own)
    jobs = with_memory(
        scenario, topology, with_slowdowns(scenario, _jobs(scenario, topology, kept, held=held))
    )
    with at(scenario.locate("network")):
        scenario.network.check_topology(topology)
        network = made_network(scenario.network, scenario.context)
    check_can_change(scenario, topology, network)
    with at(scenario.locate("collectives")):
        hosts = host_shape(with_hosts or topology, scenario.topology)
        planner = Planner(scenario.collectives, scenario.context, hosts, topology)
    return Built(topology, network, jobs, planner, ())


@dataclass(frozen=True, eq=False, slots=True)
class JobRequest:
    """One job to be, before it has endpoints: the scenario's ``number``-th, in its ``start_ps``."""

    number: int
    name: str
    workload: Workload
    start_ps: int


def _job_requests(scenario: Scenario, kept: KeptWorkloads | None) -> Iterator[JobRequest]:
    for number, job in enumerate(scenario.jobs):
        with at(scenario.locate("jobs", number, "workload")):
            workloads = new_workloads(scenario, number) if kept is None else kept.of(scenario, number)
        with at(scenario.locate("jobs", number, "arrival")):
            later = _arrivals(job, scenario.context)
        for name, workload, offset in zip(job.names(), workloads, later, strict=True):
            yield JobRequest(number, name, workload, job.start + offset)


def _arrivals(job: Job, context: Context) -> list[int]:
    """Times of the jobs that an entry stands for, after its start."""
    if job.arrival is None:
        return [0] * job.count
    times: object = job.arrival.times(job.count, context)
    good = isinstance(times, Sequence) and len(times) == job.count and all(map(_is_time, times))
    if not good:
        raise InputError(
            f"{type(job.arrival).__name__}.times gave {repr(times)[:80]}; it should give a list of "
            f"{job.count} whole picoseconds from 0 on"
        )
    assert isinstance(times, Sequence)
    return [int(one) for one in times]


def _is_time(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= int(value) < NEVER


def new_workloads(scenario: Scenario, number: int) -> list[Workload]:
    """The workload of each job that the scenario's ``number``-th entry stands for: one and the same, unless
    each is drawn.

    Raises
    ------
    InputError
        It can't be built, or can't be run to its end.
    """
    job = scenario.jobs[number]
    spec = job.workload
    if isinstance(spec, Workload):
        if wrong := misfit(spec, Workload):
            raise WorkloadError(f"workload {spec.name!r}: {wrong.removeprefix('.')}")
        check(spec)
        return [spec] * job.count
    check_size(spec.size_about() + job.count, "ranks and operations", PER_OPERATION_BUILT)
    seed = draw(scenario.seed, number)
    copies = range(job.count if spec.copies_differ else 1)
    built = [spec.build(Context(scenario.base, seed, copy)) for copy in copies]
    for workload in built:
        check_answer(spec, "build", workload, Workload)
        check(workload)
    return built if spec.copies_differ else built * job.count


def _check_lag(workload: Workload, iterations: int) -> None:
    """Refuse what never gets to wait for an earlier iteration: it would be timed as if it did not."""
    lag = workload.table.longest_lag
    if lag >= iterations:
        raise WorkloadError(
            f"{workload.name}: operations wait for {lag} iterations before, but there are {iterations}",
            hint=f"iterations: {lag + 1} at least; several times as many until they follow each other evenly",
        )


def _jobs(
    scenario: Scenario, topology: Topology, kept: KeptWorkloads | None, *, held: bool
) -> tuple[JobInfo, ...]:
    """Every job of the scenario on its endpoints, those of a count one by one."""
    job_requests = list(_job_requests(scenario, kept))
    asked = [scenario.jobs[requested.number] for requested in job_requests]
    near = _domains(topology, asked)
    placed = arrange(
        [
            Request(requested.name, requested.workload.world_size, job.placement, requested.workload.mesh)
            for requested, job in zip(job_requests, asked, strict=True)
        ],
        topology.num_endpoints,
        domains=near,
        scale_up=host_domains(topology),
        # Where they wait, each is looked at on an empty cluster: where it sits is known when it starts.
        share_endpoints=scenario.share_endpoints or scenario.queue is not None or held,
        context=scenario.context,
        locate=lambda at: scenario.locate("jobs", job_requests[at].number, "placement"),
    )
    jobs = []
    for index, (requested, job, endpoints) in enumerate(zip(job_requests, asked, placed, strict=True)):
        with at(scenario.locate("jobs", requested.number, "iterations")):
            _check_lag(requested.workload, job.iterations)
        with at(scenario.locate("jobs", requested.number, "stragglers")):
            own = pace(job.stragglers, job.jitter, requested.workload.world_size, scenario.seed, index)
        jobs.append(
            JobInfo(
                name=requested.name,
                workload=requested.workload,
                endpoints=endpoints,
                iterations=job.iterations,
                start_ps=requested.start_ps,
                weight=job.weight,
                priority=job.priority,
                pace=own,
                driven=job.is_driven,
            )
        )
    return tuple(jobs)


def _domains(topology: Topology, jobs: Sequence[Job]) -> tuple[I32, ...]:
    """What is near each other, where a job's placement goes by it."""
    if not any(job.placement.needs_domains for job in jobs):
        return ()
    from cosim.cluster.locality import domains

    return domains(topology)


def job_at(
    scenario: Scenario,
    topology: Topology,
    job: Job,
    endpoints: Sequence[int] | None,
    free: I32,
    now: int,
    number: int,
) -> JobInfo | None:
    """One more job from now on: on endpoints, or where its placement says among those that are free;
    None: it finds no room there.

    Raises
    ------
    InputError
        It can't be made, or does not fit.
    """
    alone = scenario.model_copy(update={"jobs": (job,)})
    alone._base = scenario.base
    requested = next(_job_requests(alone, None))
    if job.is_driven:
        raise WorkloadError("a job that a process starts has programs; what it drives itself needs no job")
    _check_lag(requested.workload, job.iterations)
    world = requested.workload.world_size
    if endpoints is None:
        near = _domains(topology, [job])
        request = Request(requested.name, world, job.placement)
        size, context = topology.num_endpoints, scenario.context
        found = seats(request, free, size, 1, domains=near, context=context)
        if not found:
            return None
        chosen = found[0]
    else:
        chosen = np.array([*endpoints], np.int32)
        if len(chosen) != world:
            raise WorkloadError(
                f"{requested.name} has {world} ranks, but its placement {len(chosen)} endpoints"
            )
    own = pace(job.stragglers, job.jitter, world, scenario.seed, number)
    info = JobInfo(
        name=requested.name,
        workload=requested.workload,
        endpoints=chosen,
        iterations=job.iterations,
        start_ps=now,
        weight=job.weight,
        priority=job.priority,
        pace=own,
    )
    return with_memory(scenario, topology, (info,))[0]


def fabric(scenario: Scenario) -> Topology:
    """The scenario's topology, before any event.

    Raises
    ------
    InputError
        It can't be made; with its place in the scenario.
    """
    with at(scenario.locate("topology")):
        if isinstance(scenario.topology, Topology):
            return scenario.topology
        check_size(scenario.topology.size_about(), "links", PER_LINK)
        built = scenario.topology.build(scenario.context)
        check_answer(scenario.topology, "build", built, Topology)
        return built
