"""The summary: what a run says, in one object, from which pages and JSON are made.

``Summary.to_json()`` is stable: its keys are the field names below and in the modules that define the parts,
units in the names (``_ps`` picoseconds, ``_bytes``, ``_bps`` bits per second; shares and utilisations are
fractions). ``format`` changes when a key changes its meaning or goes away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from cosim.doubts import Doubt
from cosim.engine.records import JobInfo, Records
from cosim.errors import InputError
from cosim.faults.training import Lifetime
from cosim.network.simulator import BalancingUse
from cosim.results.breakdown import Breakdown, break_down
from cosim.results.certainty import interval_ps
from cosim.results.collective_columns import collective_columns
from cosim.results.collectives import CollectiveSummary, summarize_collectives
from cosim.results.critical_path import last_critical_paths
from cosim.results.intervals import Overlap, find_overlap
from cosim.results.links import LinkSummary, LinkTotals, summarize_link_totals, summarize_links
from cosim.results.network_statistics import (
    FastForward,
    FctSummary,
    LineWaits,
    QueueSummary,
    summarize_fast_forward,
    summarize_fct,
    summarize_line_waits,
    summarize_queues,
)
from cosim.results.optable import op_table
from cosim.results.path_parts import limit, parts_of
from cosim.results.requests import RequestSummary, summarize_request
from cosim.results.scheduling import Scheduling
from cosim.results.stragglers import Straggler, find_stragglers
from cosim.results.sums import exact_sum
from cosim.units import format_time
from cosim.workload.program import IterationWork, Workload

I64 = NDArray[np.int64]

FORMAT = 2

_PARTS = ("compute", "communication", "exposed", "exposed_astra", "host_alone", "idle")
"""What a span is made of, by the names of :class:`JobSummary` and of ``Breakdown``."""

BACKGROUND = "background"
"""Name of a workload that nobody waits for."""


@dataclass(frozen=True)
class RankStatistics:
    """A time over the ranks of a job. ``share`` is its part of the ranks' spans, all ranks together."""

    min_ps: int
    mean_ps: int
    max_ps: int
    max_rank: int
    share: float


@dataclass(frozen=True)
class MemoryUse:
    """A job's loads from and stores to remote memory.

    Attributes
    ----------
    accesses
        That were asked for, all ranks that are simulated and all iterations.
    size_bytes
        Of all of them.
    alone, queued
        ``memory_alone`` and ``memory_queued`` of :class:`~cosim.results.breakdown.Breakdown`.
    """

    accesses: int
    size_bytes: int
    alone: RankStatistics
    queued: RankStatistics


