"""A rank: a SimPy process that starts what is ready, one operation at a time on each of its streams.

Of several operations that could start on a stream, the lowest-numbered of the earliest iteration goes first.
Where operations look back over iterations, several of these are open at once (``Slots``).
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cached_property, partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from simpy.events import Event, Process

from cosim.engine.plans import By
from cosim.engine.programs import ReadyJob, ReadyProgram
from cosim.engine.reference.clock import ENDING
from cosim.errors import WorkloadError
from cosim.units import NEVER
from cosim.workload.draws import MILLION, scaled
from cosim.workload.operation import Operation, OpKind

if TYPE_CHECKING:
    from cosim.engine.reference.replay import ReferenceReplay


class RankStep(NamedTuple):
    """An operation of a rank in one iteration. They go in this order."""

    iteration: int
    op: int


class Precedence:
    """What a program's operations wait for, within an iteration and over iterations."""

    def __init__(self, program: ReadyProgram) -> None:
        operations = program.operations
        for op, one in enumerate(operations):
            for other in (*one.deps, *(other for other, _ in one.lagged)):
                if not 0 <= other < len(operations) or (other == op and other in one.deps):
                    raise WorkloadError(
                        f"program {program.name!r}: operation {op} {one.name!r} depends on {other}, "
                        f"which is not another of its {len(operations)} operations"
                    )
        self.lags = [sorted({*one.lagged}) for one in operations]
        self.followers: list[list[tuple[int, int]]] = [[(op, 0) for op in ops] for ops in program.successors]
        for op, lagged in enumerate(self.lags):
            for other, lag in lagged:
                self.followers[other].append((op, lag))
        # Without dependencies in its iteration, an operation waits for that to begin.
        self.roots = [op for op, count in enumerate(program.waits) if count == 0]
        self._waits = [max(count, 1) for count in program.waits]

    def waits(self, step: RankStep) -> int:
        """For how much a step waits: what lies before the first iteration has ended, as it were."""
        return self._waits[step.op] + sum(lag <= step.iteration for _, lag in self.lags[step.op])


