"""One rank of one job: which of its operations may start, and what is under way."""

from __future__ import annotations

from heapq import heappop, heappush

from cosim.engine.programs import ReadyJob, ReadyProgram


class Rank:
    """Runs its program, iteration after iteration. Plain lists: this is the engine's hottest Python."""

    __slots__ = (
        "busy",
        "cause_ps",
        "finish_ps",
        "free",
        "iteration",
        "iteration_ends",
        "job",
        "left",
        "number",
        "program",
        "ready",
        "started",
        "waits",
    )

    def __init__(self, job: ReadyJob, number: int) -> None:
        self.job = job
        self.number = number
        self.program: ReadyProgram = job.program(number)
        self.iteration = -1
        self.iteration_ends: list[int] = []
        self.left = 0
        self.finish_ps = -1
        self.waits: list[int] = []
        self.busy = [-1] * len(self.program.streams)
        self.ready: list[list[int]] = [[] for _ in self.program.streams]
        self.free: list[int] = []
        """Ready operations without a stream."""
        self.started: dict[int, int] = {}
        self.cause_ps = 0
        """When that became certain which lets operations start in the round under way."""

    @property
    def order(self) -> tuple[int, int]:
        """Ranks start things in this order."""
        return self.job.number, self.number

    def begin(self) -> bool:
        """Start the next iteration; whether there is one."""
        if self.iteration + 1 >= self.job.info.iterations:
            return False
        self.iteration += 1
        self.waits = list(self.program.waits)
        self.left = len(self.waits)
        for op in self.program.roots:
            self._make_ready(op)
        return True

    def _make_ready(self, op: int) -> None:
        stream = self.program.stream[op]
        heappush(self.free if stream < 0 else self.ready[stream], op)

    def startable(self) -> list[int]:
        """Take the operations that start now: the lowest of each idle stream, and all without one."""
        chosen = []
        for stream, ready in enumerate(self.ready):
            if ready and self.busy[stream] < 0:
                self.busy[stream] = op = heappop(ready)
                chosen.append(op)
        while self.free:
            chosen.append(heappop(self.free))
        return chosen

    def duration_ps(self, op: int) -> int:
        """How long a computation takes on this rank, this time."""
        duration, pace = self.program.operations[op].duration_ps, self.job.info.pace
        return duration if pace is None else pace.duration_ps(self.number, self.iteration, op, duration)

    def end(self, op: int, now: int) -> int:
        """An operation ended: free its stream, let its successors follow; when it started."""
        stream = self.program.stream[op]
        if stream >= 0:
            self.busy[stream] = -1
        for successor in self.program.successors[op]:
            self.waits[successor] -= 1
            if self.waits[successor] == 0:
                self._make_ready(successor)
        self.left -= 1
        self.finish_ps = now
        if self.left == 0:
            self.iteration_ends.append(now)
        return self.started.pop(op)

    @property
    def is_done(self) -> bool:
        """Every iteration has ended."""
        return self.left == 0 and self.iteration + 1 >= self.job.info.iterations
