"""Somebody else says where and when jobs begin, and what their iterations wait for: a queue, a scheduler.

See :class:`~cosim.engine.directing.Director`. What is under way is never touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cosim.engine.programs import ReadyJob
from cosim.engine.reference.ranks import Rank
from cosim.errors import SimulationError

if TYPE_CHECKING:
    from cosim.engine.directing import Director, JobOrder
    from cosim.engine.reference.replay import ReferenceReplay


class DirectedJobs:
    """Asks a director, and does what it says."""

    def __init__(self, director: Director, run: ReferenceReplay) -> None:
        self._director = director
        self._run = run
        self._left: dict[int, int] = {}
        self._starts: dict[int, tuple[int, int]] = {}

    def arrive(self, jobs: Sequence[ReadyJob]) -> None:
        """Jobs arrive now."""
        self.carry_out(self._director.arrived([job.number for job in jobs], self._run.clock.now_ps))

    def start_of(self, rank: Rank) -> int:
        """When a rank may begin its next iteration, which is ready now."""
        job, iteration, now = rank.job.number, rank.iteration + 1, rank.clock.now_ps
        if self._starts.get(job, (-1, 0))[0] < iteration:
            start = self._director.starts(job, iteration, now)
            if start < now:
                raise SimulationError(f"an iteration that is ready at {now} ps can't start at {start} ps")
            self._starts[job] = iteration, start
        known, start = self._starts[job]
        return max(start, now) if known == iteration else now

    def is_through(self, rank: Rank) -> None:
        """A rank has ended its last iteration."""
        job = rank.job.number
        if job not in self._left:  # nobody directs it
            return
        self._left[job] -= 1
        if not self._left[job]:
            self.carry_out(self._director.ended(job, rank.clock.now_ps))

    def carry_out(self, orders: Sequence[JobOrder]) -> None:
        """Do as jobs are ordered."""
        begins = []
        for order in orders:
            job = self._run.jobs[order.job]
            if order.channel is not None:
                job.channel = order.channel
            if order.priority is not None:
                job.info = replace(job.info, priority=order.priority)
            if order.endpoints is not None:
                job.settle(np.ascontiguousarray(order.endpoints, np.int32), self._run.clock.now_ps)
                self._left[job.number] = job.info.workload.world_size
                begins.append(job)
        for job in begins:
            self._run.begin_job(job)
