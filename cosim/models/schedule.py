"""Pipeline schedules: in which order a stage runs the passes of its micro-batches.

``gpipe``: every forward, then every backward (Huang et al., arXiv 1811.06965). ``1f1b``: as few micro-batches
under way as the depth needs, then one forward, one backward (PipeDream-Flush; Narayanan et al., SC 2021,
doi:10.1145/3458817.3476209, arXiv 2104.04473). ``interleaved``: each stage holds several chunks of layers,
section 2.2 there; micro-batches go in rounds, of as many as there are stages. ``looped_bfs``: chunks, too,
but every micro-batch goes through one before any goes through the next (breadth-first; Lamy-Poirier, arXiv
2211.05953). Those whose backward is parted: :mod:`cosim.models.zero_bubble`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Part = Literal["whole", "inputs", "weights"]
"""What a backward pass computes: all of it, gradients of what came in, or those of the weights."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A micro-batch's way through one chunk of a stage's layers."""

    forward: bool
    micro_batch: int
    chunk: int = 0
    part: Part = "whole"

    @property
    def ends(self) -> bool:
        """Whether nothing of the micro-batch is needed by the chunk any more."""
        return not self.forward and self.part != "inputs"


def in_rounds(forward: bool, number: int, together: int, chunks: int, *, part: Part = "whole") -> Pass:
    """The number-th pass: ``together`` micro-batches through a chunk, then the same through the next."""
    turn, place = divmod(number, together * chunks)
    chunk, offset = divmod(place, together)
    return Pass(forward, turn * together + offset, chunk if forward else chunks - 1 - chunk, part)


ScheduleName = Literal[
    "gpipe", "1f1b", "interleaved", "looped_bfs", "interleaved_zero_bubble", "zbv", "dualpipev"
]
LOOPED: tuple[ScheduleName, ...] = ("interleaved", "looped_bfs")
"""Those of several chunks of layers on a stage, whose backward is whole."""
V_SHAPED: tuple[ScheduleName, ...] = ("zbv", "dualpipev")
"""Those of :data:`V_CHUNKS` chunks on a stage, the second of which go back from the last to the first."""
V_CHUNKS = 2
PARTED: tuple[ScheduleName, ...] = ("interleaved_zero_bubble", *V_SHAPED)
"""Those whose backward is parted in gradients of inputs and of weights."""


IN_ROUNDS: tuple[ScheduleName, ...] = ("interleaved", "interleaved_zero_bubble")
"""Those whose micro-batches go through chunks in rounds."""


def part_of(schedule: ScheduleName, stage: int, chunk: int, stages: int) -> int:
    """Which part of the model a stage's chunk is, of ``stages`` for each chunk."""
    if schedule in V_SHAPED and chunk == 1:
        return 2 * stages - 1 - stage
    return chunk * stages + stage


def where(schedule: ScheduleName, part: int, stages: int) -> tuple[int, int]:
    """Stage and chunk of a part of the model."""
    chunk, stage = divmod(part, stages)
    return (stages - 1 - stage if schedule in V_SHAPED and chunk == 1 else stage), chunk


def passes(
    schedule: ScheduleName,
    stage: int,
    stages: int,
    micro_batches: int,
    chunks: int = 1,
    *,
    together: int | None = None,
) -> list[Pass]:
    """What ``stage`` of ``stages`` runs, in order.

    Interleaved, rounds are of ``together`` micro-batches; None: of as many as there are stages.

    Raises
    ------
    ValueError
        Interleaved: micro-batches that don't come in whole rounds.
    """
    if schedule in ("gpipe", "looped_bfs"):
        forward = [Pass(True, number, chunk) for chunk in range(chunks) for number in range(micro_batches)]
        return forward + [Pass(False, one.micro_batch, one.chunk) for one in reversed(forward)]
    if schedule == "1f1b":
        return _one_by_one(
            [Pass(True, number) for number in range(micro_batches)],
            [Pass(False, number) for number in range(micro_batches)],
            min(stages - stage - 1, micro_batches),
        )
    from cosim.models.zero_bubble import dualpipev, interleaved_zero_bubble, zbv

    if schedule == "zbv":
        return zbv(stage, stages, micro_batches)
    if schedule == "dualpipev":
        return dualpipev(stage, stages, micro_batches)
    together = together or stages
    if micro_batches % together:
        raise ValueError(
            f"interleaved: {micro_batches} micro-batches don't go in whole rounds of {together} stages;"
            f" {-(-micro_batches // together) * together} would"
        )
    if schedule == "interleaved_zero_bubble":
        return interleaved_zero_bubble(stage, stages, micro_batches, chunks, together)
    return _one_by_one(
        [in_rounds(True, number, together, chunks) for number in range(micro_batches * chunks)],
        [in_rounds(False, number, together, chunks) for number in range(micro_batches * chunks)],
        min((stages - stage - 1) * 2 + (chunks - 1) * together, micro_batches * chunks),
    )


def even_rounds(micro_batches: int, stages: int) -> int:
    """Micro-batches of a round where rounds needn't be of as many as there are stages, but of at least.

    So PyTorch's ``ScheduleInterleaved1F1B`` has them; fewer than there are stages are one round.

    Raises
    ------
    ValueError
        They don't go in equal rounds.
    """
    rounds = max(1, micro_batches // stages)
    each = micro_batches // rounds
    if micro_batches % rounds:
        raise ValueError(
            f"interleaved: {micro_batches} micro-batches on {stages} stages don't go in {rounds} equal"
            f" rounds; {each * rounds} or {(each + 1) * rounds} would"
        )
    return each


def paired(order: Sequence[Pass]) -> list[bool]:
    """Which passes a schedule of one forward, one backward can run side by side with one of the other kind.

    All but those before the first backward pass and after the last forward one (Megatron-Core's
    ``combined_1f1b``, whose warm-up has a forward pass more than 1F1B's).
    """
    begin = next((number for number, one in enumerate(order) if not one.forward), len(order))
    end = max((number for number, one in enumerate(order) if one.forward), default=-1)
    return [begin <= number <= end for number in range(len(order))]


def _one_by_one(forward: list[Pass], backward: list[Pass], ahead: int) -> list[Pass]:
    """``ahead`` forward passes, then one forward, one backward, then the backward passes that are left."""
    order = forward[:ahead]
    for one, other in zip(forward[ahead:], backward, strict=False):
        order += [one, other]
    return order + backward[len(forward) - ahead :]