@dataclass(frozen=True)
class JobSummary:
    """One job.

    Attributes
    ----------
    iteration_ps
        Time of each iteration that every rank ended: when its last rank ended it, less when the last rank
        ended the one before (the first: less the job's start). Mean, minimum, maximum follow; None without
        an iteration. Where iterations wait for earlier ones, the mean is of those that have settled.
    finish_ps
        When each rank ended its last operation, the job's start where it ended none; a point of simulated
        time, as ``start_ps``. Of a folded job: each simulated rank.
    duration_ps
        The last finish less the start.
    compute, communication, exposed, exposed_astra, host_alone, idle
        As in :class:`~cosim.results.breakdown.Breakdown`, over all iterations.
    free_communication_ps
        What if communication took no time: the job would still take at least this long (the busiest
        stream of the busiest rank). Waiting between pipeline stages is not in it, so it is a lower bound.
        0: a process decides what the job does, or its computations share units with kernels.
    free_communication_iteration_ps, free_communication_speedup
        The same for one iteration, on average; how many times faster the job would be at most.
    read, ignored, assumed
        What was read, ignored and assumed to make the workload, each with its count.
    folding
        Which ranks were simulated once and multiplied, and why others were not; empty where none was to be.
    repeated, simulated_because
        Iterations that were taken from an earlier one, which began in the same state; why none may be, or
        empty.
    training
        What came of the whole training with its failures; None where nothing was said of one.
    error
        The compute model's relative error of an iteration time, one sigma: common to jobs of its GPU, and
        this job's own; None: no compute model timed it.
    interval_ps
        The mean iteration's 80 % interval.
    work
        What an iteration gets done; None: not known.
    flops_utilisation, flops_per_gpu_s, tokens_per_gpu_s
        Of the mean iteration: the FLOPs of ``work`` by what its GPUs could do (MFU; where kernels were
        counted, HFU), those and tokens that a GPU gets done in a second; None: not known, or no tokens.
    limit
        What limits the last iteration: what its critical path is mostly made of, collectives taken whole.
    minibatches
        That an iteration takes in.
    memory
        What it did with remote memory; None where it did nothing.
    request
        When its iteration's answers came; None where it answers nothing.
    """

    name: str
    workload: str
    num_ranks: int
    start_ps: int
    weight: float
    priority: int
    iterations_asked: int
    iterations_done: int
    iteration_ps: tuple[int, ...]
    iteration_mean_ps: int | None
    iteration_min_ps: int | None
    iteration_max_ps: int | None
    finish_min_ps: int
    finish_max_ps: int
    finish_ps: tuple[int, ...]
    duration_ps: int
    compute: RankStatistics
    communication: RankStatistics
    exposed: RankStatistics
    exposed_astra: RankStatistics
    host_alone: RankStatistics
    idle: RankStatistics
    free_communication_ps: int
    free_communication_iteration_ps: int | None
    free_communication_speedup: float | None
    stragglers: tuple[Straggler, ...]
    read: tuple[str, ...]
    ignored: tuple[str, ...]
    assumed: tuple[str, ...]
    folding: tuple[str, ...] = ()
    repeated: int = 0
    simulated_because: str = ""
    training: Lifetime | None = None
    error: tuple[float, float] | None = None
    interval_ps: tuple[int, int] | None = None
    minibatches: int = 1
    limit: str = ""
    work: IterationWork | None = None
    flops_utilisation: float | None = None
    flops_per_gpu_s: float | None = None
    tokens_per_gpu_s: float | None = None
    memory: MemoryUse | None = None
    request: RequestSummary | None = None


@dataclass(frozen=True)
class TrafficSummary:
    """Bytes that arrived between two different endpoints, and the pair with most of them."""

    total_bytes: int
    pairs: int
    busiest_src: int | None
    busiest_dst: int | None
    busiest_bytes: int


