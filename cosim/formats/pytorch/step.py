"""One rank's measured step, sorted out: threads as items in one order; communications with their kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from cosim.files.import_report import ReportBuilder
from cosim.formats.pytorch.communication import SILENT, RecordedComm
from cosim.formats.pytorch.kineto import HostEvent, StreamState, Timeline, Work
from cosim.formats.pytorch.threads import Burst, Item, What, hand_over, items
from cosim.workload.program import CPU_STREAM


@dataclass(frozen=True, slots=True)
class StepCut:
    """A rank's timeline of the step, its main thread, begin and end on the host, and streams' state there."""

    timeline: Timeline
    main: str
    begin: int
    end: int
    state: StreamState


@dataclass(slots=True)
class MeasuredStep:
    """What was measured of a rank's step, sorted out: its items in order of time.

    The host runs ahead of its GPU: a step begins where the GPU is done with the steps before it, at
    ``state.front``. What was done before that takes no time of the step's. So steps' times add up.
    """

    timeline: Timeline
    state: StreamState
    end: int
    items: list[tuple[int, str, Item]]
    threads: list[str]
    main: str
    """Beginning of each: (order, thread, item)."""
    bursts: dict[str, list[Burst]]
    works: dict[int, list[Work]]
    orphans: list[Work]
    comms: list[tuple[RecordedComm, HostEvent, Work | None]]

    @property
    def begin(self) -> int:
        """Where its time begins."""
        return self.state.front

    def lasts(self, begin: int, end: int) -> int:
        """How much of a time lies in the step, picoseconds."""
        return max(end, self.begin) - max(begin, self.begin)

    def lane_name(self, lane: str) -> str:
        """A stream of the program as people know it: a thread by its name in the trace."""
        if not lane.startswith(CPU_STREAM):
            return lane
        words = lane.split(" ")
        number = int(words[-1]) if words[1:2] == ["thread"] else 0
        return f"thread {self.threads[number]}"


def sort_out(cut: StepCut, report: ReportBuilder) -> MeasuredStep:
    """Threads as items, all in one order; communications with their kernels, in order of their launch."""
    timeline, main, begin, end = cut.timeline, cut.main, cut.begin, cut.end
    works: dict[int, list[Work]] = defaultdict(list)
    launching = {call.correlation for call in timeline.calls if call.runtime and call.correlation is not None}
    orphans = []
    for work in timeline.works:
        if work.correlation in launching and work.correlation is not None:
            works[work.correlation].append(work)
        else:
            orphans.append(work)
    by_thread: dict[str, list[HostEvent]] = defaultdict(list)
    for call in timeline.calls:
        by_thread[call.thread].append(call)
    back = {
        call.correlation
        for call in timeline.calls
        if call.runtime and call.correlation in works and _returns_after(call, works[call.correlation])
    }
    launches = set(works)
    found = {main: items(by_thread.pop(main, []), begin, end, launches, back)}
    bursts: dict[str, list[Burst]] = {}
    for thread, calls in sorted(by_thread.items(), key=lambda pair: pair[1][0].begin):
        times = hand_over(found[main], calls)
        if not times:
            last = max(call.end for call in calls)
            found[thread] = items(calls, calls[0].begin, last, launches, back)
            report.assumed("thread that works beside the main one: begins at its measured time")
        else:
            bursts[thread] = times
            found[thread] = [
                item
                for burst in times
                for item in items(_within(calls, burst), burst.begin, burst.end, launches, back)
            ]
            report.read("time in which autograd's thread works for the main one", len(times))
    order: list[tuple[int, int, int, str, Item]] = []
    for number, (thread, listed) in enumerate(found.items()):
        for place, item in enumerate(listed):
            at = 2 * item.begin
            if item.what is What.TAKE_BACK:
                at = 2 * max(burst.end for burst in item.bursts) - 1  # after what the others do
            order.append((at, number, place, thread, item))
    order.sort(key=lambda entry: entry[:3])
    sequence = [(entry[0], entry[3], entry[4]) for entry in order]
    step = MeasuredStep(
        timeline, cut.state, end, sequence, list(found), main, bursts, dict(works), orphans, []
    )
    step.comms = _comms(step)
    return step


def _within(calls: Sequence[HostEvent], burst: Burst) -> list[HostEvent]:
    return [call for call in calls if burst.begin <= call.begin < burst.end]


def _returns_after(call: HostEvent, works: Sequence[Work]) -> bool:
    """Whether a copy's call comes back only after the copy: from the GPU to memory that isn't pinned."""
    return all(work.copy and "DtoH" in work.name and work.end <= call.end for work in works)


def _comms(step: MeasuredStep) -> list[tuple[RecordedComm, HostEvent, Work | None]]:
    """Collectives and messages in order of their beginning, each with its first NCCL kernel."""
    kernels: dict[int, Work] = {}
    found: list[tuple[RecordedComm, HostEvent]] = []
    for _, _, item in step.items:
        if item.what is What.COMM and item.call is not None and item.call.comm is not None:
            if item.call.comm.kind != "wait" and item.call.comm.kind not in SILENT:
                found.append((item.call.comm, item.call))
        elif item.what is What.LAUNCH and item.inside is not None and item.call is not None:
            for work in step.works[item.call.correlation or 0]:
                if work.library:
                    kernels.setdefault(id(item.inside), work)
    return [(comm, call, kernels.get(id(call))) for comm, call in found]
