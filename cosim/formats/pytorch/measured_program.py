"""One rank's program from its measured step: threads, GPU streams, and what waits for what.

A thread's stretches follow each other. GPU work follows its launch, by the delay that was measured where
the launch is what it waited for, and the work before it on its stream; further

- a collective follows what its thread gave the GPU last, and what its stream did before;
- work after a ``wait`` follows the communication that is waited for;
- work after another ``cudaStreamWaitEvent`` follows what newer traces say; older ones don't, and it follows
  the last work of each other stream that had ended by then;
- a call that waits for the GPU ends after the work that it waits for: a stream's, the device's, a copy's.

Not modelled: kernels of several streams that slow each other down (their measured time has it), a full
launch queue.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low

from cosim.files.import_report import ReportBuilder
from cosim.formats.pytorch.communication import MESSAGES, SILENT, RecordedComm
from cosim.formats.pytorch.kineto import HostEvent, Work
from cosim.formats.pytorch.link import MatchedComm
from cosim.formats.pytorch.step import MeasuredStep
from cosim.formats.pytorch.threads import AUTOGRAD, Item, What
from cosim.units import PS_PER_US
from cosim.workload.program import CPU_STREAM, NO_STREAM, Operation, OpKind, Peer

_IN_FLIGHT = 16
_STREAM_GAP_PS = 5 * PS_PER_US
"""What a GPU may take from one kernel of a stream to the next; more has another reason."""


@dataclass(frozen=True, slots=True)
class CommPart:
    """A rank's part of a communication; ``measured``: take the measured time instead of sending anything."""

    shared: MatchedComm
    measured: bool
    world_size: int

    @property
    def ranks(self) -> tuple[int, ...] | None:
        """The group; None for all ranks."""
        return None if len(self.shared.ranks) == self.world_size else self.shared.ranks


@dataclass(slots=True)
class _Given:
    """GPU work that was handed over already."""

    op: int
    end: int
    stream: str
    correlation: int | None


@dataclass(slots=True)
class _MeasuredProgram:
    """Writes the program; ``last`` is each thread's last operation."""

    step: MeasuredStep
    rank: int
    parts: Mapping[int, CommPart]
    report: ReportBuilder
    skew_ps: int
    latency_ps: int = 0
    least_ps: int = 0
    ops: list[Operation] = field(default_factory=list)
    last: dict[str, int] = field(default_factory=dict)
    tail: dict[str, _Given] = field(default_factory=dict)
    given: dict[str, list[_Given]] = field(default_factory=lambda: defaultdict(list))
    current: dict[str, str] = field(default_factory=dict)
    pending: dict[str, list[_Given]] = field(default_factory=lambda: defaultdict(list))
    loose: dict[str, list[_Given]] = field(default_factory=lambda: defaultdict(list))
    exact: dict[str, list[_Given]] = field(default_factory=lambda: defaultdict(list))
    by_sequence: dict[int, _Given] = field(default_factory=dict)
    kernel: dict[int, Work | None] = field(default_factory=dict)
    """Of a communication (by ``id`` of its call) its first kernel."""
    launched: int = 0
    late: int = 0


def write(
    step: MeasuredStep, rank: int, parts: Mapping[int, CommPart], skew_ps: int, report: ReportBuilder
) -> tuple[Operation, ...]:
    """The program of one rank. ``parts`` are by ``id`` of the call; it begins ``skew_ps`` later."""
    writer = _MeasuredProgram(step, rank, parts, report, skew_ps)
    writer.kernel = {id(call): work for _, call, work in step.comms}
    writer.least_ps, writer.latency_ps = _latencies(step)
    start = _add(writer, "begin of the step", CPU_STREAM, (), skew_ps)
    for thread in step.threads:
        writer.last[thread] = start
    orphans = deque(step.orphans)
    for _, thread, item in step.items:
        while orphans and orphans[0].begin <= item.begin:
            _orphan(writer, orphans.popleft(), start)
        _item(writer, thread, item, start)
    for work in orphans:
        _orphan(writer, work, start)
    if writer.late:
        report.assumed(
            "GPU work that began later than all that the trace has it wait for: kept at its distance from"
            " its launch",
            writer.late,
        )
    return tuple(writer.ops)


