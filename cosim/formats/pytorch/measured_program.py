"""One rank's program from its measured step: threads, GPU streams, and what waits for what.

A thread's stretches follow each other. GPU work follows its launch, by the delay that was measured where
the launch is what it waited for, and the work before it on its stream. What was done before the GPU was free
of earlier steps takes no time; a stream that isn't free by then ends that work first. Further

- a collective follows what its thread gave the GPU last, and what its stream did before;
- work after a ``wait`` follows the communication that is waited for;
- work after another ``cudaStreamWaitEvent`` follows what newer traces say; older ones don't, and it follows
  the last work of each other stream that had ended by then;
- a call that waits for the GPU ends after the work that it waits for: a stream's, the device's, a copy's.

Not modelled: kernels of several streams that slow each other down (their measured time has it), a full
launch queue.
"""

from __future__ import annotations

import bisect
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cosim.files.import_report import ReportBuilder
from cosim.formats.pytorch.communication import MESSAGES, SILENT, RecordedComm
from cosim.formats.pytorch.kineto import HostEvent, Work
from cosim.formats.pytorch.link import MatchedComm
from cosim.formats.pytorch.step import MeasuredStep
from cosim.formats.pytorch.threads import AUTOGRAD, Item, What
from cosim.units import PS_PER_US
from cosim.workload.program import COMMUNICATION, CPU_STREAM, NO_STREAM, Operation, OpKind, Peer

_STREAM_GAP_PS = 5 * PS_PER_US
"""What a GPU may take from one kernel of a stream to the next; more has another reason."""


@dataclass(frozen=True, slots=True)
class CommPart:
    """A rank's part of a communication; ``measured``: take the measured time instead of sending anything;
    ``alone``: and wait for nobody.
    """

    shared: MatchedComm
    measured: bool
    world_size: int
    alone: bool = False
    axes: tuple[str, ...] = ()

    @property
    def ranks(self) -> tuple[int, ...] | None:
        """The group; None for all ranks, or those of ``axes``."""
        return None if self.axes or len(self.shared.ranks) == self.world_size else self.shared.ranks


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
    """The first kernel of each communication, by ``id`` of its call."""
    lanes: list[int] = field(default_factory=list)
    """Until when each lane of launches on their way is taken."""
    orphaned: int = 0
    """When the last work without a launch began."""
    ends: dict[int, int] = field(default_factory=dict)
    """The measured end of each operation."""
    late: int = 0


def write(
    step: MeasuredStep, rank: int, parts: Mapping[int, CommPart], skew_ps: int, report: ReportBuilder
) -> tuple[tuple[Operation, ...], dict[int, int]]:
    """The program of one rank. ``parts`` are by ``id`` of the call; it begins ``skew_ps`` later.

    Returns
    -------
    operations, ends
        And of operations that stand for something measured, by number, its measured end in picoseconds.
    """
    writer = _MeasuredProgram(step, rank, parts, report, skew_ps)
    writer.kernel = {id(call): work for _, call, work in step.comms}
    start = _add(writer, "begin of the step", CPU_STREAM, (), skew_ps)
    for stream, until in step.state.busy.items():
        op = _add(writer, "work from before the step", f"stream {stream}", [start], until - step.begin)
        _give(writer, Work(step.begin, until, "", stream, None, copy=False), op)
    writer.orphaned = step.begin
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
            "GPU work that began later than all that the trace has it wait for: kept at its distance",
            writer.late,
        )
    return tuple(writer.ops), writer.ends


def _add(
    writer: _MeasuredProgram,
    name: str,
    stream: str,
    deps: Iterable[int],
    duration_ps: int,
    kind: OpKind = OpKind.COMPUTE,
    phase: str = "",
) -> int:
    before = tuple(sorted(set(deps)))
    writer.ops.append(Operation(name, kind, stream, before, duration_ps=max(duration_ps, 0), phase=phase))
    return len(writer.ops) - 1


