"""Each job by itself, on the same endpoints: what sharing costs is held against this."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosim.engine.replay import replay
from cosim.experiment.build import build
from cosim.experiment.scenario import Scenario
from cosim.results.measures import jain, slowdown
from cosim.results.summary import BACKGROUND, Summary, iteration_times
from cosim.results.terminal import align
from cosim.units import format_time


def alone(scenario: Scenario) -> dict[str, float]:
    """Mean iteration of each job by itself, picoseconds. Jobs without an iteration are left out, and so is
    background traffic beside others.

    Raises
    ------
    InputError, SimulationError
        As :func:`cosim.experiment.run.run`.
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


def render_alone(summary: Summary, by_itself: dict[str, float]) -> str:
    """A line for each job: its mean iteration here and by itself, and its slowdown; Jain's index below."""
    rows = [["by itself", "iteration", "alone", "slowdown"]]
    jobs = [job for job in summary.jobs if job.iteration_mean_ps is not None and job.name in by_itself]
    for job in jobs:
        here, own = format_time(job.iteration_mean_ps or 0), format_time(round(by_itself[job.name]))
        rows.append([f"  {job.name}", here, own, f"{slowdown(job, by_itself):.3f} x"])
    if len(jobs) > 1:
        fair = jain([1 / slowdown(job, by_itself) for job in jobs])
        rows_below = [f"  Jain's fairness index of the jobs' speeds, each over its speed alone: {fair:.4f}"]
    else:
        rows_below = []
    return "\n".join([*(line.rstrip() for line in align(rows)), *rows_below]) + "\n"
