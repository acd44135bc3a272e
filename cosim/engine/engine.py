"""The engine: jobs in columns, what the loop over instants asks of Python, and what it hands to a network."""

from __future__ import annotations

import signal
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from cosim.engine.columns import NONE, EngineColumns, Repeats, place
from cosim.engine.flow_log import FlowLog
from cosim.engine.groups import BoundTable, Groups
from cosim.engine.plans import Plans
from cosim.engine.programs import ReadyJob
from cosim.engine.tables import Tables
from cosim.errors import AlgorithmError, MismatchError, NetworkError, SimulationError, WorkloadError
from cosim.kernel import kernel, record
from cosim.network.compiled import CompiledNetwork
from cosim.network.core import LinkUses
from cosim.network.flows import I32, I64, FlowBatch, FlowGroup, FlowTable, flat_table
from cosim.network.simulator import NetworkSimulator, granted_by
from cosim.pattern.planner import Planner
from cosim.units import NEVER, TOO_LATE, format_size
from cosim.workload.draws import MILLION, scaled
from cosim.workload.program import Operation

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FEWEST_TURNS, _FIRST_TURNS, _MOST_TURNS = 1 << 4, 1 << 12, 1 << 22
"""Turns of the loop and the network's between two stops: as many as take _PAUSE_S, about."""
_PAUSE_S = 0.05
_NO_FLOWS = flat_table([], [], [])
_NOW, _GRANTED, _HOLD, _TOLD = map(place, ("now", "granted", "hold", "num_told"))
_HORIZON, _ADVANCES, _OPENED, _STARTS = map(place, ("horizon", "num_advances", "num_opened", "num_starts"))
_MOST_KNOWN = 1 << 12  # bindings whose groups are known


@contextmanager
def held_signals() -> Iterator[None]:
    """Handle signals at the end, the last one of them: for what must not stop half way, as rows written."""
    if threading.current_thread() is not threading.main_thread():  # signals are handled in that one only
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before = {number: signal.getsignal(number) for number in _INTERRUPTS}
    ours = [number for number, handler in before.items() if callable(handler)]
    for number in ours:
        signal.signal(number, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])
        if came:
            handler = before[signal.Signals(came[-1][0])]
            assert callable(handler)
            handler(*came[-1])


class Asked(NamedTuple):
    """What the loop stopped for: ``status``; the rank and operation that were to start, and the turn of its
    group; of NEED_TRAITS ``rank`` is the number of the traits.
    """

    status: int
    rank: int
    op: int = 0
    turn: int = 0


