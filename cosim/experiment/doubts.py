"""Doubts about a scenario's answer: those of its parts with their places, and those that a run shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from cosim.cluster.aligned import Aligned, crossing, units
from cosim.cluster.contract import Wanted
from cosim.doubts import Doubt
from cosim.engine.records import JobInfo, Records
from cosim.errors import WorkloadError
from cosim.experiment.idle import place_of
from cosim.experiment.scenario import Scenario
from cosim.gpu.contract import GpuSpec
from cosim.pattern.planner import Planner
from cosim.topology.graph import I64, Topology
from cosim.topology.hosts import Hosts
from cosim.topology.scale_up import host_domains
from cosim.units import format_rate
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


_AXES = ("tp", "ep", "pp")
"""Axes whose groups belong into one scale-up domain, those that talk most first."""


def across_domains(topology: Topology, jobs: Sequence[JobInfo]) -> Iterator[Doubt]:
    """Groups that lie across hosts or racks although a placement has room for them within, and takes nothing
    apart for it that talks more.
    """
    scale_up = host_domains(topology)
    if scale_up is None:
        return
    for job in jobs:
        mesh = job.workload.mesh
        parted = {
            axis: crossing(units(mesh, (axis,)), job.endpoints, scale_up)
            for axis, size in mesh.axes.items()
            if size > 1
        }
        for axis in _AXES:
            if not parted.get(axis):
                continue
            if (within := _kept_within(job, jobs, axis, parted, scale_up)) is None:
                continue
            count = mesh.world_size // mesh.axes[axis]
            yield Doubt(
                f"job {job.name}",
                f"{parted[axis]} of {count} {axis.upper()} groups of {mesh.axes[axis]} lie across scale-up "
                "domains, so they talk over the network between hosts",
                f"placement: {{kind: aligned, axes: [{', '.join(within)}]}}",
            )
            break


def without_nvlink(scenario: Scenario, topology: Topology) -> Iterator[Doubt]:
    """Jobs on hosts whose GPUs reach each other over PCI or NICs, where such GPUs have faster links."""
    hosts, shape = getattr(scenario.topology, "hosts", None), topology.hosts
    bare = isinstance(hosts, Hosts) and hosts.gpus > 1 and hosts.nvlink_rate is None
    if not bare and (shape is None or shape.linked or shape.gpus == 1):
        return
    fastest = float(topology.link_rate_bps[topology.link_src < topology.num_endpoints].max(initial=0))
    for number, job in enumerate(scenario.jobs):
        spec = job.runs_on(scenario.context)
        gpu = spec.build(scenario.context) if isinstance(spec, GpuSpec) else None
        if gpu is not None and gpu.link_rate is not None and gpu.link_rate > _FASTER * fastest:
            yield Doubt(
                f"job {job.name or f'job{number}'}",
                f"its {gpu.name} has links of {format_rate(gpu.link_rate)} to its peers, and hosts of "
                f"{topology.name} have none: the fastest out of a GPU has {format_rate(fastest)}",
                "nvlink_rate of the topology or its hosts; or a file that lists the links",
            )


_FASTER = 2.0
"""A GPU's own links are so many times as fast as what there is."""


def _kept_within(
    job: JobInfo, jobs: Sequence[JobInfo], axis: str, parted: dict[str, int], scale_up: I64
) -> tuple[str, ...] | None:
    """Axes that a placement could keep whole, this one among them; None: no such placement is better."""
    mesh = job.workload.mesh
    others = [other.endpoints for other in jobs if other is not job]
    taken = np.concatenate(others) if others else np.zeros(0, np.int32)
    free = np.setdiff1d(np.arange(len(scale_up), dtype=np.int32), taken)
    free = np.union1d(free, job.endpoints).astype(np.int32)
    wanted = Wanted(mesh.world_size, free, len(scale_up), mesh=mesh, scale_up=scale_up)
    among = [one for one in _AXES if mesh.axes.get(one, 1) > 1]
    asked = (set(among), {"tp", axis}, {axis})
    for ordered in dict.fromkeys(tuple(one for one in among if one in axes) for axes in asked):
        try:
            endpoints = Aligned(axes=ordered).choose(wanted)
        except WorkloadError:
            continue
        # Pipelines give way to whoever has groups whole now; tp and ep give way to each other only.
        kept = [one for one in parted if axis == "pp" or one in among[: among.index(axis)]]
        if all(crossing(units(mesh, (one,)), endpoints, scale_up) <= parted[one] for one in kept):
            return ordered
    return None


def idle_uplinks(records: Records) -> Iterator[Doubt]:
    """Endpoints with several equal links to switches of which some carried nothing, and others did."""
    topology = records.topology
    if topology.changes is not None or records.links is None:
        return
    up = (topology.link_src < topology.num_endpoints) & (topology.link_dst >= topology.num_endpoints)
    if topology.scale_up is not None:
        up &= ~topology.scale_up
    links = np.flatnonzero(up)
    if not len(links):
        return
    src, rate = topology.link_src[links], topology.link_rate_bps[links]
    sent = np.asarray(records.links.link_bytes)[links]
    best = np.zeros(topology.num_endpoints)
    np.maximum.at(best, src, rate)
    equal = rate == best[src]
    have = np.bincount(src[equal], minlength=topology.num_endpoints)
    used = np.bincount(src[equal & (sent > 0)], minlength=topology.num_endpoints)
    short = np.flatnonzero((used > 0) & (used < have))
    if len(short):
        first = int(short[0])
        idle = links[equal & (src == first) & (sent == 0)][0]
        part = "half" if 2 * used[first] == have[first] else f"{have[first] - used[first]} of {have[first]}"
        more = f", and so with {len(short) - 1} others" if len(short) > 1 else ""
        yield Doubt(
            f"uplinks of {topology.node_names[first]}",
            f"{part} of this GPU's uplinks carried nothing ({topology.link_name(int(idle))}){more}: "
            "a message takes one path, by its channel",
            "collectives of nccl, or {algorithm: ring, channels: "
            f"{have[first]}}}; or network.balancer: spray",
        )


def too_fast(scenario: Scenario, planner: Planner, records: Records) -> list[Doubt]:
    """A bus bandwidth beyond what any endpoint's links send, with its place, of a collective whose data was
    not checked. What is proved can't have one, on a network that shares links.
    """
    if not planner.unchecked:
        return []
    from cosim.results.collective_columns import collective_columns
    from cosim.results.collectives import summarize_collectives

    topology = records.topology
    sent = np.bincount(topology.link_src, topology.link_rate_bps, topology.num_endpoints)
    most = float(sent[: topology.num_endpoints].max(initial=0.0))
    said = {
        one.collective: f"{one.algorithm}: a bus bandwidth of {format_rate(one.busbw_bps)} over "
        f"{one.group_size} ranks, where no endpoint's links send more than {format_rate(most)}: "
        f"it sends less than an {one.collective} has to"
        for one in summarize_collectives(collective_columns(records.collectives), records.jobs)
        if one.busbw_bps is not None
        and one.busbw_bps > most
        and (one.collective, one.algorithm) in planner.unchecked
    }
    return [
        Doubt(
            str(scenario.locate("collectives", collective) or scenario.name),
            text,
            "an algorithm whose messages say which chunks they carry, which `cosim prove` proves",
        )
        for collective, text in sorted(said.items())
    ]
