"""``cosim.open``: a run that SimPy's processes take part in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cosim.engine.records import I32, JobInfo, ProgressInfo
from cosim.engine.reference.live import LiveReference
from cosim.engine.reference.sampling import SampledSeries
from cosim.engine.replay import Replay
from cosim.errors import InputError, ScenarioError, WorkloadError
from cosim.experiment.build import Built, build, job_at
from cosim.experiment.engines import EngineName, engine_for, plain
from cosim.experiment.memory import remote_memory
from cosim.experiment.run import read_source
from cosim.experiment.scenario import Job, Scenario, from_document
from cosim.experiment.settings import Changes
from cosim.experiment.shared_cluster import PossiblePlacements
from cosim.experiment.simulate import finished, release_of
from cosim.experiment.watch import watched
from cosim.fabric.changes import LinkChanges
from cosim.fabric.pinned import PinnedPaths
from cosim.files.located_yaml import Document, read
from cosim.network.reference.releasing import PlainReleasing
from cosim.processes.held import HeldJobs
from cosim.processes.reference import ReferenceSimulation
from cosim.processes.simulation import Simulation
from cosim.topology.graph import Topology
from cosim.units import parse_time
from cosim.workload.program import DeviceMesh, Program, Workload
from cosim.written import plain as plain_values


def open(  # noqa: A001
    source: Scenario | Mapping[str, Any] | str | Path,
    set: Changes = (),  # noqa: A002
    *,
    unit: str = "1ps",
    messages: bool = False,
    changes_links: bool = False,
    held: bool = False,
    engine: str | None = None,
) -> Simulation:
    """A run that SimPy's processes take part in.

    Parameters
    ----------
    source
        A scenario: made in Python, as plain values, a YAML file, or YAML text. It may have no jobs.
    set
        Changes, as for :func:`cosim.load`.
    unit
        What a number of SimPy's time is: ``1ps``, or ``1s`` for programs that count seconds.
    messages
        Keep every message.
    changes_links
        Processes may change links, routes, paths and controls: :meth:`Simulation.change`.
    held
        Jobs of the scenario only arrive at their start; processes say when they begin, and where:
        ``job.begin(sim.room(job))``.
    engine
        ``"kernel"``, or ``"reference"``: the same results from plain SimPy, slowly, to be stepped through.

    Returns
    -------
    Simulation
        At time 0: nothing has happened yet.

    Raises
    ------
    InputError
        The scenario can't be used.

    Examples
    --------
    >>> import cosim
    >>> ring = {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "0ns"}
    >>> sim = cosim.open({"topology": ring, "network": "fair_share"})
    >>> def trainer(sim, ranks):
    ...     for step in range(2):
    ...         yield sim.compute(ranks, "1ms")
    ...         done = yield sim.all_reduce(ranks, "4MB")
    ...         print(sim.now, done.took_ps)
    >>> _ = sim.process(trainer(sim, range(4)))
    >>> run = sim.run()
    1600000000 600000000
    3200000000 600000000
    >>> run.records.num_messages
    48
    """
    scenario = read_source(source, set)
    if not isinstance(scenario, Scenario):
        raise InputError("this is a sweep: a simulation is one scenario")
    chosen = engine_for(engine)
    for kind in ("scheduler", "queue"):
        if getattr(scenario, kind) is not None:
            raise ScenarioError(
                f"processes start jobs by themselves, beside which there is no {kind}",
                location=scenario.locate(kind),
            )
    if held and any(job.is_driven for job in scenario.jobs):
        raise ScenarioError(
            "a job that a process drives is held by that process", location=scenario.locate("jobs")
        )
    try:
        unit_ps = parse_time(unit)
    except ValueError as error:
        raise InputError(f"unit: {error}") from None
    if unit_ps < 1:
        raise InputError(f"unit: {unit!r} is no time")
    built = build(scenario, held=held)
    return simulation(
        scenario,
        built,
        chosen,
        messages=messages,
        unit_ps=unit_ps,
        changes_links=changes_links,
        held=held,
    )


def simulation(
    scenario: Scenario,
    built: Built,
    engine: EngineName = "kernel",
    *,
    messages: bool = False,
    unit_ps: int = 1,
    changes_links: bool = False,
    held: bool = False,
    progress: Callable[[ProgressInfo], None] | None = None,
) -> Simulation:
    """A simulation of what was built."""
    with ExitStack() as refused:
        refused.callback(built.network.close)
        topology, own = built.topology, scenario.of_topology
        if changes_links or (own is not None and own.changes_links):
            topology = _changing(scenario, built)
        holds = HeldJobs() if held else None
        make = _reference if engine == "reference" else _kernel
        replay = make(scenario, built, topology, holds, messages=messages, progress=progress)
        sim: Any = replay.environment
        job_of = partial(_job, scenario, topology)
        sim.take(
            replay,
            topology,
            partial(finished, scenario, built),
            job_of,
            unit_ps,
            holds,
            PossiblePlacements(scenario, built),
            has_priorities=scenario.network.shares_by_priority(),
            remote=remote_memory(scenario, topology),
        )
        if own is not None:
            sim.process(own.live(sim, scenario.context))
        refused.pop_all()  # from here on, the simulation closes it
    return sim  # type: ignore[no-any-return]


def _kernel(
    scenario: Scenario,
    built: Built,
    topology: Topology,
    holds: HeldJobs | None,
    *,
    messages: bool,
    progress: Callable[[ProgressInfo], None] | None,
) -> Replay:
    record = scenario.record
    return Replay(
        topology,
        built.network,
        built.jobs,
        built.planner,
        release_of(scenario, built.network),
        scenario.seed,
        record_messages=messages or record.messages is not False,
        record_operations=None if record.operations == "all" else record.operations,
        progress=progress,
        director=holds,
        watched=watched(scenario, built),
        spill=None if record.spill is None else scenario.base / record.spill,
        environment=Simulation,
    )


def _reference(
    scenario: Scenario,
    built: Built,
    topology: Topology,
    holds: HeldJobs | None,
    *,
    messages: bool,
    progress: Callable[[ProgressInfo], None] | None,
) -> LiveReference:
    record, release, looked_at = (
        scenario.record,
        release_of(scenario, built.network),
        watched(scenario, built),
    )
    network = plain(scenario, built.network, topology)
    series = None if looked_at is None else SampledSeries(looked_at, network, topology.num_endpoints)
    if release == "engine" or not network.describe().dependent_flows:
        network = PlainReleasing(network)
    replay = LiveReference(
        topology,
        network,
        built.jobs,
        built.planner,
        holds,
        None if record.operations == "all" else record.operations,
        series,
        ReferenceSimulation,
    )
    replay.set_up(release, scenario.seed, messages or record.messages is not False, progress)
    return replay


def _changing(scenario: Scenario, built: Built) -> Topology:
    """The topology, whose links processes change."""
    lacks = [part for part in built.network.parts() if not part.describe().live_changes]
    if lacks:
        can = "congestion_unaware, congestion_aware, fair_share, congestion and ns-3's TCP have, also served"
        told = "; what it is told of when it starts are the scenario's events" if lacks[0].elsewhere else ""
        raise ScenarioError(
            f"{lacks[0].describe().name} has no links that change while it runs{told}",
            location=scenario.locate("network"),
            hint=can,
        )
    if built.topology.changes is not None:
        raise ScenarioError(
            "links change by events or by processes, not by both", location=scenario.locate("events")
        )
    topology, changes = built.topology, LinkChanges((), scenario.detection)
    return replace(topology, changes=changes, routing=PinnedPaths(topology.routing))


def _job(
    scenario: Scenario,
    topology: Topology,
    source: Any,
    placement: Sequence[int] | None,
    name: str,
    now: int,
    number: int,
    free: I32,
) -> JobInfo | None:
    """A job that a process starts; None: it finds no room."""
    if isinstance(source, tuple):
        program, iterations = source
        source = {"workload": _workload(program, placement, name), "iterations": iterations}
    if isinstance(source, Workload):
        source = {"workload": source}
    if isinstance(source, str | Path):
        source = _read(scenario.base / source)
    if isinstance(source, Mapping):
        whole = Document(
            "job", {"topology": topology, "network": "fair_share", "jobs": [plain_values(source, keep=True)]}
        )
        source = from_document(whole, scenario.base, "job").jobs[0]
    if not isinstance(source, Job):
        raise InputError(
            f"{source!r} is no job", hint="a cosim.Job, a cosim.Workload, a mapping, or a YAML file"
        )
    if name or source.name in ("", "job0"):
        source = source.model_copy(update={"name": name or f"job{number}"})
    return job_at(scenario, topology, source, placement, free, now, number)


def _workload(program: Any, ranks: Sequence[int] | None, name: str) -> Workload:
    if isinstance(program, Workload):
        return program
    if not isinstance(program, Program):
        raise InputError(f"{program!r} is no program", hint="a cosim.Program or a cosim.Workload")
    count = len(ranks or ())
    return Workload(name, DeviceMesh({"rank": count}), (program,), np.zeros(count, np.int32))


def _read(path: Path) -> Any:
    document = read(path)
    value = document.value
    if not isinstance(value, dict):
        raise WorkloadError(f"{path}: no job; it has a workload: and what else a job of a scenario has")
    return value
