"""PipeDream's partitioner: which layers on how many workers, so that the slowest stage is fast.

A dynamic program over the place of the last cut and the workers behind it, for one level of machines after
the other: inside a machine, then over machines, each of which is a worker of the level above. Source: D.
Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019,
doi:10.1145/3341301.3359646, and the program released with it.

==========  ==================================================================================
equation    a stage with computation T and weights W on m workers, links of B bytes a second
==========  ==================================================================================
``paper``   max(T, 4 (m - 1) W / (m B)) / m; behind the first stage at least 2 a / (m B) for what comes in,
            and for what goes out
``code``    (T + 4 (m - 1) W / (m B)) / m; activations are left out
==========  ==================================================================================

A stage on all machines of a level alone synchronises them once for a minibatch of each worker within: its
synchronisation is shared by these. The paper counts it for each minibatch, the released program does so here,
and so does the replay.

Not modelled: links that stages share, and that a stage waits while another one's messages pass; the replay
does both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cosim.errors import WorkloadError
from cosim.units import format_size, parse_rate
from cosim.workload.layers.plan import PlannedStage, StagePlan
from cosim.workload.layers.profile import LayerProfile

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Equation = Literal["paper", "code"]
_MOST_TRIED = 4_000_000
"""Layers times workers squared: half a minute."""


@dataclass(frozen=True, slots=True)
class Level:
    """``workers`` that are joined by links of ``rate_bps``: GPUs of a machine, or machines."""

    workers: int
    rate_bps: float


def parse_levels(text: str, workers: int) -> list[Level]:
    """Levels from ``4@16GB/s,4@10Gbps``: the inside of a machine first.

    Raises
    ------
    WorkloadError
        Not such a text, or levels that don't have ``workers`` together.
    """
    levels = []
    for part in text.split(","):
        count, _, rate = part.partition("@")
        try:
            levels.append(Level(int(count), parse_rate(rate)))
        except ValueError:
            raise WorkloadError(
                f"level {part[:40]!r}", hint="levels are WORKERS@RATE,...: 4@16GB/s"
            ) from None
    together = math.prod(level.workers for level in levels)
    if together != workers or min(level.workers for level in levels) < 1:
        said = " x ".join(str(level.workers) for level in levels)
        raise WorkloadError(
            f"levels {text}: {said} workers are not {workers}", hint=f"give {together} workers"
        )
    return levels


@dataclass(frozen=True, slots=True)
class Partition:
    """A plan with the time of a minibatch as predicted, and that of plain data parallelism, in seconds."""

    plan: StagePlan
    minibatch_s: float
    data_parallel_s: float

    @property
    def speedup(self) -> float:
        """Over data parallelism."""
        return self.data_parallel_s / self.minibatch_s if self.minibatch_s else 1.0


@dataclass(frozen=True, slots=True)
class _Solved:
    """A level: by (first layer, last layer, workers - 1) the time, how many stages, and where the last one
    was cut off: the layer before it and its workers, 0 where there is one stage.
    """

    level: Level
    time: F64
    stages: I64
    cut: I64
    behind: I64


def predicted_s(
    profile: LayerProfile,
    plan: StagePlan,
    rate_bps: float,
    *,
    equation: Equation = "paper",
    activations: bool = True,
) -> float:
    """The time of a minibatch in the steady state of a plan, all workers on links of one rate: seconds."""
    first, rate, slowest = True, rate_bps / 8, 0.0
    out = profile.crossing_bytes
    for stage in plan.stages:
        compute = float(profile.compute_s[stage.first : stage.last].sum())
        weights = float(profile.parameter_bytes[stage.first : stage.last].sum())
        m = stage.workers
        slowest = max(slowest, float(_together(compute, 4 * (m - 1) * weights / (m * rate), equation)) / m)
        if not first and activations and equation == "paper":
            slowest = max(slowest, 2 * float(max(out[stage.first - 1], out[stage.last - 1])) / (m * rate))
        first = False
    return slowest


def partition(
    profile: LayerProfile,
    levels: Sequence[Level],
    *,
    equation: Equation = "paper",
    memory_bytes: int | None = None,
    straight: bool = False,
    activations: bool = True,
) -> Partition:
    """The plan whose slowest stage is fastest; of equal ones that with fewer stages at a level, and
    later cuts.

    Parameters
    ----------
    profile
        The layers.
    levels
        From the inside out.
    equation
        What a stage takes.
    memory_bytes
        Of a worker; None: no limit.
    straight
        A worker for each stage.
    activations
        Count what is sent between stages (``paper``).

    Raises
    ------
    WorkloadError
        No plan fits into the memory; no worker; more straight stages than layers.
    """
    if not levels or min(level.workers for level in levels) < 1:
        raise WorkloadError("a plan needs workers", hint="give workers: 1 or more")
    widest = max(level.workers for level in levels)
    if not straight and widest**2 * len(profile) > _MOST_TRIED:
        raise WorkloadError(
            f"{profile.name}: {len(profile)} layers on {widest} workers of one level are too many to try",
            hint="levels of machines, as in levels: 8@300GB/s,32@100Gbps, or a written plan",
        )
    counted = activations and equation == "paper"
    time = _ranges(profile.compute_s)
    solved: list[_Solved] = []
    within = 1
    for level in levels:
        step = _LevelProblem(profile, level, equation, within, memory_bytes, straight, counted)
        starts = 1 if level is levels[-1] else len(profile)  # nobody asks the outermost for less than all
        solved.append(step.solve(time, starts))
        time = solved[-1].time[:, :, -1]
        within *= level.workers
    if not np.isfinite(time[0, -1]):
        raise _no_plan(profile, within, memory_bytes, straight)
    plan = StagePlan(tuple(_stages(solved, len(solved) - 1, 0, len(profile), 1)))
    plan.check(profile, within, memory_bytes)
    return Partition(plan, float(time[0, -1]), data_parallel_s(profile, levels, equation))


def data_parallel_s(profile: LayerProfile, levels: Sequence[Level], equation: Equation = "paper") -> float:
    """The time of a minibatch where every worker holds all layers: seconds."""
    time, within = float(profile.compute_s.sum()), 1
    weights = float(profile.parameter_bytes.sum())
    for level in levels:
        m = level.workers
        sync = 4 * (m - 1) * weights / (m * level.rate_bps / 8)
        time = float(_together(time, sync / within, equation)) / m
        within = within * m
    return time


def _together(compute: F64 | float, sync: F64 | float, equation: Equation) -> F64:
    return np.asarray(np.maximum(compute, sync) if equation == "paper" else compute + sync, np.float64)


def _ranges(values: NDArray[np.int64] | F64) -> F64:
    """float64[layers, layers]: the sum from one to another, both included; NaN where that is before it."""
    total = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    made: F64 = total[None, 1:] - total[:-1, None]
    made[np.tril_indices(len(values), -1)] = np.nan
    return made


@dataclass(frozen=True, slots=True)
class _LevelProblem:
    """One level's dynamic program."""

    profile: LayerProfile
    level: Level
    equation: Equation
    within: int
    memory_bytes: int | None
    straight: bool
    activations: bool

    def solve(self, inner: F64, starts: int) -> _Solved:
        """``inner``: float64[first, last], what a worker of this level takes for a range of layers; solved
        for the first ``starts`` as first layers.
        """
        count, workers, rate = len(self.profile), self.level.workers, self.level.rate_bps / 8
        weights, kept = _ranges(self.profile.parameter_bytes), _ranges(self.profile.activation_bytes)
        out = self.profile.crossing_bytes.astype(np.float64)
        shape = starts, count, workers
        time = np.full(shape, np.inf)
        found = _Solved(self.level, time, *(np.full(shape, fill, np.int64) for fill in (1, 0, 0)))
        for m in range(1, workers + 1):
            if m == 1 or not self.straight:
                sync = 4 * (m - 1) * weights / (m * rate)
                alone = _together(inner, sync / self.within, self.equation) / m
                alone[self._too_large(weights + kept, m, m)] = np.inf
                time[:, :, m - 1] = np.where(np.isnan(alone), np.inf, alone)[:starts]
            for own in range(1, 2 if self.straight else m):
                if own >= m:
                    break
                sync = 4 * (own - 1) * weights / (own * rate)
                last = _together(inner, sync, self.equation) / own
                if self.activations:
                    passes = 2 * np.maximum(out[:-1, None], out[None, :]) / (own * rate)
                    last[1:] = np.maximum(last[1:], passes)
                last[self._too_large(weights + kept, own, m)] = np.inf
                self._append(found, m, own, np.where(np.isnan(last), np.inf, last))
        return found

    def _append(self, found: _Solved, m: int, own: int, last: F64) -> None:
        """Try every cut with ``own`` of ``m`` workers behind it; ``last``: the stage behind, by its range."""
        time, stages, rows = found.time, found.stages, np.arange(found.time.shape[0])
        for end in range(1, len(last)):
            tried = np.maximum(time[:, :end, m - own - 1], last[1 : end + 1, end])
            best = tried.min(axis=1)
            many = np.where(tried == best[:, None], stages[:, :end, m - own - 1] + 1, len(last) + 1)
            at = end - 1 - many[:, ::-1].argmin(axis=1)  # layers that cost nothing stay with those before
            known, fewer = time[:, end, m - 1], many[rows, at] < stages[:, end, m - 1]
            better = (best < known) | ((best == known) & fewer & np.isfinite(best))
            time[better, end, m - 1] = best[better]
            stages[better, end, m - 1] = many[rows, at][better]
            found.cut[better, end, m - 1] = at[better]
            found.behind[better, end, m - 1] = own

    def _too_large(self, size: F64, own: int, so_far: int) -> NDArray[np.bool_]:
        """Which ranges don't fit on a worker of a stage of ``own``, the last of ``so_far``: it holds a
        version for each minibatch that is in the stages behind it, and its own.
        """
        if self.memory_bytes is None:
            return np.zeros(size.shape, np.bool_)
        versions = -(-(self.level.workers - so_far + own) // own)
        return np.asarray(versions * size > self.memory_bytes)


def _stages(solved: list[_Solved], at: int, first: int, end: int, replicas: int) -> list[PlannedStage]:
    """The stages of layers from ``first`` up to ``end`` on each of ``replicas`` of a level's machines."""
    if at < 0:
        return [PlannedStage(first, end, replicas)]
    one, found = solved[at], list[PlannedStage]()
    left = one.level.workers
    while left:
        own = int(one.behind[first, end - 1, left - 1])
        start = int(one.cut[first, end - 1, left - 1]) + 1 if own else first
        found = _stages(solved, at - 1, start, end, replicas * (own or left)) + found
        end, left = start, left - own if own else 0
    return found


def _no_plan(profile: LayerProfile, workers: int, memory: int | None, straight: bool) -> WorkloadError:
    if straight and workers > len(profile):
        return WorkloadError(
            f"{profile.name}: {workers} stages of a worker each, but {len(profile)} layers",
            hint="fewer workers, or plan: auto",
        )
    if memory is None:
        return WorkloadError(
            f"{profile.name}: at this rate no plan ends in a time that can be counted", hint="a higher rate"
        )
    least = int((profile.parameter_bytes + profile.activation_bytes).max())
    return WorkloadError(
        f"{profile.name}: no plan on {workers} workers fits into {format_size(memory)} each; its "
        f"largest layer alone needs {format_size(least)} for each version of its weights",
        hint="more memory, or more workers",
    )
