"""What the host does beside operators where experts' all-to-alls overlap: a layer as Megatron-Core's nodes.

Under 1F1B overlap (``overlap_moe_expert_parallel_comm``) a layer is parted at its all-to-alls
(``TransformerLayerSchedulePlan``): attention to router, dispatch, experts, combine; one without experts into
attention and MLP; embedding and head are a node each. For each node of each micro-batch (``ScheduleNode``,
``TransformerLayerNode``) the host makes it, detaches what goes into it, runs it on its stream, which waits
for an event before and records one after; backward it starts autograd's engine for it alone. Weights'
gradients are issued apart (``delay_wgrad_compute``, which Megatron-Bridge's recipes set with it). Operators
are as many as without.

In the host's unit, an operator: what ``python -m tests.lab.validation.schedule_nodes`` times of
Megatron-Core's own nodes beside a layer's operators, both without a GPU; and each call to CUDA counts as one,
as an exchange does.

Not modelled: the engine's thread being woken, entering FP8 for each node, a tenth of an operator for each
expert where weights' gradients are issued, the order in which nodes of two micro-batches are issued.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cosim.models.parts import Layer, Piece

FORWARD = 2 + 4
"""Operators of a node forward: Python's; to wait, to record, to change streams and back."""
FREED = 2
"""Operators that give up what went in, as three of the four do: record its stream, resize its storage."""
BACKWARD = 2 + 5
"""Python's; as forward, and a gradient's stream recorded."""
APART = 1 + 2
"""Operators of weights' gradients issued apart by a node that computes: Python's; to change streams."""
_COMPUTING, _SENDING = 2, 2
"""A layer's nodes."""
_FREEING = 3
_ENDS = ("embedding", "head")


def in_nodes(layer: Layer) -> Layer:
    """A layer whose pieces say what the host does for their nodes."""
    computing = 1 if layer.name in _ENDS else _COMPUTING
    return replace(
        layer,
        forward=_begun(layer.forward, computing * FORWARD, 2 * FORWARD + FREED * _FREEING // _SENDING),
        backward=_begun(layer.backward, computing * BACKWARD, 2 * BACKWARD, last=computing * APART),
    )


def _begun(pieces: Sequence[Piece], alone: int, each: int, *, last: int = 0) -> tuple[Piece, ...]:
    """``each``: operators of an all-to-all's node and of the one that computes for it; ``alone``: of a layer
    that has none; ``last``: of the last piece.
    """
    more = [each * _sends(piece) for piece in pieces]
    if not any(more):
        more[0] = alone
    more[-1] += last
    return tuple(
        replace(piece, issued=piece.issued + count) for piece, count in zip(pieces, more, strict=True)
    )


def _sends(piece: Piece) -> bool:
    return piece.then is not None and piece.then.collective == "all_to_all"
