"""Pipeline schedules: in which order a stage runs the passes of its micro-batches.

``gpipe``: every forward, then every backward (Huang et al., arXiv 1811.06965). ``1f1b``: as few micro-batches
under way as the depth needs, then one forward, one backward (PipeDream-Flush; Narayanan et al., SC 2021,
doi:10.1145/3458817.3476209, arXiv 2104.04473). ``interleaved``: each stage holds several chunks of layers,
section 2.2 there; micro-batches go in rounds, of as many as there are stages. ``looped_bfs``: chunks, too,
but every micro-batch goes through one before any goes through the next (breadth-first; Lamy-Poirier, arXiv
2211.05953).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

ScheduleName = Literal["gpipe", "1f1b", "interleaved", "looped_bfs"]
LOOPED: tuple[ScheduleName, ...] = ("interleaved", "looped_bfs")
"""Those of several chunks of layers on a stage."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A micro-batch's way through one chunk of a stage's layers."""

    forward: bool
    micro_batch: int
    chunk: int = 0


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
    together = together or stages
    if micro_batches % together:
        raise ValueError(
            f"interleaved: {micro_batches} micro-batches don't go in whole rounds of {together} stages;"
            f" {-(-micro_batches // together) * together} would"
        )
    return _one_by_one(
        [_interleaved(True, number, together, chunks) for number in range(micro_batches * chunks)],
        [_interleaved(False, number, together, chunks) for number in range(micro_batches * chunks)],
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


def _interleaved(forward: bool, number: int, together: int, chunks: int) -> Pass:
    """The number-th pass: ``together`` micro-batches through a chunk, then the same through the next."""
    turn, place = divmod(number, together * chunks)
    chunk, offset = divmod(place, together)
    return Pass(forward, turn * together + offset, chunk if forward else chunks - 1 - chunk)