def _latencies(step: MeasuredStep) -> tuple[int, int]:
    """The least time from a launch to its work, and the median where the stream was free."""
    free: list[int] = []
    ends: dict[str, int] = {}
    begins = {call.correlation: call.begin for call in step.timeline.calls if call.runtime}
    for work in step.timeline.works:
        launch = begins.get(work.correlation)
        if launch is not None and launch >= ends.get(work.stream, 0):
            free.append(max(work.begin - launch, 0))
        ends[work.stream] = max(ends.get(work.stream, 0), work.end)
    return (min(free), median_low(free)) if free else (0, 0)


def _add(
    writer: _MeasuredProgram,
    name: str,
    stream: str,
    deps: Iterable[int],
    duration_ps: int,
    kind: OpKind = OpKind.COMPUTE,
) -> int:
    writer.ops.append(
        Operation(name, kind, stream, tuple(sorted(set(deps))), duration_ps=max(duration_ps, 0))
    )
    return len(writer.ops) - 1


def _item(writer: _MeasuredProgram, thread: str, item: Item, start: int) -> None:
    step = writer.step
    if item.what is What.HAND_OVER:
        _hand_over(writer, thread, item)
    elif item.what is What.LAUNCH and item.call is not None:
        for work in step.works[item.call.correlation or 0]:
            _work(writer, thread, item, work)
    elif item.what is What.STREAM_WAIT and item.call is not None:
        _stream_wait(writer, thread, item)
    elif item.what is What.COMM and item.call is not None and item.call.comm is not None:
        _comm(writer, thread, item.call, item.call.comm)
    elif item.what in (What.RUN, What.BLOCK):
        deps, duration = [writer.last[thread]], item.end - item.begin
        if writer.last[thread] == start and thread != step.main:
            deps, duration = _beginning(writer, thread, deps, duration)
        if item.what is What.BLOCK:
            waited = [given for given in _waited_for(writer, thread, item) if given.end <= item.end]
            deps += [given.op for given in waited]
            duration = item.end - max([item.begin, *(given.end for given in waited)])
            writer.report.read("call that waits for the GPU")
        writer.last[thread] = _add(writer, item.name, _cpu(writer, thread), deps, duration)


def _beginning(
    writer: _MeasuredProgram, thread: str, deps: list[int], duration: int
) -> tuple[list[int], int]:
    """Where a thread beside the main one comes in."""
    if thread in writer.step.bursts:
        return deps, duration
    first = next(entry.begin for _, name, entry in writer.step.items if name == thread)
    waited = _add(writer, "until the thread begins", NO_STREAM, deps, first - writer.step.begin)
    return [waited], duration


def _cpu(writer: _MeasuredProgram, thread: str) -> str:
    if thread == writer.step.main:
        return CPU_STREAM
    return f"{CPU_STREAM} thread {writer.step.threads.index(thread)}"


def _hand_over(writer: _MeasuredProgram, thread: str, item: Item) -> None:
    """Begin (``item`` has no length) and end of a time in which others work for this thread."""
    others = {
        name: burst for name, bursts in writer.step.bursts.items() for burst in bursts if burst in item.bursts
    }
    if item.begin == item.end:
        for name, burst in others.items():
            writer.last[name] = _add(
                writer,
                f"handed to {AUTOGRAD[:-2]}",
                _cpu(writer, name),
                [writer.last[thread]],
                burst.begin - item.begin,
            )
        return
    back = item.end - max(burst.end for burst in item.bursts)
    deps = [writer.last[thread], *(writer.last[name] for name in others)]
    writer.last[thread] = _add(writer, f"back from {AUTOGRAD[:-2]}", CPU_STREAM, deps, back)


def _comm(writer: _MeasuredProgram, thread: str, call: HostEvent, comm: RecordedComm) -> None:
    if comm.kind == "wait":
        given = writer.by_sequence.get(comm.sequence)
        if given is not None:
            writer.pending[thread].append(given)
        else:
            writer.report.ignored("wait for a communication from before the step")
    elif comm.kind not in SILENT and id(call) in writer.parts:
        part = writer.parts[id(call)]
        if writer.kernel.get(id(call)) is None:
            # No kernel: another back end, or coalesced into a later one.
            op = _communicate(writer, part, comm, f"comm {comm.group}", [writer.last[thread]])
            writer.by_sequence[comm.sequence] = _Given(op, call.end, "", None)
            writer.report.assumed("communication without a kernel of its own: begins when it is called")


