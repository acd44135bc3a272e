"""What clipping and AdamW launch, for all parameters of a rank at once (``foreach``), or in one kernel.

``torch.nn.utils.clip_grad_norm_``: a norm for each gradient, all of them in one vector, of which DTensor sums
the parts over each axis along which gradients are sharded; then every gradient is scaled. AdamW: Loshchilov
and Hutter, arXiv 1711.05101; ``torch.optim.AdamW(foreach=True)`` is eight passes over the parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from cosim.gpu.kernels import Kernel, memory
from cosim.models.parts import Exchange
from cosim.models.pytorch.operators import FP32


def total_norm(
    count: int, tensors: int, width: int, sharded: Sequence[tuple[tuple[str, ...], int]]
) -> Iterable[Kernel | Exchange]:
    """``get_total_norm`` of ``count`` numbers in ``tensors`` gradients of ``width`` bytes each.

    ``sharded``: axes over which parts of norms are summed, with how many gradients are whole on them (each
    divided first).
    """
    norms = tensors * width
    yield memory(count * width + norms)
    for _, whole in sharded:
        if whole:
            yield memory(2 * whole * width, launches=whole)
    yield memory(2 * norms)  # stacked
    for axes, _ in sharded:
        yield memory(2 * norms)  # squares
        yield Exchange("all_reduce", axes, norms)
        yield memory(2 * norms)  # roots
    yield memory(norms + width)  # of all


def all_norms(width: int, axes: tuple[str, ...]) -> Iterable[Kernel | Exchange]:
    """Experts' norm, which is another on each of some ranks, and that of all others together."""
    yield memory(2 * width)
    yield Exchange("all_reduce", axes, width)
    yield memory(2 * width)
    yield memory(3 * width)
    yield memory(2 * width)


def sum_of_squares(width: int, axes: tuple[str, ...]) -> Iterable[Kernel | Exchange]:
    """A norm over pipeline stages."""
    yield memory(2 * width)
    yield Exchange("all_reduce", axes, width)
    yield memory(2 * width)


def scaling(count: int, width: int) -> Iterable[Kernel]:
    """``clip_grads_with_norm_``: the factor (epsilon, reciprocal, product, at most 1), and all gradients."""
    yield memory(8 * width, launches=4)
    yield memory(2 * count * width)


def flat_clipping(counts: Sequence[int], width: int, axes: tuple[str, ...]) -> Iterable[Kernel | Exchange]:
    """``FullyShardedDataParallel.clip_grad_norm_`` of flat gradients of ``counts`` numbers on a rank.

    A norm of each, all of them in one, its square summed over ranks of ``axes``; each is scaled by itself.
    """
    for count in counts:
        yield memory(count * width + FP32)
    norms = len(counts) * FP32
    yield memory(2 * norms)  # in one vector
    yield memory(norms + FP32)  # its norm
    yield memory(2 * FP32)  # squared
    yield Exchange("all_reduce", axes, FP32)
    yield memory(10 * FP32, launches=5)  # root, plus epsilon, reciprocal, product, at most 1
    for count in counts:
        yield memory(2 * count * width + FP32)


def adamw(count: int, tensors: int, width: int, kind: Literal["foreach", "fused"]) -> tuple[Kernel, ...]:
    """A step over ``count`` numbers: parameters, gradients and both moments of ``width`` bytes each.

    Fused, the GPU counts the steps of each of the ``tensors`` itself.
    """
    size = count * width
    if kind == "fused":
        return (memory(2 * tensors * FP32), memory(7 * size))
    passes = (
        2,  # parameters decay
        3,  # first moment, towards the gradient
        2,  # second moment decays
        3,  # and takes the gradient's square
        2,  # its root
        2,  # corrected
        2,  # plus epsilon
        4,  # parameters, by the first moment over that
    )
    return tuple(memory(each * size) for each in passes)
