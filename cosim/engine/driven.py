"""Driven jobs: their ranks have no program, but do what they are given as the run goes on.

An operation is issued on ranks at the instant that is, and may start in it: messages all together, before the
loop over instants goes on. Whoever issued it is told when the operation has ended on all ranks: it has a
ticket until then. What was issued becomes a workload when the run is over: rank by rank, a program of what it
was given, in that order. (``engine_driven.c`` has the rest.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from cosim.engine.columns import NONE
from cosim.engine.plans import By
from cosim.engine.program_columns import Slots
from cosim.engine.programs import ReadyJob, ReadyProgram
from cosim.engine.records import JobInfo
from cosim.errors import SimulationError
from cosim.kernel import kernel, record
from cosim.network.flows import I32, I64
from cosim.topology.graph import Topology
from cosim.workload.operation import Operation, OpKind, Peer
from cosim.workload.program import DeviceMesh, Workload
from cosim.workload.table import OperationTable

if TYPE_CHECKING:
    from cosim.engine.engine import Engine

MOST_CLASSES = 64
"""Different priorities of a driven job's messages."""
_MOST_ASKED = 256
"""Messages that are issued together."""
_ASKED = Struct("=8q8x")
"""``struct asked`` without its ticket."""


def driven_info(name: str, endpoints: I32) -> JobInfo:
    """A job whose ranks are driven, on endpoints."""
    return JobInfo(name, driven_workload(len(endpoints)), endpoints, iterations=1, start_ps=0, driven=True)


def driven_workload(ranks: int) -> Workload:
    """Ranks of which nobody knows yet what they will do."""
    none = OperationTable([], [], first=np.zeros(ranks + 1, np.int64))
    mesh = DeviceMesh({"rank": ranks})
    return Workload("processes", mesh, none.programs(), np.arange(ranks, dtype=np.int32))


class DrivenJob(ReadyJob):
    """A driven job, ready to run. ``classes`` are the priorities that its messages have had so far."""

    def __init__(self, number: int, info: JobInfo, topology: Topology, programs: Any) -> None:
        super().__init__(number, info, topology, programs, Slots(1, 1))
        self.classes = [info.priority]

    def traits(self, iteration: int) -> dict[str, object]:
        """See :class:`~cosim.engine.programs.ReadyJob`: of a class of messages, not of an iteration."""
        return {**super().traits(0), "priority": self.classes[iteration]}

    def class_of(self, priority: int) -> int:
        """The number of a priority.

        Raises
        ------
        SimulationError
            There are too many.
        """
        if priority not in self.classes:
            if len(self.classes) == MOST_CLASSES:
                raise SimulationError(f"{self.info.name}: more than {MOST_CLASSES} priorities of messages")
            self.classes.append(priority)
        return self.classes.index(priority)


class Bound:
    """A binding of messages of one size, of which ``users`` are under way; ``is_free``: its ends list it."""

    __slots__ = ("ends", "is_free", "number", "size", "users")

    def __init__(self, ends: Ends, number: int, size: int) -> None:
        self.ends, self.number, self.size = ends, number, size
        self.users, self.is_free = 0, False


class Ends:
    """Job, source, destination and channel of messages, and what is bound between them: by size, and what
    waits for another size, as nothing of it was under way.
    """

    __slots__ = ("by_size", "free", "key")

    def __init__(self, *key: int) -> None:
        self.key = key
        self.by_size: dict[int, Bound] = {}
        self.free: list[Bound] = []


class TransferWay(NamedTuple):
    """What transfers have in common: their ends, the rank that sends, what they are like, their class, the
    peer.
    """

    ends: Ends
    rank: int
    like: int
    traits: int
    peer: int


class AskedCollective(NamedTuple):
    """What ranks that meet in a collective agree on."""

    kind: str
    size_bytes: int
    root: int
    algorithm: By
    priority: int | None


class IssuedKinds:
    """What issued operations are like, but for durations, sizes, peers and tags: base of drivers."""

    def __init__(self) -> None:
        self.prototypes: list[Operation] = []
        self._like: dict[tuple[object, ...], int] = {}

    def like(
        self,
        kind: OpKind,
        name: str,
        collective: str = "",
        ranks: tuple[int, ...] | None = None,
        root: int = 0,
        channel: int = 0,
        access: str = "",
    ) -> int:
        """The number of what operations are like."""
        key = kind, name, collective, ranks, root, channel, access
        known = self._like.get(key)
        if known is None:
            known = self._like[key] = len(self.prototypes)
            said = {"collective": collective, "ranks": ranks, "root": root}
            self.prototypes.append(Operation(name, kind, "", **said, channel=channel, access=access))  # type: ignore[arg-type]
        return known

    def done(self, info: JobInfo, counts: I64, rows: IssuedRows) -> JobInfo:
        """A driven job with what it did as its workload: ``counts`` operations of each rank, rank by rank."""
        table = OperationTable(
            self.prototypes or [Operation("none", OpKind.COMPUTE, "")],
            rows.like,
            first=np.concatenate([[0], np.cumsum(counts)]),
            duration_ps=rows.duration_ps,
            size_bytes=rows.size_bytes,
            peer=rows.peer,
            tag=rows.tag,
        )
        names = [f"rank {rank}" for rank in range(len(counts))]
        return replace(info, workload=replace(info.workload, programs=table.programs(names)))


