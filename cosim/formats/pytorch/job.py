"""A job's measured step: every rank's, cut out, and linked to the others by their communications."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cosim.errors import Location, WorkloadError
from cosim.files.import_report import ReportBuilder
from cosim.formats.pytorch import kineto
from cosim.formats.pytorch.communication import MESSAGES, RECORD, SILENT, RecordedComm
from cosim.formats.pytorch.kineto import Timeline
from cosim.formats.pytorch.link import MatchedComm, align_clocks, match_comms, resolve_groups
from cosim.formats.pytorch.measured_program import CommPart
from cosim.formats.pytorch.measured_program import write as write_program
from cosim.formats.pytorch.self_check import check_replay
from cosim.formats.pytorch.step import Cut, MeasuredStep, sort_out
from cosim.units import NEVER, format_time
from cosim.workload.program import DeviceMesh, Program, Workload


@dataclass(frozen=True, eq=False)
class TracedJob:
    """A job's measured step: each rank's, and how ranks match_comms.

    ``begin_ps`` is when each rank began, on one clock, after the first.
    """

    name: str
    world_size: int
    steps: tuple[MeasuredStep, ...]
    parts: tuple[dict[int, CommPart], ...]
    matched: tuple[MatchedComm, ...]
    begin_ps: tuple[int, ...]
    together: bool
    report: ReportBuilder

    def measured_ps(self, rank: int) -> int:
        """From the beginning of a rank's step until its last thread and its last GPU work ended."""
        step = self.steps[rank]
        return max([step.end, *(work.end for work in step.timeline.works)]) - step.begin

    def workload(self) -> Workload:
        """One program a rank."""
        check_replay(self)
        programs = []
        for rank, step in enumerate(self.steps):
            skew = 0 if self.together else self.begin_ps[rank]
            operations, _ = write_program(step, rank, self.parts[rank], skew, self.report)
            programs.append(Program(f"rank {rank}", operations))
        return as_workload(self.name, programs, self.world_size, self.report)


def as_workload(name: str, programs: list[Program], world_size: int, report: ReportBuilder) -> Workload:
    """One program a rank, or one for all."""
    if len(programs) == 1:
        programs = [Program("every rank", programs[0].operations)]
    program_of = (
        np.arange(world_size, dtype=np.int32) if len(programs) > 1 else np.zeros(world_size, np.int32)
    )
    return Workload(name, DeviceMesh({"rank": world_size}), tuple(programs), program_of, report.build())


def choose_step(
    timelines: Mapping[int, Timeline], wanted: int | str, report: ReportBuilder
) -> dict[int, Cut]:
    """Each rank's step."""
    common = set.intersection(*(set(timeline.steps) for timeline in timelines.values()))
    if isinstance(wanted, int) and wanted not in common:
        rank = next(rank for rank, timeline in sorted(timelines.items()) if wanted not in timeline.steps)
        raise WorkloadError(
            f"there is no ProfilerStep#{wanted}; there are: {few(sorted(timelines[rank].steps)) or 'none'}",
            location=Location(timelines[rank].file),
        )
    chosen = [wanted] if isinstance(wanted, int) else sorted(common)
    if wanted == "last" and chosen:
        whole = [step for step in chosen if all(_tells(timeline, step) for timeline in timelines.values())]
        chosen = whole[-1:] or chosen[-1:]
    found = {}
    for rank, timeline in sorted(timelines.items()):
        if not timeline.calls:
            raise WorkloadError("has no event of a thread", location=Location(timeline.file))
        if chosen:
            first, last = timeline.steps[chosen[0]], timeline.steps[chosen[-1]]
            main, begin, end = first.thread, first.begin, last.end
        else:
            main = max(
                sorted({c.thread for c in timeline.calls}),
                key=lambda t: sum(c.thread == t for c in timeline.calls),
            )
            begin, end = timeline.calls[0].begin, max(call.end for call in timeline.calls)
        if not 0 < end - begin < NEVER:
            raise WorkloadError(
                f"the step lasts {(end - begin) // 10**6} us",
                location=first.place if chosen else Location(timeline.file),
            )
        state, earlier = kineto.state_at(timeline, begin, end)
        found[rank] = Cut(kineto.window(timeline, begin, end, earlier), main, begin, end, state)
        if state.front > begin:
            report.read(f"work in flight when the step begins, {format_time(state.front - begin)} of it")
    outside = sum(len(timelines[r].calls) - len(cut.timeline.calls) for r, cut in found.items())
    report.ignored("event of a thread outside the step", outside)
    report.ignored(
        "GPU work launched outside the step",
        sum(len(timelines[r].works) - len(cut.timeline.works) for r, cut in found.items()),
    )
    if chosen:
        report.read(f"step: ProfilerStep#{chosen[0]}" + (f" to #{chosen[-1]}" if len(chosen) > 1 else ""))
    else:
        report.assumed("no ProfilerStep annotation: the whole trace is the step")
    return found


def _tells(timeline: Timeline, step: int) -> bool:
    """Whether of every communication in a step it is known what it is."""
    around = timeline.steps[step]
    return all(
        call.comm is not None
        for call in timeline.calls
        if call.name == RECORD and around.begin <= call.begin < around.end
    )


