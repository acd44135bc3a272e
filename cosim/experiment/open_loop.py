"""Closed loop against open loop: the same messages, sent when something arrived, or when a recording says.

A trace replayed open-loop sends every message at its recorded time, whatever the network does: a slow
link can't hold back the computation that waits for it, nor the messages that the computation would have sent.
Here the recording is a run of the same scenario with some settings changed (the link still healthy, another
network model); its messages go into the scenario's network at their recorded times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import MessageRecords
from cosim.errors import InputError
from cosim.experiment.run import Run, simulate
from cosim.experiment.scenario import Scenario
from cosim.network.flows import I64, FlowBatch, FlowGroup, flat_table
from cosim.network.simulator import NetworkSimulator
from cosim.topology.graph import Topology
from cosim.units import NEVER, format_time

_FEW = 12


@dataclass(frozen=True, eq=False)
class JobLoops:
    """One job: times of its iterations, and of its messages.

    ``recorded_ps``, ``closed_ps``, ``open_ps`` are times of the iterations that all three have. ``early`` is
    the share of messages (of iterations after the first) that the open loop sent before all of the iteration
    before had arrived at their sender: none in a closed loop. ``fct_*``
    are message times in the closed and in the open loop.
    """

    name: str
    recorded_ps: tuple[int, ...]
    closed_ps: tuple[int, ...]
    open_ps: tuple[int, ...]
    early: float
    fct_closed_ps: I64
    fct_open_ps: I64


@dataclass(frozen=True, eq=False)
class Loops:
    """Both loops of one scenario. ``changes`` are the settings of the recorded run."""

    closed: Run
    recorded: Run
    changes: tuple[str, ...]
    jobs: tuple[JobLoops, ...]

    def __str__(self) -> str:
        return render(self)


def compare_loops(scenario: Scenario, changes: Iterable[str], closed: Run | None = None) -> Loops:
    """Run a scenario closed-loop, and its recorded messages open-loop on the same network.

    Parameters
    ----------
    scenario
        What is asked.
    changes
        Settings of the run that is recorded, as ``--set`` takes them.
    closed
        The scenario's run, if it was run with messages recorded already.

    Raises
    ------
    InputError, SimulationError
        As :func:`cosim.experiment.run.run`.
    """
    from cosim.experiment.build import build

    changes = tuple(changes)
    record: Mapping[str, Any] = {"record.messages": "npz"}
    scenario = scenario.with_settings(record)
    if closed is None or closed.records.messages is None:
        closed = simulate(scenario, build(scenario))
    source = scenario.with_settings(changes)
    recorded = simulate(source, build(source))
    built = build(scenario)
    messages = recorded.records.messages
    assert messages is not None
    if recorded.records.topology.num_endpoints != built.topology.num_endpoints:
        raise InputError("the recorded run has another number of endpoints; its messages have no place here")
    ends = replay_open(messages, built.topology, built.network, scenario.seed)
    jobs = tuple(_job(number, job.name, closed, recorded, ends) for number, job in enumerate(built.jobs))
    return Loops(closed, recorded, changes, jobs)


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


def _job(number: int, name: str, closed: Run, recorded: Run, ends: I64) -> JobLoops:
    messages = recorded.records.messages
    own = closed.records.messages
    assert messages is not None
    assert own is not None
    start = recorded.records.jobs[number].start_ps
    recorded_end = recorded.records.iteration_end_ps[number].max(axis=1)
    closed_end = closed.records.iteration_end_ps[number].max(axis=1)
    count = min(len(recorded_end), len(closed_end))
    mine = messages.job == number
    open_end = np.empty(count, np.int64)
    for k in range(count):
        of_it = mine & (messages.iteration == k)
        if not of_it.any():
            open_end[k] = recorded_end[k]
            continue
        # What follows the last arrival (an optimizer's step) follows it here too, and takes as long.
        tail = recorded_end[k] - messages.end_ps[of_it].max()
        open_end[k] = max(int(recorded_end[k]), int(ends[of_it].max() + tail))
    open_end = np.maximum.accumulate(open_end) if count else open_end
    ours = own.job == number
    return JobLoops(
        name,
        _times(recorded_end[:count], start),
        _times(closed_end[:count], start),
        _times(open_end, start),
        _early(messages, mine, ends),
        np.sort(own.end_ps[ours] - own.start_ps[ours]),
        np.sort(ends[mine] - messages.start_ps[mine]),
    )


def _early(messages: MessageRecords, mine: NDArray[np.bool_], ends: I64) -> float:
    """Share of messages sent before all of the iteration before had arrived at their sender."""
    src, dst, iteration = messages.src[mine], messages.dst[mine], messages.iteration[mine]
    if not len(src) or iteration.max() == iteration.min():
        return 0.0
    arrived = np.zeros((int(iteration.max()) + 1, int(max(src.max(), dst.max())) + 1), np.int64)
    np.maximum.at(arrived, (iteration, dst), ends[mine])
    later = iteration > 0
    before = arrived[iteration[later] - 1, src[later]]
    return float((messages.start_ps[mine][later] < before).mean())


def _times(ends: I64, start: int) -> tuple[int, ...]:
    return tuple(np.diff(ends, prepend=start).tolist())


def render(loops: Loops) -> str:
    """Both loops as a page."""
    shown = ", ".join(loops.changes) or "nothing changed"
    lines = [
        "closed loop against open loop",
        f"  closed: messages are sent when what they wait for has arrived, on {loops.closed.records.network}",
        f"  open:   the messages of a recorded run ({shown}), sent at their recorded times, on the same",
    ]
    for job in loops.jobs:
        lines += ["", *_job_lines(job)]
    return "\n".join(lines) + "\n"


def _job_lines(job: JobLoops) -> list[str]:
    def mean(times: tuple[int, ...]) -> str:
        return format_time(round(sum(times) / len(times))) if times else "-"

    def share(fct: I64, part: float) -> str:
        return format_time(int(fct[min(len(fct) - 1, int(part * len(fct)))])) if len(fct) else "-"

    rows = [("recorded", job.recorded_ps), ("closed", job.closed_ps), ("open", job.open_ps)]
    lines = [f"{job.name}: time of an iteration"]
    for label, times in rows:
        each = ", ".join(format_time(time) for time in times[:_FEW]) + (" ..." if len(times) > _FEW else "")
        lines.append(f"  {label:<9} mean {mean(times):>10}   {each}")
    closed, opened = sum(job.closed_ps), sum(job.open_ps)
    lines.append("  message times")
    for label, fct in (("closed", job.fct_closed_ps), ("open", job.fct_open_ps)):
        lines.append(
            f"    {label:<7} "
            f"p50 {share(fct, 0.5):>10}   p99 {share(fct, 0.99):>10}   max {share(fct, 1.0):>10}"
        )
    if closed and opened:
        lines += [
            f"  why: the open loop says {opened / closed - 1:+.1%} of the closed loop's time. It sent "
            f"{job.early:.0%} of the",
            "       messages (of iterations after the first) before their sender had received the iteration",
            "       before: in the closed loop the computation that sends them waits for what is late.",
        ]
    return lines
