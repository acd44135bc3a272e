"""Settings that were given but can't affect the result, each with where it was given and why it can't.

What specs know of themselves they say: ``idle_settings``, a workload's ``idle_in``, a network's ``idle_on``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel

from cosim.context import Context
from cosim.engine.records import JobInfo
from cosim.errors import AlgorithmError, Location
from cosim.experiment.scenario import Job, Scenario
from cosim.experiment.settings import parse_path
from cosim.files.located_yaml import Key, show_path
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.contract import Algorithm
from cosim.pattern.nccl import Nccl
from cosim.pattern.template import Collective
from cosim.spec import Spec
from cosim.topology.contract import TopologySpec
from cosim.topology.graph import Topology
from cosim.topology.scale_up import host_shape
from cosim.workload.program import OpKind, Workload

_Found = tuple[tuple[Key, ...], str]


def idle_settings(scenario: Scenario, topology: Topology, jobs: Sequence[JobInfo]) -> list[str]:
    """``scenarios/x.yaml:12: jobs[0].weight: has no effect: ...`` for each, in the scenario's order."""
    found = [
        *_specs(scenario, ()),
        *_workloads(scenario, jobs),
        *_networks(scenario, topology, jobs),
        *_fabric(scenario, topology),
        *_over_time(scenario, jobs),
        *_events(scenario, jobs),
        *_link_shares(scenario),
        *_seed(scenario),
        *_collectives(scenario, jobs),
        *_endpoints(scenario, jobs),
        *_scheduling(scenario),
        *_memory(scenario, jobs),
    ]
    return [f"{place_of(scenario, path)}: has no effect: {why}" for path, why in dict(found).items()]


def idle_choices(
    trials: Iterable[tuple[tuple[str, ...], Mapping[str, Any], Scenario]],
) -> list[str]:
    """What choices of a sweep set without effect, by what specs know of themselves: ``swift / 100kB:
    network.ecn_min: has no effect: ...``, the first of them; of (labels, changes, the scenario with them).
    """
    found: dict[_Found, list[tuple[str, ...]]] = {}
    for labels, changes, scenario in trials:
        given = [parse_path(path, path) for path, value in changes.items() if value is not None]
        for path, why in _specs(scenario, ()):
            if any(path[: len(one)] == one for one in given):
                found.setdefault((path, why), []).append(labels)
    return [
        f"{' / '.join(first)}: {show_path(path)}: has no effect: {why}"
        + (f" (and with {len(others)} more choices)" if others else "")
        for (path, why), (first, *others) in found.items()
    ]


def place_of(scenario: Scenario, path: tuple[Key, ...]) -> Location:
    """Where a scenario says a setting, or which setting it is."""
    return scenario.locate(*path) or Location(scenario.name, None, show_path(path))


