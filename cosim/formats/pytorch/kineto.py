"""Kineto's trace (the profiler's ``.pt.trace.json``): one rank's threads, CUDA calls and GPU work, measured.

Times become integer picoseconds since 1970 (or since the trace's base). What is kept of an event is what a
replay needs; the rest is counted.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from statistics import median_low
from typing import Any, TextIO

from cosim.errors import Location, WorkloadError
from cosim.files.import_report import ReportBuilder
from cosim.formats.pytorch.communication import RECORD, RecordedComm, from_arguments, from_operator
from cosim.formats.pytorch.json_stream import read_object
from cosim.formats.pytorch.libraries import CommunicationLibrary
from cosim.units import PS_PER_US

_ON_CPU = frozenset({"cpu_op", "user_annotation", "python_function"})
_ON_GPU = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_CALLS = ("_runtime", "_driver")
"""Categories of calls that hand work to a device end so: cuda_runtime, xpu_runtime, mtia_runtime ..."""
_NO_WORK = frozenset(
    {"", "Trace", "overhead", "cpu_instant_event", "gpu_user_annotation", "cuda_profiler_range",
     "external_correlation", "ac2g", "fwdbwd"}
)  # fmt: skip
"""Categories of events that take no device's time. All others that are not known are a device's."""
_BEFORE = {
    "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset", "Runtime": "cuda_runtime",
    "Operator": "cpu_op",
}  # fmt: skip
"""What PyTorch before 1.13 called them."""
_STEP = re.compile(r"ProfilerStep#(\d+)$")
_LATEST_US = 10**16  # the year 2286
_WAITS = re.compile(r"(cuda|cu|hip)StreamWaitEvent")
_BLOCKS = re.compile(r"(cuda|cu|hip|ze|ur)\w*(Synchronize|QueueFinish|EventWait)")


def makes_wait(name: str) -> bool:
    """Whether a call makes a stream wait for an event."""
    return _WAITS.match(name) is not None


def blocks(name: str) -> bool:
    """Whether a call returns only when a stream, an event or the device is done."""
    return _BLOCKS.match(name) is not None


@dataclass(slots=True)
class HostEvent:
    """An operator, annotation or CUDA call on a thread. ``node`` is the ET's, ``comm`` a communication's."""

    begin: int
    end: int
    thread: str
    name: str
    runtime: bool
    annotation: bool
    external: int | None
    correlation: int | None
    file: str
    index: int
    comm: RecordedComm | None = None
    node: int | None = None

    @property
    def place(self) -> Location:
        """Where the trace has it."""
        return Location(self.file, key=f"traceEvents[{self.index}] {self.name[:50]!r}")


@dataclass(slots=True)
class Work:
    """A kernel, copy or fill on the GPU."""

    begin: int
    end: int
    name: str
    stream: str
    correlation: int | None
    copy: bool
    library: str = ""
    """Whose communication it is; empty: it is none."""


@dataclass(frozen=True, slots=True)
class Sync:
    """What newer traces say of a synchronising call: whose end is waited for, and who waits."""

    waiting: str | None
    stream: str | None
    recorded: int | None


@dataclass(slots=True)
class Timeline:
    """One rank's measured events, in order of their beginning."""

    file: str
    rank: int | None = None
    world_size: int | None = None
    pid: int | None = None
    gpu: str = ""
    calls: list[HostEvent] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    syncs: dict[int, Sync] = field(default_factory=dict)
    steps: dict[int, HostEvent] = field(default_factory=dict)
    """ProfilerStep#N by N."""
    libraries: Mapping[str, CommunicationLibrary] = field(default_factory=dict)
    """Libraries that communicate, by name."""
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Ranks of process groups by name, where the trace lists them whole."""
    ignored: Counter[str] = field(default_factory=Counter)
    devices: Counter[str] = field(default_factory=Counter)
    """Events of a device's work that aren't known, by category."""
    has_device: bool = False
    """Whether the trace names a device, or a back end of one."""

    def doubt(self, report: ReportBuilder) -> None:
        """Say where a device's time is not in the answer."""
        strange = self.devices.total()
        if strange > len(self.works):
            kinds = ", ".join(sorted(self.devices))
            report.doubt(
                f"time of the device in {Path(self.file).name}",
                f"{strange:,} events of its work are of kinds that aren't known ({kinds}) and have no effect,"
                f" beside {len(self.works):,} that have",
                "a trace with events of category kernel, as CUDA, ROCm and XPU have them",
            )
        elif not self.works and (self.has_device or any(call.runtime for call in self.calls)):
            report.doubt(
                f"time of the GPU in {Path(self.file).name}",
                "the trace has a GPU and nothing of its work: only the host's threads are timed",
                "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
            )
        launched = {call.correlation for call in self.calls if call.runtime}
        orphans = sum(work.correlation not in launched for work in self.works)
        if 2 * orphans > len(self.works):
            report.doubt(
                f"when work of the GPU began in {Path(self.file).name}",
                f"{orphans:,} of {len(self.works):,} works have no launch in the trace, so which step they"
                " belong to is a guess",
                "a whole trace: events were filtered out of this one",
            )