class IssuedRows(NamedTuple):
    """Columns of issued operations: int64 each."""

    like: I64
    duration_ps: I64
    size_bytes: I64
    peer: I64
    tag: I64


class RankDriver(IssuedKinds):
    """Issues operations on the ranks of driven jobs. Times are picoseconds, ranks numbers in their job."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: dict[int, tuple[Any, Bound | None]] = {}
        """By ticket: whoever is to be told, and what is under way by a binding of :class:`Bound`."""
        self._asked: list[tuple[Any, Bound | None]] = []
        self._ports: dict[tuple[int, int, int, int], int] = {}
        self._channels: dict[tuple[int, int, int, int], int] = {}
        self._doors: dict[tuple[int, int, str, int], int] = {}
        self._ends: dict[tuple[int, ...], Ends] = {}
        self._members: dict[int, tuple[int, I32]] = {}
        self._engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        """The engine that runs it."""
        assert self._engine is not None
        return self._engine

    def join(self, engine: Engine) -> None:
        """Work with an engine."""
        self._engine = engine
        rows: Any = np.zeros(_MOST_ASKED, record("asked"))
        engine.columns.put(asked=rows)
        self._rows, self._tickets = memoryview(rows).cast("B"), rows["ticket"]

    # -- what is issued ------------------------------------------------------------------------------

    def compute(self, job: int, ranks: I32, durations: I64, like: int) -> int:
        """Have ranks compute, each for its duration, from now on: the ticket."""
        zeros = np.zeros(len(ranks), np.int32)
        return self._issue_all(
            self._rank0(job) + ranks, durations, zeros, zeros, kernel.OP_COMPUTE, like, 0, 0, 0
        )

    def access(self, job: int, ranks: I32, size: int, duration_ps: int, like: int) -> int:
        """Have each rank access remote memory, of which a device is held so long: the ticket."""
        durations, zeros = np.full(len(ranks), duration_ps, np.int64), np.zeros(len(ranks), np.int32)
        kind, ref, what = kernel.OP_ACCESS, zeros, self.prototypes[like].access
        if self.engine.jobs[job].info.memory_nodes is not None:
            kind, ref = (
                kernel.OP_REMOTE,
                np.array([self._door(job, one, what, size) for one in ranks.tolist()], np.int32),
            )
        return self._issue_all(self._rank0(job) + ranks, durations, ref, zeros, kind, like, size, 0, 0)

    def _door(self, job: int, rank: int, access: str, size: int) -> int:
        """The port of a rank's accesses of a size to its memory node; their flows are found when it comes."""
        key = job, rank, access, size
        known = self._doors.get(key)
        if known is None:
            known, made = self.engine.columns.extend("ports", 1)
            made["channel"] = made["binding"] = made["peer"] = NONE
            self._doors[key] = known
        return known

    def class_of(self, job: int, priority: int | None) -> int:
        """The number of a job's messages of a priority; None: of the job's own.

        Raises
        ------
        SimulationError
            There are too many.
        """
        ready: Any = self.engine.jobs[job]
        return 0 if priority is None else int(ready.class_of(priority))

    def way(
        self,
        job: int,
        rank: int,
        src: int,
        dst: int,
        channel: int,
        priority: int | None,
        like: int,
        peer: int,
    ) -> TransferWay:
        """What transfers of a rank, on ``src``, to an endpoint have in common."""
        traits = self.class_of(job, priority)
        return TransferWay(self._ends_of(job, src, dst, channel), self._rank0(job) + rank, like, traits, peer)

    def transfer(self, way: TransferWay, size: int, whom: Any) -> None:
        """Have a rank send to an endpoint, where nobody has to ask for it; tell somebody of its end."""
        ends, rank, like, traits, peer = way
        bound = self._bound(ends, size)
        self._ask((whom, bound), rank, kernel.OP_TRANSFER, like, size, bound.number, traits, peer, 0)

    def carry(
        self, ends: tuple[int, int, int, int], met: int, size: int, rank: int, number: int, whom: Any
    ) -> None:
        """Start the ``number``-th flow of a rendezvous that code carries, between nodes; tell somebody.

        ``ends``: job, source, destination, channel; ``rank`` is the lowest of its group.
        """
        engine, bound = self.engine, self._bound(self._ends_of(*ends), size)
        key_low = rank << 44 | number
        ticket = int(kernel.carry_flow(engine.columns, engine.instant(), met, bound.number, key_low))
        self.waiting[ticket] = whom, bound

    def _ends_of(self, *key: int) -> Ends:
        known = self._ends.get(key)
        if known is None:
            known = self._ends[key] = Ends(*key)
        return known

    def _bound(self, ends: Ends, size: int) -> Bound:
        """What binds one more message of this size."""
        bound = ends.by_size.get(size)
        if bound is None:
            bound = ends.by_size[size] = self._resized(ends, size)
        bound.users += 1
        return bound

    def _resized(self, ends: Ends, size: int) -> Bound:
        """A binding that was of another size, or one more."""
        while ends.free:
            bound = ends.free.pop()
            bound.is_free = False
            if not bound.users:
                del ends.by_size[bound.size]
                self.engine.resize_message(bound.number, size)
                bound.size = size
                return bound
        job, src, dst, channel = ends.key
        return Bound(ends, self.engine.bind_message(job, src, dst, size, channel), size)

    def message(
        self, job: int, rank: int, peer: int, size: int, tag: int, like: int, whom: Any, *, sends: bool
    ) -> None:
        """Post one end of a message between ranks; tell somebody of its end."""
        src, dst = (rank, peer) if sends else (peer, rank)
        channel = self.prototypes[like].channel
        port = self._port(job, src, dst, size, tag, channel, sends=sends)
        kind = kernel.OP_SEND if sends else kernel.OP_RECV
        self._ask((whom, None), self._rank0(job) + rank, kind, like, size, port, 0, peer, tag)

    def collective(
        self,
        job: int,
        ranks: tuple[int, ...],
        position: int | None,
        asked: AskedCollective,
        like: int,
    ) -> int:
        """Have all ranks of a group come to its next collective, or the one at ``position`` alone."""
        first, met = self._group(job, ranks)
        at = np.arange(len(ranks), dtype=np.int32) if position is None else np.array([position], np.int32)
        here = np.array(ranks, np.int32)[at] + np.int32(self._rank0(job))
        occurrence = met[at].copy()
        met[at] += 1
        zeros = np.zeros(len(at), np.int64)
        return self._issue_all(
            here,
            zeros,
            at + np.int32(first),
            occurrence,
            kernel.OP_COLLECTIVE,
            like,
            asked.size_bytes,
            self.engine.tables.what(*asked),
            self.class_of(job, asked.priority),
        )

    def came(self, ticket: int) -> Any:
        """A ticket is through, and what it had is free again: whom to tell."""
        whom, bound = self.waiting.pop(ticket)
        if bound is not None:
            bound.users -= 1
            if not bound.users and not bound.is_free:
                bound.is_free = True
                bound.ends.free.append(bound)
        return whom

    def parts(self, ticket: int, ranks: int) -> tuple[tuple[int, ...], int]:
        """When each of the ranks ended what just came, and how many messages that took as a collective."""
        columns = self.engine.columns
        _, _, row, messages = columns.tickets[ticket].item()
        return tuple(columns.issued["end"][row : row + ranks].tolist()), messages

    def _rank0(self, job: int) -> int:
        return self.engine.tables.rank0[job]

    def _ask(self, waiting: tuple[Any, Bound | None], *row: int) -> None:
        """Have a message issued before the loop goes on: a row of ``struct asked``."""
        asked = self._asked
        if len(asked) == _MOST_ASKED:
            self.issue()
        _ASKED.pack_into(self._rows, len(asked) * _ASKED.size, *row)
        asked.append(waiting)

    def issue(self) -> None:
        """Issue now what was asked for."""
        asked, engine = self._asked, self._engine
        if not asked or engine is None:
            return
        while kernel.issue_asked(engine.columns, engine.instant(), len(asked)) == NONE:
            engine.tables.widen_pool(len(asked))
        self.waiting.update(zip(self._tickets[: len(asked)].tolist(), asked, strict=True))
        asked.clear()

    def _issue_all(self, ranks: I32, durations: I64, ref: I32, occurrence: I32, *given: int) -> int:
        self.issue()
        engine = self.engine
        now = engine.instant()
        ranks = np.ascontiguousarray(ranks, np.int32)
        given_all = len(ranks), ranks, durations, ref, occurrence, *given
        while (ticket := kernel.issue_all(engine.columns, now, *given_all)) == NONE:
            engine.tables.widen_pool(len(ranks))
        return int(ticket)

    def _port(self, job: int, src: int, dst: int, size: int, tag: int, channel: int, *, sends: bool) -> int:
        columns, tables = self.engine.columns, self.engine.tables
        meets = job, src, dst, tag
        if meets not in self._channels:
            number, made = columns.extend("channels", 1)
            made["head"] = made["tail"] = NONE
            self._channels[meets] = number
            here, there = (np.array([one], np.int32) for one in (src, dst))
            tables.messages.channels.append((number, job, here, there, np.array([tag])))
        key = self._channels[meets], size if sends else -1, channel, int(sends)
        port = self._ports.get(key)
        if port is None:
            binding = NONE
            if sends:
                endpoints = self.engine.jobs[job].info.endpoints
                seats = int(endpoints[src]), int(endpoints[dst])
                binding = self.engine.bind_message(job, *seats, size, channel)
            port, made = columns.extend("ports", 1)
            made["channel"], made["binding"], made["peer"] = self._channels[meets], binding, NONE
            self._ports[key] = port
        return port

    def _group(self, job: int, ranks: tuple[int, ...]) -> tuple[int, I32]:
        """A group's first row of members, and how often each member has met there."""
        comm = self.engine.groups.driven(job, ranks)
        known = self._members.get(comm)
        if known is None:
            first, made = self.engine.columns.extend("members", len(ranks))
            made["comm"], made["position"] = comm, np.arange(len(ranks))
            known = self._members[comm] = first, np.zeros(len(ranks), np.int32)
        return known

    # -- what it was ---------------------------------------------------------------------------------

    def issued(self) -> NDArray[Any]:
        """All that was issued so far, in that order."""
        self.issue()
        columns = self.engine.columns
        rows: NDArray[Any] = columns.issued[: int(columns.scalars["num_issued"])]
        return rows

    def operation_of(self, row: Any) -> Operation:
        """What was issued, as an operation."""
        like = self.prototypes[int(row["like"])]
        peer = None if row["peer"] < 0 else Peer(rank=int(row["peer"]))
        duration, size = int(row["duration"]), int(row["size"])
        return replace(like, duration_ps=duration, size_bytes=size, peer=peer, tag=int(row["tag"]))

    def made(self, job: ReadyJob) -> JobInfo:
        """A driven job with what it did as its workload."""
        first, world = self._rank0(job.number), job.info.workload.world_size
        rows = self.issued()
        rows = rows[(rows["rank"] >= first) & (rows["rank"] < first + world)]
        rows = rows[np.argsort(rows["rank"], kind="stable")]
        counts = np.bincount(rows["rank"] - first, minlength=world)
        return self.done(
            job.info,
            counts,
            IssuedRows(
                rows["like"],
                rows["duration"].copy(),
                rows["size"].copy(),
                rows["peer"].astype(np.int64),
                rows["tag"].astype(np.int64),
            ),
        )