def _item(writer: _MeasuredProgram, thread: str, item: Item, start: int) -> None:
    step = writer.step
    if item.what in (What.HAND_OVER, What.TAKE_BACK):
        _hand_over(writer, thread, item)
    elif item.what is What.LAUNCH and item.call is not None:
        for work in step.works[item.call.correlation or 0]:
            _work(writer, thread, item, work)
    elif item.what is What.STREAM_WAIT and item.call is not None:
        _stream_wait(writer, thread, item)
    elif item.what is What.COMM and item.call is not None and item.call.comm is not None:
        _comm(writer, thread, item.call, item.call.comm)
    elif item.what in (What.RUN, What.BLOCK):
        deps, begin = [writer.last[thread]], item.begin
        if writer.last[thread] == start and thread != step.main:
            deps = _beginning(writer, thread, deps)
        if item.what is What.BLOCK:
            waited = [given for given in _waited_for(writer, thread, item) if given.end <= item.end]
            deps += [given.op for given in waited]
            begin = max([item.begin, *(given.end for given in waited)])
            writer.report.read("call that waits for the GPU")
        last = _add(writer, item.name, _cpu(writer, thread), deps, step.lasts(begin, item.end))
        writer.last[thread], writer.ends[last] = last, item.end


def _beginning(writer: _MeasuredProgram, thread: str, deps: list[int]) -> list[int]:
    """Where a thread beside the main one comes in."""
    if thread in writer.step.bursts:
        return deps
    first = next(entry.begin for _, name, entry in writer.step.items if name == thread)
    waited = writer.step.lasts(writer.step.begin, first)
    return [_add(writer, "until the thread begins", _cpu(writer, thread), deps, waited)]


def _cpu(writer: _MeasuredProgram, thread: str) -> str:
    if thread == writer.step.main:
        return CPU_STREAM
    return f"{CPU_STREAM} thread {writer.step.threads.index(thread)}"


def _hand_over(writer: _MeasuredProgram, thread: str, item: Item) -> None:
    """Begin and end of a time in which others work for this thread."""
    step = writer.step
    others = {name: burst for name, bursts in step.bursts.items() for burst in bursts if burst in item.bursts}
    if item.what is What.HAND_OVER:
        for name, burst in others.items():
            writer.last[name] = _add(
                writer,
                f"handed to {AUTOGRAD[:-2]}",
                _cpu(writer, name),
                [writer.last[thread]],
                step.lasts(item.begin, burst.begin),
            )
        return
    back = step.lasts(max(burst.end for burst in item.bursts), item.end)
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
        if writer.kernel.get(id(call)) is None and not (comm.problem and part.alone):
            # No kernel: another back end, or coalesced into a later one.
            lasts = writer.step.lasts(call.begin, call.end)
            op = _communicate(writer, part, comm, f"comm {comm.group}", [writer.last[thread]], lasts)
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
        ended = [last for given in writer.given.values() if (last := _last_ended(given, item.end))]
        return [max(ended, key=lambda given: given.end)] if ended else []
    return list(writer.tail.values())


def _work(writer: _MeasuredProgram, thread: str, item: Item, work: Work) -> None:
    """GPU work after its launch."""
    assert item.call is not None
    inside = item.inside if work.library else None
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
        if not work.library:
            writer.current[thread] = work.stream
    before = writer.tail.get(work.stream)
    others = [given.op for given in ([before] if before else []) + waits]
    ready_ps = max([given.end for given in ([before] if before else []) + waits], default=0)
    launch, begin, state = item.call.begin, max(work.begin, item.call.begin), writer.step.state
    arrives = begin
    if ready_ps > launch + state.least_ps:
        arrives = min(launch + state.latency_ps, begin)  # nobody saw it: the stream had other work to do
    arrived = _on_its_way(writer, "launch", [writer.last[thread]], launch, arrives)
    begins = max(ready_ps, arrives)
    gap = writer.step.lasts(min(begins, begin), begin)
    if gap > _STREAM_GAP_PS:
        others = [_on_its_way(writer, "held back", [arrived, *others], begins, begin)]
        gap = 0
        writer.late += 1
    elif arrives == begin and begin - launch > 10 * state.latency_ps + PS_PER_US:
        writer.late += 1
    part = writer.parts.get(id(inside)) if inside is not None else None
    first = inside is not None and writer.kernel.get(id(inside)) is work
    if part is not None and inside is not None and inside.comm is not None and first:
        stream = f"stream {work.stream}"
        lasts = writer.step.lasts(work.begin, work.end)
        op = _communicate(writer, part, inside.comm, stream, [arrived, *others], lasts)
        writer.by_sequence[inside.comm.sequence] = _Given(op, work.end, work.stream, work.correlation)
    else:
        op = _execute(writer, work, [arrived, *others], gap)
    _give(writer, work, op)