def read(text: TextIO, file: str, libraries: Mapping[str, CommunicationLibrary]) -> Timeline:
    """Read a Kineto trace; communication is that of ``libraries``.

    Raises
    ------
    WorkloadError
        Not one, or an event without what it needs; names the event's index.
    """
    timeline = Timeline(file, libraries=libraries)
    some = False
    for key, index, value in read_object(text, file, frozenset({"traceEvents"})):
        if key == "traceEvents":
            some = True
            _event(timeline, value, index, Location(file, key=f"traceEvents[{index}]"))
        elif key == "distributedInfo" and isinstance(value, dict):
            timeline.rank, timeline.world_size = (_count(value.get(name)) for name in ("rank", "world_size"))
            timeline.has_device |= "ccl" in str(value.get("backend"))
            timeline.groups = dict(_groups(value.get("pg_config")))
        elif key == "deviceProperties" and isinstance(value, list) and value and isinstance(value[0], dict):
            timeline.gpu = str(value[0].get("name", ""))[:80]
            timeline.has_device = True
        elif key == "nodes":
            raise WorkloadError(
                "is an ET, not a Kineto trace", location=Location(file), hint="give it as `et:`"
            )
    if not some:
        raise WorkloadError(
            "has no traceEvents",
            location=Location(file),
            hint="a Kineto trace is what torch.profiler exports",
        )
    whose = {
        name: _library(libraries, name) for name in {work.name for work in timeline.works if not work.copy}
    }
    for work in timeline.works:
        work.library = whose.get(work.name, "")
    several = {ranks for ranks in timeline.groups.values() if len(ranks) > 1}
    only = next(iter(several)) if len(several) == 1 else None
    for call in timeline.calls:
        if call.name != RECORD and call.comm is not None and not call.comm.group:
            call.comm = replace(call.comm, ranks=only) if only else None
    timeline.calls += _of_kernels(timeline, only)
    timeline.calls.sort(key=lambda call: (call.begin, -call.end, call.runtime))
    timeline.works.sort(key=lambda work: (work.begin, work.end))
    return timeline


@dataclass(frozen=True, slots=True)
class StreamState:
    """What streams do at a time.

    Attributes
    ----------
    front
        When the stream that computes most is free of what was launched before; at least the time itself.
    busy
        When other streams are, those that are later.
    least_ps, latency_ps
        From a launch to its work, where the stream was free: the least time, and the median.
    """

    front: int
    busy: Mapping[str, int]
    least_ps: int
    latency_ps: int


