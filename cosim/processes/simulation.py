"""The environment: a run that SimPy's processes take part in."""

from __future__ import annotations

import gc
import traceback
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from types import CodeType
from typing import Any

import numpy as np
import simpy
from simpy.core import EmptySchedule, Infinity, StopSimulation
from simpy.events import Event, EventPriority

from cosim.engine.accesses import ReachedMemory
from cosim.engine.driven import driven_info
from cosim.engine.environment import CoSimEnvironment
from cosim.engine.live import LiveReplay
from cosim.engine.programs import ReadyJob
from cosim.engine.records import JobInfo, Records
from cosim.errors import (
    CosimError,
    InputError,
    Location,
    NetworkError,
    SimulationError,
    StallError,
    WorkloadError,
)
from cosim.network.flows import I32, I64
from cosim.processes.carrying import Carrying
from cosim.processes.held import HeldJobs
from cosim.processes.job_control import JobControl, Placements
from cosim.processes.jobs import RunningJob
from cosim.processes.links import LiveLink, LiveLinks
from cosim.processes.unsteady import frames_of, unsteady
from cosim.processes.waiting import NumberedProcess, Outcome, WorkEvent, who_waits
from cosim.processes.work import RankWork
from cosim.registry import nearest
from cosim.topology.graph import Topology
from cosim.units import NEVER, TOO_LATE, parse_time
from cosim.workload.draws import scaled

OWN = "processes"
"""The job whose ranks do what processes have endpoints do."""
ENDED = EventPriority(0)
"""SimPy's priority of what ends: before timeouts of the same time."""
MOST_IN_VAIN = 1_000_000
"""So many steps of processes with nothing done between them, where nothing else is left: they never end."""
_ALLOCATIONS = 50_000
"""Between two looks for garbage: thousands of processes that wait were looked through again and again, which
took a third of the time.
"""
Proc = Generator[Event, Any, Any]


