"""Pipeline schedules: in which order a stage runs the passes of its micro-batches.

``gpipe``: every forward, then every backward (Huang et al., arXiv 1811.06965). ``1f1b``: as few micro-batches
under way as the depth needs, then one forward, one backward (PipeDream-Flush; Narayanan et al., SC 2021,
doi:10.1145/3458817.3476209, arXiv 2104.04473). ``interleaved``: each stage holds several chunks of layers,
section 2.2 there; micro-batches go in rounds of as many as there are stages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ScheduleName = Literal["gpipe", "1f1b", "interleaved"]


@dataclass(frozen=True, slots=True)
class Pass:
    """A micro-batch's way through one chunk of a stage's layers."""

    forward: bool
    micro_batch: int
    chunk: int = 0


def passes(
    schedule: ScheduleName, stage: int, stages: int, micro_batches: int, chunks: int = 1
) -> list[Pass]:
    """What ``stage`` of ``stages`` runs, in order.

    Raises
    ------
    ValueError
        Interleaved: micro-batches that don't come in whole rounds of ``stages``.
    """
    if schedule == "gpipe":
        forward = [Pass(True, number) for number in range(micro_batches)]
        return forward + [Pass(False, number) for number in reversed(range(micro_batches))]
    if schedule == "1f1b":
        return _one_by_one(
            [Pass(True, number) for number in range(micro_batches)],
            [Pass(False, number) for number in range(micro_batches)],
            min(stages - stage - 1, micro_batches),
        )
    if micro_batches % stages:
        raise ValueError(
            f"interleaved: {micro_batches} micro-batches don't go in whole rounds of {stages} stages;"
            f" {-(-micro_batches // stages) * stages} would"
        )
    return _one_by_one(
        [_interleaved(True, number, stages, chunks) for number in range(micro_batches * chunks)],
        [_interleaved(False, number, stages, chunks) for number in range(micro_batches * chunks)],
        min((stages - stage - 1) * 2 + (chunks - 1) * stages, micro_batches * chunks),
    )


def _one_by_one(forward: list[Pass], backward: list[Pass], ahead: int) -> list[Pass]:
    """``ahead`` forward passes, then one forward, one backward, then the backward passes that are left."""
    order = forward[:ahead]
    for one, other in zip(forward[ahead:], backward, strict=False):
        order += [one, other]
    return order + backward[len(forward) - ahead :]


def _interleaved(forward: bool, number: int, stages: int, chunks: int) -> Pass:
    """The number-th pass: ``stages`` micro-batches through a chunk, then the same through the next."""
    turn, place = divmod(number, stages * chunks)
    chunk, offset = divmod(place, stages)
    return Pass(forward, turn * stages + offset, chunk if forward else chunks - 1 - chunk)
