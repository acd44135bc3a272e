"""Each job by itself, on the same endpoints: what sharing costs is held against this."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosim.engine.replay import replay
from cosim.experiment.build import build
from cosim.experiment.scenario import Scenario
from cosim.results.summary import BACKGROUND, iteration_times


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
        job = replace(built.jobs[number], start_ps=0)
        records = replay(
            built.topology, built.network, [job], built.planner, release=scenario.release, seed=scenario.seed
        )
        if records.interrupted:
            raise KeyboardInterrupt
        times = iteration_times(records.iteration_end_ps[0], 0)
        if len(times):
            found[job.name] = float(np.mean(times))
    return found
