"""Arrivals: when each of several jobs of one kind starts, after the job's ``start``.

Times depend on the scenario's seed and the jobs' numbers alone. Not modelled: a queue of jobs that wait for
endpoints to become free; every job has its endpoints from the beginning.
"""

from __future__ import annotations

from pydantic import Field

from cosim.cluster.contract import Arrival
from cosim.context import Context
from cosim.errors import WorkloadError
from cosim.spec import TimePs
from cosim.workload.draws import UNIT, draw, exponential


class _Drawn(Arrival):
    """An arrival process with a seed."""

    seed: int | None = Field(
        None, ge=0, description="seed of the draws; the scenario's seed where it is left out"
    )

    def uses_seed(self) -> bool:
        """Without a seed of its own."""
        return self.seed is None

    def _seed(self, context: Context) -> int:
        return context.seed if self.seed is None else self.seed


class Regular(Arrival):
    """One after another, a fixed time apart; the first at once"""

    every: TimePs = Field(ge=0, description="time between two starts")

    def times(self, count: int, context: Context) -> list[int]:  # noqa: ARG002 - nothing is drawn
        """See :meth:`Arrival.times`."""
        return [k * self.every for k in range(count)]


class Poisson(_Drawn):
    """A Poisson process: exponential times between starts, the first after one of them"""

    mean: TimePs = Field(gt=0, description="mean time between two starts")

    def times(self, count: int, context: Context) -> list[int]:
        """See :meth:`Arrival.times`."""
        now, out = 0, []
        for k in range(count):
            now += self.mean * exponential(self._seed(context), k) // UNIT
            out.append(now)
        return out


class Offsets(_Drawn):
    """Each at a time of its own, uniform from 0 up to a limit: jobs that run all along, out of step"""

    within: TimePs = Field(gt=0, description="starts lie in [0, within)")

    def times(self, count: int, context: Context) -> list[int]:
        """See :meth:`Arrival.times`."""
        return [self.within * (draw(self._seed(context), k) >> 32) // UNIT for k in range(count)]


class At(Arrival):
    """Starts given one by one"""

    starts: tuple[TimePs, ...] = Field(min_length=1, description="start of each job, in order")

    def times(self, count: int, context: Context) -> list[int]:  # noqa: ARG002 - nothing is drawn
        """See :meth:`Arrival.times`."""
        if len(self.starts) != count:
            raise WorkloadError(f"{len(self.starts)} starts are listed for {count} jobs")
        return list(self.starts)
