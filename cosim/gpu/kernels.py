"""Kernels: what a GPU is asked to do, before anybody says how fast it is.

FLOPs count a multiply-add as two; bytes are each operand and result once, as they pass the GPU's memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class KernelKind(Enum):
    """What bounds a kernel, and so which efficiency is its own."""

    MATMUL = "matmul"
    ATTENTION = "attention"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel, or ``launches`` small ones that only memory bounds.

    ``batch`` products of [rows, inner] by [inner, columns]; zeros where it is no matrix product. ``launches``
    is how many operators the host issues for it. ``stride``: of its matrices' rows in memory, numbers, as far
    as a common divisor tells; 0: whatever suits the GPU.
    """

    kind: KernelKind
    flops: int
    bytes_moved: int
    batch: int = 0
    rows: int = 0
    inner: int = 0
    columns: int = 0
    launches: int = 1
    stride: int = 0


def matmul(
    rows: int, inner: int, columns: int, width: int, *, batch: int = 1, stride: int | None = None
) -> Kernel:
    """``batch`` products of [rows, inner] by [inner, columns], numbers of ``width`` bytes.

    The left matrix's rows in memory are ``inner`` numbers apart, the others' ``columns``, unless a ``stride``
    says otherwise.
    """
    moved = batch * (rows * inner + inner * columns + rows * columns) * width
    flops = 2 * batch * rows * inner * columns
    apart = math.gcd(inner, columns) if stride is None else stride
    return Kernel(KernelKind.MATMUL, flops, moved, batch, rows, inner, columns, stride=apart)


def memory(size_bytes: int, *, launches: int = 1) -> Kernel:
    """Element by element: ``size_bytes`` read and written, arithmetic that doesn't count."""
    return Kernel(KernelKind.MEMORY, 0, size_bytes, launches=launches)


def fused_attention(flops: int, size_bytes: int) -> Kernel:
    """Attention in one kernel, whose scores never reach memory (Dao et al., arXiv 2205.14135)."""
    return Kernel(KernelKind.ATTENTION, flops, size_bytes)


def matmul_backward(kernel: Kernel, width: int) -> tuple[Kernel, Kernel]:
    """The gradients of a product's two operands: of the left one, then of the right one (the weights)."""
    rows, inner, columns, batch = kernel.rows, kernel.inner, kernel.columns, kernel.batch
    return (
        matmul(rows, columns, inner, width, batch=batch, stride=kernel.stride),
        matmul(inner, rows, columns, width, batch=batch, stride=kernel.stride),
    )


def total_flops(kernels: Iterable[Kernel]) -> int:
    """FLOPs of all."""
    return sum(kernel.flops for kernel in kernels)
