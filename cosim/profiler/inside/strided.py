"""Which of PyTorch's element-wise kernels go through their elements one by one, and how many.

ATen has several kernels for an element-wise operator (``aten/src/ATen/native/cuda/CUDALoops.cuh``,
``Copy.cu``, ``Shape.cu``). Where all operands are of one type and lie in memory alike, without gaps, several
elements are loaded at once, and memory bounds it. Else each thread divides its number by the sizes to find
its element in each operand (``elementwise_kernel`` with an ``OffsetCalculator``, ``CatArrayBatchedCopy``), or
asks for each element's type (``unrolled_elementwise_kernel`` with ``LoadWithCast``): what that takes doesn't
depend on the memory. Copies to 16 and 8 bits have a kernel of their own, which doesn't ask. Batch norm's
statistics (Welford's, ``Normalization.cuh``) are as slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_COPIES = frozenset({"copy_", "_to_copy", "clone"})
_JOINS = frozenset({"cat", "stack"})
_FAST_COPIES = frozenset({torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2})


def elements_one_by_one(
    func: Any,
    args: Sequence[Any],
    inputs: Sequence[torch.Tensor],
    changed: Sequence[torch.Tensor],
    results: Sequence[torch.Tensor],
) -> int:
    """Elements that an operator's kernel goes through one by one; 0: it needn't, or has no such kernel."""
    short = func._opname
    if short == "native_batch_norm":  # a running mean and variance, divided at each element
        return args[0].numel() if args[5] else 0
    if short in _JOINS:
        whole = all(one.is_contiguous() for one in inputs)
        return 0 if whole else sum(one.numel() for one in inputs)
    if short not in _COPIES and torch.Tag.pointwise not in func.tags:
        return 0
    # Numbers without dimensions that are the host's travel with the launch.
    tensors = [t for t in (*inputs, *results) if t.layout is torch.strided and (t.dim() or t.is_cuda)]
    if not tensors:
        return 0
    try:
        shape = torch.broadcast_shapes(*(one.shape for one in tensors))
    except RuntimeError:  # another library's, or nested: not element by element
        return 0
    orders = {_order(one, shape) for one in tensors}
    if len(orders) == 1 and None not in orders and not _asks_types(short, tensors, (*changed, *results)):
        return 0
    return shape.numel()


def _asks_types(short: str, tensors: Sequence[torch.Tensor], made: Sequence[torch.Tensor]) -> bool:
    """Whether operands are of several types, and no kernel was made for just these."""
    types = {one.dtype for one in tensors}
    if len(types) == 1 or not all(one.is_floating_point() for one in tensors):
        return False
    return short not in _COPIES or made[-1].dtype not in _FAST_COPIES


def _order(tensor: torch.Tensor, shape: torch.Size) -> tuple[int, ...] | None:
    """Strides in a shape, of dimensions that are more than one long; None with gaps, or broadcast."""
    if tensor.numel() != shape.numel():
        return None
    before = len(shape) - tensor.dim()  # dimensions of one, which come first
    runs = [(stride, size) for stride, size in zip(tensor.stride(), shape[before:], strict=True) if size > 1]
    expected = 1
    for stride, size in sorted(runs):
        if stride != expected:
            return None
        expected *= size
    return tuple(stride for stride, _ in runs)