@dataclass(frozen=True)
class Summary:
    """What came of a run, in one object; of :class:`cosim.Run`, ``summary``.

    It prints as the page of ``cosim run``. ``interrupted`` is empty, or says why the run stopped early.
    ``wall_s`` and ``cpu_s`` are the only values that differ between two equal runs.

    Examples
    --------
    >>> import cosim
    >>> summary = cosim.run('''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''').summary
    >>> summary.jobs[0].exposed.share, summary.fct.p99_ps
    (1.0, 100000000)
    >>> round(summary.collectives[0].busbw_bps / 1e9)  # Gbit/s, as nccl-tests define it
    80
    """

    format: int
    name: str
    topology: str
    num_endpoints: int
    network: str
    release: str
    seed: int
    interrupted: str
    end_ps: int
    num_messages: int
    digest: str
    wall_s: float
    cpu_s: float
    jobs: tuple[JobSummary, ...]
    collectives: tuple[CollectiveSummary, ...]
    links: tuple[LinkSummary, ...]
    link_totals: LinkTotals
    fct: FctSummary | None
    traffic: TrafficSummary
    warnings: tuple[str, ...]
    topology_report: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What was read, ignored and assumed to make the topology, where it was imported."""
    queues: QueueSummary | None = None
    line_waits: LineWaits | None = None
    """Where lines of cache waited, where the network has some."""
    overlap: Overlap | None = None
    fast_forward: FastForward | None = None
    """What was not simulated, where the network was asked for that."""
    balancing: BalancingUse | None = None
    """What the load balancer did, where there is one."""
    scheduling: Scheduling | None = None
    """Who waited, and what was decided, where there is a queue or a scheduler."""
    doubts: tuple[Doubt, ...] = ()
    """What can make this answer wrong by more than its interval."""

    def to_json(self) -> dict[str, Any]:
        """A dict of plain values; tuples become lists once it is written."""
        return asdict(self)

    def __repr__(self) -> str:
        where = f"{self.topology}, network {self.network}"
        return f"<Summary of {self.name} on {where}: {format_time(self.end_ps)} simulated>"

    def __str__(self) -> str:
        from cosim.results.render.terminal import render

        return render(self)

    def _repr_html_(self) -> str:
        from cosim.results.render.html import html
        from cosim.results.render.summary_page import summary_page

        return html(summary_page(self))

    @classmethod
    def from_json(cls, data: Any) -> Summary:
        """The summary that ``to_json`` gave.

        Raises
        ------
        InputError
            Another format, or a key that is missing or wrong; says which.
        """
        found = data.get("format") if isinstance(data, dict) else None
        if found != FORMAT:
            raise InputError(
                f"this is not a summary of format {FORMAT} (it says format: {found!r})",
                hint="run the scenario again with this version of cosim",
            )
        try:
            return _adapter().validate_python(data)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            raise InputError(f"the summary's {key!r} can't be used: {first['msg']}") from error


@cache
def _adapter() -> TypeAdapter[Summary]:
    return TypeAdapter(Summary)


def summarize(
    records: Records,
    *,
    name: str = "",
    warnings: Sequence[str] = (),
    doubts: Sequence[Doubt] = (),
    top_links: int = 10,
) -> Summary:
    """What ``records`` say. ``warnings`` of whoever set the run up come before those that the run itself
    gives rise to.
    """
    table = op_table(records)
    parts = break_down(records, table)
    collectives = collective_columns(records.collectives)
    late = find_stragglers(records, table, collectives)
    base = table.rank_base
    paths = last_critical_paths(records, by_message=False)
    limits = {path.job: limit(parts_of(path.steps)) for path in paths}
    return Summary(
        format=FORMAT,
        name=name,
        topology=records.topology.name,
        num_endpoints=records.topology.num_endpoints,
        network=records.network,
        release=records.release,
        seed=records.seed,
        interrupted=records.interrupted,
        end_ps=records.end_ps,
        num_messages=records.num_messages,
        digest=records.digest,
        wall_s=records.wall_s,
        cpu_s=records.cpu_s,
        jobs=tuple(
            _job(records, j, parts, slice(int(base[j]), int(base[j + 1])), stragglers, limits.get(j, ""))
            for j, stragglers in enumerate(late)
        ),
        collectives=summarize_collectives(collectives, records.jobs),
        links=summarize_links(records.topology, records.links, records.end_ps, top_links),
        link_totals=summarize_link_totals(records.links, records.end_ps),
        fct=summarize_fct(records.fct),
        traffic=_traffic(records),
        warnings=(*warnings, *_own_warnings(records)),
        topology_report={
            name: tuple(records.topology.info[name])
            for name in ("read", "ignored", "assumed")
            if name in records.topology.info
        },
        queues=summarize_queues(records.topology, records.links),
        line_waits=summarize_line_waits(records.topology, records.links),
        overlap=find_overlap(records, table, collectives),
        fast_forward=summarize_fast_forward(records.links),
        balancing=records.links.balancing,
        scheduling=records.info.get("scheduling"),
        doubts=tuple(doubts),
    )


def iteration_ends(iteration_end_ps: I64) -> I64:
    """When the last rank ended each iteration, from the ends [iterations, ranks]: int64[iterations]."""
    return iteration_end_ps.max(axis=1) if iteration_end_ps.size else np.zeros(0, np.int64)


def iteration_times(iteration_end_ps: I64, start_ps: int) -> I64:
    """Time of each iteration, from the ends [iterations, ranks]: int64[iterations]."""
    return np.diff(iteration_ends(iteration_end_ps), prepend=np.int64(start_ps))


def settled(times: I64, workload: Workload) -> I64:
    """The iterations whose mean is a job's: all; where they wait for earlier ones and so overlap, those of
    the second half that are followed by as many as the longest lag. Of them one repetition, if they repeat.

    Before, the pipeline fills; after, nothing new is computed beside the last ones.
    """
    lag = workload.table.longest_lag
    if lag == 0:
        return times
    half = times[len(times) // 2 :]
    mine = half[:-lag] if len(half) > lag else half
    for length in range(1, 2 * len(mine) // 3 + 1):
        if np.allclose(mine[length:], mine[:-length], rtol=1e-6):
            return mine[-length:]
    return mine


def mean_iterations(records: Records) -> list[int | None]:
    """The mean time of each job's iterations, in ps, those that :func:`settled` chooses; None where it
    ended none.
    """
    times = [
        settled(iteration_times(ends, job.start_ps), job.workload)
        for ends, job in zip(records.iteration_end_ps, records.jobs, strict=True)
    ]
    return [_mean(one) for one in times]


def _work(job: JobInfo) -> IterationWork | None:
    """What an iteration gets done: as the workload says, or as its operations do."""
    workload = job.workload
    if workload.work is not None:
        return workload.work
    table = workload.table
    ranks = np.bincount(workload.program_of, minlength=table.num_programs)[table.program] * job.copies
    flops = float((table.flops * ranks).sum())
    whole = len(job.endpoints) * job.copies
    peak = None if workload.peak_flops is None else workload.peak_flops * whole
    return IterationWork(flops, peak, counted="kernels") if flops else None


def _efficiency(work: IterationWork | None, mean_ps: int | None, ranks: int) -> dict[str, Any]:
    """Attributes of :class:`JobSummary`; ``mean_ps`` is of an iteration."""
    if work is None or not mean_ps:
        return {"work": work}
    seconds = mean_ps / 1e12
    return {
        "work": work,
        "flops_utilisation": None if work.peak_flops is None else work.flops / (work.peak_flops * seconds),
        "flops_per_gpu_s": work.flops / seconds / ranks,
        "tokens_per_gpu_s": work.tokens / seconds / ranks if work.tokens else None,
    }


def _mean(times: I64) -> int | None:
    return round(exact_sum(times) / len(times)) if len(times) else None


def _job(
    records: Records, j: int, parts: Breakdown, ranks: slice, stragglers: tuple[Straggler, ...], limited: str
) -> JobSummary:
    job = records.jobs[j]
    every = iteration_times(records.iteration_end_ps[j], job.start_ps)
    times: list[int] = every.tolist()
    mean = _mean(settled(every, job.workload))
    finish: list[int] = np.maximum(records.finish_ps[j], job.start_ps).tolist()
    duration = int(parts.span[ranks].max(initial=0))
    names = job.rank_numbers
    shown = np.arange(len(names)) if records.recorded is None else records.recorded[j]
    spreads = _spreads(parts, ranks, shown, names)
    memory = _memory(job, spreads.pop("memory_alone"), spreads.pop("memory_queued"))
    # What a process would do in that time nobody knows; computations would take less without kernels.
    unknown = job.driven or job.on_units
    free = 0 if unknown else int(parts.busiest_stream[ranks].max(initial=0))
    return JobSummary(
        name=job.name,
        workload=job.workload.name,
        num_ranks=len(job.endpoints) * job.copies,
        start_ps=job.start_ps,
        weight=job.weight,
        priority=job.priority,
        iterations_asked=job.iterations,
        iterations_done=len(times),
        iteration_ps=tuple(times),
        iteration_mean_ps=mean,
        iteration_min_ps=min(times, default=None),
        iteration_max_ps=max(times, default=None),
        finish_min_ps=min(finish, default=job.start_ps),
        finish_max_ps=max(finish, default=job.start_ps),
        finish_ps=tuple(finish),
        duration_ps=duration,
        **spreads,
        free_communication_ps=free,
        free_communication_iteration_ps=round(free / len(times)) if times and not unknown else None,
        free_communication_speedup=duration / free if free else None,
        stragglers=stragglers,
        read=job.workload.report.read,
        ignored=job.workload.report.ignored,
        assumed=job.workload.report.assumed,
        folding=tuple(records.info.get("folding", ())),
        repeated=dict(enumerate(records.info.get("repeated", ()))).get(j, 0),
        simulated_because=records.info.get("simulated_because", ""),
        training=records.info.get("training", {}).get(job.name),
        error=job.workload.error,
        interval_ps=interval_ps(mean, job.workload.error) if mean and job.workload.error else None,
        minibatches=job.workload.minibatches,
        limit=limited,
        **_efficiency(_work(job), mean, len(job.endpoints) * job.copies),
        memory=memory,
        request=summarize_request(records, j, mean),
    )


def _spreads(parts: Breakdown, ranks: slice, shown: I64, names: I64) -> dict[str, Any]:
    """Each part of the ranks' spans, of those ranks of a job that are shown."""
    total = exact_sum(parts.span[ranks][shown])
    return {
        name: _spread(getattr(parts, name)[ranks][shown], total, names[shown])
        for name in (*_PARTS, "memory_alone", "memory_queued")
    }


