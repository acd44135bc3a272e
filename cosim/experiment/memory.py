"""What the scenario's memory makes of a job: its loads and stores timed, and who serves them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import JobInfo, MemoryNodes
from cosim.errors import InputError, ScenarioError
from cosim.experiment.scenario import Scenario
from cosim.memory.contract import I32, MemorySpec
from cosim.plugin_file import at
from cosim.topology.graph import Topology
from cosim.units import NEVER, TOO_LATE, format_size
from cosim.workload.program import Workload
from cosim.workload.table import TablePrograms

if TYPE_CHECKING:
    from cosim.engine.accesses import ReachedMemory


def with_memory(scenario: Scenario, topology: Topology, jobs: tuple[JobInfo, ...]) -> tuple[JobInfo, ...]:
    """The jobs with how long each of their accesses to remote memory holds its device.

    Raises
    ------
    InputError
        A job accesses remote memory, but the scenario has none; or that can't be made on the topology.
    """
    memory = scenario.memory
    if memory is None:
        if any(_has(job) for job in jobs):
            raise _no_memory(scenario, jobs)
        return jobs
    if not any(_has(job) or job.driven for job in jobs):
        return jobs
    with at(scenario.locate("memory")):
        remote = remote_memory(scenario, topology)
        assert remote is not None
        if remote.nodes is not None:
            _check_seats(scenario, remote.nodes.node, jobs)
            _check_capacity(memory, remote.nodes.node, jobs)
            return tuple(remote.of(job) if _has(job) or job.driven else job for job in jobs)
        devices = remote.devices
        assert devices is not None
        own = devices == -1
        _check_capacity(memory, np.where(own, len(devices) + np.arange(len(devices)), devices), jobs)
        timed: dict[int, Workload] = {}
        for job in jobs:
            if id(job.workload) not in timed:
                timed[id(job.workload)] = _timed(job.workload, memory)
    return tuple(replace(job, workload=timed[id(job.workload)], devices=devices) for job in jobs)


def remote_memory(scenario: Scenario, topology: Topology) -> ReachedMemory | None:
    """What processes and jobs reach; None: the scenario has none.

    Raises
    ------
    InputError
        It can't be made on the topology.
    """
    memory = scenario.memory
    if memory is None:
        return None
    nodes = _nodes(memory, topology)
    from cosim.engine.accesses import ReachedMemory

    return ReachedMemory(
        _devices(memory, topology) if nodes is None else None, nodes, partial(_access_ps, memory)
    )


def _has(job: JobInfo) -> bool:
    return bool(job.workload.table.is_access.any())


def _nodes(memory: MemorySpec, topology: Topology) -> MemoryNodes | None:
    """Where each endpoint's memory is, of memory that is reached over the fabric."""
    given = memory.nodes(topology)
    if given is None:
        return None
    node, count = np.asarray(given), topology.num_endpoints
    if node.shape != (count,) or node.dtype.kind != "i" or (node < 0).any() or (node >= count).any():
        raise InputError(
            f"{type(memory).__name__}.nodes gave {repr(node.tolist())[:80]}; it should give int32[{count}], "
            f"for each endpoint that of its memory, below {count}"
        )
    return MemoryNodes(np.ascontiguousarray(node, np.int32), memory.latency, memory.request_bytes)


def _check_seats(scenario: Scenario, node: I32, jobs: tuple[JobInfo, ...]) -> None:
    """Refuse ranks on memory nodes."""
    taken = {*node.tolist()}
    for job in jobs:
        both = sorted(taken & {*job.endpoints.tolist()})
        if both:
            raise InputError(
                f"endpoint {both[0]} is a memory node, but a rank of {job.name!r} sits there",
                hint="place jobs elsewhere, or make the topology larger",
            )
    if scenario.queue is not None:
        raise InputError("a queue might seat ranks on memory nodes, which it knows nothing of")


def _devices(memory: MemorySpec, topology: Topology) -> I32:
    made = np.asarray(memory.devices(topology))
    count = topology.num_endpoints
    if made.shape != (count,) or made.dtype.kind != "i" or (made < -1).any() or (made >= count).any():
        raise InputError(
            f"{type(memory).__name__}.devices gave {repr(made.tolist())[:80]}; it should give "
            f"int32[{count}], for each endpoint the number of its device below {count}, or -1"
        )
    return np.ascontiguousarray(made, np.int32)


def _check_capacity(memory: MemorySpec, number: NDArray[Any], jobs: tuple[JobInfo, ...]) -> None:
    """Refuse more on a device, or an endpoint's own (``number`` beyond them), than it has room for."""
    if memory.capacity is None:
        return
    kept: dict[int, int] = {}
    for job in jobs:
        for device in number[job.endpoints].tolist():
            kept[device] = kept.get(device, 0) + job.workload.remote_bytes
    fullest = max(kept, key=lambda device: kept[device])
    if kept[fullest] > memory.capacity:
        where = f"of endpoint {fullest - len(number)}" if fullest >= len(number) else str(fullest)
        raise InputError(
            f"remote memory {where} has {format_size(memory.capacity)}, but jobs keep "
            f"{format_size(kept[fullest])} there",
            hint="make it larger (memory.capacity), keep more on the GPU (offload), or cut the model further",
        )


def _timed(workload: Workload, memory: MemorySpec) -> Workload:
    """A workload whose accesses take as long as the memory says."""
    table = workload.table
    rows = np.flatnonzero(table.is_access)
    if not len(rows):
        return workload
    sizes, of = np.unique(table.size_bytes[rows], return_inverse=True)
    durations = [_access_ps(memory, size) for size in sizes.tolist()]
    duration_ps = table.duration_ps.copy()
    duration_ps[rows] = np.array(durations, np.int64)[of]
    programs = workload.programs
    names = programs.names if isinstance(programs, TablePrograms) else [one.name for one in programs]
    return replace(workload, programs=table.taking(duration_ps).programs(names))


def _access_ps(memory: MemorySpec, size: int) -> int:
    """How long an access takes, checked."""
    duration = memory.duration_ps(size)
    if not isinstance(duration, int) or duration < 0:
        raise InputError(
            f"{type(memory).__name__}.duration_ps gave {duration!r} for {size} B; it should give whole "
            "picoseconds from 0 on"
        )
    if duration >= NEVER:
        raise InputError(f"{TOO_LATE}: an access of {size} B takes {duration} ps")
    return duration


def _no_memory(scenario: Scenario, jobs: tuple[JobInfo, ...]) -> ScenarioError:
    """What is missing, with the first access that lacks it."""
    job = next(one for one in jobs if one.workload.table.is_access.any())
    table = job.workload.table
    row = int(table.is_access.argmax())
    what = f"{table.prototypes[table.like[row]].access} of {table.size_bytes[row]} B"
    return ScenarioError(
        f"job {job.name!r}: the operation {table.names[table.name[row]]!r} is a {what}, but the scenario has "
        "no `memory:`",
        location=scenario.locate("jobs"),
        hint="say how remote memory is reached: memory: {kind: per_npu, latency: 1us, rate: 100GB/s}",
    )
