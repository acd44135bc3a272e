"""A micro-batch's way through a chunk of a stage's layers, whole or in parts, and the turns of chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Part = Literal["whole", "inputs", "weights"]
"""Of a backward pass: all of it, gradients of what came in, or those of the weights."""


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
