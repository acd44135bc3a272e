"""What an iteration gets done, beside how long it takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class IterationWork:
    """Of all ranks together, but for the memory.

    Attributes
    ----------
    flops
        Of the model, forward and backward, without what is computed again. Attention is over the whole
        sequence, as Megatron-LM counts it (Narayanan et al., SC 2021, equation 3, less recomputation).
    peak_flops
        That all GPUs could do in a second, dense, in the type of weights.
    samples, tokens
        That it takes in; no tokens where samples are no sequences.
    memory_bytes, memory_of_bytes
        Of the fullest GPU, and what such a GPU has; None: not said.
    """

    flops: float
    peak_flops: float
    samples: int
    tokens: int
    memory_bytes: int
    memory_of_bytes: int | None
