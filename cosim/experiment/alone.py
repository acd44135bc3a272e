"""Each job by itself, on the same endpoints: what sharing costs is held against this."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosim.engine.replay import replay
from cosim.experiment.build import build
from cosim.experiment.scenario import Scenario
from cosim.results.summary import iteration_times


def alone(scenario: Scenario) -> dict[str, float]:
    """Mean iteration of each job by itself, picoseconds; jobs without an iteration are left out.

    Raises
    ------
    InputError, SimulationError
        As :func:`cosim.experiment.run.run`.
    """
    found: dict[str, float] = {}
    for number in range(len(build(scenario).jobs)):
        built = build(scenario)  # a network is used once
        job = replace(built.jobs[number], start_ps=0)
        records = replay(
            built.topology, built.network, [job], built.planner, release=scenario.release, seed=scenario.seed
        )
        times = iteration_times(records.iteration_end_ps[0], 0)
        if len(times):
            found[job.name] = float(np.mean(times))
    return found