class Engine:
    """All jobs of a run. Times are picoseconds, ranks are numbered through all jobs."""

    def __init__(self, jobs: Sequence[ReadyJob], planner: Planner, *, record_messages: bool) -> None:
        self.columns = EngineColumns()
        self.flow_log = FlowLog(self.columns, record_messages=record_messages)
        self.tables = Tables(self.columns, self.flow_log, jobs)
        self.jobs = self.tables.jobs
        self.plans = Plans(planner)
        self.groups = Groups(self.columns, self.flow_log, self.tables, self.plans)
        self._message_tables: dict[int, FlowTable] = {}
        self._bound_flows: dict[int, BoundTable] = {}
        self._traits: dict[tuple[int, int], dict[str, object]] = {}
        self._network: NetworkSimulator | None = None
        self._inside: CompiledNetwork | None = None
        self._turns = _FIRST_TURNS
        self._slowness: dict[int, int] = {}
        self.repeats: Repeats | None = None
        """What is repeated; None: every iteration is simulated."""
        self.on_start: Callable[[int, int], int] | None = None
        """Says when a rank of a directed job may begin its next iteration, that is ready now."""
        self.on_told: Callable[[NDArray[Any]], None] = _ignore
        """Given tickets that are through and jobs of which an iteration of a rank ended, rows of ``told``."""
        self.instant: Callable[[], int] = lambda: self.now_ps
        """Says when it is, for what is issued now."""
        self.has_told = False
        """Whether it stopped last because somebody was to be told."""
        self.asked: list[Asked] | None = None
        """What the loop asked, where somebody wants to know."""
        self._answers: dict[int, Callable[[], None]] = {
            kernel.PAUSED: self._pause,
            kernel.ASK_NETWORK: self._ask_network,
            kernel.NEED_TRAITS: self._name_next_traits,
            kernel.NEED_PACE: self._pace,
            kernel.NEED_GROUP: lambda: self.groups.look_up(*self._starting()),
            kernel.NEED_PLAN: self._plan,
            kernel.NEED_START: self._ask_director,
            kernel.NEED_ACCESS: lambda: self.groups.bind_access(*self._starting()),
            kernel.NO_PEER: self._no_peer,
            kernel.WRONG_SIZE: self._wrong_size,
            kernel.WRONG_COLLECTIVE: self._wrong_collective,
            kernel.TOO_EARLY: self._too_early,
            kernel.NO_PROGRESS: self._no_progress,
            kernel.AFTER_TIME: self._after_time,
        }

    # -- time ----------------------------------------------------------------------------------------

    @property
    def now_ps(self) -> int:
        """The instant that is, or was, looked at."""
        return self.columns.state_words[_NOW]

    @property
    def granted_ps(self) -> int:
        """How far the network has gone."""
        return self.columns.state_words[_GRANTED]

    @property
    def num_advances(self) -> int:
        """How often the network was asked."""
        return int(self.columns.scalars["num_advances"])

    def hold_at(self, time_ps: int) -> None:
        """Have it stop at an instant when what ends there has ended, before anything is started."""
        self.columns.state_words[_HOLD] = time_ps

    @property
    def ops_done(self) -> int:
        """Operations that ended."""
        return int(self.columns.scalars["ops_done"])

    @property
    def next_ps(self) -> int:
        """When something ends next, as far as is known without the network; NEVER: nothing will."""
        return int(kernel.next_engine_instant(self.columns))

    @property
    def has_to_send(self) -> bool:
        """Whether flows were started that the network was not given yet."""
        return bool(self.columns.scalars["num_starts"])

    def begin(self, job: int, now: int) -> None:
        """Have a job's ranks begin at an instant that is to be run next."""
        kernel.begin_ranks(self.columns, self.tables.rank0[job], self.jobs[job].info.workload.world_size, now)
        if self._inside is not None and self.tables.messages.of(job):  # else the loop would stop for it
            first = int(self.columns.jobs["trait0"][job])
            self._name_traits(first)
            if self.asked is not None:
                self.asked.append(Asked(kernel.NEED_TRAITS, first))

    def connect(self, network: NetworkSimulator) -> None:
        """Have a network asked, which is open: by the loop itself where it is in this process."""
        self._network = network
        if not isinstance(network, CompiledNetwork):
            return
        self._inside = network
        directed = self.columns.jobs["directed"]
        for number, bound in enumerate(self.tables.messages.bindings):
            if not directed[bound[1]]:  # the others when it is known where they sit
                self._bind_messages(number)
        self.groups.on_bind = self._bound

    def repeat(self) -> None:
        """Have intervals repeated that begin in the same state as an earlier one, of a network that has them;
        of jobs that nobody adds to or delays, and of which no rank takes its own time.
        """
        network, columns, count = self._inside, self.columns, len(self.jobs)
        assert network is not None
        rows: NDArray[Any] = np.zeros(count, record("repeated_job"))
        rows["behind"], rows["part"] = columns.jobs["ranks"][:count], NONE
        self.repeats = Repeats(jobs=rows)
        state = self.repeats.state[0]
        state["network"], state["ranks"] = network.repeated, columns.used("ranks")
        state["stale"], state["recorder"] = 1, NONE
        columns.put(repeats=self.repeats)
        network.core.put(kept=LinkUses())
        network.core.kept.part = NONE

    def repeated(self) -> tuple[int, ...]:
        """How many iterations of each job were taken from earlier ones; empty: none may be."""
        return () if self.repeats is None else tuple(self.repeats.jobs["taken"].tolist())

    def disconnect(self) -> None:
        """Let go of the network, and of what would keep this object alive."""
        self._network = self._inside = None
        self.groups.on_bind = None
        self._answers = {}

    def _bind_messages(self, number: int) -> None:
        assert self._inside is not None
        first, job, src, dst, size, channel = self.tables.messages.bindings[number]
        channel = channel + np.int32(self.jobs[job].channel)
        table, path = self._inside.bind_messages(job, src, dst, size, channel)
        rows = self.columns.bindings[first : first + len(src)]
        rows["table"], rows["path"] = table + np.arange(len(src)), path

    def _bound(self, number: int, bound: BoundTable) -> None:
        assert self._inside is not None
        row = self.columns.bindings[number]
        channel = self.jobs[bound.job].channel
        row["table"], row["path"] = self._inside.bind(bound.table, bound.endpoints, bound.job, channel)

    def add(self, job: ReadyJob) -> None:
        """Take one more job, which is numbered after all that are there."""
        self.tables.add(job)
        if self._inside is not None:
            for number in self.tables.messages.of(job.number):
                self._bind_messages(number)

    def bind_message(self, job: int, src: int, dst: int, size: int, channel: int) -> int:
        """One more message of a job between endpoints: the number of its binding."""
        binding = self.tables.bind_message(job, src, dst, size, channel)
        if self._inside is not None:
            self._bind_messages(len(self.tables.messages.bindings) - 1)
        return binding

    def resize_message(self, binding: int, size: int) -> None:
        """Have a message that is not under way be of another size."""
        columns = self.columns
        row = columns.bindings[binding]
        columns.info[row["info"]] = (
            int(columns.info[row["info"]]) >> kernel.SIZE_BITS << kernel.SIZE_BITS
        ) | size
        self.message_binding(binding)[4][0] = size
        self._bound_flows.pop(binding, None)
        if self._inside is not None:
            self._inside.resize_message(int(row["table"]), size)

    def bind_anew(self, job: int) -> None:
        """Have what a job sends from now on go between its endpoints as they are now, on its channel."""
        self.tables.seat(job)
        self._bound_flows.clear()
        if self._inside is None:
            return
        for number in self.tables.messages.of(job):
            self._bind_messages(number)
        for number, table in self.groups.bindings.items():
            if table.job == job:
                self._bound(number, table)

    def forget_traits(self, job: int) -> None:
        """Have the network told again of a job's priority and weight, for what it sends from now on."""
        row = self.columns.jobs[job]
        first, count = int(row["trait0"]), int(row["iterations"])
        self.columns.traits[first : first + count] = NONE
        self._traits = {key: value for key, value in self._traits.items() if key[0] != job}

    def run(self, until: int) -> Iterator[None]:
        """Run every instant up to ``until``, and the network up to just after it; stops now and then.

        Of the instant of :meth:`hold_at`, or where somebody has to be told, what ends ends, and nothing is
        started.

        Raises
        ------
        MismatchError
            Ranks disagree on what they do together.
        WorkloadError, AlgorithmError, SimulationError
            As they say.
        """
        self.has_told = False
        while status := self._loop(until):
            if status == kernel.TELL:
                self.has_told = True
                self._tell()
                return
            yield
            if self.asked is not None and status != kernel.PAUSED:
                self.asked.append(self._asked(status))
            answer = self._answers.get(status)
            if answer is None:
                assert self._inside is not None
                self._inside.answer(status)
            else:
                answer()

    def _asked(self, status: int) -> Asked:
        if status == kernel.NEED_TRAITS:
            return Asked(status, int(self.columns.scalars["which"]))
        rank, op = self._starting()
        return Asked(status, rank, op, self.groups.turn(rank, op) if status == kernel.NEED_PLAN else 0)

    def answer_before(self, asked: Asked) -> bool:
        """Answer what a run like this one asked, before it runs; False: that can't be known before."""
        if asked.status == kernel.NEED_TRAITS:
            self._name_traits(asked.rank)
        elif asked.status == kernel.NEED_GROUP:
            self.groups.look_up(asked.rank, asked.op)
        elif asked.status == kernel.NEED_PLAN:
            self.groups.plan(asked.rank, asked.op, asked.turn)
        elif asked.status == kernel.NEED_ACCESS:
            self.groups.bind_access(asked.rank, asked.op)
        else:
            return False
        return True

    def _tell(self) -> None:
        words = self.columns.state_words
        count, words[_TOLD], words[_HOLD] = words[_TOLD], 0, NONE
        if count:
            self.on_told(self.columns.told[:count])

    def _loop(self, until: int) -> int:
        """Go on with the loop, and the network; why it stopped."""
        network, began = self._inside, time.perf_counter()
        loop, core, columns = 0, 0, 0
        if network is not None:
            loop, core, columns = network.entry, network.core.address, network.columns.address
        status = int(kernel.run_engine(self.columns, loop, core, columns, until, self._turns))
        if status == kernel.PAUSED:
            is_short = time.perf_counter() - began < _PAUSE_S
            turns = 2 * self._turns if is_short else self._turns // 2
            self._turns = min(max(turns, _FEWEST_TURNS), _MOST_TURNS)
        return status

    # -- what the loop asks for ----------------------------------------------------------------------

    def _pause(self) -> None:
        """Take the operations that ended, where they are many."""
        with held_signals():  # who is interrupted keeps whole rows, and each of them once
            self.columns.pass_on_operations()

    def _ask_network(self) -> None:
        """Have a network that is elsewhere go on; what waits for completions happens at their times.

        Raises
        ------
        CausalityError
            The network's time went back or beyond what it was asked for, or a completion's time did.
        NetworkError
            The network neither moved nor completed anything, or completed something that is not in flight.
        """
        assert self._network is not None
        batch, words = self._outbox(), self.columns.state_words
        before, horizon = words[_GRANTED], words[_HORIZON]
        answer = self._network.advance(batch, horizon)
        granted, done = int(answer.granted_ps), answer.completions
        words[_ADVANCES] += 1
        wrong = self.flow_log.count(done, before, granted) if before <= granted <= horizon else 0
        if wrong != NONE:
            granted_by(self._network, answer, before, horizon)
            self.flow_log.refuse(done, wrong)
        if granted == before and not len(done) and not len(batch.start_handle):
            self._no_progress()
        words[_GRANTED] = granted

    def _no_progress(self) -> NoReturn:
        assert self._network is not None
        raise NetworkError(f"{self._network.describe().name} makes no progress at {self.granted_ps} ps")

    def _after_time(self) -> NoReturn:
        raise SimulationError(TOO_LATE)

    def _plan(self) -> None:
        rank, op = self._starting()
        self.groups.plan(rank, op, self.groups.turn(rank, op))

    def _starting(self) -> tuple[int, int]:
        """(Rank, operation) that is being started."""
        return int(self.columns.scalars["at_rank"]), int(self.columns.scalars["at_op"])

    def _beginning(self) -> int:
        """The rank that is to begin its next iteration."""
        return int(self.columns.begins[self.columns.scalars["begins_at"]])

    def _ask_director(self) -> None:
        assert self.on_start is not None
        start = self.on_start(self._beginning(), self.now_ps)
        if start >= NEVER:
            raise SimulationError(TOO_LATE)
        self.columns.scalars["start_at"] = start

    def _name_next_traits(self) -> None:
        self._name_traits(int(self.columns.scalars["which"]))

    def _name_traits(self, at: int) -> None:
        """Tell the network of a job's iteration."""
        assert self._inside is not None
        first = self.columns.jobs["trait0"]
        job = int(np.searchsorted(first[: len(self.jobs)], at, "right")) - 1
        traits = self.jobs[job].traits(at - int(first[job]))
        group = FlowGroup(0, _NO_FLOWS, np.zeros(0, np.int32), (0, 0), **traits)  # type: ignore[arg-type]
        self.columns.traits[at] = self._inside.traits(group)

    def _pace(self) -> None:
        """Work out how long a rank's computations take in its next iteration."""
        rank = self._beginning()
        row = self.columns.ranks[rank]
        row["paced"] = int(row["iteration"]) + 2
        self._work_out(rank, int(row["paced"]) - 1)

    def _work_out(self, rank: int, iteration: int) -> None:
        columns = self.columns
        row = columns.ranks[rank]
        job = self.jobs[int(row["job"])]
        pace, number = job.info.pace, int(row["number"])
        assert pace is not None
        program = columns.programs[row["program"]]
        ops = columns.ops[int(program["op0"]) :][: int(program["ops"])]
        op = np.flatnonzero(ops["kind"] == kernel.OP_COMPUTE)
        own = pace.durations_ps(number, iteration, op, ops["duration"][op])
        slowness = self._slowness.get(rank, MILLION)
        first = int(row["pace0"]) + iteration % job.slots.count * int(program["ops"])
        columns.pace[first + op] = scaled(own, slowness)

    def leave_carried(self, met: int, position: int, messages: int) -> None:
        """A rank is done now with a rendezvous that code carries, in so many messages.

        Raises
        ------
        AlgorithmError
            It has not come yet.
        """
        if kernel.leave_carried(self.columns, self.instant(), met, position, messages) == kernel.TOO_EARLY:
            self._too_early()

    def slow_down(self, job: int, rank: int, millionths: int) -> None:
        """What a job's rank begins to compute from now on takes longer, or as long as before."""
        number = self.tables.rank0[job] + rank
        self._slowness[number] = millionths
        row = self.columns.ranks[number]
        for iteration in range(int(row["oldest"]), int(row["paced"])):
            self._work_out(number, iteration)

    def rows(self, job: int) -> NDArray[Any]:
        """The columns of a job's ranks: a view, stale when ranks are added."""
        first = self.tables.rank0[job]
        ranks: NDArray[Any] = self.columns.ranks
        return ranks[first : first + self.jobs[job].info.workload.world_size]

    def slowness(self, rank: int) -> int:
        """What the computations of a rank, among all, take: millionths of their time."""
        return self._slowness.get(rank, MILLION)

    def operation(self, rank: int, op: int) -> tuple[int, Operation]:
        """(Number of the rank in its job, its operation), in whichever slot that is."""
        return self.numbered(rank, self.number_of(rank, op))

    def numbered(self, rank: int, number: int) -> tuple[int, Operation]:
        """(Number of the rank in its job, the operation of this number in its program)."""
        row = self.columns.ranks[rank]
        own = int(row["number"])
        return own, self.jobs[int(row["job"])].program(own).operations[number]

    def number_of(self, rank: int, op: int) -> int:
        """An operation's number in its program, in whichever slot it is."""
        row = self.columns.programs[self.columns.ranks["program"][rank]]
        return int(self.columns.ops["number"][int(row["op0"]) + op])

    # -- mistakes ------------------------------------------------------------------------------------

    def _no_peer(self) -> NoReturn:
        rank, op = self._starting()
        number, one = self.operation(rank, op)
        world = self.jobs[int(self.columns.ranks["job"][rank])].info.workload.world_size
        raise WorkloadError(
            f"rank {number}: {one.kind.value} {one.name!r} has no peer ({one.peer}) among the {world} ranks"
        )

    def _wrong_size(self) -> NoReturn:
        row = self.columns.messages[self.columns.scalars["which"]]
        send, receive = int(row["send_number"]), int(row["recv_number"])
        sender, one = self.numbered(int(row["send_rank"]), send)
        receiver, two = self.numbered(int(row["recv_rank"]), receive)
        raise MismatchError(
            f"rank {sender} SENDs {one.size_bytes} bytes to rank {receiver} "
            f"(op {send} {one.name!r}, tag {one.tag}), which RECVs {two.size_bytes} bytes "
            f"(op {receive} {two.name!r})"
        )

    def _wrong_collective(self) -> NoReturn:
        rank, op = self._starting()
        met = self.columns.rendezvous[self.columns.scalars["which"]]
        number, mine = self.operation(rank, op)
        first, theirs = self.numbered(int(met["rank"]), int(met["op"]))
        ranks = self.groups.comms[int(met["comm"])].group.ranks
        raise MismatchError(
            f"ranks disagree on collective number {met['occurrence']} of iteration "
            f"{met['iteration']} of their group {_short(ranks)}:\n"
            f"  rank {first}: op {met['op']} {theirs.name!r}: {theirs.collective} of "
            f"{theirs.size_bytes} bytes, root {theirs.root}\n"
            f"  rank {number}: op {self.number_of(rank, op)} {mine.name!r}: {mine.collective} of "
            f"{mine.size_bytes} bytes, root {mine.root}"
            f"{', by another algorithm or of another priority' * (mine == theirs)}"
        )

    def _too_early(self) -> NoReturn:
        rendezvous, position = int(self.columns.scalars["which"]), int(self.columns.scalars["place"])
        met = self.columns.rendezvous[rendezvous]
        number = self.groups.comms[int(met["comm"])].group.ranks[position]
        raise AlgorithmError(
            f"rank {number} is done with {self.title(rendezvous)} before it came: the algorithm that carries "
            "it must let each rank's exit wait for its entry"
        )

    def title(self, rendezvous: int) -> str:
        """``all_reduce 'grads', 64 MiB (iteration 0)``."""
        met = self.columns.rendezvous[rendezvous]
        _, one = self.numbered(int(met["rank"]), int(met["op"]))
        size = format_size(one.size_bytes)
        return f"{one.collective} {one.name!r}, {size} (iteration {met['iteration']})"

    # -- what goes to a network ----------------------------------------------------------------------

    def _outbox(self) -> FlowBatch:
        """Groups opened and flows started since it was last asked for."""
        words, columns = self.columns.state_words, self.columns
        opened = columns.opened[: words[_OPENED]].tolist()
        groups = [self._group(handle, iteration) for handle, iteration in opened]
        starts = columns.starts[: words[_STARTS]]
        words[_OPENED] = words[_STARTS] = 0
        return FlowBatch(groups, *(starts[name].copy() for name in ("handle", "index", "start", "cause")))

    def _group(self, handle: int, iteration: int) -> FlowGroup:
        key_high, key_low, _, binding, *_ = self.columns.handles[handle].item()
        table, endpoints, job, channel, release = self._bound_flows.get(binding) or self._bind_flows(binding)
        traits = self._traits.get((job, iteration)) or self._traits_of(job, iteration)
        key, channel = (key_high, key_low), channel + self.jobs[job].channel
        return FlowGroup(handle, table, endpoints, key, release, channel=channel, **traits)  # type: ignore[arg-type]

    def _bind_flows(self, binding: int) -> BoundTable:
        """The table of a binding's flows, and between whom they go."""
        bound = self.groups.bindings.get(binding)
        if bound is None:
            first, job, src, dst, sizes, channels = self.message_binding(binding)
            at = binding - first
            size = int(sizes[at])
            table = self._message_tables.get(size)
            if table is None:
                table = self._message_tables[size] = flat_table([0], [1], [size])
            endpoints = np.array([src[at], dst[at]], np.int32)
            bound = BoundTable(table, endpoints, job, int(channels[at]), "caller")
        if len(self._bound_flows) == _MOST_KNOWN:
            self._bound_flows.clear()
        self._bound_flows[binding] = bound
        return bound

    def message_binding(self, binding: int) -> tuple[int, int, I32, I32, I64, I32]:
        """The columns that a message's binding is in."""
        bindings = self.tables.messages.bindings
        return bindings[bisect_right(bindings, binding, key=lambda one: one[0]) - 1]

    def _traits_of(self, job: int, iteration: int) -> dict[str, object]:
        key = job, iteration
        if key not in self._traits:
            self._traits[key] = self.jobs[job].traits(iteration)
        return self._traits[key]


def _ignore(_: NDArray[Any]) -> None:
    """Nobody waits."""


def _short(ranks: tuple[int, ...]) -> str:
    if len(ranks) <= 8:
        return str(list(ranks))
    return f"[{ranks[0]}, {ranks[1]}, ... {ranks[-1]}] of {len(ranks)}"
