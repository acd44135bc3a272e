"""All collectives of a run that go one by one: who meets whom, and what came of it."""

from __future__ import annotations

from collections.abc import Callable

from cosim.engine.collective import CollectiveRun
from cosim.engine.desk import Desk
from cosim.engine.journal import Journal
from cosim.engine.meeting import Meeting
from cosim.engine.plans import Plans
from cosim.engine.rank import Rank
from cosim.engine.records import CollectiveRecord
from cosim.pattern.plan import FIRST, Turn

Key = tuple[int, tuple[int, ...], object, int, int]
"""Job, ranks, how they name their group, iteration, and how many collectives of it came before."""


class Collectives:
    """Meetings under way. ``ended`` is told rank, operation, and when its end now became certain."""

    def __init__(
        self, desk: Desk, plans: Plans, journal: Journal, ended: Callable[[Rank, int, int], None]
    ) -> None:
        self._desk = desk
        self._plans = plans
        self._journal = journal
        self._ended = ended
        self.meetings: dict[object, Meeting] = {}
        self._turns: dict[tuple[int, tuple[int, ...]], tuple[int, Turn]] = {}

    def meet(self, rank: Rank, op: int, now: int) -> None:
        """A rank starts its part of a collective.

        Raises
        ------
        MismatchError
            It means another one than those who came before.
        """
        job, operation = rank.job, rank.program.operations[op]
        group = job.group(rank.number, operation)
        name = rank.program.naming[op]
        occurrence = rank.program.occurrence[op]
        key: Key = (job.number, group.ranks, name, rank.iteration, occurrence)
        meeting = self.meetings.get(key)
        if meeting is None:
            meeting = Meeting(group, operation, op, rank, rank.iteration, now)
            self.meetings[key] = meeting
            iteration, turn = self._turns.get((job.number, group.ranks), (rank.iteration, FIRST))
            plan = self._plans.whole(operation, group, turn if iteration == rank.iteration else FIRST)
            self._turns[job.number, group.ranks] = rank.iteration, plan.turn
            # A stable operation number: that of the group's lowest rank, which all members agree on.
            number = job.program(min(group.ranks)).collective.get((name, occurrence), op)
            meeting.plan = plan
            meeting.run = CollectiveRun(
                self._plans.simulated(plan, group),
                group.endpoints,
                group.ranks,
                (job.number, rank.iteration, number),
                job.traits(rank.iteration),
                self._desk,
                lambda position, at, cause: self._leave(key, position, at, cause),
            )
        meeting.arrive(rank, op, now)
        assert meeting.run is not None
        meeting.run.arrive(group.position[rank.number], now)

    def _leave(self, key: Key, position: int, now: int, cause: int) -> None:
        meeting = self.meetings[key]
        rank, op = meeting.leave(position)
        self._ended(rank, op, cause)
        group, operation, plan = meeting.group, meeting.operation, meeting.plan
        if len(meeting.left) < len(group.ranks):
            return
        del self.meetings[key]
        assert meeting.run is not None
        assert plan is not None
        self._journal.collectives.append(
            CollectiveRecord(
                job=rank.job.number,
                iteration=meeting.iteration,
                op=meeting.run.key[2],
                name=operation.name,
                collective=operation.collective,
                algorithm=plan.algorithm,
                ranks=group.ranks,
                size_bytes=operation.size_bytes,
                messages=plan.num_messages,
                start_ps=meeting.start_ps,
                ready_ps=meeting.ready_ps,
                end_ps=now,
                copies=rank.job.info.copies * len(group.ranks) // len(group.members),
                folded=len(group.members) // len(group.ranks),
            )
        )
