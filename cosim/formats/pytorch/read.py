"""Kind ``pytorch``: execution traces and Kineto traces of a job's ranks, as a workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from cosim.context import Context
from cosim.errors import Location, WorkloadError
from cosim.files.import_report import ReportBuilder
from cosim.formats.pytorch import estimated_program, execution_trace, kineto
from cosim.formats.pytorch.communication import RecordedComm
from cosim.formats.pytorch.execution_trace import ExecutionTrace
from cosim.formats.pytorch.files import open_traces, ranks_in_names
from cosim.formats.pytorch.job import (
    TracedJob,
    as_workload,
    choose_step,
    few,
    group_comms,
    link_ranks,
    mesh_for,
)
from cosim.formats.pytorch.kineto import Timeline
from cosim.formats.pytorch.libraries import CommunicationLibrary, every_library
from cosim.formats.pytorch.link import link, match_comms
from cosim.gpu.contract import GpuSpec
from cosim.gpu.gpus import build_gpu
from cosim.host.contract import HostSpec
from cosim.registry import Named
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import COMMUNICATION, Operation, OpKind, Program, Workload

T = TypeVar("T")
MOST_RANKS = 1 << 24
"""More than any cluster has; tables of all ranks fit into memory."""


class PyTorchWorkload(WorkloadSpec):
    """PyTorch execution traces (ET) and Kineto traces, one of each a rank, with measured durations."""

    et: str | None = Field(
        None,
        description="ETs: a file, a folder, a .tar.gz, or a pattern such as runs/et_*.json; .gz as it is",
    )
    kineto: str | None = Field(
        None, description="Kineto traces, likewise; without them `gpu` times the ET's operators"
    )
    step: Literal["last", "all"] | NonNegativeInt = Field(
        "last",
        description="which ProfilerStep: its number; last: the last whole one; all: from first to last",
    )
    collectives: Literal["simulated", "measured"] = Field(
        "simulated",
        description="simulated: by the network; measured: ranks wait for each other, then as measured",
    )
    start: Literal["measured", "together"] = Field(
        "measured",
        description="measured: ranks begin their step as far apart as they did; together: all at once",
    )
    groups: dict[str, list[list[NonNegativeInt]]] = Field(
        default={}, description="ranks of process groups that the traces don't tell: {name: [[0, 1], [2, 3]]}"
    )
    libraries: list[Annotated[CommunicationLibrary, Named("cosim.communications")]] = Field(
        default=[], description="whose kernels communicate, beside those of `cosim list communication`"
    )
    world_size: PositiveInt | None = Field(
        None, description="ranks, where only one rank's trace is there, which then stands for all"
    )
    gpu: Annotated[GpuSpec, Named("cosim.gpus")] | None = Field(
        None, description="without Kineto traces: time operators on this GPU"
    )
    host: Annotated[HostSpec, Named("cosim.hosts")] | None = Field(
        default=None, description="what issues its operators; omitted: what the GPU's measured jobs ran on"
    )

    @model_validator(mode="after")
    def _something_to_read(self) -> PyTorchWorkload:
        if self.et is None and self.kineto is None:
            raise ValueError("give `et:`, `kineto:` or both")
        if self.kineto is None and self.gpu is None:
            raise ValueError("an ET has no times: give `kineto:` traces too, or a `gpu:` to work them out")
        return self

    def idle_settings(self) -> list[tuple[str, str]]:
        """Settings that only matter with, or without, measured times."""
        if self.kineto is not None:
            timed_by = [name for name in ("gpu", "host") if getattr(self, name) is not None]
            return [(name, "the Kineto traces have the times") for name in timed_by]
        given = self.model_fields_set & {"collectives", "start", "libraries"}
        return [(name, "there are no Kineto traces") for name in sorted(given)]

    def runs_on(self, context: Context) -> GpuSpec | None:  # noqa: ARG002 - a setting, no file
        """See :class:`~cosim.workload.contract.WorkloadSpec`; measured times are no GPU's numbers."""
        return self.gpu if self.kineto is None else None

    def issued_by(self) -> HostSpec | None:
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        return self.host

    def idle_in(self, workload: Workload) -> list[tuple[str, str]]:
        """Settings that were given but that these traces have no use for."""
        operations = [op for program in workload.programs for op in program.operations]
        communicates = any(
            op.kind in (OpKind.COLLECTIVE, OpKind.SEND) or op.phase == COMMUNICATION for op in operations
        )
        read = workload.report.read
        uses = {
            "collectives": (communicates, "there are no communications"),
            "start": (len(workload.programs) > 1, "all ranks run the same trace"),
            "groups": (
                any("process group" in line for line in read),
                "the traces name no such group, or its ranks",
            ),
        }
        return [(n, why) for n, (matters, why) in uses.items() if n in self.model_fields_set and not matters]

    def build(self, context: Context) -> Workload:
        """Read, link and write one program a rank; paths are relative to ``context.base``.

        Raises
        ------
        WorkloadError
            A file that is missing or damaged, traces that don't fit each other; names file and node or event.
        MismatchError
            Ranks that don't do the same collectives.
        """
        if self.kineto is None:
            return self._estimated(context)
        return self.read(context.base).workload()

    def read(self, base: Path = Path()) -> TracedJob:
        """What was measured, sorted out and linked; :meth:`build` makes a workload of it.

        Raises
        ------
        WorkloadError, MismatchError
            As :meth:`build`.
        """
        report = ReportBuilder()
        timelines = _timelines(base / str(self.kineto), every_library(self.libraries), report)
        traces: dict[int, ExecutionTrace] = {}
        if self.et is not None:
            by_process = {timeline.pid: rank for rank, timeline in timelines.items()}
            if len(by_process) < len(timelines):  # ranks on several hosts may share a number
                by_process = {}
            traces = _traces(base / self.et, by_process, report, keep_nodes=False)
            _same_ranks(timelines, traces, str(base / self.et))
        for rank, timeline in sorted(timelines.items()):
            if rank in traces:
                link(timeline, traces[rank], report)
        world_size = self._world_size([*timelines], _said(timelines), str(base / str(self.kineto)), report)
        groups = [
            {
                **timeline.groups,
                **(traces[rank].groups if rank in traces else {}),
                **self._groups(rank),
            }
            for rank, timeline in sorted(timelines.items())
        ]
        if len(timelines) == 1 and next(iter(timelines)) >= world_size:
            timelines = {0: next(iter(timelines.values()))}
        cut = choose_step(timelines, self.step, report)
        name = Path(str(self.kineto)).name
        return link_ranks(
            cut, groups, world_size, name, report, collectives=self.collectives, start=self.start
        )

    def _groups(self, rank: int) -> dict[str, tuple[int, ...]]:
        return {
            name: tuple(ranks) for name, listed in self.groups.items() for ranks in listed if rank in ranks
        }

    def _world_size(self, ranks: Sequence[int], said: int | None, place: str, report: ReportBuilder) -> int:
        """How many ranks there are; one rank's trace may stand for all."""
        wanted = self.world_size or said or len(ranks)
        if wanted > MOST_RANKS:
            raise WorkloadError(
                f"the job has {wanted} ranks",
                location=Location(place),
                hint=f"it can have {MOST_RANKS:,}; set `world_size` if the trace is wrong",
            )
        if len(ranks) == 1 < wanted:
            report.assumed(f"the trace of one rank runs on all {wanted} ranks")
        elif len(ranks) == 1:
            return 1
        elif len(ranks) != wanted or max(ranks) >= wanted:
            raise WorkloadError(
                f"there are traces of {len(ranks)} ranks ({few(sorted(ranks))}), but the job has {wanted}",
                location=Location(place),
                hint="give a trace for each rank, or exactly one for all",
            )
        return wanted

    def _estimated(self, context: Context) -> Workload:
        """ETs alone: the compute model says how long."""
        assert self.gpu is not None
        place, report = str(context.base / str(self.et)), ReportBuilder()
        gpu = build_gpu(self.gpu, self.host, context)
        traces = _traces(context.base / str(self.et), {}, report, keep_nodes=True)
        said = {comm.group_size for trace in traces.values() for comm in trace.comms.values()}
        world_size = self._world_size([*traces], max(said, default=0) or None, place, report)
        chosen = {rank: _chosen(trace, self.step, report) for rank, trace in traces.items()}
        alone = len(traces) == 1
        if alone and next(iter(traces)) >= world_size:
            traces, chosen = {0: next(iter(traces.values()))}, {0: next(iter(chosen.values()))}
        listed = {}
        for rank, trace in sorted(traces.items()):
            known = {**trace.groups, **self._groups(rank)}
            comms = [trace.comms[node.number] for node in chosen[rank] if node.number in trace.comms]
            listed[rank] = group_comms(comms, rank, world_size, known, report, alone=alone)
        match_comms([*listed.values()])
        ours = [ranks for mine in listed.values() for _, ranks in mine]
        mesh, axes = mesh_for(ours, world_size) if alone else (None, {})
        programs = []
        for rank, trace in sorted(traces.items()):
            # A communication is listed with its own sizes, or those that it has where one rank is all.
            groups = {comm.place: (comm, ranks) for comm, ranks in listed[rank]}

            def communicate(
                comm: RecordedComm,
                deps: tuple[int, ...],
                number: int,
                groups: Mapping[Location, tuple[RecordedComm, tuple[int, ...]]] = groups,
            ) -> Operation:
                comm, ranks = groups[comm.place]
                ours = axes.get(ranks, ())
                return Operation(
                    f"{comm.kind} {number}", OpKind.COLLECTIVE, estimated_program.stream_for(comm), deps,
                    collective=comm.collective, axes=ours,
                    ranks=None if ours or len(ranks) == world_size else ranks,
                    size_bytes=comm.size_bytes,
                )  # fmt: skip

            ops = estimated_program.write(trace, chosen[rank], gpu, communicate, report)
            programs.append(Program(f"rank {rank}", ops))
        report.read("operator of the step", sum(len(nodes) for nodes in chosen.values()))
        return as_workload(Path(place).name, programs, world_size, report, mesh)