def _stream_wait(writer: _MeasuredProgram, thread: str, item: Item) -> None:
    assert item.call is not None
    sync = writer.step.timeline.syncs.get(item.call.correlation or -1)
    if sync is not None and sync.stream is not None and sync.waiting is not None:
        recorded = sync.recorded
        before = next(
            (
                given
                for given in reversed(writer.given[sync.stream])
                if recorded is None or given.correlation is None or given.correlation <= recorded
            ),
            None,
        )
        if before is not None:
            writer.exact[sync.waiting].append(before)
        writer.report.read("cudaStreamWaitEvent that says what it waits for")
    elif item.inside is not None and item.inside.comm is not None:
        writer.report.read("cudaStreamWaitEvent of a communication")
    else:
        writer.loose[thread] = list(writer.tail.values())
        writer.report.assumed(
            "cudaStreamWaitEvent that doesn't say for what: for each other stream's last work, if ended"
        )


def _waited_for(writer: _MeasuredProgram, thread: str, item: Item) -> list[_Given]:
    """What a blocking call waits for."""
    assert item.call is not None
    name = item.call.name
    if item.call.correlation in writer.step.works:  # a copy to memory that isn't pinned
        return [given for given in writer.tail.values() if given.correlation == item.call.correlation]
    sync = writer.step.timeline.syncs.get(item.call.correlation or -1)
    if sync is not None and sync.stream is not None and sync.stream in writer.tail:
        return [writer.tail[sync.stream]]
    if "Stream" in name:
        stream = writer.current.get(thread)
        return [writer.tail[stream]] if stream in writer.tail else []
    if "Event" in name:
        ended = [given for given in writer.tail.values() if given.end <= item.end]
        return [max(ended, key=lambda given: given.end)] if ended else []
    return list(writer.tail.values())


def _work(writer: _MeasuredProgram, thread: str, item: Item, work: Work) -> None:
    """GPU work after its launch."""
    assert item.call is not None
    inside = item.inside if work.nccl else None
    waits = [given for given in writer.exact.pop(work.stream, []) if given.end <= work.begin]
    if inside is not None:
        current = writer.current.get(thread)
        if current in writer.tail and current != work.stream:
            waits += [writer.tail[current]] if writer.tail[current].end <= work.begin else []
    else:
        for kept in (writer.pending, writer.loose):
            ready = [given for given in kept[thread] if given.end <= work.begin]
            waits += [given for given in ready if given.stream != work.stream]
            kept[thread] = [given for given in kept[thread] if given not in ready and kept is writer.pending]
        if not work.nccl:
            writer.current[thread] = work.stream
    before = writer.tail.get(work.stream)
    others = [given.op for given in ([before] if before else []) + waits]
    ready_ps = max([given.end for given in ([before] if before else []) + waits], default=0)
    launch = item.call.begin
    gap = work.begin - ready_ps
    if ready_ps > launch + writer.least_ps and gap <= _STREAM_GAP_PS:
        latency = min(writer.latency_ps, max(work.begin - launch, 0))
        gap = max(gap, 0)
    else:
        latency, gap = max(work.begin - launch, 0), 0
        if latency > 10 * writer.latency_ps + PS_PER_US:
            writer.late += 1
    # Launches on their way don't keep the thread, nor each other.
    stream = f"{CPU_STREAM} launch {writer.launched % _IN_FLIGHT}"
    writer.launched += 1
    arrived = _add(writer, "launch", stream, [writer.last[thread]], latency)
    part = writer.parts.get(id(inside)) if inside is not None else None
    first = inside is not None and writer.kernel.get(id(inside)) is work
    if part is not None and inside is not None and inside.comm is not None and first:
        stream = f"stream {work.stream}"
        op = _communicate(writer, part, inside.comm, stream, [arrived, *others])
        writer.by_sequence[inside.comm.sequence] = _Given(op, work.end, work.stream, work.correlation)
    else:
        op = _execute(writer, work, [arrived, *others], gap)
    _give(writer, work, op)