def _memory(job: JobInfo, alone: RankStatistics, queued: RankStatistics) -> MemoryUse | None:
    table = job.workload.table
    if not table.is_access.any():
        return None
    ranks = np.bincount(job.workload.program_of, minlength=table.num_programs)[table.program]
    count = int(ranks[table.is_access].sum()) * job.iterations
    sizes = table.size_bytes[table.is_access].tolist()
    size = sum(a * b for a, b in zip(sizes, ranks[table.is_access].tolist(), strict=True)) * job.iterations
    return MemoryUse(count, size, alone, queued)


def _spread(values: I64, total_span: int, names: I64) -> RankStatistics:
    if len(values) == 0:
        return RankStatistics(0, 0, 0, 0, 0.0)
    total = exact_sum(values)
    return RankStatistics(
        min_ps=int(values.min()),
        mean_ps=round(total / len(values)),
        max_ps=int(values.max()),
        max_rank=int(names[values.argmax()]),
        share=total / total_span if total_span else 0.0,
    )


def _traffic(records: Records) -> TrafficSummary:
    traffic = records.traffic
    pair_bytes = traffic.pair_bytes
    if pair_bytes.size == 0 or not pair_bytes.any():
        return TrafficSummary(0, 0, None, None, 0)
    most = int(pair_bytes.argmax())
    return TrafficSummary(
        total_bytes=int(pair_bytes.sum()),
        pairs=int((pair_bytes > 0).sum()),
        busiest_src=int(traffic.src[most]),
        busiest_dst=int(traffic.dst[most]),
        busiest_bytes=int(pair_bytes[most]),
    )


def _own_warnings(records: Records) -> list[str]:
    found = [f"stopped early: {records.interrupted}"] if records.interrupted else []
    if records.recorded is not None:
        found += [
            f"job {job.name}: where time went is known of the {len(kept)} of {len(job.endpoints)} ranks "
            "whose operations are recorded; stragglers and overlap are not looked for"
            for job, kept in zip(records.jobs, records.recorded, strict=True)
            if len(kept) < len(job.endpoints)
        ]
    for job, ends in zip(records.jobs, records.iteration_end_ps, strict=True):
        if len(ends) < job.iterations and not records.interrupted:
            found.append(f"job {job.name}: {len(ends)} of {job.iterations} iterations ended")
    return found