def link_ranks(
    cut: Mapping[int, Cut],
    groups: Sequence[Mapping[str, tuple[int, ...]]],
    world_size: int,
    name: str,
    report: ReportBuilder,
    *,
    collectives: Literal["simulated", "measured"],
    start: Literal["measured", "together"],
) -> TracedJob:
    """Meet: the n-th communication of a group is the n-th of each of its ranks.

    Raises
    ------
    WorkloadError
        A communication that the trace doesn't describe.
    MismatchError
        Ranks that don't do the same.
    """
    steps = []
    for one in cut.values():
        _refuse_unknown(one.timeline)
        steps.append(sort_out(one, report))
    alone = len(steps) == 1
    listed = [
        group_comms([comm for comm, _, _ in step.comms], rank, world_size, groups[rank], report, alone=alone)
        for rank, step in enumerate(steps)
    ]
    numbers = match_comms(listed * world_size if alone else listed)
    matched, parts, kernels = _share_out(
        steps, listed, numbers, world_size, report, measured=collectives == "measured"
    )
    _tell([*matched.values()], report, simulated=collectives == "simulated")
    offsets = align_clocks([{n: end for n, (_, end) in mine.items()} for mine in kernels], report)
    begins = [step.begin - offset for step, offset in zip(steps, offsets, strict=True)]
    begin_ps = tuple(begin - min(begins) for begin in begins)
    if start == "measured" and not alone:
        report.read(f"beginnings of the step, up to {format_time(max(begin_ps))} apart")
    elif not alone:
        report.ignored(f"that ranks began up to {format_time(max(begin_ps))} apart (start: together)")
    return TracedJob(
        name, world_size, tuple(steps), tuple(parts), tuple(matched[n] for n in sorted(matched)), begin_ps,
        start == "together", report,
    )  # fmt: skip


def _refuse_unknown(timeline: Timeline) -> None:
    for call in timeline.calls:
        if call.name == RECORD and call.comm is None:
            raise WorkloadError(
                "the trace doesn't say what is communicated",
                location=call.place,
                hint="PyTorch before 2.2 writes that only to the ET: give it as `et:`",
            )


def _share_out(
    steps: Sequence[MeasuredStep],
    listed: Sequence[Sequence[tuple[RecordedComm, tuple[int, ...]]]],
    numbers: Sequence[Mapping[int, int]],
    world_size: int,
    report: ReportBuilder,
    *,
    measured: bool,
) -> tuple[dict[int, MatchedComm], list[dict[int, CommPart]], list[dict[int, tuple[int, int]]]]:
    """Communications by number; each rank's parts by ``id`` of the call, and its kernels' times by number."""
    matched: dict[int, MatchedComm] = {}
    parts: list[dict[int, CommPart]] = [{} for _ in steps]
    kernels: list[dict[int, tuple[int, int]]] = [{} for _ in steps]
    took: dict[int, list[int]] = defaultdict(list)
    for rank, step in enumerate(steps):
        for position, (comm, call, work) in enumerate(step.comms):
            ranks = listed[rank][position][1]
            if position not in numbers[rank]:
                report.read(f"{comm.kind} between two ranks, simulated")
                own = MatchedComm(ranks, {rank: (comm, call)}, -1)
                parts[rank][id(call)] = CommPart(own, False, world_size)
                continue
            number = numbers[rank][position]
            shared = matched.setdefault(number, MatchedComm(ranks, {}, number))
            shared.parts[rank] = (comm, call)
            parts[rank][id(call)] = CommPart(shared, measured, world_size)
            kernels[rank][number] = (call.begin, call.end) if work is None else (work.begin, work.end)
            took[number].append(step.lasts(*kernels[rank][number]))
    for number, shared in matched.items():
        shared.network_ps = min(took[number])
    return matched, parts, kernels


def group_comms(
    comms: Sequence[RecordedComm],
    rank: int,
    world_size: int,
    known: Mapping[str, tuple[int, ...]],
    report: ReportBuilder,
    *,
    alone: bool,
) -> list[tuple[RecordedComm, tuple[int, ...]]]:
    """Each communication with its group's ranks."""
    groups = resolve_groups(comms, rank, world_size, known, report)
    found = []
    for comm in comms:
        if comm.kind == "wait" or comm.kind in SILENT:
            continue
        ranks = groups[comm.group]
        if comm.kind in MESSAGES and (
            comm.peer is None or not 0 <= comm.peer < len(ranks) or ranks[comm.peer] == rank
        ):
            raise WorkloadError(
                f"{comm.kind}: the trace doesn't say to or from whom ({comm.peer})", location=comm.place
            )
        if alone and world_size > 1 and (len(ranks) != world_size or comm.splits or comm.kind in MESSAGES):
            raise WorkloadError(
                "one rank's trace can't stand for all ranks: it has groups, uneven parts or messages",
                location=comm.place,
                hint="give a trace for each rank",
            )
        found.append((comm, ranks))
    return found


def _tell(listed: Sequence[MatchedComm], report: ReportBuilder, *, simulated: bool) -> None:
    for shared in listed:
        comm = next(iter(shared.parts.values()))[0]
        how = " of uneven parts, as the messages that NCCL sends" if shared.uneven and simulated else ""
        report.read(f"{comm.kind} over {len(shared.ranks)} ranks{how}")
        if comm.kind == "broadcast":
            report.assumed("broadcast from its group's first rank")
    total = format_time(sum(shared.network_ps for shared in listed))
    if listed and simulated:
        report.ignored(
            f"measured time of communications ({total} after the last rank came): the network says it"
        )
    elif listed:
        report.read(f"measured time of communications, {total} after the last rank came")


def few(numbers: Sequence[int]) -> str:
    """The first of some numbers, for a message."""
    return ", ".join(str(number) for number in numbers[:8]) + (", ..." if len(numbers) > 8 else "")
