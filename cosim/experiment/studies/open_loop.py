"""Closed loop against open loop: the same messages, sent when something arrived, or when a recording says.

A trace replayed open-loop sends every message at its recorded time, whatever the network does: a slow
link can't hold back the computation that waits for it, nor the messages that the computation would have sent.
Here the recording is a run of the same scenario with some settings changed (the link still healthy, another
network model); its messages go into the scenario's network at their recorded times.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from cosim.engine.records import MessageRecords
from cosim.errors import InputError
from cosim.experiment.build import build
from cosim.experiment.scenario import Scenario
from cosim.experiment.simulate import Run
from cosim.experiment.studies.contract import Study, StudyRounds, StudyRun
from cosim.network.flows import I64, FlowBatch, FlowGroup, flat_table
from cosim.network.simulator import NetworkSimulator
from cosim.results.open_loop import LoopComparison, closed_job, job_loops, open_job
from cosim.topology.graph import Topology
from cosim.units import NEVER


class OpenLoopStudy(Study):
    """The messages of a run with other settings, sent at the times of that run: what a replay would say"""

    changes: tuple[str, ...] | dict[str, Any] = Field(
        (), description="of the run that is recorded: network=fair_share"
    )

    def ask(self, scenario: Scenario) -> StudyRounds:
        """Ask for the scenario's times, and those of the recorded run and its replay."""
        source = scenario.with_settings(self.changes)
        closed, opened = yield [
            StudyRun(scenario.name, scenario, read=closed_times),
            StudyRun("the open loop", source, read=open_times, arguments=(scenario,)),
        ]
        if closed is None or opened is None:
            raise KeyboardInterrupt
        changes = self.changes
        if isinstance(changes, dict):
            changes = tuple(f"{path}={value}" for path, value in changes.items())
        jobs = zip(closed["jobs"], opened, strict=True)
        return LoopComparison(closed["network"], changes, tuple(job_loops(*job) for job in jobs))


def closed_times(run: Run) -> dict[str, Any]:
    """Times of each job's iterations and messages, and the network."""
    jobs = range(len(run.records.jobs))
    return {"network": run.records.network, "jobs": [closed_job(run.records, number) for number in jobs]}


def open_times(run: Run, scenario: Scenario) -> list[dict[str, Any]]:
    """Times of each job of a recorded run, and of its messages sent at their times on a scenario's network.

    Raises
    ------
    InputError
        The scenario has other endpoints.
    """
    recorded, built = run.records, build(scenario)
    assert recorded.messages is not None
    if recorded.topology.num_endpoints != built.topology.num_endpoints:
        raise InputError("the recorded run has another number of endpoints; its messages have no place here")
    ends = replay_open(recorded.messages, built.topology, built.network, scenario.seed)
    return [open_job(recorded, ends, number) for number in range(len(recorded.jobs))]


def replay_open(messages: MessageRecords, topology: Topology, network: NetworkSimulator, seed: int) -> I64:
    """When each message arrives if it is sent at its recorded time: int64, in the order of ``messages``."""
    ends = np.zeros(len(messages.start_ps), np.int64)
    network.open(topology, seed)
    try:
        groups, handles, where = [], [], []
        for job in np.unique(messages.job).tolist():
            mine = np.flatnonzero(messages.job == job)
            table = flat_table(
                messages.src[mine].tolist(),
                messages.dst[mine].tolist(),
                messages.size_bytes[mine].tolist(),
                num_participants=topology.num_endpoints,
                reaction_ps=NEVER,
            )
            everyone = np.arange(topology.num_endpoints, dtype=np.int32)
            groups.append(FlowGroup(job, table, everyone, (job, 0), job=job))
            handles.append(np.full(len(mine), job, np.int32))
            where.append(mine)
        if not groups:
            return ends
        start = messages.start_ps[np.concatenate(where)]
        index = np.concatenate([np.arange(len(mine), dtype=np.int64) for mine in where])
        batch = FlowBatch(groups, np.concatenate(handles), index, start, start)
        place = {group.handle: mine for group, mine in zip(groups, where, strict=True)}
        granted = -1
        while granted < NEVER:
            granted, done = network.advance(batch, NEVER)
            batch = FlowBatch()
            for job, mine in place.items():
                chosen = done.handle == job
                ends[mine[done.index[chosen]]] = done.time_ps[chosen]
    finally:
        network.close()
    return ends
