"""The two ends of a transformer on one tensor-parallel rank: embedding, and head with its loss.

As Megatron-LM has them (Shoeybi et al., arXiv 1909.08053): each rank looks up and multiplies its part of the
vocabulary. Backward is last piece first. Parameters are the caller's.
"""

from __future__ import annotations

from dataclasses import replace

from cosim.gpu.kernels import Kernel, matmul, matmul_backward, memory
from cosim.models.catalogue.conversion import converted, converted_backward
from cosim.models.catalogue.cut import TP, Cut
from cosim.models.parts import Exchange, Layer, Piece

_FP32 = 4


def embedding_layer(cut: Cut, hidden: int) -> Layer:
    """Rows of the rank's part of the vocabulary, summed over the ranks; positions; dropout."""
    _, closes = cut.exchanges(hidden)
    size, parallel = cut.state_bytes(hidden), cut.parallel
    look_up = memory(2 * size, launches=3)
    finish = memory(3 * cut.own_tokens * hidden * cut.width, launches=2)
    shared = parallel.sequence_parallel and parallel.tp > 1
    opens = Exchange("all_gather", TP, size // parallel.tp) if shared else None
    return Layer(
        "embedding",
        (Piece("embedding", (look_up,), closes), Piece("embedding", (finish,))),
        (Piece("embedding", (finish,), opens), Piece("embedding", (look_up,))),
    )


def head_layer(cut: Cut, hidden: int, vocabulary: int) -> Layer:
    """Last norm, logits over the rank's part of the vocabulary, and vocabulary-parallel cross entropy."""
    width, own = cut.width, vocabulary // cut.parallel.tp
    opens, closes = cut.exchanges(hidden)
    logits = matmul(cut.tokens, hidden, own, width)
    made: tuple[Kernel, ...] = (logits,)
    returned: tuple[Kernel, ...] = matmul_backward(logits, width)
    if cut.fp8_output_proj:
        narrow = replace(logits, narrow="fp8")
        made, returned = converted(narrow, cut), converted_backward(narrow, cut)
    norm_bytes = 2 * cut.own_tokens * hidden * width
    loss, back = _fused_loss(cut, own) if cut.fused_loss else _loss(cut, own)
    first = replace(loss[0], name="logits", kernels=(*made, *loss[0].kernels))
    return Layer(
        "head",
        (Piece("head", (memory(norm_bytes),), opens), first, *loss[1:]),
        (
            Piece("logits", (*back, *returned), closes),
            Piece("head", (memory(norm_bytes * 3 // 2, launches=2),)),
        ),
    )


def _loss(cut: Cut, own: int) -> tuple[tuple[Piece, ...], tuple[Kernel, ...]]:
    """Operator by operator, forward and backward.

    Three all-reduces of a number for each token: the largest logit, the target's, the sum of exponentials
    (Megatron-LM's ``vocab_parallel_cross_entropy``). In fp32 logits are converted, made contiguous, scanned
    for the largest, differ from it, are raised, summed and divided.
    """
    each = Exchange("all_reduce", TP, cut.tokens * _FP32) if cut.parallel.tp > 1 else None

    def passes(logit_bytes: int) -> Kernel:
        return memory(cut.tokens * own * logit_bytes)

    convert, move, scan, change = cut.width + _FP32, 2 * _FP32, _FP32, 2 * _FP32
    forward = (
        Piece("loss", (passes(convert), passes(move), passes(scan)), each),
        Piece("loss", (passes(change), memory(0, launches=8)), each),
        Piece("loss", (passes(change), passes(scan)), each),
        Piece("loss", (passes(change), memory(0, launches=4))),
    )
    return forward, (memory(0, launches=8), passes(change), passes(move), passes(convert))


def _fused_loss(cut: Cut, own: int) -> tuple[tuple[Piece, ...], tuple[Kernel, ...]]:
    """Transformer Engine's (``triton/cross_entropy.py``, up to 2.14): a kernel reads the logits for each
    token's largest, sum of exponentials and target, which ranks gather; a second one reads them again and
    writes their gradient in their place; backward scales that.
    """
    tokens, numbers = cut.tokens, cut.tokens * own * cut.width
    found = 3 * tokens * _FP32
    each = Exchange("all_gather", TP, found) if cut.parallel.tp > 1 else None
    forward = (
        Piece("loss", (memory(0, launches=3), memory(numbers + found)), each),
        Piece("loss", (memory(2 * numbers), memory(0, launches=4))),
    )
    return forward, (memory(0, launches=4), memory(2 * numbers))