def _timelines(
    path: Path, libraries: Mapping[str, CommunicationLibrary], report: ReportBuilder
) -> dict[int, Timeline]:
    with closing(open_traces(path)) as files:
        read = [kineto.read(text, name, libraries) for name, text in files]
    found = _by_rank([(one.file, one.rank, one) for one in read], report)
    for timeline in found.values():
        report.read("Kineto event of a thread", len(timeline.calls))
        report.read("Kineto event of the GPU", len(timeline.works))
        for what, count in timeline.ignored.items():
            report.ignored(what, count)
        timeline.doubt(report)
    return found


def _traces(
    path: Path, rank_of: Mapping[int | None, int], report: ReportBuilder, *, keep_nodes: bool
) -> dict[int, ExecutionTrace]:
    """ETs by rank: by process id where Kineto's traces have it, else by file name."""
    with closing(open_traces(path)) as files:
        read = [execution_trace.read(text, name, keep_nodes=keep_nodes) for name, text in files]
    said = [(one.file, None if one.pid is None else rank_of.get(one.pid), one) for one in read]
    if len(said) == len(rank_of) == 1:
        said = [(read[0].file, next(iter(rank_of.values())), read[0])]
    found = _by_rank(said, report)
    report.read("ET node", sum(trace.count for trace in found.values()))
    return found


