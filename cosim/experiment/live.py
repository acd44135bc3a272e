"""A scenario that processes take part in."""

from __future__ import annotations

from collections.abc import Callable

from simpy.events import Event

from cosim.context import Context
from cosim.engine.records import ProgressInfo
from cosim.errors import WorkloadError
from cosim.experiment.build import Built
from cosim.experiment.engines import EngineName
from cosim.experiment.open import simulation
from cosim.experiment.scenario import Scenario
from cosim.experiment.simulate import Run
from cosim.plugin_file import at
from cosim.processes.contract import Driver
from cosim.processes.simulation import Proc, Simulation
from cosim.processes.work import DrivenRanks
from cosim.workload.draws import draw


def live(
    scenario: Scenario,
    built: Built,
    engine: EngineName,
    *,
    messages: bool,
    progress: Callable[[ProgressInfo], None] | None,
) -> Run:
    """Run jobs and processes, until the jobs are over."""
    changes = any(one.changes_links for one in scenario.live)
    with simulation(
        scenario, built, engine, messages=messages, changes_links=changes, progress=progress
    ) as sim:
        awaited = _drivers(scenario, sim)
        awaited += [job.ended for job in sim.jobs.values()]
        beside = []
        for number, spec in enumerate(scenario.processes):
            context = Context(scenario.base, draw(scenario.seed, number + (1 << 20)))
            with at(scenario.locate("processes", number)):
                beside.append(sim.process(_checked(spec.live(sim, context), type(spec).__name__ + ".live")))
        run: Run = sim.run(until=sim.all_of(awaited or beside))
        return run


def _drivers(scenario: Scenario, sim: Simulation) -> list[Event]:
    """The processes of driven jobs, which begin at their start."""
    found: list[Event] = []
    number = 0
    for entry, job in enumerate(scenario.jobs):
        for copy in range(job.count):
            if isinstance(job.workload, Driver):
                context = Context(scenario.base, draw(scenario.seed, entry), copy)
                ranks = DrivenRanks(sim, number)
                with at(scenario.locate("jobs", entry, "workload")):
                    process = _checked(
                        job.workload.drive(sim, ranks, context), type(job.workload).__name__ + ".drive"
                    )
                found.append(sim.process(_from(sim, sim.engine_job(number).info.start_ps, process)))
            number += 1
    return found


def _from(sim: Simulation, start_ps: int, process: Proc) -> Proc:
    """A process, from a time on."""
    if start_ps:
        yield sim.timeout(f"{start_ps}ps")
    yield from process


def _checked(process: object, what: str) -> Proc:
    """What a plug-in gave, which should be a generator.

    Raises
    ------
    WorkloadError
        It is none.
    """
    if not hasattr(process, "throw"):
        raise WorkloadError(f"{what} gave {str(process)[:60]}, no process", hint="a process yields events")
    return process  # type: ignore[return-value]
