"""Profiles: each distinct job run alone, for whoever schedules them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from cosim.cluster.schedulers.profile import JobProfile
from cosim.engine.records import JobInfo, Records
from cosim.engine.replay import replay
from cosim.errors import ScenarioError, SimulationError
from cosim.experiment.build import Built
from cosim.experiment.drawn import fabric_draws
from cosim.experiment.scenario import Job, Scenario
from cosim.pattern.planner import Planner
from cosim.results.summary import BACKGROUND, iteration_ends
from cosim.spec import Spec
from cosim.topology.scale_up import host_shape
from cosim.workload.program import CPU_STREAM, OpKind, Workload
from cosim.written import plain

_ITERATIONS = 4
"""Enough for what one iteration leaves to the next to be there, and for unevenness to show."""
_MOST_KEPT = 256
_kept: dict[str, JobProfile] = {}


def profiles(scenario: Scenario, built: Built) -> list[JobProfile | None]:
    """The profile of each job; None for background traffic, which has no iterations.

    Jobs alike are run once, and what was run before in this process is not run again.

    Raises
    ------
    InputError, SimulationError
        As :func:`cosim.run`.
    """
    entries = [job for job in scenario.jobs for _ in range(job.count)]
    found: dict[tuple[int, int], JobProfile] = {}
    made: list[JobProfile | None] = []
    for entry, job in zip(entries, built.jobs, strict=True):
        if job.workload.name == BACKGROUND:
            made.append(None)
            continue
        key = id(entry), id(job.workload)
        if key not in found:
            found[key] = _known(scenario, entry, job, built)
        made.append(found[key])
    return made


def _known(scenario: Scenario, entry: Job, job: JobInfo, built: Built) -> JobProfile:
    """A job's profile, of this run or one before."""
    text = _determined_by(scenario, entry, job)
    if text is None:
        return _measured(scenario, job, built)
    if text not in _kept:
        while len(_kept) >= _MOST_KEPT:
            del _kept[next(iter(_kept))]
        _kept[text] = _measured(scenario, job, built)
    return _kept[text]


def _determined_by(scenario: Scenario, entry: Job, job: JobInfo) -> str | None:
    """All that a profile depends on, as text; None where a scenario made in Python can't be written, or
    reads files that may change.
    """
    drawn = fabric_draws(scenario) or entry.uses_seed()
    if isinstance(entry.workload, Workload) or not isinstance(scenario.topology, Spec):
        return None
    try:
        parts = [plain(one) for one in (scenario.topology, scenario.network, scenario.collectives, entry)]
    except ScenarioError:
        return None
    endpoints = job.endpoints.tolist()
    rest = [str(scenario.base.resolve()), scenario.release, scenario.seed if drawn else None, endpoints]
    return json.dumps([*parts, *rest, job.name if drawn else ""], sort_keys=True, default=repr)


def _measured(scenario: Scenario, job: JobInfo, built: Built) -> JobProfile:
    """A job, run by itself where it would sit on an empty cluster."""
    topology = replace(built.topology, changes=None)
    alone = replace(job, start_ps=0, iterations=min(job.iterations, _ITERATIONS), slowdowns=())
    network = scenario.network.build(scenario.context)
    planner = Planner(
        scenario.collectives, scenario.context, host_shape(topology, scenario.topology), topology
    )
    records = replay(
        topology,
        network,
        [alone],
        planner,
        release=scenario.release,
        seed=scenario.seed,
        record_messages=True,
    )
    if records.interrupted:
        raise KeyboardInterrupt
    return _profile(records)


def _profile(records: Records) -> JobProfile:
    """The iteration of a job by itself that took the median of their times, the first left out."""
    job, messages = records.jobs[0], records.messages
    ends = iteration_ends(records.iteration_end_ps[0])
    if not len(ends) or messages is None:
        raise SimulationError(f"the job {job.name!r} ended no iteration by itself")
    times = np.diff(ends, prepend=np.int64(0))
    steady = times[1:] if len(times) > 1 else times
    typical = len(times) - len(steady) + int(np.argsort(steady, kind="stable")[len(steady) // 2])
    begin = int(ends[typical] - times[typical])
    mine = messages.iteration == typical
    rank_on = np.zeros(records.topology.num_endpoints, np.int32)
    rank_on[job.endpoints] = np.arange(len(job.endpoints), dtype=np.int32)
    mean = float(steady.mean())
    return JobProfile(
        num_ranks=len(job.endpoints),
        period_ps=int(times[typical]),
        work_ps=_work(job.workload),
        src=rank_on[messages.src[mine]],
        dst=rank_on[messages.dst[mine]],
        size_bytes=messages.size_bytes[mine],
        start_ps=messages.start_ps[mine] - begin,
        end_ps=messages.end_ps[mine] - begin,
        unevenness=float(steady.max() - steady.min()) / mean if mean else 0.0,
    )


def _work(workload: Workload) -> int:
    """What an iteration computes: GPU-picoseconds, all ranks together. The host's launches are none."""
    table = workload.table
    of_host = np.array([name.split(" ")[0] == CPU_STREAM for name in table.streams], np.bool_)[table.stream]
    on_gpu = table.is_kind(OpKind.COMPUTE, OpKind.MEMORY) & ~of_host
    computes = np.where(on_gpu, table.duration_ps, 0)
    each = np.zeros(table.num_programs, np.int64)
    np.add.at(each, table.program, computes)
    return int(each[workload.program_of].sum())