def _execute(writer: _MeasuredProgram, work: Work, deps: Sequence[int], gap: int) -> int:
    if work.nccl:
        writer.report.assumed("NCCL kernel beside a communication's first: takes its measured time")
    else:
        writer.report.read("copy or fill on the GPU, with its time" if work.copy else "kernel, with its time")
    kind = OpKind.MEMORY if work.copy else OpKind.COMPUTE
    return _add(writer, work.name[:120], f"stream {work.stream}", deps, gap + work.end - work.begin, kind)


def _give(writer: _MeasuredProgram, work: Work, op: int) -> None:
    given = _Given(op, work.end, work.stream, work.correlation)
    writer.tail[work.stream] = given
    writer.given[work.stream].append(given)


def _orphan(writer: _MeasuredProgram, work: Work, start: int) -> None:
    """Work whose launch the trace hasn't: at its measured time, or later."""
    before = writer.tail.get(work.stream)
    waited = _add(writer, "until it is launched", NO_STREAM, [start], work.begin - writer.step.begin)
    op = _execute(writer, work, [waited, *([before.op] if before else [])], 0)
    _give(writer, work, op)
    writer.report.assumed("GPU work without its launch: at its measured time in the step")


def _communicate(
    writer: _MeasuredProgram, part: CommPart, comm: RecordedComm, stream: str, deps: Sequence[int]
) -> int:
    """A collective or message; with uneven parts, NCCL's sends and receives."""
    shared, ops = part.shared, writer.ops
    before = tuple(sorted(set(deps)))
    name = f"{comm.kind} {shared.number}"
    if len(shared.ranks) == 1:
        return _add(writer, f"{name} (alone)", stream, before, 0)
    if comm.kind in MESSAGES:
        return _message(writer, comm, stream, before, shared.ranks)
    if part.measured:
        ops.append(
            Operation(
                f"{name}: all are there",
                OpKind.COLLECTIVE,
                stream,
                before,
                collective="barrier",
                ranks=part.ranks,
            )
        )
        return _add(writer, f"{name}, as measured", stream, [len(ops) - 1], shared.network_ps)
    if not shared.uneven:
        ops.append(
            Operation(
                name, OpKind.COLLECTIVE, stream, before, collective=comm.kind, ranks=part.ranks,
                size_bytes=comm.size_bytes, root=comm.root,
            )
        )  # fmt: skip
        return len(ops) - 1
    return _uneven(writer, shared, comm, stream, before)


def _uneven(
    writer: _MeasuredProgram, shared: MatchedComm, comm: RecordedComm, stream: str, before: tuple[int, ...]
) -> int:
    """Sends and receives between each two ranks, as NCCL carries uneven parts."""
    joined = []
    mine = shared.ranks.index(writer.rank)
    for place, other in enumerate(shared.ranks):
        if other == writer.rank:
            continue
        for kind, size in (
            (OpKind.SEND, _share(comm, place, len(shared.ranks))),
            (OpKind.RECV, _share(shared.parts[other][0], mine, len(shared.ranks))),
        ):
            if size:
                writer.ops.append(
                    Operation(
                        f"{comm.kind} {shared.number}", kind, NO_STREAM, before, size_bytes=size,
                        peer=Peer(rank=other), tag=shared.number,
                    )
                )  # fmt: skip
                joined.append(len(writer.ops) - 1)
    return _add(writer, f"{comm.kind} {shared.number} done", stream, joined or before, 0)


def _share(comm: RecordedComm, place: int, members: int) -> int:
    return comm.splits[place] if comm.splits is not None else comm.size_bytes // members


def _message(
    writer: _MeasuredProgram, comm: RecordedComm, stream: str, before: tuple[int, ...], ranks: tuple[int, ...]
) -> int:
    sends = comm.kind == "send"
    writer.ops.append(
        Operation(
            comm.kind, OpKind.SEND if sends else OpKind.RECV, stream if sends else NO_STREAM, before,
            size_bytes=comm.size_bytes, peer=Peer(rank=ranks[comm.peer or 0]),
        )
    )  # fmt: skip
    return len(writer.ops) - 1
