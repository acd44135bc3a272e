"""What clipping and AdamW launch, for all parameters of a rank at once (``foreach``), or in one kernel.

``torch.nn.utils.clip_grad_norm_``: a norm for each gradient, all of them in one vector, of which DTensor sums
the parts over each axis along which gradients are sharded; then every gradient is scaled. AdamW: Loshchilov
and Hutter, arXiv 1711.05101; ``torch.optim.AdamW(foreach=True)`` is eight passes over the parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from cosim.workload.compute.kernels import Kernel, memory
from cosim.workload.models.parts import Exchange
from cosim.workload.models.pytorch.operators import FP32
from cosim.workload.models.pytorch.tape import Event


def clipping(
    count: int, tensors: int, width: int, sharded: Sequence[tuple[tuple[str, ...], int]], last: Sequence[str]
) -> Iterable[Event]:
    """Events for ``count`` numbers in ``tensors`` gradients of ``width`` bytes each.

    ``sharded``: axes over which parts of norms are summed, with how many gradients are whole on them (each
    divided first). ``last``: axes over which the total alone is summed (pipeline stages).
    """
    norms = tensors * width
    yield memory(count * width + norms)
    for _, whole in sharded:
        yield memory(2 * whole * width, launches=whole) if whole else memory(0, launches=0)
    yield memory(2 * norms)  # stacked
    for axes, _ in sharded:
        yield memory(2 * norms)  # squares
        yield Exchange("all_reduce", axes, norms)
        yield memory(2 * norms)  # roots
    yield memory(norms + width)  # of all
    for axis in last:
        yield memory(2 * width)
        yield Exchange("all_reduce", (axis,), width)
        yield memory(2 * width)
    yield memory(8 * width, launches=4)  # the factor: epsilon, reciprocal, product, at most 1
    yield memory(2 * count * width)


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
