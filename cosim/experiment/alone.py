"""Each job by itself, and all without a scheduler: what sharing costs, and scheduling brings, is held against
these.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosim.engine.records import Records
from cosim.engine.replay import replay
from cosim.experiment.build import Built, build
from cosim.experiment.scenario import Scenario
from cosim.experiment.simulate import Run, simulate
from cosim.results.summary import BACKGROUND, iteration_times, mean_iterations


def run_alone(scenario: Scenario) -> dict[str, float]:
    """Mean iteration of each job by itself, picoseconds. Jobs without an iteration are left out, and so is
    background traffic beside others.

    Raises
    ------
    InputError, SimulationError
        As :func:`cosim.run`.
    """
    found: dict[str, float] = {}
    kinds = [job.workload.name for job in build(scenario).jobs]
    for number, kind in enumerate(kinds):
        if kind == BACKGROUND and {*kinds} != {BACKGROUND}:
            continue
        built = build(scenario)  # a network is used once
        records = _by_itself(scenario, replace(built, jobs=(replace(built.jobs[number], start_ps=0),)))
        if records.interrupted:
            raise KeyboardInterrupt
        times = iteration_times(records.iteration_end_ps[0], 0)
        if len(times):
            found[records.jobs[0].name] = float(np.mean(times))
    return found


def _by_itself(scenario: Scenario, built: Built) -> Records:
    """The run of one job."""
    if scenario.collectives.is_carried:
        from cosim.experiment.open import simulation

        with simulation(scenario, built) as sim:
            run: Run = sim.run()
            return run.records
    return replay(
        built.topology, built.network, built.jobs, built.planner, release=scenario.release, seed=scenario.seed
    )


def run_unscheduled(scenario: Scenario) -> dict[str, float]:
    """Mean iteration of each job where nothing is scheduled, picoseconds; a queue stays.

    Raises
    ------
    InputError, SimulationError
        As :func:`cosim.run`.
    """
    plain = scenario.model_copy(update={"scheduler": None})
    records = simulate(plain, build(plain)).records
    if records.interrupted:
        raise KeyboardInterrupt
    times = mean_iterations(records)
    return {job.name: float(time) for job, time in zip(records.jobs, times, strict=True) if time is not None}
