"""A replay that processes of your own take part in: they have ranks do something, and are told of ends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simpy.events import Event

from cosim.engine.directing import JobOrder
from cosim.engine.driven import DrivenJob
from cosim.engine.live import MetCollective, Told
from cosim.engine.operation_log import evenly
from cosim.engine.programs import ReadyJob, check_job
from cosim.engine.records import JobInfo
from cosim.engine.reference.clock import JOINING, PROCESS, TELLING, Clock
from cosim.engine.reference.driven import DrivenRank, ReferenceDriver, growing_program
from cosim.engine.reference.ranks import Rank
from cosim.engine.reference.replay import ReferenceReplay, num_operations
from cosim.engine.reference.traffic import iteration_bytes
from cosim.engine.under_way import Waiting
from cosim.network.simulator import NetworkSimulator
from cosim.workload.operation import OpKind

if TYPE_CHECKING:
    from cosim.engine.reference.collectives import Meeting


class LiveReference(ReferenceReplay):
    """See :class:`~cosim.engine.live.LiveReplay`."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self.driver = ReferenceDriver(self)
        self._most: dict[int, int] = {}
        self._watched: set[int] = set()
        self._tickets: list[int] = []
        self._ended: set[int] = set()
        self._arrivals: list[tuple[int, int]] = []
        self.carried: dict[int, Meeting] = {}
        """What code carries and is under way, by number."""
        self._num_carried = 0
        self._is_telling = False
        self._whom: Told = lambda *_: None
        super().__init__(*given, **more)
        self.clock.expects = self.flows.are_under_way

    # -- what processes see --------------------------------------------------------------------------

    @property
    def environment(self) -> Clock:
        """The clock, which is the processes' environment."""
        return self.clock

    @property
    def network(self) -> NetworkSimulator:
        """The network."""
        return self._network

    @property
    def now_ps(self) -> int:
        """The time."""
        return self.clock.now_ps

    def iterations_done(self, number: int) -> int:
        """Iterations that every rank of a job has ended."""
        return min(rank.oldest for rank in self.ranks[number])

    def issued(self, number: int, rank: int) -> int:
        """How many operations a driven rank was given."""
        return len(self.ranks[number][rank].program.operations)

    def slowness(self, number: int, rank: int) -> int:
        """How much longer a rank computes now, in millionths."""
        return self.ranks[number][rank].slowness

    def done(self) -> tuple[int, int]:
        """Operations that ended and messages that arrived."""
        return self.recorder.num_operations, self.recorder.num_messages

    def is_idle(self) -> bool:
        """Whether nothing is to come of which the time is known."""
        return self.clock.outbox.is_empty and self.clock.has_only(PROCESS)

    def waits_for(self, number: int, rank: int) -> list[Waiting]:
        """What a rank has under way, by when it began."""
        one = self.ranks[number][rank]
        found = []
        for step, since_ps in sorted(one.started.items(), key=lambda item: (item[1], item[0].op)):
            what = one.operation(step)
            kind = what.collective if what.kind is OpKind.COLLECTIVE else what.kind.value
            met = self.collectives.of(one, step) if what.kind is OpKind.COLLECTIVE else None
            found.append(Waiting(what.name, kind, since_ps, _to_come(met)))
        return found

    # -- what they are told --------------------------------------------------------------------------

    def tell(self, whom: Told) -> None:
        """Tell somebody what ends, before anything starts that follows from it."""
        self._whom = whom

    def tell_of(self, ticket: int) -> None:
        """What somebody waits for has ended now: tell him, with all else of this round."""
        self._tickets.append(ticket)
        self._tell_later()

    def iteration_ended(self, job: ReadyJob) -> None:
        """See :class:`~cosim.engine.reference.replay.ReferenceReplay`."""
        if job.number in self._watched:
            self._ended.add(job.number)
            self._tell_later()

    def _tell_later(self) -> None:
        if not self._is_telling:
            self._is_telling = True
            self.clock.due(self.clock.now_ps, TELLING, then=self._tell_now)

    def _tell_now(self, _: Event) -> None:
        self._is_telling = False
        tickets, self._tickets = self._tickets, []
        ended, self._ended = self._ended, set()
        arrivals, self._arrivals = self._arrivals, []
        self._whom(tickets, ended, arrivals)

    # -- collectives that code carries ---------------------------------------------------------------

    def carrier_waits(self, meeting: Meeting, position: int) -> None:
        """See :class:`~cosim.engine.reference.replay.ReferenceReplay`: code is told of it."""
        if len(meeting.came) == 1:
            self.carried[self._num_carried] = meeting
            self._num_carried += 1
        number = next(number for number, one in self.carried.items() if one is meeting)
        self._arrivals.append((number, position))
        self._tell_later()

    def met(self, number: int) -> MetCollective:
        """A rendezvous that code carries."""
        one = self.carried[number]
        return MetCollective(one.operation, one.plan, one.job.number, one.first[1].iteration, one.group)

    def leave_carried(self, met: int, position: int, messages: int, *, is_last: bool) -> None:
        """A rank is done now with a rendezvous that code carries, which has sent so many messages."""
        meeting = self.carried[met]
        meeting.num_messages = messages
        self.collectives.leave(meeting, position, self.clock.now_ps)
        if is_last:
            del self.carried[met]

    # -- what they do with jobs ----------------------------------------------------------------------

    def add(self, info: JobInfo) -> int:
        """Have one more job take part, from its start on."""
        world = info.workload.world_size
        self._kept.append(evenly(world, self._keeps))
        self.recorder.keep(self._kept[-1])
        self._total += num_operations(info)
        job = self._take_in(info)
        if not info.driven and info.start_ps > self.clock.now_ps:
            self._expect([job])
        elif not info.driven:
            job.coflow_bytes = iteration_bytes(job, self.plans)
            self._join(job)
        return job.number

    def _join(self, job: ReadyJob) -> None:
        """Have a job's ranks go on once all processes of this instant have done what they do."""
        for rank in self.ranks[job.number]:
            self.clock.due(self.clock.now_ps, JOINING, rank.place, then=rank.go_on_now)

    def begin_job(self, job: ReadyJob) -> None:
        """See :class:`~cosim.engine.reference.replay.ReferenceReplay`: where jobs are held, by a process."""
        if self.directing is None:
            super().begin_job(job)
            return
        job.coflow_bytes = iteration_bytes(job, self.plans)
        self._join(job)

    def order(self, order: JobOrder) -> None:
        """Have a job do as it is ordered from now on."""
        if self.directing is not None:
            self.directing.carry_out([order])
            return
        job = self.jobs[order.job]
        if order.channel is not None:
            job.channel = order.channel
        if order.priority is not None:
            job.info = replace(job.info, priority=order.priority)

    def most_iterations(self, job: ReadyJob) -> int:
        """See :class:`~cosim.engine.reference.replay.ReferenceReplay`: a paused job begins no more."""
        return self._most.get(job.number, job.info.iterations)

    def pause(self, number: int) -> int:
        """Have a job's ranks begin no iteration that none of them has begun: how many those are."""
        self._most[number] = max(rank.iteration for rank in self.ranks[number]) + 1
        return self._most[number]

    def resume(self, number: int, *, begins: bool) -> None:
        """Have a job that was paused go on now."""
        del self._most[number]
        if begins and self.jobs[number].info.start_ps <= self.clock.now_ps:
            self._join(self.jobs[number])

    def shorten(self, number: int, iterations: int) -> None:
        """Have a job be over after fewer iterations."""
        job = self.jobs[number]
        self._total -= num_operations(replace(job.info, iterations=max(0, job.info.iterations - iterations)))
        job.info = replace(job.info, iterations=iterations)
        self._most.pop(number, None)

    def watch(self, number: int) -> None:
        """Tell from now on when an iteration of a job's rank ends."""
        self._watched.add(number)

    # -- driven jobs ---------------------------------------------------------------------------------

    def _ready(self, number: int, info: JobInfo) -> ReadyJob:
        if not info.driven:
            return super()._ready(number, info)
        check_job(number, info, self._topology)
        programs = [growing_program(rank) for rank in range(info.workload.world_size)]
        return DrivenJob(number, info, self._topology, programs)

    def _rank(self, job: ReadyJob, number: int, place: int) -> Rank:
        return DrivenRank(self, job, number, place) if job.info.driven else super()._rank(job, number, place)

    def _info(self, job: ReadyJob) -> JobInfo:
        return self.driver.made(job) if job.info.driven else job.info


def _to_come(met: Meeting | None) -> tuple[int, ...]:
    """Ranks that have yet to come to a collective."""
    if met is None:
        return ()
    return tuple(rank for at, rank in enumerate(met.group.ranks) if at not in met.came)
