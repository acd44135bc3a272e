"""How an iteration of eager PyTorch is done, beyond what holds for any framework."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cosim.models.training import Training


@dataclass(frozen=True, slots=True)
class EagerTraining(Training):
    """Training by FSDP over ``shard_axes``, or by DDP.

    Attributes
    ----------
    kept_width
        Bytes of a parameter as it is kept, and of its gradient and moments in the optimizer;
        ``parameter_width`` is that of the copy which is computed with.
    flat
        FSDP1: a unit's parameters are one, of which each rank has an equal part.
    prefetch
        FSDP1: backward gathers a unit before the kernels of the one after it are issued, or then.
    forward_prefetch
        FSDP1: forward gathers a unit before the kernels of the one before it are issued.
    units
        What FSDP2 gathers at once: embedding, each block, head; or blocks, and all the rest together.
    reshard
        FSDP gives up gathered parameters after forward, and gathers them again for backward.
    replica_axes
        Over which gradients are summed beside: between FSDP's replicas, or DDP's.
    expert_shard_axes, expert_replica_axes
        The same of experts, which expert-parallel ranks share.
    merged_bytes
        Logits of a micro-batch, where the last stage puts all of them together.
    """

    shard_axes: tuple[str, ...] = ()
    replica_axes: tuple[str, ...] = ()
    expert_shard_axes: tuple[str, ...] = ()
    expert_replica_axes: tuple[str, ...] = ()
    kept_width: int = 4
    flat: bool = False
    prefetch: Literal["early", "late"] = "early"
    forward_prefetch: bool = False
    units: Literal["each", "blocks"] = "each"
    reshard: bool = True
    merged_bytes: int = 0
    clip: bool = True
    optimizer: Literal["foreach", "fused"] = "foreach"
