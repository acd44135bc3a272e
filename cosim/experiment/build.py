"""A scenario made into what the engine takes: topology, network, jobs on endpoints, planner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cosim.cluster.arrange import Request, arrange
from cosim.engine.records import JobInfo
from cosim.errors import AlgorithmError, CosimError, InputError, Location, SimulationError, WorkloadError
from cosim.experiment.idle import idle_settings
from cosim.experiment.scenario import Scenario
from cosim.network.simulator import NetworkSimulator
from cosim.pattern.custom import RankNodes
from cosim.pattern.planner import Planner
from cosim.topology.graph import Topology
from cosim.workload.check import check
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
    requests, workloads = [], []
    for number, job in enumerate(scenario.jobs):
        with at(scenario.locate("jobs", number, "workload")):
            workload = (
                job.workload if isinstance(job.workload, Workload) else job.workload.build(scenario.base)
            )
            check(workload)
        workloads.append(workload)
        requests.append(Request(job.name, workload.world_size, job.placement))
    placed = arrange(
        requests,
        topology.num_endpoints,
        share_endpoints=scenario.share_endpoints,
        seed=scenario.seed,
        locate=lambda number: scenario.locate("jobs", number, "placement"),
    )
    jobs = tuple(
        JobInfo(
            name=job.name,
            workload=workload,
            endpoints=endpoints,
            iterations=job.iterations,
            start_ps=job.start,
            weight=job.weight,
            priority=job.priority,
        )
        for job, workload, endpoints in zip(scenario.jobs, workloads, placed, strict=True)
    )
    with at(scenario.locate("network")):
        getattr(scenario.network, "check_topology", lambda _: None)(topology)
        network = scenario.network.build()
    with at(scenario.locate("collectives")):
        planner = Planner(
            scenario.collectives,
            read_custom=partial(custom_algorithm, scenario.base),
            base=scenario.base,
        )
    return Built(topology, network, jobs, planner, tuple(idle_settings(scenario, topology, jobs)))


def _topology(scenario: Scenario) -> Topology:
    if isinstance(scenario.topology, Topology):
        return scenario.topology
    built: Topology = scenario.topology.build(seed=scenario.seed, base=scenario.base)
    return built


def custom_algorithm(base: Path, path: str) -> list[RankNodes]:
    """The nodes of a collective that is written as Chakra files, rank by rank."""
    from cosim.workload.chakra.custom import read_messages  # brings protobuf, which few scenarios need

    try:
        return [RankNodes.from_columns(columns) for columns in read_messages(base / path)]
    except WorkloadError as error:  # these files are an algorithm's, not a job's
        raise AlgorithmError(error.message, location=error.location, hint=error.hint) from error
