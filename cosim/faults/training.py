"""How long a training takes that is interrupted: failures, checkpoints, restarts.

A job computes iterations back to back, writes a checkpoint every so often, and starts again from the last
one that was written when a rank fails: what was computed since is lost, and so is the time until it runs
again. One SimPy process; an iteration takes what it takes in the replay, which is not repeated for each.

The best interval between checkpoints is J. T. Daly's: "A higher order estimate of the optimum checkpoint
interval for restart dumps", Future Generation Computer Systems 22 (2006), doi:10.1016/j.future.2004.11.016;
to first order it is J. W. Young's, CACM 17 (1974), doi:10.1145/361147.361115.

Not modelled: what else shares the fabric while a job is down; checkpoints that are written beside the
computation.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import simpy
from pydantic import Field, model_validator

from cosim.spec import LongPs, Spec

MOST_SETBACKS = 5_000
"""What is kept of failures one by one; sums are of all."""


class Checkpoints(Spec):
    """How often a job writes its state, and how long that takes"""

    every: Literal["best"] | LongPs = Field(
        "best",
        description="computed time between two; best: by the time that one takes and how often ranks fail",
    )
    time: LongPs = Field(0, ge=0, description="how long one takes, in which nothing is computed")

    @model_validator(mode="after")
    def _takes_time(self) -> Checkpoints:
        if isinstance(self.every, int) and self.every <= 0:
            raise ValueError("every is a time above zero, or best")
        return self


class TrainingRun(Spec):
    """A whole training, of which the job's iterations are a sample"""

    lasts: LongPs = Field(gt=0, description="how long it goes on, failures included")
    checkpoint: Checkpoints = Field(Checkpoints(), description="how its state is kept")
    restart: LongPs = Field(
        0, ge=0, description="from a failure until it computes again; a failure's own repair comes before it"
    )


class Failure(NamedTuple):
    """A rank fails; the job can't start again before ``repair_ps`` are over."""

    time_ps: int
    rank: int
    cause: str
    repair_ps: int


@dataclass
class Cause:
    """What one cause of failures cost, in ps: computed again, and down."""

    name: str
    failures: int = 0
    redone_ps: int = 0
    down_ps: int = 0


@dataclass
class Setback:
    """One failure: when, of which of the causes, and what it cost, in ps."""

    time_ps: int
    cause: int
    redone_ps: int
    down_ps: int = 0


@dataclass
class Lifetime:
    """What came of a training. Times in ps; they add up to ``lasts_ps``.

    ``useful_ps`` is what was computed and not lost, ``checkpoint_ps`` what writing took, ``redone_ps`` what
    was lost, with what was written of it, ``down_ps`` the time until the job ran again. ``every_ps`` is the
    interval between checkpoints, in computed time. ``setbacks`` are the first :data:`MOST_SETBACKS`
    failures, in order of time: what was computed again is the time before each.
    """

    lasts_ps: int
    iteration_ps: int
    every_ps: int
    useful_ps: int = 0
    checkpoint_ps: int = 0
    redone_ps: int = 0
    down_ps: int = 0
    checkpoints: int = 0
    causes: list[Cause] = field(default_factory=list)
    setbacks: list[Setback] = field(default_factory=list)

    @property
    def goodput(self) -> float:
        """The share of the time that brought the training on."""
        return self.useful_ps / self.lasts_ps

    @property
    def failures(self) -> int:
        """How many, of all causes."""
        return sum(cause.failures for cause in self.causes)


def best_interval_ps(checkpoint_ps: int, mtbf_ps: float) -> float:
    """Computed time between checkpoints that loses least: Daly's estimate, for exponential failures."""
    if checkpoint_ps >= 2 * mtbf_ps:
        return mtbf_ps
    small = checkpoint_ps / (2 * mtbf_ps)
    root = math.sqrt(2 * checkpoint_ps * mtbf_ps)
    return root * (1 + math.sqrt(small) / 3 + small / 9) - checkpoint_ps


