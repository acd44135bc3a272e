"""How an iteration of Megatron-LM with torch alone is done."""

from __future__ import annotations

from dataclasses import dataclass

from cosim.models.pytorch.training import EagerTraining


@dataclass(frozen=True, slots=True)
class LocalTraining(EagerTraining):
    """Trains micro-batches of ``tokens`` on a rank, whose attention masks are ``mask_bytes``."""

    tokens: int = 0
    mask_bytes: int = 0
