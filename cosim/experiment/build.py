"""A scenario made into what the engine takes: topology, network, jobs on endpoints, planner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cosim.cluster.arrange import Request, arrange
from cosim.cluster.locality import domains
from cosim.cluster.pace import pace
from cosim.engine.records import JobInfo
from cosim.errors import AlgorithmError, CosimError, InputError, Location, SimulationError, WorkloadError
from cosim.experiment.idle import idle_settings
from cosim.experiment.scenario import Scenario
from cosim.network.simulator import NetworkSimulator
from cosim.pattern.custom import RankNodes
from cosim.pattern.planner import Planner
from cosim.topology.graph import Topology
from cosim.workload.check import check
from cosim.workload.draws import draw
from cosim.workload.program import Workload


@dataclass(frozen=True, eq=False)
class Built:
    """Ready to run. ``warnings`` are settings that can't affect the result, with their places."""

    topology: Topology
    network: NetworkSimulator
    jobs: tuple[JobInfo, ...]
    planner: Planner
    warnings: tuple[str, ...]


@contextmanager
def at(place: Location | None, *only: type[CosimError]) -> Iterator[None]:
    """Give an error (of ``only`` these classes, where given) the place in the scenario that led to it."""
    try:
        yield
    except InputError as error:
        if place is None or (only and not isinstance(error, only)):
            raise
        if error.location is not None:
            place = Location(place.file, place.line, f"{place.key}: {error.location}")
        raise type(error)(error.message, location=place, hint=error.hint) from error
    except SimulationError as error:
        if place is not None and not only:
            error.args = (f"{place}: {error}",)
        raise


def build(scenario: Scenario) -> Built:
    """Make everything that the scenario names.

    Raises
    ------
    InputError
        Something that can't be made, or doesn't fit together; with its place in the scenario.
    """
    with at(scenario.locate("topology")):
        topology = _topology(scenario)
    jobs = _jobs(scenario, topology)
    with at(scenario.locate("network")):
        getattr(scenario.network, "check_topology", lambda _: None)(topology)
        takes_base = getattr(type(scenario.network), "takes_base", False)
        network = scenario.network.build(scenario.base) if takes_base else scenario.network.build()
    with at(scenario.locate("collectives")):
        planner = Planner(
            scenario.collectives,
            read_custom=partial(custom_algorithm, scenario.base),
            base=scenario.base,
        )
    return Built(topology, network, jobs, planner, tuple(idle_settings(scenario, topology, jobs)))


@dataclass(frozen=True, eq=False, slots=True)
class _Wish:
    """One job to be, before it has endpoints: the scenario's ``number``-th, in its ``start_ps``."""

    number: int
    name: str
    workload: Workload
    start_ps: int


def _wishes(scenario: Scenario) -> Iterator[_Wish]:
    for number, job in enumerate(scenario.jobs):
        with at(scenario.locate("jobs", number, "workload")):
            workloads = _workloads(scenario, number)
        with at(scenario.locate("jobs", number, "arrival")):
            later = [0] * job.count if job.arrival is None else job.arrival.times(job.count, scenario.seed)
        for name, workload, offset in zip(job.names(), workloads, later, strict=True):
            yield _Wish(number, name, workload, job.start + offset)


def _workloads(scenario: Scenario, number: int) -> list[Workload]:
    """Of each job that an entry stands for: one and the same, unless it is drawn."""
    job = scenario.jobs[number]
    if isinstance(job.workload, Workload):
        made = [job.workload]
    elif getattr(type(job.workload), "takes_seed", False):
        seed = draw(scenario.seed, number)
        made = [job.workload.build(scenario.base, seed=seed, copy=copy) for copy in range(job.count)]
    else:
        made = [job.workload.build(scenario.base)]
    for workload in made:
        check(workload)
    return made if len(made) == job.count else made * job.count


def _jobs(scenario: Scenario, topology: Topology) -> tuple[JobInfo, ...]:
    """Every job of the scenario on its endpoints, those of a count one by one."""
    wishes = list(_wishes(scenario))
    asked = [scenario.jobs[wish.number] for wish in wishes]
    near = domains(topology) if any(job.placement.needs_domains for job in asked) else ()
    placed = arrange(
        [
            Request(wish.name, wish.workload.world_size, job.placement)
            for wish, job in zip(wishes, asked, strict=True)
        ],
        topology.num_endpoints,
        domains=near,
        share_endpoints=scenario.share_endpoints,
        seed=scenario.seed,
        locate=lambda at: scenario.locate("jobs", wishes[at].number, "placement"),
    )
    jobs = []
    for index, (wish, job, endpoints) in enumerate(zip(wishes, asked, placed, strict=True)):
        with at(scenario.locate("jobs", wish.number, "stragglers")):
            own = pace(job.stragglers, job.jitter, wish.workload.world_size, scenario.seed, index)
        jobs.append(
            JobInfo(
                name=wish.name,
                workload=wish.workload,
                endpoints=endpoints,
                iterations=job.iterations,
                start_ps=wish.start_ps,
                weight=job.weight,
                priority=job.priority,
                pace=own,
            )
        )
    return tuple(jobs)


def _topology(scenario: Scenario) -> Topology:
    if isinstance(scenario.topology, Topology):
        return scenario.topology
    built: Topology = scenario.topology.build(seed=scenario.seed, base=scenario.base)
    return built


def custom_algorithm(base: Path, path: str) -> list[RankNodes]:
    """The nodes of a collective that is written as Chakra files, rank by rank."""
    from cosim.formats.chakra.read_messages import read_messages  # brings protobuf, which few scenarios need

    try:
        return [RankNodes.from_columns(columns) for columns in read_messages(base / path)]
    except WorkloadError as error:  # these files are an algorithm's, not a job's
        raise AlgorithmError(error.message, location=error.location, hint=error.hint) from error