def live(
    training: TrainingRun, iteration_ps: int, failures: Iterable[Failure], mtbf_ps: float | None
) -> Lifetime:
    """Go through a training.

    Parameters
    ----------
    training
        How long, and what is done about failures.
    iteration_ps
        How long an iteration takes, above zero.
    failures
        Of the job's ranks, in order of time.
    mtbf_ps
        Mean time between them; None where there are none.
    """
    wished: float = training.lasts
    if training.checkpoint.every != "best":
        wished = training.checkpoint.every
    elif mtbf_ps is not None:
        wished = min(wished, best_interval_ps(training.checkpoint.time, mtbf_ps))
    # A checkpoint is written between two iterations.
    every = max(1, round(wished / iteration_ps)) * iteration_ps
    life = Lifetime(training.lasts, iteration_ps, every)
    environment = simpy.Environment()
    job = _TrainingProcess(environment, training, life)
    environment.process(job.fail(iter(failures)))
    environment.run(until=training.lasts)
    job.stop()
    return life


class _TrainingProcess:
    """The process, and what interrupts it."""

    def __init__(self, environment: simpy.Environment, training: TrainingRun, life: Lifetime) -> None:
        self._environment, self._training, self._life = environment, training, life
        self._since = 0
        self._computed = self._written = 0
        self._state: Literal["computing", "writing", "down"] = "computing"
        self._causes: dict[str, Cause] = {}
        self._cause: Cause | None = None
        self._process = environment.process(self._run(0))

    def _run(self, down_ps: int) -> Generator[simpy.Event, Any, None]:
        """Wait until the job may run, then compute and write until somebody interrupts."""
        timeout = self._environment.timeout
        try:
            yield timeout(down_ps)
            self._note()
            self._cause = None
            while True:
                self._state = "computing"
                yield timeout(self._life.every_ps)
                self._note()
                self._state = "writing"
                yield timeout(self._training.checkpoint.time)
                self._note()
                self._life.checkpoints += 1
                self._keep()
        except simpy.Interrupt:
            return

    def fail(self, failures: Iterator[Failure]) -> Generator[simpy.Event, Any, None]:
        """Interrupt the job at each failure, and have it start again."""
        for one in failures:
            if one.time_ps >= self._life.lasts_ps:
                return
            yield self._environment.timeout(one.time_ps - self._environment.now)
            self._note()
            cause = self._causes.setdefault(one.cause, Cause(one.cause))
            if cause not in self._life.causes:
                self._life.causes.append(cause)
            cause.failures += 1
            if self._life.failures <= MOST_SETBACKS:
                lost = self._computed + self._written
                self._life.setbacks.append(Setback(one.time_ps, self._life.causes.index(cause), lost))
            cause.redone_ps += self._computed + self._written
            self._life.redone_ps += self._computed + self._written
            self._computed = self._written = 0
            self._state, self._cause = "down", cause
            if self._process.is_alive:
                self._process.interrupt()
            self._process = self._environment.process(self._run(one.repair_ps + self._training.restart))

    def stop(self) -> None:
        """The end: what was computed since the last checkpoint is not lost."""
        self._note()
        self._keep()

    def _note(self) -> None:
        """Count the time since this was last asked, by what the job did."""
        passed = int(self._environment.now) - self._since
        self._since += passed
        if self._state == "computing":
            self._computed += passed
        elif self._state == "writing":
            self._written += passed
        else:
            assert self._cause is not None
            self._cause.down_ps += passed
            if self._life.failures <= MOST_SETBACKS:
                self._life.setbacks[-1].down_ps += passed
            self._life.down_ps += passed

    def _keep(self) -> None:
        """What was computed is safe."""
        self._life.useful_ps += self._computed
        self._life.checkpoint_ps += self._written
        self._computed = self._written = 0
