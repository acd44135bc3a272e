"""A plan: layers cut into stages, each on some workers; what it needs, and what it is predicted to take."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from cosim.errors import WorkloadError
from cosim.units import format_size
from cosim.workload.layers.profile import LayerProfile


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """Layers from ``first`` up to ``last`` on ``workers``, which hold a replica each."""

    first: int
    last: int
    workers: int


@dataclass(frozen=True, slots=True)
class StagePlan:
    """All layers, cut into stages one after another.

    Examples
    --------
    >>> from cosim.workload.layers.plan import PlannedStage, StagePlan
    >>> plan = StagePlan((PlannedStage(0, 33, 15), PlannedStage(33, 40, 1)))
    >>> plan.workers, plan.in_flight, plan.versions
    (16, 2, (2, 1))
    """

    stages: tuple[PlannedStage, ...]

    @property
    def workers(self) -> int:
        """Workers of all stages."""
        return sum(stage.workers for stage in self.stages)

    @property
    def in_flight(self) -> int:
        """Minibatches that each replica of the first stage has admitted, so that none waits for work:
        workers over those of the first stage, rounded up.
        """
        return -(-self.workers // self.stages[0].workers)

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions of weights that a worker of each stage keeps: one for each of its minibatches whose
        backward pass is still to come.
        """
        behind, found = self.workers, []
        for stage in self.stages:
            found.append(-(-behind // stage.workers))
            behind -= stage.workers
        return tuple(found)

    def memory_bytes(self, profile: LayerProfile) -> tuple[int, ...]:
        """Bytes of a worker of each stage: weights and outputs of its layers, once for each version."""
        return tuple(
            versions
            * (
                int(profile.parameter_bytes[stage.first : stage.last].sum())
                + int(profile.activation_bytes[stage.first : stage.last].sum())
            )
            for stage, versions in zip(self.stages, self.versions, strict=True)
        )

    def check(self, profile: LayerProfile, workers: int, memory_bytes: int | None = None) -> None:
        """Refuse a plan that isn't one of these layers on these workers.

        Raises
        ------
        WorkloadError
            Layers that are left out or in two stages, workers that don't add up, too little memory.
        """
        wrong = [stage for stage in self.stages if stage.workers < 1 or stage.first >= stage.last]
        ends = [0, *(stage.last for stage in self.stages)]
        starts = [*(stage.first for stage in self.stages), len(profile)]
        if wrong:
            raise WorkloadError(
                f"plan: layers [{wrong[0].first}, {wrong[0].last}] on {wrong[0].workers} workers",
                hint="a stage has at least a layer, and a worker",
            )
        for end, start in zip(ends, starts, strict=True):
            if end != start:
                raise WorkloadError(
                    f"plan: layers {min(start, end)} to {max(start, end) - 1} are in "
                    f"{'no stage' if end < start else 'two stages'}",
                    hint=f"stages follow each other: [0, N], [N, M] ... up to {len(profile)}",
                )
        if self.workers != workers:
            raise WorkloadError(
                f"plan: its stages have {self.workers} workers together, not {workers}",
                hint=f"give workers: {self.workers}, or a plan of {workers}",
            )
        if memory_bytes is not None:
            self._check_memory(profile, memory_bytes)

    def _check_memory(self, profile: LayerProfile, memory_bytes: int) -> None:
        for number, need in enumerate(self.memory_bytes(profile)):
            if need > memory_bytes:
                raise WorkloadError(
                    f"plan: a worker of stage {number} needs {format_size(need)} for {self.versions[number]} "
                    f"versions of weights and activations; it has {format_size(memory_bytes)}",
                    hint="more memory, more stages, or fewer minibatches in flight",
                )

    def __str__(self) -> str:
        return ", ".join(f"({one.first},{one.last}) on {one.workers}" for one in self.stages)


def data_parallel(profile: LayerProfile, workers: int) -> StagePlan:
    """Every worker holds all layers."""
    return StagePlan((PlannedStage(0, len(profile), workers),))


def written_plan(text: str, profile: LayerProfile, workers: int) -> StagePlan:
    """A plan by its workers, ``15-1``, each stage's layers chosen to have computation like its share of them.

    Raises
    ------
    WorkloadError
        Not such a text, or more stages than layers.
    """
    try:
        counts = [int(part) for part in text.split("-")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise WorkloadError(
            f"plan is {text[:40]!r}",
            hint="auto, data_parallel, straight, workers of each stage as in 15-1, or a list of stages",
        )
    if len(counts) > len(profile):
        raise WorkloadError(f"plan {text}: {len(counts)} stages of {len(profile)} layers")
    total, done, cuts, passed = float(profile.compute_s.sum()), 0.0, [0], 0
    for number, count in enumerate(counts[:-1]):
        passed += count
        at = cuts[-1]
        most = len(profile) - (len(counts) - 1 - number)
        # At least a layer for this stage, and one for each that follows.
        while at < most and (at == cuts[-1] or done < total * passed / sum(counts) - 1e-15):
            done += float(profile.compute_s[at])
            at += 1
        cuts.append(at)
    cuts.append(len(profile))
    plan = StagePlan(
        tuple(PlannedStage(a, b, count) for (a, b), count in zip(pairwise(cuts), counts, strict=True))
    )
    plan.check(profile, workers)
    return plan