def state_at(timeline: Timeline, begin: int, end: int) -> tuple[StreamState, set[int]]:
    """The state of streams where a step from ``begin`` to ``end`` begins; ``id`` of the GPU work before it.

    A stream runs its work in order: what has no launch in the trace, and comes before work that was launched
    in the step, was launched before the step.
    """
    launches = {call.correlation: call.begin for call in timeline.calls if call.runtime}
    first: dict[str, int] = {}
    for work in timeline.works:
        if begin <= launches.get(work.correlation, -1) < end:
            first.setdefault(work.stream, work.begin)
    earlier: set[int] = set()
    until: dict[str, int] = {}
    computes: Counter[str] = Counter()
    for work in timeline.works:
        launch = launches.get(work.correlation)
        known = max(begin, first.get(work.stream, begin))
        if (work.begin if launch is None else launch) < (known if launch is None else begin):
            earlier.add(id(work))
            until[work.stream] = max(until.get(work.stream, 0), work.end)
        elif launch is not None and launch < end and not work.library:
            computes[work.stream] += work.end - work.begin
    front = max(begin, until.get(max(computes, key=lambda one: computes[one]), begin) if computes else begin)
    busy = {stream: time for stream, time in until.items() if time > front}
    return StreamState(front, busy, *_latencies(timeline, launches)), earlier


def _latencies(timeline: Timeline, launches: Mapping[int | None, int]) -> tuple[int, int]:
    """The least time from a launch to its work, and the median, where the stream was free."""
    free: list[int] = []
    ends: dict[str, int] = {}
    for work in timeline.works:
        launch = launches.get(work.correlation)
        if launch is not None and launch >= ends.get(work.stream, 0):
            free.append(max(work.begin - launch, 0))
        ends[work.stream] = max(ends.get(work.stream, 0), work.end)
    return (min(free), median_low(free)) if free else (0, 0)


def window(timeline: Timeline, begin: int, end: int, earlier: Collection[int] = ()) -> Timeline:
    """What a trace has of one step: calls that begin in it, cut at its end, and the GPU work they launch;
    without work that is ``earlier``, by its ``id``.
    """
    calls = [
        replace(call, end=min(call.end, end)) if call.end > end else call
        for call in timeline.calls
        if begin <= call.begin < end
    ]
    launched = {call.correlation for call in calls if call.runtime and call.correlation is not None}
    known = {call.correlation for call in timeline.calls if call.runtime}
    works = [
        work
        for work in timeline.works
        if work.correlation in launched
        or (work.correlation not in known and begin <= work.begin < end and id(work) not in earlier)
    ]
    return replace(timeline, calls=calls, works=works)


def _of_kernels(timeline: Timeline, only: tuple[int, ...] | None) -> list[HostEvent]:
    """A call around each launch of a kernel whose bytes its library says itself, and no operator."""
    names = {work.name: work.library for work in timeline.works if work.library}
    sent = {
        name: comm
        for name, library in names.items()
        if (comm := from_operator(name, {}, [timeline.libraries[library]], Location(timeline.file)))
    }
    kernels = {work.correlation: work.name for work in timeline.works if work.name in sent}
    if not kernels:
        return []
    told: dict[str, list[HostEvent]] = defaultdict(list)
    for call in timeline.calls:
        if call.comm is not None:
            told[call.thread].append(call)
    found = []
    for call in timeline.calls:
        name = kernels.get(call.correlation, "") if call.runtime and call.correlation is not None else ""
        if name and not any(one.begin <= call.begin < one.end for one in told[call.thread]):
            comm = replace(sent[name], place=call.place)
            comm = comm if comm.group else replace(comm, ranks=only)
            found.append(replace(call, name=name, runtime=False, external=None, correlation=None, comm=comm))
    return found


def _library(libraries: Mapping[str, CommunicationLibrary], kernel: str) -> str:
    """Whose communication a kernel is; empty: nobody's."""
    return next((name for name, library in libraries.items() if library.kind(kernel) is not None), "")


