"""The engine: jobs in columns, what the loop over instants asks of Python, and what it hands to a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

import numpy as np

from cosim.engine import joint, loop
from cosim.engine import state as s
from cosim.engine.columns import Columns
from cosim.engine.flow_log import FlowLog
from cosim.engine.groups import BoundTable, Groups
from cosim.engine.plans import Plans
from cosim.engine.programs import ReadyJob
from cosim.engine.tables import Tables
from cosim.errors import AlgorithmError, MismatchError, NetworkError, SimulationError, WorkloadError
from cosim.network.ahead import compiling
from cosim.network.compiled import CompiledNetwork, no_core
from cosim.network.core import room_for_reports
from cosim.network.flows import I32, I64, Completions, FlowBatch, FlowGroup, FlowTable, flat_table
from cosim.network.tiers import interpret, is_new, is_spent
from cosim.pattern.planner import Planner
from cosim.units import NEVER, TOO_LATE, format_size
from cosim.workload.millionths import MILLION, scaled
from cosim.workload.program import Operation

_FIRST_TURNS, _MOST_TURNS, _INTERPRETED_TURNS = 1 << 14, 1 << 20, 1 << 12
"""Turns of the loop up to its first stop, and between two stops of a long run: milliseconds, and less than a
second; where it is interpreted between any two."""
_NO_FLOWS = flat_table([], [], [])


class Engine:
    """All jobs of a run. Times are picoseconds, ranks are numbered through all jobs."""

    def __init__(
        self,
        jobs: Sequence[ReadyJob],
        planner: Planner,
        num_endpoints: int,
        num_operations: int,
        *,
        record_messages: bool,
    ) -> None:
        self.jobs = jobs
        self.columns = Columns(num_operations)
        self.flow_log = FlowLog(self.columns, num_endpoints, record_messages=record_messages)
        self.tables = Tables(self.columns, self.flow_log, jobs)
        self.plans = Plans(planner)
        self.groups = Groups(self.columns, self.flow_log, self.tables, self.plans)
        self._message_tables: dict[int, FlowTable] = {}
        self._traits: dict[tuple[int, int], dict[str, object]] = {}
        self._network: CompiledNetwork | None = None
        self._no_core = no_core()
        self._until = 0
        self._turns = _FIRST_TURNS
        self._slowness: dict[int, int] = {}
        self.on_start: Callable[[int, int], int] | None = None
        """Says when a rank of a directed job may begin its next iteration, that is ready now."""

    # -- time ----------------------------------------------------------------------------------------

    @property
    def now_ps(self) -> int:
        """The instant that is, or was, looked at."""
        return int(self.columns.meta[s.NOW])

    @property
    def granted_ps(self) -> int:
        """How far a connected network has gone."""
        return int(self.columns.meta[s.GRANTED])

    @property
    def num_advances(self) -> int:
        """How often a connected network was asked."""
        return int(self.columns.meta[s.NUM_ADVANCES])

    @property
    def next_ps(self) -> int:
        """When something ends next, as far as is known without the network; NEVER: nothing will."""
        meta, arrays = self.columns.meta, self.columns.arrays
        times = [
            int(arrays[name]["time"][0])
            for name, count in (("agenda", s.AGENDA_N), ("reactions", s.REACTIONS_N))
            if meta[count]
        ]
        return min(times, default=NEVER)

    def begin(self, job: int, now: int) -> None:
        """Have a job's ranks begin at an instant that is to be run next."""
        meta, first = self.columns.meta, self.tables.rank0[job]
        meta[s.NOW] = now
        count, done = self.jobs[job].info.workload.world_size, int(meta[s.BEGIN_N])
        self.columns.arrays["begins"][done : done + count] = np.arange(first, first + count)
        meta[s.BEGIN_N] += count
        if self._network is not None and self.tables.messages.of(job):  # else the loop would stop for it
            self._name_traits(int(self.columns.arrays["jobs"]["trait0"][job]))

    def connect(self, network: CompiledNetwork) -> None:
        """Have a network of this process, which is open, asked in the same loop."""
        self._network = network
        if not network.interpreted:
            self._compile(network)
        directed = self.columns.arrays["jobs"]["directed"]
        for number, bound in enumerate(self.tables.messages.bindings):
            if not directed[bound[1]]:  # the others when it is known where they sit
                self._bind_messages(number)
        self.groups.on_bind = self._bound

    def _compile(self, network: CompiledNetwork) -> None:
        """Compile what is not yet, of the engine's loop and the network's, both at once."""
        if is_new(joint.run):
            with compiling(network.loop, network.signature()):
                joint.compile_run(self.columns.view(), network.core())
        network.compile()

    def disconnect(self) -> None:
        """Let go of the network, and of what would keep this object alive."""
        self._network = None
        self.groups.on_bind = None

    def _bind_messages(self, number: int) -> None:
        assert self._network is not None
        first, job, src, dst, size, channel = self.tables.messages.bindings[number]
        channel = channel + np.int32(self.jobs[job].channel)
        table, path = self._network.bind_messages(job, src, dst, size, channel)
        rows = self.columns.arrays["bindings"][first : first + len(src)]
        rows["table"], rows["path"] = table + np.arange(len(src)), path

    def _bound(self, number: int, bound: BoundTable) -> None:
        assert self._network is not None
        row = self.columns.arrays["bindings"][number]
        channel = self.jobs[bound.job].channel
        row["table"], row["path"] = self._network.bind(bound.table, bound.endpoints, bound.job, channel)

    def bind_anew(self, job: int) -> None:
        """Have what a job sends from now on go between its endpoints as they are now, on its channel."""
        self.tables.seat(job)
        if self._network is None:
            return
        for number in self.tables.messages.of(job):
            self._bind_messages(number)
        for number, table in self.groups.bindings.items():
            if table.job == job:
                self._bound(number, table)

    def forget_traits(self, job: int) -> None:
        """Have the network told anew of a job's priority and weight, for what it sends from now on."""
        row = self.columns.arrays["jobs"][job]
        first, count = int(row["trait0"]), int(row["iterations"])
        self.columns.arrays["traits"][first : first + count] = s.NONE
        self._traits = {key: value for key, value in self._traits.items() if key[0] != job}

    def run(self, until: int) -> Iterator[None]:
        """Run every instant up to ``until``, and a connected network up to just after it; stops now and then.

        Raises
        ------
        MismatchError
            Ranks disagree on what they do together.
        WorkloadError, AlgorithmError, SimulationError
            As they say.
        """
        self._until = until
        while True:
            network = self._network
            if network is not None and network.interpreted and is_spent():
                self._compile(network)
            status = self._loop(network, until)
            if status == loop.DONE:
                return
            if status == loop.PAUSED:
                self._turns = min(2 * self._turns, _MOST_TURNS)
            elif status < loop.NEED_ROOM:
                assert network is not None
                network.grow(status)
            else:
                self.answer(status)
            yield

    def _loop(self, network: CompiledNetwork | None, until: int) -> int:
        """Go on with the loop, and the network; why it stopped."""
        if network is None:
            return int(joint.run(self.columns.view(), self._no_core, 0, 0, until, self._turns))
        columns = network.columns()  # held while its address is used
        given = self.columns.view(), network.core(), network.entry
        if network.interpreted:
            return int(interpret(joint.run, *given, columns, until, _INTERPRETED_TURNS))
        return int(joint.run(*given, columns.address, until, self._turns))

    def take(self, done: Completions) -> None:
        """Count completions; what waits for them happens at their times.

        Raises
        ------
        NetworkError
            Something completed that is not in flight.
        """
        self.flow_log.count(done)

    # -- what the loop asks for ----------------------------------------------------------------------

    def answer(self, status: int) -> None:
        """Make what the loop stopped for, or say what is wrong."""
        meta = self.columns.meta
        rank, op = int(meta[s.AT_RANK]), int(meta[s.AT_OP])
        if status == loop.NEED_ROOM:
            self.columns.make_room()
        elif status == loop.NEED_GROUP:
            self.groups.look_up(rank, op)
        elif status == loop.NEED_ACCESS:
            self.groups.bind_access(rank, op)
        elif status == loop.NEED_PLAN:
            self.groups.plan(rank, op)
        elif status == loop.NEED_TRAITS:
            self._name_traits(int(meta[s.WHICH]))
        elif status == loop.NEED_REPORTS:
            self._make_report_room()
        elif status == loop.NEED_REPORT:
            self._report()
        elif status == loop.NO_PROGRESS:
            assert self._network is not None
            raise NetworkError(f"{self._network.name} makes no progress at {meta[s.GRANTED]} ps")
        elif status == loop.NEED_START:
            assert self.on_start is not None
            start = self.on_start(int(self.columns.arrays["begins"][meta[s.BEGIN_AT]]), self.now_ps)
            if start >= NEVER:
                raise SimulationError(TOO_LATE)
            meta[s.START_AT] = start
        elif status == loop.NEED_PACE:
            self._pace(int(self.columns.arrays["begins"][meta[s.BEGIN_AT]]))
        elif status == loop.NO_PEER:
            self._no_peer(rank, op)
        elif status == loop.WRONG_SIZE:
            self._wrong_size(int(meta[s.WHICH]))
        elif status == loop.WRONG_COLLECTIVE:
            self._wrong_collective(rank, op, int(meta[s.WHICH]))
        elif status == loop.TOO_EARLY:
            self._too_early(int(meta[s.WHICH]), int(meta[s.PLACE]))
        else:
            raise SimulationError(TOO_LATE)

    def _name_traits(self, at: int) -> None:
        """Tell the network of a job's iteration."""
        assert self._network is not None
        first = self.columns.arrays["jobs"]["trait0"]
        job = int(np.searchsorted(first[: len(self.jobs)], at, "right")) - 1
        traits = self.jobs[job].traits(at - int(first[job]))
        group = FlowGroup(0, _NO_FLOWS, np.zeros(0, np.int32), (0, 0), **traits)  # type: ignore[arg-type]
        self.columns.arrays["traits"][at] = self._network.traits(group)

    def _make_report_room(self) -> None:
        """Have room for all that the network may report."""
        assert self._network is not None
        most = int(self._network.core().state["num_pending"][0])
        self.flow_log.expect(most)
        have = len(self.columns.arrays["reported"].handle)
        if most > have:
            self.columns.replace("reported", room_for_reports(max(most, 2 * have, 1024)))

    def _report(self) -> None:
        """Take what the network has to report where that is so much that it stopped before it had to."""
        assert self._network is not None
        meta = self.columns.meta
        for scalar in (s.OPENED_AT, s.OPENED_N, s.STARTS_AT, s.STARTS_N):
            meta[scalar] = 0
        granted, done = self._network.stopped(min(self.next_ps, self._until + 1))
        meta[s.GRANTED] = granted
        meta[s.NUM_ADVANCES] += 1
        self.take(done)

    def _pace(self, rank: int) -> None:
        """Work out how long a rank's computations take in its next iteration."""
        row = self.columns.arrays["ranks"][rank]
        row["paced"] = int(row["iteration"]) + 2
        self._work_out(rank, int(row["paced"]) - 1)

    def _work_out(self, rank: int, iteration: int) -> None:
        row = self.columns.arrays["ranks"][rank]
        job = self.jobs[int(row["job"])]
        pace, number = job.info.pace, int(row["number"])
        assert pace is not None
        arrays = self.columns.arrays
        program = arrays["programs"][row["program"]]
        ops = arrays["ops"][int(program["op0"]) :][: int(program["ops"])]
        op = np.flatnonzero(ops["kind"] == s.COMPUTE)
        own = pace.durations_ps(number, iteration, op, ops["duration"][op])
        slowness = self._slowness.get(rank, MILLION)
        first = int(row["pace0"]) + iteration % job.slots.count * int(program["ops"])
        arrays["pace"][first + op] = scaled(own, slowness)

    def slow_down(self, job: int, rank: int, millionths: int) -> None:
        """What a job's rank begins to compute from now on takes longer, or as long as before."""
        number = self.tables.rank0[job] + rank
        self._slowness[number] = millionths
        row = self.columns.arrays["ranks"][number]
        for iteration in range(int(row["oldest"]), int(row["paced"])):
            self._work_out(number, iteration)

    def operation(self, rank: int, op: int) -> tuple[int, Operation]:
        """(Number of the rank in its job, its operation), in whichever slot that is."""
        row = self.columns.arrays["ranks"][rank]
        number = int(row["number"])
        operations = self.jobs[int(row["job"])].program(number).operations
        return number, operations[op % len(operations)]

    def number_of(self, rank: int, op: int) -> int:
        """An operation's number in its program, in whichever slot it is."""
        row = self.columns.arrays["programs"][self.columns.arrays["ranks"]["program"][rank]]
        return op % int(row["ops"])

    # -- mistakes ------------------------------------------------------------------------------------

    def _no_peer(self, rank: int, op: int) -> NoReturn:
        number, one = self.operation(rank, op)
        world = self.jobs[int(self.columns.arrays["ranks"]["job"][rank])].info.workload.world_size
        raise WorkloadError(
            f"rank {number}: {one.kind.value} {one.name!r} has no peer ({one.peer}) among the {world} ranks"
        )

    def _wrong_size(self, message: int) -> NoReturn:
        row = self.columns.arrays["messages"][message]
        sender, one = self.operation(int(row["send_rank"]), int(row["send_op"]))
        receiver, two = self.operation(int(row["recv_rank"]), int(row["recv_op"]))
        send, receive = (
            self.number_of(int(row[f"{end}_rank"]), int(row[f"{end}_op"])) for end in ("send", "recv")
        )
        raise MismatchError(
            f"rank {sender} SENDs {one.size_bytes} bytes to rank {receiver} "
            f"(op {send} {one.name!r}, tag {one.tag}), which RECVs {two.size_bytes} bytes "
            f"(op {receive} {two.name!r})"
        )

    def _wrong_collective(self, rank: int, op: int, rendezvous: int) -> NoReturn:
        arrays = self.columns.arrays
        met = arrays["rendezvous"][rendezvous]
        number, mine = self.operation(rank, op)
        first, theirs = self.operation(int(met["rank"]), int(met["op"]))
        ranks = self.groups.comms[int(met["comm"])].group.ranks
        raise MismatchError(
            f"ranks disagree on collective number {met['occurrence']} of iteration "
            f"{met['iteration']} of their group {_short(ranks)}:\n"
            f"  rank {first}: op {met['op']} {theirs.name!r}: {theirs.collective} of "
            f"{theirs.size_bytes} bytes, root {theirs.root}\n"
            f"  rank {number}: op {self.number_of(rank, op)} {mine.name!r}: {mine.collective} of "
            f"{mine.size_bytes} bytes, root {mine.root}"
        )

    def _too_early(self, rendezvous: int, position: int) -> NoReturn:
        met = self.columns.arrays["rendezvous"][rendezvous]
        number = self.groups.comms[int(met["comm"])].group.ranks[position]
        raise AlgorithmError(
            f"rank {number} is done with {self.title(rendezvous)} before it came: the algorithm that carries "
            "it must let each rank's exit wait for its entry"
        )

    def title(self, rendezvous: int) -> str:
        """``all_reduce 'grads', 64 MiB (iteration 0)``."""
        met = self.columns.arrays["rendezvous"][rendezvous]
        _, one = self.operation(int(met["rank"]), int(met["op"]))
        size = format_size(one.size_bytes)
        return f"{one.collective} {one.name!r}, {size} (iteration {met['iteration']})"

    # -- what goes to a network ----------------------------------------------------------------------

    def outbox(self) -> FlowBatch:
        """Groups opened and flows started since it was last asked for."""
        meta, arrays = self.columns.meta, self.columns.arrays
        opened = arrays["opened"][: int(meta[s.OPENED_N])]
        groups = [self._group(int(one["handle"]), int(one["iteration"])) for one in opened]
        starts = arrays["starts"][: int(meta[s.STARTS_N])]
        meta[s.OPENED_N] = meta[s.STARTS_N] = 0
        return FlowBatch(
            groups,
            *(np.ascontiguousarray(starts[name]) for name in ("handle", "index", "start", "cause")),
        )

    def _group(self, handle: int, iteration: int) -> FlowGroup:
        row = self.columns.arrays["handles"][handle]
        key = int(row["key_high"]), int(row["key_low"])
        bound = self.groups.bindings.get(int(row["binding"]))
        if bound is not None:
            traits = self._traits_of(bound.job, iteration)
            channel = self.jobs[bound.job].channel
            return FlowGroup(handle, bound.table, bound.endpoints, key, channel=channel, **traits)  # type: ignore[arg-type]
        first, job, src, dst, sizes, channels = self.message_binding(int(row["binding"]))
        at = int(row["binding"]) - first
        size = int(sizes[at])
        table = self._message_tables.get(size)
        if table is None:
            table = self._message_tables[size] = flat_table([0], [1], [size])
        endpoints = np.array([src[at], dst[at]], np.int32)
        traits = {
            **self._traits_of(job, iteration),
            "channel": int(channels[at]) + self.jobs[job].channel,
            "release": "caller",
        }
        return FlowGroup(handle, table, endpoints, key, **traits)  # type: ignore[arg-type]

    def message_binding(self, binding: int) -> tuple[int, int, I32, I32, I64, I32]:
        """The columns that a message's binding is in."""
        return next(one for one in reversed(self.tables.messages.bindings) if one[0] <= binding)

    def _traits_of(self, job: int, iteration: int) -> dict[str, object]:
        key = job, iteration
        if key not in self._traits:
            self._traits[key] = self.jobs[job].traits(iteration)
        return self._traits[key]


def _short(ranks: tuple[int, ...]) -> str:
    if len(ranks) <= 8:
        return str(list(ranks))
    return f"[{ranks[0]}, {ranks[1]}, ... {ranks[-1]}] of {len(ranks)}"
