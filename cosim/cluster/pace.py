"""Pace: computations that take longer or shorter than the workload says. Stragglers and jitter.

Every computation and memory access is scaled on its own, by the rank's slowdown and a draw that depends on
seed, job, rank, iteration and operation, so what one does changes no other. Not modelled: noise that is
correlated in time or between ranks, other than a straggler's; jitter of messages (the network's affair).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydantic import Field, model_validator

from cosim.errors import WorkloadError
from cosim.spec import Spec
from cosim.workload.draws import MILLION, UNIT, draw, normals, scaled
from cosim.workload.table import I64

_WHOLE = MILLION * UNIT


class Stragglers(Spec):
    """Ranks that compute slower, all along or for some iterations"""

    factor: float = Field(gt=0, allow_inf_nan=False, description="computations take so many times as long")
    ranks: tuple[int, ...] | None = Field(None, description="which ranks; or give a count")
    count: int | None = Field(None, ge=1, description="so many ranks, drawn with the scenario's seed")
    first_iteration: int = Field(0, ge=0, description="from this iteration on")
    iterations: int | None = Field(None, ge=1, description="for so many; omitted: to the end")

    @model_validator(mode="after")
    def _which(self) -> Stragglers:
        if (self.ranks is None) == (self.count is None):
            raise ValueError("give ranks, as in [3, 7], or a count")
        if self.factor == 1:
            raise ValueError("a factor of 1 makes no straggler")
        return self

    def chosen(self, num_ranks: int, seed: int, number: int) -> tuple[int, ...]:
        """The ranks, ascending. ``number`` tells several of these apart.

        Raises
        ------
        WorkloadError
            A rank that the job doesn't have, or more ranks than it has.
        """
        if self.ranks is not None:
            wrong = [rank for rank in self.ranks if not 0 <= rank < num_ranks]
            if wrong:
                raise WorkloadError(f"a straggler is rank {wrong[0]}; the job has ranks 0 to {num_ranks - 1}")
            return tuple(sorted(set(self.ranks)))
        assert self.count is not None
        if self.count > num_ranks:
            raise WorkloadError(f"{self.count} stragglers of {num_ranks} ranks")
        order = sorted(range(num_ranks), key=lambda rank: (draw(seed, number, rank), rank))
        return tuple(sorted(order[: self.count]))


@dataclass(frozen=True, slots=True)
class SlowRanks:
    """Stragglers, computed: parts per million of a computation's time."""

    ranks: frozenset[int]
    millionths: int
    first: int
    last: int | None


@dataclass(frozen=True, slots=True)
class JobPace:
    """How long a job's computations take: ``jitter`` is a standard deviation in millionths."""

    seed: int
    jitter: int
    slow: tuple[SlowRanks, ...]

    def durations_ps(self, rank: int, iteration: int, operation: I64, duration_ps: I64) -> I64:
        """Durations of operations of a rank's program that would take ``duration_ps``; never below zero."""
        for one in self.slow:
            begun = iteration >= one.first and (one.last is None or iteration <= one.last)
            if begun and rank in one.ranks:
                duration_ps = scaled(duration_ps, one.millionths)
        if self.jitter:
            drawn = normals(self.seed, (rank, iteration), operation).tolist()
            # The products leave int64, so they are Python's: the draws are what costs.
            own = zip(duration_ps.tolist(), drawn, strict=True)
            paced = [max(0, one * (_WHOLE + self.jitter * more) // _WHOLE) for one, more in own]
            duration_ps = np.array(paced, np.int64)
        return duration_ps


def pace(
    stragglers: tuple[Stragglers, ...], jitter: float, num_ranks: int, seed: int, job: int
) -> JobPace | None:
    """The pace of job number ``job``; None where nothing changes.

    Raises
    ------
    WorkloadError
        As :meth:`Stragglers.chosen`.
    """
    own = draw(seed, job)
    slow = tuple(
        SlowRanks(
            frozenset(one.chosen(num_ranks, own, number)),
            round(one.factor * MILLION),
            one.first_iteration,
            None if one.iterations is None else one.first_iteration + one.iterations - 1,
        )
        for number, one in enumerate(stragglers)
    )
    if not slow and jitter == 0:
        return None
    return JobPace(own, round(jitter * MILLION), slow)
