"""Jobs that somebody directs while a replay runs: where and when they begin, and what their iterations wait
for.

A :class:`Director` is told when jobs arrive and end, and answers with orders; it is asked before each
iteration of those that it may delay. What is under way is never touched: an order's channel and priority are
those of messages to come.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cosim.engine.engine import Engine
from cosim.engine.programs import ReadyJob
from cosim.errors import SimulationError
from cosim.network.flows import I32


@dataclass(frozen=True, eq=False, slots=True)
class JobOrder:
    """To one job, by number: begin now on ``endpoints`` (None: it runs, or waits on); from now on new
    messages have this ``priority``, and this added to their channels. None: as before.
    """

    job: int
    endpoints: I32 | None = None
    priority: int | None = None
    channel: int | None = None


class Director(ABC):
    """Says which jobs run where. Times are picoseconds, jobs are numbered as they were given."""

    @abstractmethod
    def arrived(self, jobs: Sequence[int], now_ps: int) -> Sequence[JobOrder]:
        """Jobs arrived now; those that are not ordered to begin wait until they are."""

    @abstractmethod
    def ended(self, job: int, now_ps: int) -> Sequence[JobOrder]:
        """The last rank of a job has ended its last iteration."""

    def delays(self, job: int) -> bool:  # noqa: ARG002 - as a director that says no more does
        """Whether iterations of a job may have to wait; of others, :meth:`starts` is not asked."""
        return True

    @abstractmethod
    def starts(self, job: int, iteration: int, now_ps: int) -> int:
        """When an iteration of a job may start whose first rank is ready now: no earlier."""


class Directing:
    """Asks a director, and does what it says."""

    def __init__(
        self,
        director: Director,
        engine: Engine,
        jobs: Sequence[ReadyJob],
        begin: Callable[[ReadyJob], None],
    ) -> None:
        self._director = director
        self._engine = engine
        self._jobs = jobs
        self._prepare = begin
        self._left: list[set[int]] = [set() for _ in jobs]
        self._starts: dict[int, tuple[int, int]] = {}
        delays = [director.delays(job.number) for job in jobs]
        self.delays = any(delays)
        """Whether somebody's iterations may have to wait."""
        engine.columns.jobs["directed"][: len(jobs)] = 1 + np.array(delays, np.int32)
        engine.on_start = self._start_of

    def arrive(self, jobs: Sequence[ReadyJob], now: int) -> None:
        """Jobs arrive now."""
        self.carry_out(self._director.arrived([job.number for job in jobs], now), now)

    def _start_of(self, rank: int, now: int) -> int:
        """When a rank may begin its next iteration; now, where it is through with all."""
        row = self._engine.columns.ranks[rank]
        job, iteration = int(row["job"]), int(row["iteration"]) + 1
        if int(row["oldest"]) == self._jobs[job].info.iterations:
            self._one_less(job, rank, now)
            return now
        if self._starts.get(job, (-1, 0))[0] < iteration:
            start = self._director.starts(job, iteration, now)
            if start < now:
                raise SimulationError(f"an iteration that is ready at {now} ps can't start at {start} ps")
            self._starts[job] = iteration, start
        known, start = self._starts[job]
        return max(start, now) if known == iteration else now

    def _one_less(self, job: int, rank: int, now: int) -> None:
        """A rank is through."""
        self._left[job].discard(rank)
        if not self._left[job]:
            self.carry_out(self._director.ended(job, now), now)

    def carry_out(self, orders: Sequence[JobOrder], now: int) -> None:
        """Do as jobs are ordered."""
        for order in orders:
            job = self._jobs[order.job]
            tell(self._engine, job, order)
            if order.endpoints is not None:
                job.settle(np.ascontiguousarray(order.endpoints, np.int32), now)
                self._prepare(job)
            if order.endpoints is not None or order.channel is not None:
                self._engine.bind_anew(order.job)
            if order.endpoints is not None:
                first = self._engine.tables.rank0[order.job]
                self._left[order.job] = {*range(first, first + job.info.workload.world_size)}
                self._engine.begin(order.job, now)


def tell(engine: Engine, job: ReadyJob, order: JobOrder) -> None:
    """Have a job's messages to come have another priority, or added to their channels."""
    if order.channel is not None:
        job.channel = order.channel
    if order.priority is not None and order.priority != job.info.priority:
        job.info = replace(job.info, priority=order.priority)
        engine.forget_traits(order.job)
