"""Operators of Megatron-LM's local layers, forward and backward: kernels and exchanges on a tape.

Bytes are each operand and result once. ``jit_fuser`` is ``torch.compile``: bias with GeLU, and bias, dropout
and residual, are a kernel each; a bias's gradient is then summed in two, the first over blocks of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cosim.gpu.kernels import Kernel, matmul, matmul_backward, memory
from cosim.models.catalogue.cut import TP
from cosim.models.parts import Exchange, Mark
from cosim.models.pytorch.operators import FP32, INDEX, Operators
from cosim.models.pytorch.tape import Beside, TapeEvent, Tensor

_BOOL = 1
_SEED = 8
_ROWS_OF_A_SUM = 128
"""Rows that a block of Inductor's split reduction adds up."""
WAIT = Mark("host waits")


def numbers(*sizes: int) -> tuple[Kernel, ...]:
    """Kernels of a number or two, by their bytes."""
    return tuple(memory(size) for size in sizes)


def own_part(tokens: int) -> tuple[Kernel, ...]:
    """Which tokens' numbers are in this rank's part of the vocabulary, and where."""
    size, flag = tokens * INDEX, tokens * _BOOL
    return numbers(size + flag, size + flag, 3 * flag, 2 * size, 2 * size, 2 * size + flag + INDEX)


