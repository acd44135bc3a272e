"""A job's measured step: every rank's, cut out, and linked to the others by their communications."""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Literal

import numpy as np

from cosim.errors import Location, WorkloadError
from cosim.files.import_report import ReportBuilder
from cosim.formats.pytorch import kineto
from cosim.formats.pytorch.communication import MESSAGES, RECORD, ROOTED, SILENT, RecordedComm
from cosim.formats.pytorch.kineto import Timeline
from cosim.formats.pytorch.link import MatchedComm, align_clocks, match_comms, resolve_groups
from cosim.formats.pytorch.measured_program import CommPart
from cosim.formats.pytorch.measured_program import write as write_program
from cosim.formats.pytorch.mesh import mesh_of
from cosim.formats.pytorch.self_check import WITHIN, check_replay
from cosim.formats.pytorch.step import MeasuredStep, StepCut, sort_out
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
    mesh: DeviceMesh | None

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
        return as_workload(self.name, programs, self.world_size, self.report, self.mesh)


def as_workload(
    name: str,
    programs: list[Program],
    world_size: int,
    report: ReportBuilder,
    mesh: DeviceMesh | None = None,
) -> Workload:
    """One program a rank, or one for all, on the mesh whose axes its groups are."""
    if len(programs) == 1:
        programs = [Program("every rank", programs[0].operations)]
    program_of = (
        np.arange(world_size, dtype=np.int32) if len(programs) > 1 else np.zeros(world_size, np.int32)
    )
    mesh = mesh or DeviceMesh({"rank": world_size})
    return Workload(name, mesh, tuple(programs), program_of, report.build())


def choose_step(
    timelines: Mapping[int, Timeline], wanted: int | str, report: ReportBuilder
) -> dict[int, StepCut]:
    """Each rank's step."""
    common = set.intersection(*(set(timeline.steps) for timeline in timelines.values()))
    if isinstance(wanted, int) and wanted not in common:
        rank = next(rank for rank, timeline in sorted(timelines.items()) if wanted not in timeline.steps)
        raise WorkloadError(
            f"there is no ProfilerStep#{wanted}; there are: {few(sorted(timelines[rank].steps)) or 'none'}",
            location=Location(timelines[rank].file),
        )
    chosen = [wanted] if isinstance(wanted, int) else sorted(common)
    cut_off = {step: why for timeline in timelines.values() for step, why in cut_steps(timeline).items()}
    if wanted == "last" and chosen:
        whole = [step for step in chosen if all(_tells(timeline, step) for timeline in timelines.values())]
        uncut = [step for step in whole or chosen if step not in cut_off]
        for step in whole or chosen:
            if uncut and step > uncut[-1]:
                report.ignored(f"ProfilerStep#{step}: cut off when the profiler stopped, {cut_off[step]}")
        chosen = (uncut or whole or chosen)[-1:]
    for step in chosen:
        if step in cut_off:
            report.doubt(f"ProfilerStep#{step}", f"it was cut off: {cut_off[step]}", "another `step`")
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
        found[rank] = StepCut(kineto.window(timeline, begin, end, earlier), main, begin, end, state)
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


def cut_steps(timeline: Timeline) -> dict[int, str]:
    """The first and last step, where less of them was recorded than of the others; with what is missing."""
    steps = sorted(timeline.steps.items(), key=lambda pair: pair[1].begin)
    begins = [step.begin for _, step in steps]
    worked = {work.correlation for work in timeline.works if work.correlation is not None}
    given, lost = [0] * len(steps), [0] * len(steps)
    for call in timeline.calls:
        at = bisect.bisect_right(begins, call.begin) - 1
        if call.runtime and at >= 0 and call.begin < steps[at][1].end:
            given[at] += call.correlation in worked
            lost[at] += call.correlation not in worked and "Launch" in call.name
    found = {}
    for at in {0, len(steps) - 1} if len(steps) > 1 else ():
        usual = median_low(count for other, count in enumerate(given) if other != at)
        if 2 * given[at] < usual:
            found[steps[at][0]] = f"it has {given[at]:,} works of the GPU, the others {usual:,}"
        elif worked and lost[at] > 0.05 * given[at] and lost[at] > 2 * min(lost):
            found[steps[at][0]] = f"{lost[at]:,} of its {lost[at] + given[at]:,} launches have no work"
    return found