class Rank:
    """One rank of a job. ``number`` is its own in the job, ``place`` that among all jobs' ranks."""

    def __init__(self, run: ReferenceReplay, job: ReadyJob, number: int, place: int) -> None:
        self.run, self.job, self.number, self.place = run, job, number, place
        self.clock = run.clock
        self.program = job.program(number)
        self.steps = run.steps_of(self.program)
        self.iteration = -1
        """The last that has begun; those from ``oldest`` on have not ended."""
        self.oldest = 0
        self.finish_ps = -1
        self.ends_ps: list[int] = []
        self.left: dict[int, int] = {}  # iteration -> operations that have yet to end
        self.waiting: dict[RankStep, int] = {}  # for how much more, where some of it was met
        self.started: dict[RankStep, int] = {}
        self.ready: list[list[tuple[bool, RankStep]]] = [
            [] for _ in (*self.program.streams, "none")
        ]  # heaps, as of streams; what is ahead comes first
        self.owed = [0 for _ in self.program.streams]  # that are ahead before the next one that isn't
        self.ahead = [0 for _ in self.program.streams]  # that have yet to start, in all iterations
        for one, stream in zip(self.program.operations, self.program.stream, strict=True):
            if one.ahead:
                self.owed[stream] = one.ahead
                self.ahead[stream] += job.info.iterations
        self.busy: dict[int, RankStep] = {}  # stream -> what holds it
        self.cause_ps = 0
        """When that became certain which lets operations start in the round of starts at hand."""
        self._cause_of = (-1, -1)
        self.slowness = MILLION
        self._durations: dict[int, dict[int, int]] = {}
        self._awake = Event(self.clock)
        Process(self.clock, self._live())

    @property
    def endpoint(self) -> int:
        """Where it sits."""
        return int(self.job.info.endpoints[self.number])

    @property
    def is_through(self) -> bool:
        """Whether all its iterations have ended."""
        return self.oldest == self.job.info.iterations

    def operation(self, step: RankStep) -> Operation:
        """What a step does."""
        return self.program.operations[step.op]

    def algorithm(self, step: RankStep) -> By:
        """What carries a collective; empty: as the run has it."""
        del step
        return ""

    def traits(self, step: RankStep) -> int:
        """Which of its job's traits messages of a step have: of an iteration each its own."""
        return step.iteration

    # -- the process ---------------------------------------------------------------------------------

    def _live(self) -> Generator[Event, None, None]:
        """Start whatever may start, each time that something may."""
        while True:
            yield self._awake
            self._awake = Event(self.clock)
            if self._cause_of != (self.clock.now_ps, self.clock.round - 1):
                self.cause_ps = 0  # nothing that ended in this round lets it start
            for step in self._choose():
                self._start(step)

    def _look(self) -> None:
        """Have the process look in the next round of starts; once is enough."""
        if not self._awake.triggered:
            self.clock.start_next_round(self._awake, self.place)

    def _choose(self) -> list[RankStep]:
        """The first of each stream that nothing holds, and all that are in no stream."""
        *streams, free = self.ready
        chosen = []
        for stream, ready in enumerate(streams):
            if ready and stream not in self.busy and self._takes_its_turn(stream, ready[0][1]):
                self.busy[stream] = heappop(ready)[1]
                chosen.append(self.busy[stream])
        return chosen + [heappop(free)[1] for _ in range(len(free))]

    def _takes_its_turn(self, stream: int, step: RankStep) -> bool:
        """Whether a step may start now; if so, it is counted (:attr:`Operation.ahead`)."""
        ahead = self.operation(step).ahead > 0
        if not ahead and self.owed[stream] > 0 and self.ahead[stream] > 0:
            return False
        self.owed[stream] += -1 if ahead else 1
        self.ahead[stream] -= ahead
        return True

    def _start(self, step: RankStep) -> None:
        one, now = self.operation(step), self.clock.now_ps
        self.started[step] = now
        if one.kind is OpKind.COLLECTIVE:
            self.run.collectives.come(self, step)
        elif one.kind is OpKind.SEND or one.kind is OpKind.RECV:
            self.run.messages.post(self, step)
        elif one.access and self.job.info.memory_nodes is not None:
            self.run.messages.ask_node(self, step)
        elif one.access:
            begin = max(now, self.run.free_at.get(self._device, 0))
            # Who comes first is served first, and how long that takes is known: no queue need be kept.
            if self._device >= 0:
                self.run.free_at[self._device] = begin + one.duration_ps
            self.end_at(begin + one.duration_ps, step, now)
        elif one.kind is OpKind.COMPUTE and self.job.info.on_units:
            self.run.messages.compute(self, step)
        else:
            self.end_at(now + self._duration(step), step, now)

    @property
    def _device(self) -> int:
        """The memory that serves its accesses one after another; -1: none does."""
        devices = self.job.info.devices
        return -1 if devices is None else int(devices[self.endpoint])

    def end_at(self, time_ps: int, step: RankStep, cause_ps: int) -> None:
        """A step ends then, which is certain since ``cause_ps``."""
        slot = step.iteration % self.job.slots.count
        who = self.place, slot * len(self.program.operations) + step.op
        self.clock.due(time_ps, ENDING, *who, then=partial(self._end, step, cause_ps))

    def leave(self, step: RankStep, cause_ps: int, messages: int) -> None:  # noqa: ARG002 - of driven ranks
        """It is done now with a collective of so many messages."""
        self.end_at(self.clock.now_ps, step, cause_ps)

    def _end(self, step: RankStep, cause_ps: int, _: Event) -> None:
        """A step has ended: its stream is free, and what waited for it may follow."""
        now = self.clock.now_ps
        self.run.recorder.operation(self.job.number, self.number, step, self.started.pop(step), now)
        self.take_cause(cause_ps)
        stream = self.program.stream[step.op]
        self.busy.pop(stream, None)
        starts = stream >= 0 and bool(self.ready[stream])
        for op, lag in self.steps.followers[step.op]:
            starts |= self._is_met(RankStep(step.iteration + lag, op))
        self.finish_ps = now
        if starts:
            self._look()
        self.left[step.iteration] -= 1
        if not self.left[step.iteration] and step.iteration == self.oldest:
            self._close()
            self.run.iteration_ended(self.job)
            self.go_on()

    def take_cause(self, cause_ps: int) -> None:
        """Something of it has ended now, which was certain since then."""
        of_round = self.clock.now_ps, self.clock.round
        if self._cause_of != of_round:  # else something else ended in this round, too
            self._cause_of, self.cause_ps = of_round, 0
        self.cause_ps = max(self.cause_ps, cause_ps)

    def _is_met(self, step: RankStep) -> bool:
        """One of the things that a step waits for is there; whether it may start."""
        self.waiting[step] = self.waiting.get(step, self.steps.waits(step)) - 1
        if self.waiting[step]:
            return False
        stream = self.program.stream[step.op]
        heappush(self.ready[stream], (self.operation(step).ahead == 0, step))
        return stream not in self.busy

    # -- iterations ----------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Begin as many iterations as may: all but the last few have ended, and nobody holds it back."""
        directing = self.run.directing
        most = self.run.most_iterations(self.job)
        while self.iteration + 1 < min(most, self.oldest + self.job.slots.open):
            start = self.clock.now_ps if directing is None else directing.start_of(self)
            if start > self.clock.now_ps:
                self.clock.due(start, ENDING, self.place, -1, then=self.go_on_now)
                return
            self._begin()
        if directing is not None and self.is_through:
            directing.is_through(self)

    def go_on_now(self, _: Event) -> None:
        """The same, as what an event does."""
        self.go_on()

    def _begin(self) -> None:
        """Begin the next iteration; an empty one ends at once."""
        self.iteration += 1
        self.left[self.iteration] = len(self.program.operations)
        self._work_out(self.iteration)
        for op in self.steps.roots:
            self._is_met(RankStep(self.iteration, op))
        if self.program.operations:
            self._look()
        elif self.oldest == self.iteration:
            self.finish_ps = self.clock.now_ps
            self._close()

    def _close(self) -> None:
        """The oldest iteration has ended, and with it those after it that ended before."""
        while self.oldest <= self.iteration and not self.left[self.oldest]:
            self.ends_ps.append(self.clock.now_ps)
            del self.left[self.oldest]
            for op in range(len(self.program.operations)):
                del self.waiting[RankStep(self.oldest, op)]
            self._durations.pop(self.oldest, None)
            self.oldest += 1

    # -- how long computations take ------------------------------------------------------------------

    @cached_property
    def _computations(self) -> list[int]:
        return [
            op
            for op, one in enumerate(self.program.operations)
            if not one.access and one.kind in (OpKind.COMPUTE, OpKind.MEMORY)
        ]

    def _work_out(self, iteration: int) -> None:
        """How long computations of an iteration take here: some ranks are slower, or vary."""
        pace, ops = self.job.info.pace, self._computations
        if pace is not None:
            said = np.array([self.program.operations[op].duration_ps for op in ops], np.int64)
            own = pace.durations_ps(self.number, iteration, np.array(ops, np.int64), said)
            self._durations[iteration] = dict(zip(ops, scaled(own, self.slowness).tolist(), strict=True))

    def _duration(self, step: RankStep) -> int:
        known = self._durations.get(step.iteration)
        return min(self.operation(step).duration_ps if known is None else known[step.op], NEVER)

    def slow_down(self, millionths: int) -> None:
        """What it begins to compute from now on takes longer, or as long as before."""
        self.slowness = millionths
        for iteration in range(self.oldest, self.iteration + 1):
            self._work_out(iteration)