@dataclass(frozen=True)
class LocalOperators(Operators):
    """The operators of a stretch of a model that ``tp`` ranks share."""

    tp: int = 1

    def added(self, x: Tensor, weight: Tensor, bias: Tensor | None = None, *, summed: bool = True) -> Tensor:
        """``x @ weight.T``, then the bias. ``summed``: ranks have columns; they add up the gradient of ``x``
        beside the product that gives the weight's.
        """
        columns, inner = weight.shape
        product = matmul(x.count // inner, inner, columns, x.width)
        for_x, for_weight = matmul_backward(product, x.width)
        out = Tensor((*x.shape[:-1], columns), x.width)
        forward = [product] if bias is None else [product, memory(2 * out.size_bytes + bias.size_bytes)]

        def backward(_: frozenset[int]) -> Iterable[TapeEvent]:
            yield for_x
            if summed and self.tp > 1:
                yield Beside(Exchange("all_reduce", TP, x.size_bytes))
            yield for_weight
            if bias is not None:
                yield memory(out.size_bytes + bias.size_bytes)

        return self.tape.run(forward, out, (x, weight) if bias is None else (x, weight, bias), backward)

    def gelu(self, x: Tensor, bias: Tensor) -> Tensor:
        """GELU of ``x + bias``, compiled; the bias's gradient is a sum of its own."""
        size = bias.size_bytes
        back = numbers(3 * x.size_bytes + size, x.size_bytes + size)
        forward = [memory(2 * x.size_bytes + size)]
        return self.tape.run(forward, Tensor(x.shape, x.width), (x, bias), lambda _: back)

    def residual(self, x: Tensor, bias: Tensor, residual: Tensor, *, dropout: bool) -> Tensor:
        """``residual + dropout(x + bias)``, compiled."""
        rows, columns = x.count // x.shape[-1], x.shape[-1]
        parts = -(-rows // _ROWS_OF_A_SUM) * columns * FP32
        forward, back = [], []
        moved = 3 * x.size_bytes + bias.size_bytes
        if dropout:
            mask = x.count * _BOOL
            forward, moved = [memory(_SEED)], moved + mask + _SEED
            back = [memory(2 * x.size_bytes + mask)]
        forward.append(memory(moved))
        back += [memory(x.size_bytes + parts), memory(parts + bias.size_bytes)]
        return self.tape.run(forward, Tensor(x.shape, x.width), (x, bias, residual), lambda _: back)

    def chosen(self, joined: Tensor, q: tuple[int, int, int], *, masks: int, dropout: bool) -> Tensor:
        """Scaled scores, mask, softmax, product of ``joined`` queries, keys and values, ``q`` being [heads of
        all sequences, tokens, head]. ``masks``: of the batch, for each sequence its own; 0: none, a causal
        one is made.
        """
        batch, tokens, head = q
        out = Tensor(q, joined.width)
        product = matmul(tokens, head, tokens, joined.width, batch=batch)
        weighted = matmul(tokens, tokens, head, joined.width, batch=batch)
        count = batch * tokens * tokens
        scores, whole, scale = count * joined.width, memory(2 * joined.size_bytes), memory(2 * out.size_bytes)
        drop = [memory(2 * scores + count * _BOOL)] if dropout else []
        square = tokens * tokens
        mask = memory(2 * scores + (masks or 1) * square * _BOOL)
        made = () if masks else numbers(square * FP32, 2 * square * FP32, square * (FP32 + _BOOL))
        copy = memory(2 * scores)
        for_q, for_k = matmul_backward(product, joined.width)
        forward = [
            replace(product, bytes_moved=product.bytes_moved + scores),  # baddbmm reads where it writes
            *made, mask, memory(2 * scores), *drop, weighted, scale,
        ]  # fmt: skip
        back = [
            *matmul_backward(weighted, joined.width), *drop, memory(3 * scores),
            copy, copy, mask, copy, for_q, scale, for_k, scale, whole,
        ]  # fmt: skip
        return self.tape.run(forward, out, (joined,), lambda _: back)

    def words(self, tokens: tuple[int, int], table: Tensor, *, also: int) -> Tensor:
        """Rows of the rank's part of the vocabulary; ``also``: bytes of a gradient that the head, which has
        the same table, left to be added.
        """
        count = tokens[0] * tokens[1]
        out = Tensor((*tokens, table.shape[-1]), table.width)
        look = memory(2 * out.size_bytes + count * INDEX)
        back = [memory(2 * out.size_bytes + count * INDEX + table.size_bytes)]
        forward = [look]
        if self.tp > 1:  # those of other ranks are 0
            hidden = count * _BOOL + table.width
            forward = [*own_part(count), look, memory(2 * out.size_bytes + hidden)]
            back.insert(0, memory(4 * out.size_bytes + hidden))
        if also:
            back.append(memory(3 * also))
        return self.tape.run(forward, out, (table,), lambda _: back)

    def loss(self, logits: Tensor, sequences: int) -> Tensor:
        """``vocab_parallel_cross_entropy`` in fp32, its mean over the tokens that count, and whether it is a
        number, which the host reads.
        """
        rows = logits.count // logits.shape[-1]
        size, number, index, flag = logits.count * FP32, rows * FP32, rows * INDEX, rows * _BOOL
        convert = memory(logits.size_bytes + size)
        reduce = Exchange("all_reduce", TP, number)
        turned = sequences > 1  # from sequences first to tokens first
        change = memory(2 * size + number)
        forward: list[TapeEvent] = [
            *(numbers(2 * index) if turned else ()),
            convert, memory(size + number + index), reduce,  # largest
            change, *own_part(rows),
            *numbers(index, 2 * index + 2 * number, 2 * number, 2 * number + flag + FP32),  # targets' logits
            *numbers(2 * size, size + number), reduce, reduce,
            *numbers(2 * number, 3 * number), change,
            *(numbers(2 * number) if turned else ()),
            *numbers(3 * number, number + FP32, number + FP32, 8, 8, 8, 16, 5), WAIT, memory(5), WAIT,
            *numbers(8, 12, 8, 12, 12, 4),
        ]  # fmt: skip
        back: list[TapeEvent] = [
            *numbers(12, 8, 8, 12, 2 * number + FP32, index, flag + number, 2 * number),
            *numbers(2 * index + 2 * number, 3 * number, 2 * index + 2 * number), change, convert,
        ]  # fmt: skip
        return self.tape.run(forward, Tensor((), FP32), (logits,), lambda _: back)
