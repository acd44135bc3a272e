"""Kernels: what a GPU is asked to do, before anybody says how fast it is.

FLOPs count a multiply-add as two; bytes are each operand and result once, as they pass the GPU's memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

Narrow = Literal["fp8", "fp4"]
"""Types that a product's operands are converted to, where the recipe of a training says so."""
AttentionVersion = Literal["newest", "flash2", "triton"]
"""Which fused attention: the GPU's newest; FlashAttention-2, written for Ampere; FlashAttention in Triton."""
NARROW_ROWS = 16
"""Rows of products of narrow operands: of a multiple of so many."""
NARROW_BYTES: dict[Narrow, float] = {"fp8": 1.0, "fp4": 0.5625}
"""Bytes of a number, with its share of the scales: NVFP4 has one byte for sixteen numbers."""


class KernelKind(Enum):
    """What bounds a kernel, and so which efficiency is its own."""

    MATMUL = "matmul"
    ATTENTION = "attention"
    ATTENTION_BACKWARD = "attention backward"
    SCAN = "scan"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel, or ``launches`` alike, one after the other: small ones that only memory bounds, products.

    ``batch`` products of [rows, inner] by [inner, columns], each kernel having as many of them; zeros where
    it is no matrix product. ``launches`` is how many operators the host issues for it, unless ``issued`` says
    otherwise: none where a CUDA graph has it, some for each expert. ``stride``: of its matrices' rows in
    memory, numbers, as far as a common divisor tells; 0: whatever suits the GPU. ``narrow``: its operands are
    of that type, its result is not. ``spared``: multiprocessors that a product leaves to others.
    ``returned``: what a backward pass has for it, where that isn't one and a half times its traffic.
    ``fused``: an element-wise kernel that a compiler made of several operators. ``elements``: those that an
    element-wise kernel finds one by one, as its operands lie in memory differently or are of several types.
    A scan, products of small tiles within a sequence's chunks, has FLOPs and bytes alone.

    Attention has ``batch`` heads of all sequences, ``rows`` queries each, ``columns`` keys, ``inner``
    numbers of a head; zeros where nobody knows. ``causal``: a query sees the keys before it, and ``flops``
    are of those.
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
    narrow: Narrow | None = None
    causal: bool = False
    version: AttentionVersion = "newest"
    issued: int | None = None
    spared: int = 0
    returned: tuple[Kernel, ...] | None = None
    fused: bool = False
    elements: int = 0

    @property
    def operators(self) -> int:
        """That the host issues for it."""
        return self.launches if self.issued is None else self.issued


def matmul(
    rows: int, inner: int, columns: int, width: int, *, batch: int = 1, stride: int | None = None
) -> Kernel:
    """Products of [rows, inner] by [inner, columns].

    Parameters
    ----------
    rows, inner, columns
        Sizes, in numbers.
    width
        Bytes of a number.
    batch
        How many such products one kernel does.
    stride
        Numbers by which rows lie apart in memory; None: ``inner`` for the left matrix, else ``columns``.
    """
    moved = batch * (rows * inner + inner * columns + rows * columns) * width
    flops = 2 * batch * rows * inner * columns
    apart = math.gcd(inner, columns) if stride is None else stride
    return Kernel(KernelKind.MATMUL, flops, moved, batch, rows, inner, columns, stride=apart)


def memory(
    size_bytes: int,
    *,
    launches: int = 1,
    issued: int | None = None,
    returned: tuple[Kernel, ...] | None = None,
    elements: int = 0,
) -> Kernel:
    """Work element by element, whose arithmetic doesn't count.

    Parameters
    ----------
    size_bytes
        Bytes that are read and written, together.
    launches
        Kernels alike, one after the other.
    issued, returned, elements
        As of :class:`Kernel`.
    """
    return Kernel(
        KernelKind.MEMORY, 0, size_bytes, launches=launches, issued=issued, returned=returned,
        elements=elements,
    )  # fmt: skip


def fused(size_bytes: int) -> Kernel:
    """As a compiler makes it of several operators: what is between them stays in registers."""
    return Kernel(KernelKind.MEMORY, 0, size_bytes, fused=True)


def scan(flops: int, size_bytes: int) -> Kernel:
    """A kernel of a state space's chunks (Dao and Gu, arXiv 2405.21060, section 6)."""
    return Kernel(KernelKind.SCAN, flops, size_bytes)


def fused_attention(
    flops: int,
    size_bytes: int,
    *,
    heads: int = 0,
    queries: int = 0,
    keys: int = 0,
    head: int = 0,
    causal: bool = False,
    backward: bool = False,
    version: AttentionVersion = "newest",
) -> Kernel:
    """Attention in one kernel, whose scores never reach memory (Dao et al., arXiv 2205.14135).

    Parameters
    ----------
    flops, size_bytes
        FLOPs, and bytes of memory that it reads and writes.
    heads
        Heads of all sequences.
    queries, keys, head
        Tokens that ask, tokens that are asked, numbers of a head.
    causal
        Whether a token sees only those before it.
    backward
        Whether it is the backward pass, which makes the scores again: five products where forward has two.
    version
        Whose kernel it is.
    """
    kind = KernelKind.ATTENTION_BACKWARD if backward else KernelKind.ATTENTION
    return Kernel(kind, flops, size_bytes, heads, queries, head, keys, causal=causal, version=version)


def attention_backward(kernel: Kernel) -> Kernel:
    """Backward of fused attention, whose two products have sizes alike."""
    return replace(
        kernel,
        kind=KernelKind.ATTENTION_BACKWARD,
        flops=kernel.flops * 5 // 2,
        bytes_moved=2 * kernel.bytes_moved,
    )


def narrowed(kernel: Kernel, width: int, narrow: Narrow) -> tuple[Kernel, Kernel]:
    """A product with operands of a narrow type: converting its left one, which is read as it is and written
    narrow, and the product, which reads narrow operands and writes numbers of ``width`` bytes.

    The right operand, weights, is converted once an iteration; that is the caller's.
    """
    each = NARROW_BYTES[narrow]
    left = kernel.batch * kernel.rows * kernel.inner
    right, out = kernel.batch * kernel.inner * kernel.columns, kernel.batch * kernel.rows * kernel.columns
    product = replace(kernel, bytes_moved=int((left + right) * each) + out * width, narrow=narrow)
    return memory(int(left * (width + each)), launches=kernel.launches, issued=kernel.issued), product


def matmul_backward(kernel: Kernel, width: int) -> tuple[Kernel, Kernel]:
    """The gradients of a product's two operands: of the left one, then of the right one (the weights).

    What the product leaves to others, only the first one does.
    """
    rows, inner, columns, batch = kernel.rows, kernel.inner, kernel.columns, kernel.batch
    left = matmul(rows, columns, inner, width, batch=batch, stride=kernel.stride)
    right = matmul(inner, rows, columns, width, batch=batch, stride=kernel.stride)
    return (
        replace(left, launches=kernel.launches, issued=kernel.issued, spared=kernel.spared),
        replace(right, launches=kernel.launches, issued=kernel.issued),
    )


def total_flops(kernels: Iterable[Kernel]) -> int:
    """FLOPs of all."""
    return sum(kernel.flops for kernel in kernels)
