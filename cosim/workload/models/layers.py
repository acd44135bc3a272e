"""Kernels of a dense transformer layer on one tensor-parallel rank: FLOPs, bytes and parameters.

FLOPs and parameters are the closed forms of Narayanan et al., "Efficient Large-Scale Language Model Training
on GPU Clusters Using Megatron-LM", SC 2021, doi:10.1145/3458817.3476209 (arXiv 2104.04473): a forward pass of
a layer with the usual four-fold MLP is 24 B s h^2 (1 + s / 6h), backward twice that. Bytes are each kernel's
operands and results once. Attention is one fused kernel (FlashAttention): its scores never reach memory; the
scores that its backward works out again are not counted. A causal mask saves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel: floating-point operations, and bytes read and written."""

    flops: int
    bytes_moved: int


@dataclass(frozen=True, slots=True)
class Shape:
    """A layer's sizes: ``ffn`` is the MLP's inner size, ``tp`` ranks share it, ``width`` bytes a number."""

    batch: int
    sequence: int
    hidden: int
    ffn: int
    vocabulary: int
    tp: int
    width: int

    @property
    def tokens(self) -> int:
        """Rows of every matrix."""
        return self.batch * self.sequence

    @property
    def activation_bytes(self) -> int:
        """One hidden state: what a tensor-parallel all-reduce carries."""
        return self.tokens * self.hidden * self.width


def _matmul(rows: int, inner: int, columns: int, width: int) -> Kernel:
    return Kernel(2 * rows * inner * columns, (rows * inner + inner * columns + rows * columns) * width)


def _elementwise(numbers: int, width: int) -> Kernel:
    return Kernel(0, numbers * width)


def attention_forward(shape: Shape) -> list[Kernel]:
    """Layer norm, QKV, fused attention, projection, dropout and residual."""
    own = shape.hidden // shape.tp
    fused = Kernel(4 * shape.tokens * shape.sequence * own, 4 * shape.tokens * own * shape.width)
    return [
        _matmul(shape.tokens, shape.hidden, 3 * own, shape.width),
        fused,
        _matmul(shape.tokens, own, shape.hidden, shape.width),
        _elementwise(5 * shape.tokens * shape.hidden, shape.width),
    ]


def mlp_forward(shape: Shape) -> list[Kernel]:
    """Layer norm, two matrix products around a GeLU, dropout and residual."""
    own = shape.ffn // shape.tp
    return [
        _matmul(shape.tokens, shape.hidden, own, shape.width),
        _elementwise(2 * shape.tokens * own, shape.width),
        _matmul(shape.tokens, own, shape.hidden, shape.width),
        _elementwise(5 * shape.tokens * shape.hidden, shape.width),
    ]


def embedding_forward(shape: Shape) -> list[Kernel]:
    """Look-up of a row for each token."""
    return [_elementwise(2 * shape.tokens * shape.hidden, shape.width)]


def head_forward(shape: Shape) -> list[Kernel]:
    """Logits over the rank's part of the vocabulary, and the loss, which reads them once."""
    own = shape.vocabulary // shape.tp
    return [
        _matmul(shape.tokens, shape.hidden, own, shape.width),
        _elementwise(shape.tokens * own, shape.width),
    ]


def backward(forward: list[Kernel]) -> list[Kernel]:
    """Gradients of the inputs and of the weights: each as much work as forward."""
    return [*forward, *forward]


def attention_parameters(shape: Shape) -> int:
    """Weights and biases of QKV and projection, and a layer norm, of all tensor-parallel ranks."""
    return 4 * shape.hidden**2 + 6 * shape.hidden


def mlp_parameters(shape: Shape) -> int:
    """Weights and biases of two matrices, and a layer norm, of all tensor-parallel ranks."""
    return 2 * shape.hidden * shape.ffn + shape.ffn + 3 * shape.hidden


def embedding_parameters(shape: Shape) -> int:
    """Tokens (shared with the head) and positions, of all tensor-parallel ranks."""
    return (shape.vocabulary + shape.sequence) * shape.hidden
