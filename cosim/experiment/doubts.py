"""Doubts about a scenario's answer: those of its parts with their places, and those that a run shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cosim.doubts import Doubt
from cosim.engine.records import JobInfo, Records
from cosim.experiment.cluster_doubts import across_domains, idle_uplinks, without_nvlink
from cosim.experiment.idle import place_of
from cosim.experiment.scenario import Scenario
from cosim.topology.graph import Topology
from cosim.workload.program import OpKind


def doubts_before(scenario: Scenario, topology: Topology, jobs: Sequence[JobInfo]) -> tuple[Doubt, ...]:
    """What can be said before the run; each once, in the order network, topology, jobs."""
    return tuple(dict.fromkeys(_before(scenario, topology, jobs)))


def _before(scenario: Scenario, topology: Topology, jobs: Sequence[JobInfo]) -> Iterator[Doubt]:
    for doubt in scenario.network.doubts():
        yield replace(doubt, what=str(place_of(scenario, ("network", doubt.what))))
    yield from topology.info.get("doubts", ())
    for job in jobs:
        yield from (replace(one, what=f"job {job.name}: {one.what}") for one in job.workload.report.doubts)
    yield from without_nvlink(scenario, topology)
    if scenario.queue is None:  # with a queue, jobs are placed as they start
        yield from across_domains(topology, jobs)


def doubts_after(records: Records) -> Iterator[Doubt]:
    """What only the run shows."""
    if not records.interrupted:
        yield from _nothing_timed(records)
        yield from idle_uplinks(records)


def _nothing_timed(records: Records) -> Iterator[Doubt]:
    """Jobs that have operations and take no time: their answer is about nothing."""
    for job, ends in zip(records.jobs, records.iteration_end_ps, strict=True):
        table = job.workload.table
        if len(ends) and int(ends.max()) <= job.start_ps:
            kinds = ", ".join(f"{int(table.is_kind(kind).sum()):,} {kind.value}" for kind in OpKind)
            yield Doubt(
                f"job {job.name}",
                f"nothing is timed: an iteration takes 0 ps ({len(table.program):,} operations: {kinds})",
                "a trace of what ran on a GPU, or a workload that computes or communicates",
            )
