"""Each job beside its time alone: slowdowns, and Jain's index of the jobs' speeds."""

from __future__ import annotations

from collections.abc import Mapping

from cosim.results.measures import jain, slowdown
from cosim.results.render.page import Lines, Page, PageTable, Section
from cosim.results.summary import Summary
from cosim.units import format_time


def alone_page(summary: Summary, alone: Mapping[str, float]) -> Page:
    """A row for each job: its mean iteration here and by itself, and its slowdown; Jain's index below.

    ``alone`` is the mean iteration of each job by itself, picoseconds.
    """
    rows = [["by itself", "iteration", "alone", "slowdown"]]
    jobs = [job for job in summary.jobs if job.iteration_mean_ps is not None and job.name in alone]
    for job in jobs:
        here, own = format_time(job.iteration_mean_ps or 0), format_time(round(alone[job.name]))
        rows.append([f"  {job.name}", here, own, f"{slowdown(job, alone):.3f} x"])
    parts: list[PageTable | Lines] = [PageTable(rows)]
    if len(jobs) > 1:
        fair = jain([1 / slowdown(job, alone) for job in jobs])
        parts.append(
            Lines([f"  Jain's fairness index of the jobs' speeds, each over its speed alone: {fair:.4f}"])
        )
    return [Section(parts)]