def _specs(value: Any, path: tuple[Key, ...]) -> Iterator[_Found]:
    """What each spec says of itself, those nested in it included."""
    if isinstance(value, Spec):
        for field, why in value.idle_settings():
            yield (*path, *(int(k) if k.isdigit() else k for k in field.split("."))), why
    if isinstance(value, BaseModel):
        for key, inner in value:
            if key in value.model_fields_set:
                yield from _specs(inner, (*path, key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _specs(inner, (*path, index))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _specs(inner, (*path, key))


def _workloads(scenario: Scenario, jobs: Sequence[JobInfo]) -> Iterator[_Found]:
    """What a workload's spec says of itself once it is made."""
    made = {info.name: info for info in jobs}
    for number, job in enumerate(scenario.jobs):
        if isinstance(job.workload, Workload):
            continue
        for field, why in job.workload.idle_in(made[job.names()[0]].workload):
            yield ("jobs", number, "workload", field), why


def _networks(scenario: Scenario, topology: Topology, jobs: Sequence[JobInfo]) -> Iterator[_Found]:
    """What a network's spec says of itself once it is known who talks where."""
    network = scenario.network
    for field, why in network.idle_on(topology, [job.endpoints for job in jobs]):
        yield (("network", field) if field in network.model_fields_set else ("network",)), why


def _fabric(scenario: Scenario, topology: Topology) -> Iterator[_Found]:
    """A fabric's costs where nothing of NCCL's goes between hosts."""
    if not isinstance(scenario.topology, TopologySpec) or scenario.topology.fabric is None:
        return
    shape = host_shape(topology)
    if shape is None or shape.gpus >= topology.num_endpoints:
        yield ("topology", "fabric"), "there is one host, or none that NCCL knows"
        return
    placed = scenario.collectives.on_hosts(shape)
    chosen = [placed.choice(kind) for kind in Collective]
    if not any(
        isinstance(each, Nccl) for one in chosen for each in (one if isinstance(one, tuple) else (one,))
    ):
        yield ("topology", "fabric"), "no collective is NCCL's"


def _over_time(scenario: Scenario, jobs: Sequence[JobInfo]) -> Iterator[_Found]:
    """Arrivals of one job, and slower or uneven computations where nothing is computed."""
    made = {info.name: info for info in jobs}
    for number, job in enumerate(scenario.jobs):
        if job.count == 1 and job.arrival is not None:
            from cosim.cluster.arrivals import Regular

            if isinstance(job.arrival, Regular):
                yield ("jobs", number, "arrival"), "there is one such job, and the first starts at once"
        workload = made[job.names()[0]].workload
        for key in ("jitter", "stragglers"):
            if getattr(job, key) and not _computing(workload):
                yield ("jobs", number, key), "the job computes nothing"
        for which, one in enumerate(job.stragglers):
            where = ("jobs", number, "stragglers", which)
            if one.first_iteration >= job.iterations:
                yield (*where, "first_iteration"), f"the job has {job.iterations} iterations, from 0 on"
            elif one.ranks is not None and _computing(workload) and not _computing(workload) & {*one.ranks}:
                yield (*where, "ranks"), "they compute nothing"


def _events(scenario: Scenario, jobs: Sequence[JobInfo]) -> Iterator[_Found]:
    """Ranks that get slower at what they don't do, or fail in no training, and a detection of nothing."""
    made = {info.name: info for info in jobs}
    trainings = {name: job.training for job in scenario.jobs for name in job.names()}
    for number, event in enumerate(scenario.events):
        if event.fails:
            training = trainings[event.job or jobs[0].name]
            if training is None:
                yield ("events", number), "its job says nothing of a training that it could interrupt"
            elif event.at >= training.lasts:
                yield ("events", number), "the training is over by then"
        elif event.rank is not None:
            busy = _computing(made[event.job or jobs[0].name].workload)
            if not busy or (isinstance(event.rank, int) and event.rank not in busy):
                yield ("events", number), "the rank computes nothing"
    changes = any(one.changes_links for one in scenario.live)
    fails = changes or any(event.down for event in scenario.events)
    if "detection" in scenario.model_fields_set and not fails:
        yield ("detection",), "no link or node goes down"


def _computing(workload: Workload) -> set[int]:
    """Ranks that have a computation which takes time."""
    table = workload.table
    busy = table.program[table.is_kind(OpKind.COMPUTE, OpKind.MEMORY) & (table.duration_ps != 0)]
    return {*np.flatnonzero(np.isin(workload.program_of, busy)).tolist()}


def _memory(scenario: Scenario, jobs: Sequence[JobInfo]) -> Iterator[_Found]:
    if scenario.memory is not None and all(job.devices is None and job.memory_nodes is None for job in jobs):
        yield ("memory",), "no job loads from or stores to remote memory"


def _link_shares(scenario: Scenario) -> Iterator[_Found]:
    network = scenario.network
    for field, shares in (("weight", network.shares_by_weight()), ("priority", network.shares_by_priority())):
        values = {getattr(job, field) for job in scenario.jobs}
        for number, job in enumerate(scenario.jobs):
            if getattr(job, field) == Job.model_fields[field].default:
                continue
            if not shares:
                yield ("jobs", number, field), "this network model does not share links by it"
            elif sum(job.count for job in scenario.jobs) == 1:
                yield ("jobs", number, field), "there is no other job to compare with"
            elif len(values) == 1:
                yield ("jobs", number, field), "every job has the same"


def _seed(scenario: Scenario) -> Iterator[_Found]:
    if "seed" not in scenario.model_fields_set:
        return
    from cosim.experiment.drawn import draws

    if not draws(scenario):
        yield ("seed",), "nothing in this scenario draws from it"


def _collectives(scenario: Scenario, jobs: Sequence[JobInfo]) -> Iterator[_Found]:
    """Settings of collectives that no job has."""
    given = scenario.collectives.model_fields_set
    used = {
        op.collective for job in jobs for op in job.workload.table.prototypes if op.kind is OpKind.COLLECTIVE
    }
    named = {kind.value for kind in Collective}
    algorithms = [one for name in sorted(used) for _, one in _algorithms(scenario, name)]
    written = all(one.fixed for one in algorithms)
    for name in sorted(used):
        for place, algorithm in _algorithms(scenario, name):
            for field, why in _idle_in_files(algorithm, scenario.context):
                yield (*place, field), why
    for key in CollectiveConfig.model_fields:  # in their order: that of a set changes from run to run
        if key not in given:
            continue
        if not used:
            yield ("collectives", key), "no job has a collective"
        elif key in named and key not in used:
            yield ("collectives", key), f"no job has this collective; they have {', '.join(sorted(used))}"
        elif key == "optimization" and "all_reduce" not in used:
            yield ("collectives", key), "no job has an all_reduce"
        elif key not in named and written:
            yield ("collectives", key), "the algorithm's files say all there is to its messages"
        elif key == "reduction_rate" and not used & _REDUCING:
            yield ("collectives", key), f"nothing is reduced; jobs have {', '.join(sorted(used))}"
        elif key in ("splits", "sizing") and used == {"barrier"}:
            yield ("collectives", key), "a barrier carries no data"


def _algorithms(scenario: Scenario, collective: str) -> Iterator[tuple[tuple[Key, ...], Algorithm]]:
    chosen = scenario.collectives.choice(Collective(collective))
    if isinstance(chosen, tuple):
        yield from ((("collectives", collective, number), one) for number, one in enumerate(chosen))
    else:
        yield ("collectives", collective), chosen


def _idle_in_files(algorithm: Algorithm, context: Context) -> list[tuple[str, str]]:
    """What an algorithm's files show of its settings; what can't be read is said where it is used."""
    try:
        read = algorithm.read(context)
    except AlgorithmError:
        return []
    return [] if read is algorithm else read.idle_settings()


_REDUCING = {"all_reduce", "reduce_scatter"}


def _scheduling(scenario: Scenario) -> Iterator[_Found]:
    """A queue in which nobody waits, and what a scheduler can't choose or have felt."""
    scheduler = scenario.scheduler
    if scenario.queue is not None and scenario.share_endpoints:
        yield ("queue",), "with share_endpoints nobody waits: every job has all endpoints to choose from"
    if scheduler is None:
        return
    if scheduler.num_candidates() > 1 and scenario.queue is None:
        yield (
            ("scheduler", "candidates"),
            "without a queue each job has its endpoints from the beginning, and there is nothing to choose",
        )
    if scheduler.sets_priorities and not scenario.network.shares_by_priority():
        yield ("scheduler",), "of its priorities: this network model does not share links by them"


def _endpoints(scenario: Scenario, jobs: Sequence[JobInfo]) -> Iterator[_Found]:
    if scenario.share_endpoints:
        taken = [int(endpoint) for job in jobs for endpoint in job.endpoints]
        if len(set(taken)) == len(taken):
            yield ("share_endpoints",), "no two jobs share an endpoint"