def _tells(timeline: Timeline, step: int) -> bool:
    """Whether of every communication in a step it is known what it is."""
    around = timeline.steps[step]
    return all(
        call.comm is not None and not call.comm.problem
        for call in timeline.calls
        if call.name == RECORD and around.begin <= call.begin < around.end
    )


def link_ranks(
    cut: Mapping[int, StepCut],
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
    measured = collectives == "measured"
    steps = []
    for one in cut.values():
        _say_unknown(one.timeline)
        steps.append(sort_out(one, report))
    alone = len(steps) == 1
    listed = []
    for known, (rank, step) in zip(groups, zip(cut, steps, strict=True), strict=True):
        comms = [comm for comm, _, _ in step.comms]
        if measured:  # of what isn't known, and of a rank that stands for all, its own time will do
            own = [(comm, (rank,)) for comm in comms if alone or comm.problem]
            told = [comm for comm in comms if not (alone or comm.problem)]
            with_groups = [*own, *group_comms(told, rank, world_size, known, report, alone=False)]
            of = {id(comm): (comm, ranks) for comm, ranks in with_groups}
            listed.append([of[id(comm)] for comm in comms])
        else:
            listed.append(group_comms(comms, rank, world_size, known, report, alone=alone))
    numbers = match_comms(listed)
    mesh, axes = mesh_for([ranks for _, ranks in listed[0]], world_size) if alone else (None, {})
    matched, parts, kernels = _share_out(
        [*cut], steps, listed, numbers, world_size, report, measured=measured, axes=axes
    )
    _tell([*matched.values()], report, simulated=collectives == "simulated")
    if not measured:
        _doubt_unsized(steps, report)
    offsets = align_clocks([{n: end for n, (_, end) in mine.items()} for mine in kernels], report)
    begins = [step.begin - offset for step, offset in zip(steps, offsets, strict=True)]
    begin_ps = tuple(begin - min(begins) for begin in begins)
    if start == "measured" and not alone:
        report.read(f"beginnings of the step, up to {format_time(max(begin_ps))} apart")
    elif not alone:
        report.ignored(f"that ranks began up to {format_time(max(begin_ps))} apart (start: together)")
    return TracedJob(
        name, world_size, tuple(steps), tuple(parts), tuple(matched[n] for n in sorted(matched)), begin_ps,
        start == "together", report, mesh,
    )  # fmt: skip


def _doubt_unsized(steps: Sequence[MeasuredStep], report: ReportBuilder) -> None:
    """Say which libraries' kernels no network times, where they take more than a hundredth of a step."""
    worst: dict[str, float] = {}
    for step in steps:
        sized = {id(work) for _, _, work in step.comms}
        took: Counter[str] = Counter()
        for work in step.timeline.works:
            if work.library and id(work) not in sized:
                took[work.library] += step.lasts(work.begin, work.end)
        lasts = step.lasts(step.begin, max([step.end, *(work.end for work in step.timeline.works)]))
        for library, time in took.items():
            worst[library] = max(worst.get(library, 0.0), time / max(lasts, 1))
    for library, share in worst.items():
        if share > WITHIN:
            report.doubt(
                f"communication of {library}",
                "the trace doesn't say the bytes of its kernels: on every network they keep their measured"
                f" time, {share:.1%} of the step",
                "say them: `libraries: [{kind: names, kernels: {...}, sizes: {...}}]`",
            )


def mesh_for(
    groups: Sequence[tuple[int, ...]], world_size: int
) -> tuple[DeviceMesh | None, dict[tuple[int, ...], tuple[str, ...]]]:
    """Axes of the groups of a rank that stands for all; none where every group is all ranks.

    Raises
    ------
    WorkloadError
        Groups that are no axes of a mesh.
    """
    parts = [ranks for ranks in groups if 1 < len(ranks) < world_size]
    if not parts:
        return None, {}
    found = mesh_of(parts, world_size)
    if found is None:
        raise WorkloadError(
            f"one rank's trace can't stand for all: its groups ({few(parts[0])} ...) are no axes of a mesh",
            hint="give a trace for each rank",
        )
    return found


def _say_unknown(timeline: Timeline) -> None:
    for call in timeline.calls:
        if call.name == RECORD and call.comm is None:
            call.comm = RecordedComm(
                call.place, "communication", 0, -1, "",
                problem="the trace doesn't say what is communicated",
                hint="PyTorch before 2.2 writes that only to the ET: give it as `et:`",
            )  # fmt: skip


def _share_out(
    ranks_traced: Sequence[int],
    steps: Sequence[MeasuredStep],
    listed: Sequence[Sequence[tuple[RecordedComm, tuple[int, ...]]]],
    numbers: Sequence[Mapping[int, int]],
    world_size: int,
    report: ReportBuilder,
    *,
    measured: bool,
    axes: Mapping[tuple[int, ...], tuple[str, ...]],
) -> tuple[dict[int, MatchedComm], list[dict[int, CommPart]], list[dict[int, tuple[int, int]]]]:
    """Communications by number; each rank's parts by ``id`` of the call, and its kernels' times by number."""
    matched: dict[int, MatchedComm] = {}
    parts: list[dict[int, CommPart]] = [{} for _ in steps]
    kernels: list[dict[int, tuple[int, int]]] = [{} for _ in steps]
    took: dict[int, list[int]] = defaultdict(list)
    for rank, (number_of_rank, step) in enumerate(zip(ranks_traced, steps, strict=True)):
        for position, (comm, call, work) in enumerate(step.comms):
            ranks = listed[rank][position][1]
            own = measured and len(ranks) == 1
            if position not in numbers[rank]:
                report.read(f"{comm.kind} between two ranks, {'as measured' if own else 'simulated'}")
                message = MatchedComm(ranks, {number_of_rank: (comm, call)}, -1)
                parts[rank][id(call)] = CommPart(message, own, world_size, own)
                continue
            number = numbers[rank][position]
            shared = matched.setdefault(number, MatchedComm(ranks, {}, number))
            shared.parts[number_of_rank] = (comm, call)
            parts[rank][id(call)] = CommPart(shared, measured, world_size, own, axes.get(ranks, ()))
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
    for comm in comms:
        comm.check()
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
        if alone and len(ranks) > 1 and (comm.kind in MESSAGES or comm.kind in ROOTED):
            raise WorkloadError(
                f"one rank's trace can't stand for all ranks: not all do the same in a {comm.kind}",
                location=comm.place,
                hint="give a trace for each rank",
            )
        if alone and comm.splits is not None:
            if len({*comm.splits}) > 1:
                report.doubt(
                    "bytes of all_to_all",
                    "parts differ in size, and only one rank's are known: each rank sends all others as much",
                    "a trace for each rank",
                )
            comm = replace(comm, splits=None, size_bytes=sum(comm.splits))
        found.append((comm, ranks))
    return found


def _tell(listed: Sequence[MatchedComm], report: ReportBuilder, *, simulated: bool) -> None:
    for shared in listed:
        comm = next(iter(shared.parts.values()))[0]
        how = " of uneven parts, as the messages that NCCL sends" if shared.uneven and simulated else ""
        own = not simulated and len(shared.ranks) == 1
        report.read(
            f"{comm.kind}, as measured" if own else f"{comm.kind} over {len(shared.ranks)} ranks{how}"
        )
        if comm.kind == "broadcast" and not comm.root:
            report.assumed("broadcast from its group's first rank")
        elif comm.kind == "reduce":
            report.assumed("reduce as a broadcast the other way round")
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
