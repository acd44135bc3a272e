"""Ranks that have no program: processes of your own have them do one thing after another.

What a rank is given it starts in the next round of starts, all of it at once: it has no streams. When an
operation has ended on all ranks that have it, whoever asked for it is told, in the same round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from simpy.events import Event

from cosim.engine.driven import AskedCollective, IssuedKinds, IssuedRows
from cosim.engine.plans import By
from cosim.engine.programs import Naming, ReadyJob, ReadyProgram
from cosim.engine.records import JobInfo
from cosim.engine.reference.ranks import Rank, RankStep
from cosim.network.flows import I32, I64, flat_table, pack_key
from cosim.workload.operation import Operation, Peer

if TYPE_CHECKING:
    from cosim.engine.reference.live import LiveReference


def growing_program(rank: int) -> ReadyProgram:
    """What a rank was given so far: nothing."""
    operations, stream, naming, occurrence = [], [], [], []  # type: ignore[var-annotated]
    return ReadyProgram(f"rank {rank}", operations, (), stream, naming, occurrence, {})  # type: ignore[arg-type]


@dataclass(eq=False)
class Ticket:
    """What somebody waits for: an operation, on ``left`` ranks that have yet to end it. ``ends``: when each
    of the ranks did. ``messages``: of the collective.
    """

    number: int
    left: int
    ends: dict[int, int]
    messages: int = 0


class GivenStep(NamedTuple):
    """What else is known of an operation that a rank was given. ``dst``: of transfers, the endpoint."""

    ticket: Ticket
    like: int
    dst: int = -1
    traits: int = 0
    algorithm: By = ""


class DrivenRank(Rank):
    """A rank that does what it is given."""

    def __init__(self, run: LiveReference, job: ReadyJob, number: int, place: int) -> None:
        super().__init__(run, job, number, place)
        self._tell = run.tell_of
        self.given: list[GivenStep] = []
        self._met: dict[Naming, int] = {}

    @property
    def is_through(self) -> bool:
        """Whoever waits for it says so."""
        return True

    def give(self, one: Operation, given: GivenStep, group: Naming = ()) -> None:
        """Have it do something from now on."""
        program: Any = self.program
        step = RankStep(0, len(self.given))
        program.operations.append(one)
        program.stream.append(-1)
        program.naming.append(group)
        program.occurrence.append(self._met.get(group, 0))
        self._met[group] = program.occurrence[-1] + 1
        self.given.append(given)
        heappush(self.ready[-1], (True, step))
        self._look()

    def algorithm(self, step: RankStep) -> By:
        """See :class:`~cosim.engine.reference.ranks.Rank`: as was asked for."""
        return self.given[step.op].algorithm

    def traits(self, step: RankStep) -> int:
        """See :class:`~cosim.engine.reference.ranks.Rank`: of a class of priority."""
        return self.given[step.op].traits

    def _start(self, step: RankStep) -> None:
        dst = self.given[step.op].dst
        if dst < 0:
            super()._start(step)
            return
        self.started[step] = self.clock.now_ps
        self.run.messages.transfer(self, step, dst)

    def leave(self, step: RankStep, cause_ps: int, messages: int) -> None:
        """See :class:`~cosim.engine.reference.ranks.Rank`."""
        self.given[step.op].ticket.messages = messages
        super().leave(step, cause_ps, messages)

    def _end(self, step: RankStep, cause_ps: int, _: Event) -> None:
        now = self.clock.now_ps
        self.run.recorder.operation(self.job.number, self.number, step, self.started.pop(step), now)
        self.take_cause(cause_ps)
        self.finish_ps = now
        ticket = self.given[step.op].ticket
        ticket.ends[self.number] = now
        ticket.left -= 1
        if not ticket.left:
            self._tell(ticket.number)


class ReferenceDriver(IssuedKinds):
    """See :class:`~cosim.engine.live.RanksDriver`."""

    def __init__(self, run: LiveReference) -> None:
        super().__init__()
        self._run = run
        self._count = 0
        self.waiting: dict[int, tuple[Any]] = {}
        self._together: dict[int, Ticket] = {}

    def compute(self, job: int, ranks: I32, durations: I64, like: int) -> int:
        """Have ranks compute."""
        ticket = self._ticket_of(ranks.tolist())
        for rank, duration in zip(ranks.tolist(), durations.tolist(), strict=True):
            self._give(job, rank, GivenStep(ticket, like), duration_ps=duration)
        return ticket.number

    def access(self, job: int, ranks: I32, size: int, duration_ps: int, like: int) -> int:
        """Have ranks access remote memory."""
        ticket = self._ticket_of(ranks.tolist())
        for rank in ranks.tolist():
            self._give(job, rank, GivenStep(ticket, like), size_bytes=size, duration_ps=duration_ps)
        return ticket.number

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
    ) -> tuple[int, int, int, int, int, int]:
        """What transfers have in common."""
        del src, channel  # where the rank sits, and what they are like
        return job, rank, dst, self._class_of(job, priority), like, peer

    def transfer(self, way: tuple[int, int, int, int, int, int], size: int, whom: Any) -> None:
        """Have a rank send to an endpoint."""
        job, rank, dst, traits, like, peer = way
        ticket = self._ticket(whom)
        self._give(job, rank, GivenStep(ticket, like, dst, traits), size_bytes=size, peer=_peer(peer))

    def message(
        self, job: int, rank: int, peer: int, size: int, tag: int, like: int, whom: Any, *, sends: bool
    ) -> None:
        """Post one end of a message."""
        del sends  # as it is like
        given = GivenStep(self._ticket(whom), like)
        self._give(job, rank, given, size_bytes=size, peer=_peer(peer), tag=tag)

    def collective(
        self, job: int, ranks: tuple[int, ...], position: int | None, asked: AskedCollective, like: int
    ) -> int:
        """Have ranks come to the next collective of their group."""
        here = ranks if position is None else (ranks[position],)
        ticket, traits = self._ticket_of(here), self._class_of(job, asked.priority)
        for rank in here:
            given = GivenStep(ticket, like, traits=traits, algorithm=asked.algorithm)
            self._give(job, rank, given, ranks, size_bytes=asked.size_bytes)
        return ticket.number

    def carry(
        self, ends: tuple[int, int, int, int], met: int, size: int, rank: int, number: int, whom: Any
    ) -> None:
        """Start the ``number``-th flow of a rendezvous that code carries."""
        job, src, dst, channel = ends
        meeting, run, ticket = self._run.carried[met], self._run, self._ticket(whom)
        first, step = meeting.first
        high, _ = pack_key(job, step.iteration, meeting.number, 0, 0)
        flows = run.flows.open(
            flat_table([0], [1], [size], channel=[channel]),
            np.array([src, dst], np.int32),
            (high, rank << 44 | number),
            meeting.job,
            first.traits(step),
            lambda *_: run.tell_of(ticket.number),
            release="caller",
        )
        run.flows.start(flows, 0, run.clock.now_ps)

    def came(self, ticket: int) -> Any:
        """A ticket is through: whom to tell."""
        return self.waiting.pop(ticket)[0]

    def issue(self) -> None:
        """All is issued when it is asked for."""

    def parts(self, ticket: int, ranks: int) -> tuple[tuple[int, ...], int]:
        """When each of the ranks ended what just came, and how many messages that took as a collective."""
        del ranks
        of = self._together.pop(ticket)
        return tuple(of.ends.values()), of.messages

    def _ticket(self, whom: Any) -> Ticket:
        self._count += 1
        self.waiting[self._count] = (whom,)
        return Ticket(self._count, 1, {})

    def _ticket_of(self, ranks: Sequence[int]) -> Ticket:
        self._count += 1
        ticket = self._together[self._count] = Ticket(self._count, len(ranks), dict.fromkeys(ranks, -1))
        return ticket

    def _class_of(self, job: int, priority: int | None) -> int:
        ready: Any = self._run.jobs[job]
        return 0 if priority is None else int(ready.class_of(priority))

    def _give(self, job: int, rank: int, given: GivenStep, group: Naming = (), **what: Any) -> None:
        of: Any = self._run.ranks[job][rank]
        of.give(replace(self.prototypes[given.like], **what), given, group)

    def made(self, job: ReadyJob) -> JobInfo:
        """A driven job with what it did as its workload."""
        ranks: Any = self._run.ranks[job.number]
        counts = np.array([len(rank.given) for rank in ranks], np.int64)
        rows = [
            (given.like, one.duration_ps, one.size_bytes, -1 if one.peer is None else one.peer.rank, one.tag)
            for rank in ranks
            for given, one in zip(rank.given, rank.program.operations, strict=True)
        ]
        return self.done(job.info, counts, IssuedRows(*np.array(rows, np.int64).reshape(-1, 5).T.copy()))


def _peer(rank: int) -> Peer | None:
    return None if rank < 0 else Peer(rank=rank)
