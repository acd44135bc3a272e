"""Kernels of a dense transformer on one tensor-parallel rank, as Megatron-LM cuts it.

FLOPs and parameters are the closed forms of Narayanan et al., "Efficient Large-Scale Language Model Training
on GPU Clusters Using Megatron-LM", SC 2021, doi:10.1145/3458817.3476209 (arXiv 2104.04473): a forward pass of
a layer with the usual four-fold MLP is 24 B s h^2 (1 + s / 6h), backward twice that. Exchanges are those of
Shoeybi et al., arXiv 1909.08053 (an all-reduce of the hidden state after attention and after the MLP, forward
and backward), or, with sequence parallelism, of Korthikanti et al., arXiv 2205.05198 (a reduce-scatter and an
all-gather in place of each). The kernels are those of Megatron-LM's fused layers in half precision.

Not modelled: a causal mask saves nothing; dropout's random numbers cost nothing beyond memory; the weight
gradients' product doesn't overlap the all-reduce of the input's. With sequence parallelism the all-gather
that backward repeats for the weights' gradients is hidden behind the input gradient's product, as section
4.2.2 of arXiv 2205.05198 has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from cosim.gpu.kernels import (
    Kernel,
    KernelKind,
    fused_attention,
    matmul,
    matmul_backward,
    memory,
)
from cosim.models.parts import Exchange, Layer, Piece

Recompute = Literal["none", "selective", "full"]
Attention = Literal["flash", "unfused"]
TP = ("tp",)
_FP32 = 4
_SOFTMAX_BATCH = 4
"""Megatron-LM's fused softmax is for a multiple of so many heads x sequences; else to fp32, scale, mask,
softmax and back, one after another (``FusedScaleMaskSoftmax.is_kernel_available``)."""
_MASK = 1
"""Bytes of a dropout mask's element."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of one micro-batch: ``ffn`` is the MLP's inner size, ``tp`` ranks share it, ``width`` bytes a
    number.
    """

    batch: int
    sequence: int
    hidden: int
    heads: int
    ffn: int
    vocabulary: int
    tp: int
    width: int
    sequence_parallel: bool = False
    attention: Attention = "flash"
    recompute: Recompute = "none"

    @property
    def tokens(self) -> int:
        """Rows of every matrix."""
        return self.batch * self.sequence

    @property
    def own_tokens(self) -> int:
        """Rows of this rank between its matrices: a share of them with sequence parallelism."""
        return self.tokens // self.tp if self.sequence_parallel else self.tokens

    @property
    def activation_bytes(self) -> int:
        """One hidden state: what a tensor-parallel all-reduce carries."""
        return self.tokens * self.hidden * self.width

    def exchange(self) -> tuple[Exchange | None, Exchange | None]:
        """What opens and what closes a part that tensor-parallel ranks share."""
        if self.tp == 1:
            return None, None
        size = self.activation_bytes
        if not self.sequence_parallel:
            return None, Exchange("all_reduce", TP, size)
        return Exchange("all_gather", TP, size // self.tp), Exchange("reduce_scatter", TP, size)


def transformer_layer(name: str, shape: Shape) -> Layer:
    """Attention and MLP, each after a layer norm and before dropout and residual."""
    opens, closes = shape.exchange()
    norm, add = _norm(shape), _dropout_add(shape)
    attention, mlp = _attention(shape), _mlp(shape)
    forward = (
        Piece(f"{name} norm", (norm,), opens),
        Piece(f"{name} attention", attention, closes),
        Piece(f"{name} norm", (add, norm), opens),
        Piece(f"{name} mlp", mlp, closes),
        Piece(f"{name} residual", (add,)),
    )
    # Backward, what opened closes: a reduce-scatter where forward gathered, and the other way round.
    back_opens = Exchange("all_gather", TP, shape.activation_bytes // shape.tp) if opens else None
    back_closes = closes
    again = _core(shape) if shape.recompute == "selective" else ()
    accumulate = _accumulate(shape, attention_parameters(shape) + mlp_parameters(shape))
    backward = (
        Piece(f"{name} residual", _twice(add), back_opens),
        Piece(f"{name} mlp", _backward(mlp, shape), back_closes),
        Piece(f"{name} norm", (*_twice(norm), *_twice(add)), back_opens),
        Piece(f"{name} attention", (*again, *_backward(attention, shape)), back_closes),
        Piece(f"{name} norm", (*_twice(norm), accumulate)),
    )
    return Layer(
        name,
        forward,
        backward,
        forward if shape.recompute == "full" else (),
        {("dp",): (attention_parameters(shape) + mlp_parameters(shape)) // shape.tp},
    )


def embedding_layer(shape: Shape) -> Layer:
    """Rows of the rank's part of the vocabulary, summed over the ranks; positions; dropout."""
    _, closes = shape.exchange()
    look_up = memory(2 * shape.activation_bytes, launches=3)
    finish = memory(3 * shape.own_tokens * shape.hidden * shape.width, launches=2)
    opens = (
        Exchange("all_gather", TP, shape.activation_bytes // shape.tp) if shape.sequence_parallel else None
    )
    parameters = embedding_parameters(shape) // shape.tp
    return Layer(
        "embedding",
        (Piece("embedding", (look_up,), closes), Piece("embedding", (finish,))),
        (Piece("embedding", (finish,), opens if shape.tp > 1 else None), Piece("embedding", (look_up,))),
        (),
        {("dp",): parameters},
    )


def head_layer(shape: Shape, *, copy: bool = False) -> Layer:
    """Last norm, logits over the rank's part of the vocabulary, and vocabulary-parallel cross entropy.

    The loss needs three all-reduces of a number for each token: the largest logit, the target's, the sum of
    exponentials (Megatron-LM's ``vocab_parallel_cross_entropy``). Weights are the embedding's; on a stage
    without the embedding, a ``copy`` of it.
    """
    own = shape.vocabulary // shape.tp
    opens, closes = shape.exchange()
    each = Exchange("all_reduce", TP, shape.tokens * _FP32) if shape.tp > 1 else None
    logits = matmul(shape.tokens, shape.hidden, own, shape.width)
    count = shape.tokens * own

    def passes(size_bytes: int) -> Kernel:
        return memory(count * size_bytes)

    # In fp32: converted, made contiguous, largest, difference, exponential, sum, quotient.
    convert, move, scan, change = shape.width + _FP32, 2 * _FP32, _FP32, 2 * _FP32
    return Layer(
        "head",
        (
            Piece("head", (_norm(shape),), opens),
            Piece("logits", (logits, passes(convert), passes(move), passes(scan)), each),
            Piece("loss", (passes(change), memory(0, launches=8)), each),
            Piece("loss", (passes(change), passes(scan)), each),
            Piece("loss", (passes(change), memory(0, launches=4))),
        ),
        (
            Piece(
                "logits",
                (
                    memory(0, launches=8),
                    passes(change),
                    passes(move),
                    passes(convert),
                    *matmul_backward(logits, shape.width),
                ),
                closes,
            ),
            Piece("head", _twice(_norm(shape))),
        ),
        (),
        {("dp",): own * shape.hidden if copy else 0},
    )


def _norm(shape: Shape) -> Kernel:
    return memory(2 * shape.own_tokens * shape.hidden * shape.width)


def _dropout_add(shape: Shape) -> Kernel:
    """Bias, dropout and residual in one."""
    return memory(shape.own_tokens * shape.hidden * (3 * shape.width + _MASK))


def _attention(shape: Shape) -> tuple[Kernel, ...]:
    own = shape.hidden // shape.tp
    return (
        matmul(shape.tokens, shape.hidden, 3 * own, shape.width),
        *_core(shape),
        matmul(shape.tokens, own, shape.hidden, shape.width),
    )


def _core(shape: Shape) -> tuple[Kernel, ...]:
    """Scores, softmax, dropout and their product with the values; ``flash``: one kernel."""
    own, width = shape.hidden // shape.tp, shape.width
    if shape.attention == "flash":
        flops = 4 * shape.tokens * shape.sequence * own
        return (fused_attention(flops, 4 * shape.tokens * own * width),)
    batch, head = shape.batch * shape.heads // shape.tp, shape.hidden // shape.heads
    scores = batch * shape.sequence**2
    softmax = memory(2 * scores * width)  # scale, mask and softmax in one
    if batch % _SOFTMAX_BATCH:
        softmax = memory(scores * (4 * width + 8 * _FP32), launches=5)
    return (
        memory(6 * shape.tokens * own * width, launches=3),  # q, k and v apart, in heads
        matmul(shape.sequence, head, shape.sequence, width, batch=batch),
        softmax,
        memory(scores * (2 * width + _MASK)),  # dropout
        matmul(shape.sequence, shape.sequence, head, width, batch=batch),
        memory(2 * shape.tokens * own * width),  # heads together
    )


def _mlp(shape: Shape) -> tuple[Kernel, ...]:
    own = shape.ffn // shape.tp
    return (
        matmul(shape.tokens, shape.hidden, own, shape.width),
        memory(2 * shape.tokens * own * shape.width),  # bias and GeLU
        matmul(shape.tokens, own, shape.hidden, shape.width),
    )


def _backward(kernels: Iterable[Kernel], shape: Shape) -> tuple[Kernel, ...]:
    """Two products for each product, one and a half times the traffic for the others, last first."""
    back: list[Kernel] = []
    for kernel in reversed(tuple(kernels)):
        if kernel.kind is KernelKind.MATMUL:
            back += matmul_backward(kernel, shape.width)
        elif kernel.kind is KernelKind.ATTENTION:
            back.append(fused_attention(2 * kernel.flops, 2 * kernel.bytes_moved))
        else:
            back.append(memory(kernel.bytes_moved * 3 // 2, launches=kernel.launches))
    return tuple(back)


def _twice(kernel: Kernel) -> tuple[Kernel, ...]:
    """Backward of a memory-bound kernel: gradient in, saved value in, gradient out."""
    return (memory(kernel.bytes_moved * 3 // 2, launches=2 * kernel.launches),)


def _accumulate(shape: Shape, parameters: int) -> Kernel:
    """Gradients of a micro-batch added to those before: two reads and a write; twelve tensors a layer."""
    return memory(3 * parameters // shape.tp * shape.width, launches=12)


def attention_parameters(shape: Shape) -> int:
    """Weights and biases of QKV and projection, and a layer norm, of all tensor-parallel ranks."""
    return 4 * shape.hidden**2 + 6 * shape.hidden


def mlp_parameters(shape: Shape) -> int:
    """Weights and biases of two matrices, and a layer norm, of all tensor-parallel ranks."""
    return 2 * shape.hidden * shape.ffn + shape.ffn + 3 * shape.hidden


def embedding_parameters(shape: Shape) -> int:
    """Tokens (shared with the head) and positions, of all tensor-parallel ranks."""
    return (shape.vocabulary + shape.sequence) * shape.hidden