def _by_rank(entries: Sequence[tuple[str, int | None, T]], report: ReportBuilder) -> dict[int, T]:
    """What was read by rank: as traces say it; else by their files' names, else in their order."""
    if len(entries) == 1:
        ((_, said, found),) = entries
        return {said or 0: found}
    names: dict[int, str] = {}
    ranks = [said for _, said, _ in entries]
    if None in ranks:
        ranks = ranks_in_names([name for name, _, _ in entries], ranks)
        if None in ranks:
            report.assumed("ranks in the order of their files: neither traces nor names say them")
            free = (rank for rank in range(len(entries)) if rank not in ranks)
            ranks = [next(free) if rank is None else rank for rank in ranks]
    by_rank: dict[int, T] = {}
    for (name, _, found), rank in zip(entries, ranks, strict=True):
        assert rank is not None
        if rank in names:
            raise WorkloadError(f"is of rank {rank}, as {names[rank]} is", location=Location(name))
        names[rank], by_rank[rank] = name, found
    return by_rank


def _same_ranks(timelines: Mapping[int, Timeline], traces: Mapping[int, ExecutionTrace], place: str) -> None:
    if timelines.keys() != traces.keys():
        raise WorkloadError(
            f"there are ETs of ranks {few(sorted(traces))}, but Kineto traces of {few(sorted(timelines))}",
            location=Location(place),
        )


def _said(timelines: Mapping[int, Timeline]) -> int | None:
    return max((timeline.world_size or 0 for timeline in timelines.values()), default=0) or None


def _chosen(
    trace: ExecutionTrace, wanted: int | str, report: ReportBuilder
) -> list[execution_trace.TraceNode]:
    there = estimated_program.steps(trace)
    if isinstance(wanted, int) and wanted not in there:
        raise WorkloadError(
            f"there is no ProfilerStep#{wanted}; there are: {few(sorted(there)) or 'none'}",
            location=Location(trace.file),
        )
    if not there:
        report.assumed("no ProfilerStep annotation: the whole trace is the step")
    elif wanted == "last":
        wanted = max(there)
    if isinstance(wanted, int):
        report.read(f"step: ProfilerStep#{wanted}")
    nodes = estimated_program.of_step(trace, wanted if isinstance(wanted, int) else None)
    report.ignored("ET node outside the step", trace.count - len(nodes))
    return nodes