class Simulation(CoSimEnvironment, RankWork):
    """A SimPy environment whose processes take part in a run; :func:`cosim.open` makes it.

    Time is whole picoseconds: ``timeout(5)`` takes 5 ps, ``timeout("5us")`` is exact, too. With another
    ``unit`` numbers are multiples of it, and so is :attr:`now`; they are rounded to picoseconds.

    Within one instant, all that ends there ends first: messages, computations. Events of these happen in the
    order in which the processes that asked began, then in that in which they asked. Then SimPy's other
    events happen in SimPy's order. Then what was asked for starts, by job, rank and the order on the rank.
    What ends with it is another round of the same instant.

    It is the :class:`~cosim.processes.work.RankWork` of the job ``processes``, which has a rank on every
    endpoint.

    Examples
    --------
    >>> import cosim
    >>> ring = {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "1us"}
    >>> sim = cosim.open({"topology": ring, "network": "fair_share"})
    >>> def ping(sim):
    ...     yield sim.timeout("5us")
    ...     done = yield sim.transfer(0, 1, "1MB")
    ...     print(sim.now, done.took_ps)
    >>> _ = sim.process(ping(sim))
    >>> run = sim.run()
    106000000 101000000
    """

    def __init__(self, on_instant: Callable[[int], None], go_on: Callable[[int, bool], int]) -> None:
        super().__init__(on_instant, go_on)
        self._sim, self.unit_ps = self, 1
        self.jobs: dict[str, RunningJob] = {}
        """Jobs with programs, by name."""
        self._by_number: dict[int, RunningJob] = {}
        self._live: list[RunningJob] = []
        self._names: set[str] = set()
        self.known_groups: dict[int, set[tuple[int, ...]]] = defaultdict(set)
        self._processes: dict[NumberedProcess, None] = {}
        self._num_processes = self._num_asked = 0
        self._times: dict[object, int] = {}
        self._in_vain = 0
        self._seen = (-1, -1, -1)
        self._sent = -1
        self._looked_at: set[tuple[CodeType, ...]] = {()}
        self._said: list[str] = []
        self._state = "new"
        self._is_timed = False
        """Whether what happened ends at a time, not with the last operation that ended."""

    def take(
        self,
        replay: LiveReplay,
        topology: Topology,
        finish: Callable[[Records, Sequence[str]], Any],
        job_of: Callable[..., JobInfo | None],
        unit_ps: int = 1,
        held: HeldJobs | None = None,
        placements: Placements = lambda *_: (),
        *,
        has_priorities: bool = True,
        remote: ReachedMemory | None = None,
    ) -> None:
        """Be that of a replay. ``held`` jobs are given ``placements``."""
        self._remote = remote
        if held is not None:
            held.on_arrival = lambda number: self._by_number[number].arrive()
        self._replay, self._topology = replay, topology
        self.driver = replay.driver
        self._finish, self._job_of, self.unit_ps = finish, job_of, unit_ps
        replay.tell(self._told)
        self._endpoints = {name: at for at, name in enumerate(topology.node_names[: topology.num_endpoints])}
        self._links = LiveLinks(topology, replay, self._open)
        self.control = JobControl(replay, self._links, placements, has_priorities=has_priorities)
        self._carrying = Carrying(self, replay, topology)
        for number, job in enumerate(replay.jobs):
            self._names.add(job.info.name)
            if not job.info.driven:
                self._keep(RunningJob(self, number, is_held=held is not None))

    # -- time ----------------------------------------------------------------------------------------

    @property
    def now(self) -> Any:
        """The time: whole picoseconds, or a multiple of ``unit``."""
        if self.unit_ps == 1:
            return self._now
        whole, rest = divmod(int(self._now), self.unit_ps)
        return int(self._now) / self.unit_ps if rest else whole

    def peek(self) -> Any:
        """When SimPy's next event is, as :attr:`now` counts."""
        upcoming = super().peek()
        return upcoming if upcoming == Infinity or self.unit_ps == 1 else upcoming / self.unit_ps

    def delay_ps(self, delay: Any) -> int:
        """Picoseconds of a number or a text.

        Raises
        ------
        WorkloadError
            It is negative, or finer than a picosecond.
        """
        if type(delay) is int and 0 <= delay * self.unit_ps < NEVER:
            whole: int = delay * self.unit_ps
            return whole
        if isinstance(delay, str):
            return self.said(delay, parse_time, "time")
        try:
            exact = Fraction(delay) * self.unit_ps
        except (TypeError, ValueError, OverflowError):
            raise WorkloadError(f"{delay!r} is not a time", hint="write it as in '10us'") from None
        if exact < 0:
            raise ValueError(f"Negative delay {delay}")  # as SimPy says it
        if self.unit_ps == 1 and exact.denominator != 1:
            raise WorkloadError(
                f"{delay!r} is finer than a picosecond, which numbers count here",
                hint="write it as in '0.5us', or open with unit='1s' to count seconds",
            )
        if exact >= NEVER:
            raise WorkloadError(f"{delay!r} is later than times go: {TOO_LATE}")
        return round(exact)

    def said(self, value: Any, parse: Callable[[Any], int], what: str) -> int:
        """A number that is 0 or more, or what a text means.

        Raises
        ------
        WorkloadError
            It is neither.
        """
        if type(value) is int and 0 <= value < NEVER:
            whole: int = value
            return whole
        known = self._times.get((what, value))
        if known is None:
            try:
                known = parse(
                    value if isinstance(value, str) else int(value) if int(value) == value else value
                )
            except (TypeError, ValueError) as error:
                raise WorkloadError(f"{what}: {error}") from None
            except OverflowError:
                raise WorkloadError(f"{what}: {value!r} is no number of it") from None
            if not 0 <= known < NEVER:
                how = "below zero" if known < 0 else "more than there is room for"
                raise WorkloadError(f"{what}: {value!r} is {how}")
            if isinstance(value, str):
                self._times[what, value] = known
        return known

    def timeout(self, delay: Any = 0, value: Any = None) -> simpy.Timeout:
        """As SimPy's; a delay may be a text, ``1ms``."""
        return simpy.Timeout(self, self.delay_ps(delay), value)

    # -- processes -----------------------------------------------------------------------------------

    def process(self, generator: Proc) -> NumberedProcess:
        """As SimPy's: have a generator live from now on."""
        return NumberedProcess(self, generator)

    def number_process(self, process: NumberedProcess) -> int:
        """The number of a process that begins."""
        self._processes[process] = None
        codes = tuple(frame.f_code for frame in frames_of(process.generator))
        if codes not in self._looked_at:
            self._looked_at.add(codes)
            self._said += [f"process {codes[-1].co_name}: {one}" for one in unsteady(process.generator)]
        self._num_processes += 1
        if self._num_processes % 1024 == 0:  # those that ended: not each by itself, for that would cost each
            self._processes = {one: None for one in self._processes if one is process or one.is_alive}
        return self._num_processes - 1

    @property
    def active_place(self) -> str:
        """Which line of which process asks now; empty: none."""
        process = self.active_process
        return process.place if isinstance(process, NumberedProcess) else ""

    def work(self, ticket: int, ranks: int, what: tuple[object, ...]) -> WorkEvent:
        """The event of a ticket of so many ranks."""
        event = self.asked(what)
        event.ranks = ranks
        self.driver.waiting[ticket] = event, None
        return event

    def asked(self, what: tuple[object, ...]) -> WorkEvent:
        """An event of what is asked for now."""
        process = self.active_process
        asks = process.number if isinstance(process, NumberedProcess) else -1
        self._num_asked += 1
        return WorkEvent(self, what, (asks, self._num_asked), int(self._now))

    def happened(self, event: WorkEvent) -> None:
        """Have an event happen now."""
        event._ok = True  # as SimPy's own events do that succeed
        event._value = Outcome(event.began_ps, int(self._now), event.times, event.messages)
        simpy.Environment.schedule(self, event, ENDED)  # now: there is no delay to look at

    def _told(self, tickets: Sequence[int], jobs: Iterable[int], arrivals: Iterable[tuple[int, int]]) -> None:
        """Have what ended now happen."""
        driver, events = self.driver, []
        for ticket in tickets:
            event = driver.came(ticket)
            if event.ranks:
                event.times, event.messages = driver.parts(ticket, event.ranks)
            events.append(event)
        if len(events) > 1:
            events.sort(key=lambda one: one.order)
        for event in events:
            self.happened(event)
        if jobs:
            for number in sorted({*jobs} & self._by_number.keys()):
                self._by_number[number].look()
        for met, position in arrivals:
            self._carrying.arrived(met, position)

    def step(self) -> None:
        """Run SimPy's next event, after everything else has gone as far as it may without it."""
        try:
            super().step()
        except RuntimeError as error:
            if "Invalid yield value" not in str(error):
                raise
            said = " ".join(str(error).split())
            raise InputError(said, hint="a process yields events: sim.timeout(5), not 5") from None
        except CosimError as error:  # SimPy's copy of what a process raised
            place = _own_line(error.__cause__) if type(error.__cause__) is type(error) else None
            if place is not None:
                error.args = (f"{place}: {error}",)
                if isinstance(error, InputError):
                    error.location = place
            raise

    # -- what others ask of it -----------------------------------------------------------------------

    @cached_property
    def job_number(self) -> int:
        """The job that has a rank on every endpoint: there from when it is first asked for something."""
        endpoints = np.arange(self._topology.num_endpoints, dtype=np.int32)
        info = driven_info(OWN, endpoints)
        return self._replay.add(info if self._remote is None else self._remote.of(info))

    def engine_job(self, number: int) -> ReadyJob:
        """A job of the run."""
        return self._replay.jobs[number]

    def endpoint(self, name: str) -> int:
        """The number of an endpoint.

        Raises
        ------
        WorkloadError
            There is none of this name.
        """
        found = self._endpoints.get(name)
        if found is None:
            names = [*self._endpoints]
            others = nearest(name, names) or f"; it has {names[0]} to {names[-1]}"
            raise WorkloadError(f"{self._topology.name} has no endpoint {name!r}{others}")
        return found

    def paced(self, job: int, ranks: I32, duration_ps: int) -> I64:
        """How long ranks really take to compute: stragglers, jitter, ranks that failed."""
        durations = np.full(len(ranks), duration_ps, np.int64)
        pace = self._replay.jobs[job].info.pace
        if pace is None:
            return durations
        for at, rank in enumerate(ranks.tolist()):
            number = np.array([self._replay.issued(job, rank)], np.int64)
            own = pace.durations_ps(rank, 0, number, durations[at : at + 1])
            durations[at] = scaled(own, self._replay.slowness(job, rank))[0]
        return durations

    def access_ps(self, size: int) -> int:
        """How long an access to remote memory holds a device.

        Raises
        ------
        WorkloadError
            The scenario has no memory.
        """
        if self._remote is None:
            raise WorkloadError(
                "ranks access remote memory, but the scenario has no `memory:`",
                hint="say how it is reached: memory: {kind: per_npu, latency: 1us, rate: 100GB/s}",
            )
        return self._remote.duration_ps(size)

    def event_of_job(self, job: int, what: tuple[object, ...]) -> WorkEvent:
        """An event of a job, which is looked at from now on when its iterations end."""
        self._replay.watch(job)
        return self.asked(what)

    # -- jobs and links ------------------------------------------------------------------------------

    def start(self, job: Any, placement: Sequence[int] | None = None, name: str = "") -> RunningJob:
        """Start a job now.

        Parameters
        ----------
        job
            A :class:`cosim.Job`, the same as plain values, a :class:`cosim.Workload`, or a job's YAML file.
        placement
            Endpoints of its ranks; None: as the job says, among those that no running job has.
        name
            What the page calls it; empty: as the job says.

        Raises
        ------
        InputError
            It can't be made, or has a name that another has.
        """
        info = self._new_job(job, placement, name)
        if info is None:
            raise InputError(
                f"there is no room for the job on the {len(self.free_endpoints())} endpoints that are free",
                hint="sim.room(job) says where there is some, or None",
            )
        return self._begin(info)

    def _begin(self, info: JobInfo) -> RunningJob:
        if info.name in self._names:
            raise InputError(
                f"the name {info.name!r} is taken by another job", hint="start(..., name='other')"
            )
        made = RunningJob(self, self._replay.add(info))
        self._names.add(info.name)
        self._keep(made)
        return made

    def _keep(self, job: RunningJob) -> None:
        self.jobs[job.name] = self._by_number[job.number] = job
        self._live.append(job)

    def room(self, job: Any) -> tuple[int, ...] | None:
        """Endpoints that a job's placement gives it, which no running job has; None: it has to wait.

        ``job`` is as for :meth:`start`, or one of :attr:`jobs` that is held.

        Raises
        ------
        InputError
            The job can't be made.
        """
        if isinstance(job, RunningJob):
            found = self.control.placements(job.number, self.free_endpoints(), 1)
            return tuple(found[0].tolist()) if found else None
        info = self._new_job(job, None, "")
        return None if info is None else tuple(info.endpoints.tolist())

    def free_endpoints(self) -> I32:
        """Endpoints that no running job with programs has, ascending."""
        taken = np.zeros(self._topology.num_endpoints, np.bool_)
        self._live = [job for job in self._live if not job.is_through]
        for job in self._live:
            if job.is_held:
                continue
            taken[self._replay.jobs[job.number].info.endpoints] = True
        return np.flatnonzero(~taken).astype(np.int32)

    def _new_job(self, job: Any, placement: Sequence[int] | None, name: str) -> JobInfo | None:
        free = self.free_endpoints() if placement is None else np.empty(0, np.int32)
        return self._job_of(job, placement, name, self.now_ps, len(self._replay.jobs), free)

    def run_program(
        self, ranks: Sequence[int], program: Any, *, iterations: int = 1, name: str = ""
    ) -> WorkEvent:
        """Have ranks, endpoints by number, run a whole program from now on, in which Python has no part.

        ``program`` is a :class:`cosim.Program` that all run, or a :class:`cosim.Workload`. The event happens
        when the last rank is through.

        Raises
        ------
        InputError
            It can't be run there.
        """
        name = name or f"program {len(self._replay.jobs)}"
        info = self._new_job((program, iterations), ranks, name)
        assert info is not None
        return self._begin(info).ended

    def link(self, name: str) -> LiveLink:
        """A link as it is now, by name: ``leaf0 -> spine1``.

        Raises
        ------
        TopologyError
            There is none of this name.
        """
        return self._links.link(name)

    def change(
        self, name: str, *, rate: Any = None, up: bool | None = None, avoid: bool | None = None
    ) -> None:
        """Have links be of another rate from now on, or dead (``up=False``), or as they were (``up=True``).

        ``avoid=True``: routes go round them from now on where there is another way, without waiting for
        ``detection``; ``avoid=False``: no more.

        Raises
        ------
        TopologyError
            There is no such link.
        NetworkError
            The network has no links that change during a run.
        """
        self._links.change(name, rate, up, avoid)

    def change_control(self, **values: Any) -> None:
        """Have the congestion control use other parameters from now on, as the scenario writes them.

        Raises
        ------
        NetworkError
            The network has no control, or no such parameter, or ports were set by it.
        """
        self._links.check_changing("a control")
        self._replay.network.tune(values, self.now_ps)

    def senders(self) -> list[tuple[int, int]]:
        """(Source, destination) of connections that have something to send now, also where nothing goes.

        Raises
        ------
        NetworkError
            The network doesn't say.
        """
        network = self._replay.network
        if not network.describe().rates:
            name = network.describe().name
            raise NetworkError(f"{name} doesn't say who has something to send; fair_share and congestion do")
        rates = network.rates()
        return list(zip(rates.src.tolist(), rates.dst.tolist(), strict=True))

    # -- the run -------------------------------------------------------------------------------------

    def run(self, until: Any = None) -> Any:
        """Run until a time, until an event has happened, or until nothing is left to do.

        Returns
        -------
        cosim.Run
            What happened so far; it may go on with another call.

        Raises
        ------
        StallError
            Nothing can happen any more, but a process waits for something of the run: says which, and where.
            Or processes go on for ever, and nothing else does.
        SimulationError
            A process calls it: it waits by what it yields.
        ValueError
            A time that is not after now.
        """
        if self.active_process is not None:
            raise SimulationError(f"{self.active_place} calls run(): a process yields what it waits for")
        self._open()
        interrupted = ""
        if isinstance(until, Event) and until.callbacks is None:
            return self.so_far()
        stop = self._stop(until)
        self._is_timed = until is not None and stop is not until
        try:
            with _garbage_left(_ALLOCATIONS):
                while True:
                    self.step()
                    self._in_vain += 1
                    if self._in_vain >= MOST_IN_VAIN:
                        self._watch()
        except StopSimulation:
            pass
        except EmptySchedule:
            self._replay.check_finished(self._who_waits)
            if stop is not None and not stop.triggered:
                alive = [f"{one.place} waits for {one.target}" for one in self._processes if one.is_alive]
                raise StallError(
                    "nothing is left to do, but what ends the run has not happened", alive
                ) from None
        except KeyboardInterrupt:
            interrupted = self._replay.interruption()
        return self.so_far(interrupted)

    def so_far(self, interrupted: str = "") -> Any:
        """What happened up to now, as a :class:`cosim.Run`: also after a process has raised."""
        self._open()
        records = self._replay.records(interrupted)
        if self._is_timed:  # links may be busy with what has not ended
            records = replace(records, end_ps=max(records.end_ps, self.now_ps))
        return self._finish(records, self._said)

    def close(self) -> None:
        """Let go of the network."""
        if self._state != "closed":
            self._replay.close_network()
        self._state = "closed"

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        if self._state == "closed":
            raise SimulationError("the simulation was closed")
        if self._state == "new":
            self._state = "open"
            self._replay.begin()

    def _stop(self, until: Any) -> Event | None:
        """The event that ends this call."""
        if until is None:
            return None
        if isinstance(until, Event):
            assert until.callbacks is not None
            until.callbacks.append(StopSimulation.callback)
            return until
        at = self.delay_ps(until)
        if at <= self.now_ps:
            raise ValueError(f"until ({until}) must be greater than the current simulation time")
        event = Event(self)
        event._ok, event._value = True, None
        assert event.callbacks is not None
        event.callbacks.append(StopSimulation.callback)
        self.schedule_early(event, at)
        return event

    def _watch(self) -> None:
        """Now and then: see that something of the run happens, where no time ends it.

        Raises
        ------
        SimulationError
            Only processes go on.
        """
        self._in_vain = 0
        self.driver.issue()
        before, self._seen = self._seen, (*self._replay.done(), self.now_ps)
        if before[:2] != self._seen[:2]:
            return
        is_idle = self._replay.is_idle() and not self._is_sending()
        if before[2] == self.now_ps or (is_idle and not self._is_timed):
            alive = [one.place for one in self._processes if one.is_alive]
            others = f", nor {len(alive) - 1} others" if len(alive) > 1 else ""
            what = f"{MOST_IN_VAIN:,} steps of processes, and nothing of the run happened"
            how = "run(until=TIME) ends the run"
            raise StallError(f"{what}: {alive[-1]} may never end{others}; {how}", self._who_waits())

    def _is_sending(self) -> bool:
        """Whether anything is on its way that does not wait for a link that is dead."""
        network = self._replay.network
        found = network.statistics()
        before, self._sent = self._sent, int(found.link_bytes.sum())
        if found.flows_started == found.flows_completed:
            return False
        return network.peek() is not None if network.describe().peek else before != self._sent

    def _who_waits(self) -> list[str]:
        """A line for each event of the run that will never happen."""
        self.driver.issue()
        events = [event for event, *_ in self.driver.waiting.values()]
        lines = [f"{job.name} {why}" for job in self._live if (why := job.why_still)]
        for event in sorted(events, key=lambda one: one.order):
            who = ", ".join(one.place for one in who_waits(event)) or "nobody"
            lines.append(f"{who} waits for {event.what}")
        return lines


@contextmanager
def _garbage_left(allocations: int) -> Iterator[None]:
    """Have Python look for garbage no sooner than after so many allocations, for now."""
    first, *others = gc.get_threshold()
    if 0 < first < allocations:
        gc.set_threshold(allocations, *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)


def _own_line(error: BaseException | None) -> Location | None:
    """The last line on the way to an error that is no line of cosim's: the process's own."""
    frames = [] if error is None else [*traceback.walk_tb(error.__traceback__)]
    for frame, line in reversed(frames):
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in ("cosim", "simpy"):
            return Location(frame.f_code.co_filename, line, frame.f_code.co_name)
    return None