def _groups(listed: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    for one in listed if isinstance(listed, list) else []:
        name, ranks = (one.get("pg_name"), one.get("ranks")) if isinstance(one, dict) else (None, None)
        whole = isinstance(ranks, list) and all(type(rank) is int and rank >= 0 for rank in ranks)
        if isinstance(name, str) and whole and ranks and one.get("pg_size", len(ranks)) == len(ranks):
            yield name, tuple(ranks)


def _event(timeline: Timeline, event: Any, index: int, place: Location) -> None:
    if not isinstance(event, dict):
        raise WorkloadError(f"is {str(event)[:40]!r}; an event should be an object", location=place)
    category, phase = event.get("cat"), event.get("ph")
    category = _BEFORE.get(category, category[:40]) if isinstance(category, str) else ""
    wanted = category in _ON_CPU or category in _ON_GPU or category == "cuda_sync"
    if phase != "X" or not (wanted or category.endswith(_CALLS)):
        kind = "flow and metadata" if phase != "X" else category
        timeline.ignored[f"{kind} events"] += 1
        if phase == "X" and category not in _NO_WORK:
            timeline.devices[category] += 1
        return
    name = event.get("name")
    if not isinstance(name, str):
        raise WorkloadError(f"name is {str(name)[:40]!r}", location=place)
    place = Location(place.file, key=f"{place.key} {name[:50]!r}")
    arguments = event.get("args", {})
    if not isinstance(arguments, dict):
        raise WorkloadError(f"args are {str(arguments)[:40]!r}; they should be an object", location=place)
    begin = _time(event.get("ts"), "ts", place)
    end = begin + _time(event.get("dur", 0), "dur", place)
    if category == "cuda_sync":
        correlation = _count(arguments.get("correlation"))
        if correlation is not None:
            timeline.syncs[correlation] = _sync(arguments)
    elif category in _ON_GPU:
        stream = str(arguments.get("stream", event.get("tid", "")))[:40]
        correlation = _count(arguments.get("correlation"))
        timeline.works.append(Work(begin, end, name, stream, correlation, category != "kernel"))
    elif category == "python_function":
        timeline.ignored["python_function events"] += 1
    else:
        _call(timeline, event, category, arguments, (begin, end), index)


def _call(
    timeline: Timeline,
    event: Mapping[str, Any],
    category: str,
    arguments: Mapping[str, Any],
    times: tuple[int, int],
    index: int,
) -> None:
    name = str(event["name"])
    call = HostEvent(
        *times,
        str(event.get("tid"))[:40],
        name,
        category.endswith(_CALLS),
        category == "user_annotation",
        _count(arguments.get("External id")),
        _count(arguments.get("correlation")),
        timeline.file,
        index,
    )
    if type(event.get("pid")) is int and timeline.pid is None:
        timeline.pid = event["pid"]
    # An annotation such as "nccl:all_to_all"; gloo's and mpi's run without a device.
    timeline.has_device |= call.annotation and "ccl:" in name
    step = _STEP.match(name)
    if step and not call.runtime and len(step[1]) < 16:
        if int(step[1]) in timeline.steps:
            raise WorkloadError("is there twice", location=call.place)
        timeline.steps[int(step[1])] = call
    if name == RECORD:
        call.comm = from_arguments(arguments, call.place)
    elif "Input Dims" in arguments and not call.runtime:
        call.comm = from_operator(name, arguments, timeline.libraries.values(), call.place)
    timeline.calls.append(call)


def _sync(arguments: Mapping[str, Any]) -> Sync:
    def stream(name: str) -> str | None:
        value = arguments.get(name)
        return str(value) if type(value) is int and 0 <= value < 1 << 31 else None

    if "wait_on_stream" in arguments:
        return Sync(
            stream("stream"),
            stream("wait_on_stream"),
            _count(arguments.get("wait_on_cuda_event_record_corr_id")),
        )
    return Sync(None, stream("stream"), None)


def _time(value: Any, what: str, place: Location) -> int:
    """Picoseconds of a number of microseconds."""
    if type(value) is int and 0 <= value < _LATEST_US:
        return value * PS_PER_US
    try:
        number = Decimal(value) if isinstance(value, (str, Decimal)) else None
        if number is not None and number.is_finite() and 0 <= number < _LATEST_US:
            return int(number * PS_PER_US)
    except InvalidOperation:
        pass
    raise WorkloadError(
        f"{what} is {str(value)[:40]!r}", location=place, hint="it should be microseconds, at least 0"
    )


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 62 else None
