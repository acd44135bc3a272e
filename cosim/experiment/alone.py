"""Each job by itself, and all without a scheduler: what sharing costs, and scheduling brings, is held against
these.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosim.engine.replay import replay
from cosim.experiment.build import build
from cosim.experiment.scenario import Scenario
from cosim.experiment.simulate import Run, simulate
from cosim.experiment.workloads import KEPT
from cosim.results.summary import BACKGROUND, iteration_times, mean_iterations


def jobs_alone(scenario: Scenario) -> dict[int, str]:
    """Number and name of each job that is run by itself: no background traffic beside others."""
    jobs = build(scenario, KEPT).jobs
    background = [job.workload.name == BACKGROUND for job in jobs]
    return {number: job.name for number, job in enumerate(jobs) if all(background) or not background[number]}


def run_job(scenario: Scenario, number: int) -> Run:
    """One job of a scenario by itself, from the start.

    Raises
    ------
    InputError, SimulationError
        As :func:`cosim.run`.
    """
    built = build(scenario, KEPT)  # a network is used once
    built = replace(built, jobs=(replace(built.jobs[number], start_ps=0),))
    if scenario.collectives.is_carried:
        from cosim.experiment.open import simulation

        with simulation(scenario, built) as sim:
            run: Run = sim.run()
            return run
    records = replay(
        built.topology, built.network, built.jobs, built.planner, release=scenario.release, seed=scenario.seed
    )
    return Run(scenario, records, interrupted=records.interrupted)


def run_alone(scenario: Scenario) -> dict[str, float]:
    """Mean iteration of each job by itself, picoseconds. Jobs without an iteration are left out, and so is
    background traffic beside others.

    Raises
    ------
    InputError, SimulationError
        As :func:`cosim.run`.
    """
    found: dict[str, float] = {}
    for number, name in jobs_alone(scenario).items():
        run = run_job(scenario, number)
        if run.interrupted:
            raise KeyboardInterrupt
        times = iteration_times(run.records.iteration_end_ps[0], 0)
        if len(times):
            found[name] = float(np.mean(times))
    return found


def run_unscheduled(scenario: Scenario) -> dict[str, float]:
    """Mean iteration of each job where nothing is scheduled, picoseconds; a queue stays.

    Raises
    ------
    InputError, SimulationError
        As :func:`cosim.run`.
    """
    plain = scenario.model_copy(update={"scheduler": None})
    records = simulate(plain, build(plain, KEPT)).records
    if records.interrupted:
        raise KeyboardInterrupt
    times = mean_iterations(records)
    return {job.name: float(time) for job, time in zip(records.jobs, times, strict=True) if time is not None}