def _execute(writer: _MeasuredProgram, work: Work, deps: Sequence[int], gap: int) -> int:
    if work.library:
        writer.report.assumed(
            f"kernel of {work.library} whose bytes the trace doesn't say, or beside one that does:"
            " communication of its measured time"
        )
    else:
        writer.report.read("copy or fill on the GPU, with its time" if work.copy else "kernel, with its time")
    kind = OpKind.MEMORY if work.copy else OpKind.COMPUTE
    lasts = gap + writer.step.lasts(work.begin, work.end)
    phase = COMMUNICATION if work.library else ""
    return _add(writer, work.name[:120], f"stream {work.stream}", deps, lasts, kind, phase)


def _give(writer: _MeasuredProgram, work: Work, op: int) -> None:
    given = _Given(op, work.end, work.stream, work.correlation)
    writer.tail[work.stream], writer.ends[op] = given, work.end
    writer.given[work.stream].append(given)


def _orphan(writer: _MeasuredProgram, work: Work, start: int) -> None:
    """Work whose launch the trace hasn't: at its measured time, or later."""
    before = writer.tail.get(work.stream)
    lane = f"{CPU_STREAM} launches that the trace has not"
    waited = _add(
        writer, "until it is launched", lane, [start], writer.step.lasts(writer.orphaned, work.begin)
    )
    writer.orphaned = work.begin
    op = _execute(writer, work, [waited, *([before.op] if before else [])], 0)
    _give(writer, work, op)
    writer.report.assumed("GPU work without its launch: at its measured time in the step")


def _on_its_way(writer: _MeasuredProgram, name: str, deps: Iterable[int], begin: int, end: int) -> int:
    """What keeps neither a thread nor anything else that is on its way: a lane for as many as there are."""
    lane = next((n for n, until in enumerate(writer.lanes) if until <= begin), len(writer.lanes))
    writer.lanes[lane : lane + 1] = [end]
    return _add(writer, name, f"{CPU_STREAM} launch {lane}", deps, writer.step.lasts(begin, end))


def _last_ended(listed: Sequence[_Given], time: int) -> _Given | None:
    """A stream's last work that had ended by then."""
    at = bisect.bisect_right(listed, time, key=lambda given: given.end)
    return listed[at - 1] if at else None


def _communicate(
    writer: _MeasuredProgram,
    part: CommPart,
    comm: RecordedComm,
    stream: str,
    deps: Sequence[int],
    lasts: int,
) -> int:
    """A collective or message, which took so long; with uneven parts, NCCL's sends and receives."""
    shared, ops = part.shared, writer.ops
    before = tuple(sorted(set(deps)))
    name = f"{comm.kind} {shared.number}"
    if part.alone:
        return _add(writer, f"{name}, as measured", stream, before, lasts, phase=COMMUNICATION)
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
                axes=part.axes,
            )
        )
        last = [len(ops) - 1]
        return _add(writer, f"{name}, as measured", stream, last, shared.network_ps, phase=COMMUNICATION)
    if not shared.uneven:
        ops.append(
            Operation(
                name, OpKind.COLLECTIVE, stream, before, collective=comm.collective, ranks=part.ranks,
                axes=part.axes, size_bytes=comm.size_bytes, root=min(comm.root, len(shared.ranks) - 1),
            )
        )  # fmt: skip
        return len(ops) - 1
    return _uneven(writer, shared, comm, stream, before)


def _uneven(
    writer: _MeasuredProgram, shared: MatchedComm, comm: RecordedComm, stream: str, before: tuple[int, ...]
) -> int:
    """Sends and receives between each two ranks, as NCCL carries uneven parts."""
    joined = []
    for other in shared.ranks:
        if other == writer.rank:
            continue
        for kind, size in (
            (OpKind.SEND, comm.share(writer.rank, other, shared.ranks)),
            (OpKind.RECV, shared.parts[other][0].share(other, writer.rank, shared.ranks)),
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
