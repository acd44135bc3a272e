"""What an iteration gets done, beside how long it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class IterationWork:
    """Of all ranks together, but for the memory.

    Attributes
    ----------
    flops
        Forward and backward; see ``counted``.
    peak_flops
        That all GPUs could do in a second, dense, in the type of weights; None: not known.
    samples, tokens
        That it takes in; no tokens where samples are no sequences, neither where that isn't known.
    memory_bytes, memory_of_bytes
        Of the fullest GPU, and what such a GPU has; None: not said.
    counted
        ``model``: what the model needs, without what is computed again; attention is over the whole
        sequence, as Megatron-LM counts it (Narayanan et al., SC 2021, equation 3, less recomputation).
        ``kernels``: what its operations say that they compute, again or not.
    """

    flops: float
    peak_flops: float | None
    samples: int = 0
    tokens: int = 0
    memory_bytes: int | None = None
    memory_of_bytes: int | None = None
    counted: Literal["model", "kernels"] = "model"


PREFILL = "prefill"
"""Phase of the operations up to a request's first token."""


@dataclass(frozen=True)
class RequestWork:
    """Of an iteration that answers and doesn't train: ``sequences`` at once, of all ranks, with ``tokens`` in
    all, the longest of ``longest``. What comes before the first token is of phase ``prefill``.
    """

    sequences: int
    tokens: int
    longest: int