class IssuedPrograms(Sequence[ReadyProgram]):
    """What each rank of a driven job was given so far."""

    def __init__(self, driver: RankDriver, job: int, ranks: int) -> None:
        self._driver, self._job, self._ranks = driver, job, ranks

    def __len__(self) -> int:
        return self._ranks

    @overload
    def __getitem__(self, number: int) -> ReadyProgram: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[ReadyProgram, ...]: ...
    def __getitem__(self, number: int | slice) -> ReadyProgram | tuple[ReadyProgram, ...]:
        if isinstance(number, slice):
            return tuple(self[k] for k in range(*number.indices(len(self))))
        given: Any = _IssuedOperations(self._driver, self._job, number)
        return ReadyProgram(f"rank {number}", given, (), (), (), (), {})


class _IssuedOperations(Sequence[Operation]):
    """The operations that a rank was given, found when they are asked for: few are, to say what is wrong."""

    def __init__(self, driver: RankDriver, job: int, rank: int) -> None:
        self._driver, self._job, self._rank = driver, job, rank

    def _rows(self) -> NDArray[Any]:
        rows = self._driver.issued()
        found: NDArray[Any] = rows[rows["rank"] == self._driver.engine.tables.rank0[self._job] + self._rank]
        return found

    def __len__(self) -> int:
        return len(self._rows())

    def __iter__(self) -> Iterator[Operation]:
        return map(self._driver.operation_of, self._rows())

    @overload
    def __getitem__(self, number: int) -> Operation: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Operation, ...]: ...
    def __getitem__(self, number: int | slice) -> Operation | tuple[Operation, ...]:
        rows = self._rows()
        if isinstance(number, slice):
            return tuple(map(self._driver.operation_of, rows[number]))
        return self._driver.operation_of(rows[number])
