"""A plan's stages as programs: minibatches flow through them, one forward, one backward.

A worker keeps as many minibatches in flight as it has versions of weights (:attr:`StagePlan.versions`): a
forward pass waits for the backward pass so many before it. Under ``1f1b_async`` it makes so many forward
passes first, and then one of each by turns, whoever waits. Else, of what could run, the earlier minibatch
goes first, which is backward. Minibatches go round-robin over the replicas of a stage; their gradients are
all-reduced while they compute on: a forward pass waits for the all-reduce one round before those of the
backward pass that it waits for. ``1f1b`` and ``gpipe`` flush: an iteration is so many micro-batches of which
nothing is left when it ends, with one all-reduce; ``gpipe`` runs all forward passes first.

Sources: PipeDream (SOSP 2019, doi:10.1145/3341301.3359646); GPipe (NeurIPS 2019, arXiv 1811.06965). Not
modelled: the weights' update, which the profiles don't tell apart, and accuracy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cosim.errors import WorkloadError
from cosim.workload.layers.plan import PlannedStage, StagePlan
from cosim.workload.layers.profile import LayerProfile
from cosim.workload.program import (
    COMPUTE_STREAM,
    NO_STREAM,
    DeviceMesh,
    Operation,
    OpKind,
    Peer,
    Program,
    Workload,
)

Schedule = Literal["1f1b_async", "1f1b", "gpipe"]
_MOST_OPERATIONS = 1_000_000


def minibatches_of(plan: StagePlan, schedule: Schedule, asked: int | None) -> int:
    """Minibatches (flushed: micro-batches) of an iteration: the fewest that go evenly over the replicas of
    each stage; flushed, as many of those as make at least four for each stage.

    Raises
    ------
    WorkloadError
        ``asked`` for a number that does not go evenly.
    """
    even = math.lcm(*(stage.workers for stage in plan.stages))
    if asked is None:
        return even if schedule == "1f1b_async" else even * -(-4 * len(plan.stages) // even)
    if asked % even:
        raise WorkloadError(
            f"{asked} minibatches don't go evenly over stages of "
            f"{', '.join(str(stage.workers) for stage in plan.stages)} workers",
            hint=f"give minibatches: a multiple of {even}",
        )
    return asked


def pipeline(profile: LayerProfile, plan: StagePlan, schedule: Schedule, minibatches: int) -> Workload:
    """One program for each worker; a stage's workers are adjacent ranks.

    Raises
    ------
    WorkloadError
        So many minibatches in an iteration that programs would be endless.
    """
    if 6 * minibatches * len(plan.stages) > _MOST_OPERATIONS:
        raise WorkloadError(
            f"an iteration of plan {plan} is {minibatches} minibatches: too many operations",
            hint="workers of stages with a common multiple that is small",
        )
    programs = tuple(
        _Worker(profile, plan, number, replica, schedule, minibatches).program()
        for number, stage in enumerate(plan.stages)
        for replica in range(stage.workers)
    )
    mesh = DeviceMesh({"worker": plan.workers})
    return Workload(profile.name, mesh, programs, np.arange(plan.workers, dtype=np.int32))


@dataclass(frozen=True)
class _Worker:
    """One replica of a stage."""

    profile: LayerProfile
    plan: StagePlan
    number: int
    replica: int
    schedule: Schedule
    minibatches: int

    @property
    def stage(self) -> PlannedStage:
        return self.plan.stages[self.number]

    @property
    def rounds(self) -> int:
        """Minibatches of this worker in an iteration."""
        return self.minibatches // self.stage.workers

    @property
    def has(self) -> tuple[str, ...]:
        """What is done for each of them, in order."""
        first, last = self.number == 0, self.number == len(self.plan.stages) - 1
        reduces = self.stage.workers > 1 and self.schedule == "1f1b_async"
        chosen = {
            "receive activations": not first,
            "forward": True,
            "send activations": not last,
            "receive gradients": not last,
            "backward": True,
            "send gradients": not first,
            "all-reduce": reduces,
        }
        return tuple(name for name, is_done in chosen.items() if is_done)

    def program(self) -> Program:
        """All rounds of an iteration."""
        made = [self._operation(what, at) for at in range(self.rounds) for what in self.has]
        if self.stage.workers > 1 and self.schedule != "1f1b_async":
            made.append(self._all_reduce("all-reduce", (self._place("backward", self.rounds - 1),), ()))
        return Program(f"stage {self.number} replica {self.replica}", tuple(made))

    def _place(self, what: str, at: int) -> int:
        return at * len(self.has) + self.has.index(what)

    def _waits(self, *pairs: tuple[str, int]) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """Dependencies on what is done for minibatches of this worker, by their number in this iteration,
        which is negative for those of iterations before.
        """
        deps, lagged = set[int](), set[tuple[int, int]]()
        for what, at in pairs:
            if what not in self.has:
                continue
            before, within = divmod(at, self.rounds)
            if before == 0:
                deps.add(self._place(what, within))
            elif self.schedule == "1f1b_async":
                lagged.add((self._place(what, within), -before))
        return tuple(sorted(deps)), tuple(sorted(lagged))

    def _operation(self, what: str, at: int) -> Operation:
        minibatch = at * self.stage.workers + self.replica
        name = f"minibatch {minibatch} {what}"
        flight = self.plan.versions[self.number]
        if what == "forward":
            waits = [("receive activations", at), ("forward", at - 1)]
            if self.schedule != "gpipe":
                waits.append(("backward", at - flight))
            return self._compute(name, "forward", *self._waits(*waits, ("all-reduce", at - flight - 1)))
        if what == "backward":
            ready = ("forward", self.rounds - 1) if self.schedule == "gpipe" else ("forward", at)
            return self._compute(
                name, "backward", *self._waits(ready, ("receive gradients", at), ("backward", at - 1))
            )
        if what == "all-reduce":
            return self._all_reduce(name, *self._waits(("backward", at)))
        return self._message(what, at, minibatch)

    def _compute(
        self, name: str, phase: str, deps: tuple[int, ...], lagged: tuple[tuple[int, int], ...]
    ) -> Operation:
        layers = self.profile.layers[self.stage.first : self.stage.last]
        by_turns = phase == "forward" and self.schedule == "1f1b_async"
        duration = sum(one.forward_ps if phase == "forward" else one.backward_ps for one in layers)
        return Operation(
            name, OpKind.COMPUTE, COMPUTE_STREAM, deps, duration_ps=duration, phase=phase, lagged=lagged,
            ahead=self._first_passes() if by_turns else 0,
        )  # fmt: skip

    def _first_passes(self) -> int:
        """Forward passes before the first backward pass: as many as it keeps in flight, but no more than
        stages before it admit, as they would wait for each other.
        """
        plan = self.plan
        admitted = (
            versions * stage.workers for versions, stage in zip(plan.versions, plan.stages, strict=True)
        )
        return min(list(admitted)[: self.number + 1]) // self.stage.workers

    def _all_reduce(self, name: str, deps: tuple[int, ...], lagged: tuple[tuple[int, int], ...]) -> Operation:
        first = self._first_rank(self.number)
        weights = self.profile.parameter_bytes[self.stage.first : self.stage.last]
        return Operation(
            name, OpKind.COLLECTIVE, "comm-gradients", deps, collective="all_reduce",
            ranks=tuple(range(first, first + self.stage.workers)), size_bytes=int(weights.sum()),
            phase="backward", lagged=lagged,
        )  # fmt: skip

    def _message(self, what: str, at: int, minibatch: int) -> Operation:
        sends, forward = what.startswith("send"), what.endswith("activations")
        other = self.number + (1 if sends == forward else -1)
        cut = self.stage.last if other > self.number else self.stage.first
        peer = Peer(self._first_rank(other) + minibatch % self.plan.stages[other].workers)
        deps, _ = self._waits(("forward" if forward else "backward", at)) if sends else ((), ())
        return Operation(
            f"minibatch {minibatch} {what}", OpKind.SEND if sends else OpKind.RECV,
            f"comm-{what.split()[1]}" if sends else NO_STREAM, deps,
            size_bytes=int(self.profile.crossing_bytes[cut - 1]), peer=peer,
            phase="forward" if forward else "backward",
        )  # fmt: skip

    def _first_rank(self, stage: int) -> int:
        return sum(one.workers for one in self.plan.stages[:stage])
