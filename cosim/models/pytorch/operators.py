"""What PyTorch's operators ask of a GPU in eager mode, forward and backward: one kernel each.

Bytes are each operand and each result once, and again where a second kernel or pass reads it. Kernels whose
operands lie differently, are broadcast or of several types go through their elements one by one
(:class:`~cosim.gpu.kernels.Kernel`); of sums of gradients that isn't said. What backward does is PyTorch's
rule for the operator (``tools/autograd/derivatives.yaml``). A flash attention's backward makes the scores
again: five products where forward has two (Dao, "FlashAttention-2", arXiv 2307.08691, section 3.1).

Under ``autocast`` matrix products run in ``width``, their operands cast by a kernel each where they are kept
in another type; norms, powers and the loss run in fp32 (PyTorch, "Automatic Mixed Precision", op-specific
behaviour).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from cosim.gpu.kernels import (
    AttentionVersion,
    Kernel,
    Narrow,
    attention_backward,
    fused_attention,
    matmul,
    matmul_backward,
    memory,
    narrowed,
)
from cosim.models.parts import Mark
from cosim.models.pytorch.tape import Tape, TapeEvent, Tensor

FP32 = 4
INDEX = 8
"""Bytes of a token's number."""
_BOOL = 1
_SHARED = 48 << 10


@dataclass(frozen=True, slots=True)
class Rule:
    """An operator that isn't run yet: its result, what it launches, and what its gradients launch."""

    out: Tensor
    forward: list[Kernel]
    backward: Callable[[frozenset[int]], Iterable[Kernel]]


def converted(count: int, width: int, to: int) -> Kernel:
    """Numbers to another type; to a narrower one there is a kernel of its own."""
    return memory(count * (width + to), elements=count if to > width else 0)


@dataclass(frozen=True)
class Operators:
    """Operators of a stretch of a model, noted on its tape."""

    tape: Tape
    width: int
    autocast: bool = False
    narrow: Narrow | None = None
    """The type of linear layers' operands, where a recipe makes it another (Transformer Engine's modules)."""

    # -- types ----------------------------------------------------------------------------------------

    def cast(self, x: Tensor, width: int) -> Tensor:
        """To another number type."""
        if x.width == width:
            return x
        kernel, back = converted(x.count, x.width, width), converted(x.count, width, x.width)
        return self.tape.run([kernel], Tensor(x.shape, width), (x,), lambda _: [back], keeps=False)

    def _full(self, x: Tensor) -> Tensor:
        """As autocast gives it to operators that need fp32."""
        return self.cast(x, FP32) if self.autocast else x

    # -- products -------------------------------------------------------------------------------------

    def linear(
        self, x: Tensor, weight: Tensor, bias: Tensor | None = None, *, recipe: bool = False
    ) -> Tensor:
        """``x @ weight.T + bias``; ``weight`` is [out, in]. ``recipe``: one that the recipe's narrow type is
        for.
        """
        if self.autocast:
            x, weight = self.cast(x, self.width), self.cast(weight, self.width)
            bias = None if bias is None else self.cast(bias, self.width)
        rule = self.rule(x, weight, bias, recipe=recipe)
        if bias is not None:  # another operator
            return self.tape.run(rule.forward, rule.out, (x, weight, bias), rule.backward, holds=(x, weight))
        self.tape.products += 1
        if self.tape.products % 2 == 0:
            return self.tape.run(rule.forward, rule.out, (x, weight), rule.backward)
        saved = rule.out.size_bytes
        return self.tape.run(rule.forward, rule.out, (x, weight), rule.backward, again=(), saved=saved)

    def rule(self, x: Tensor, weight: Tensor, bias: Tensor | None = None, *, recipe: bool = False) -> Rule:
        """What a linear layer launches. See :meth:`linear`."""
        columns, inner = weight.shape
        out = Tensor((*x.shape[:-1], columns), x.width)
        product = matmul(x.count // inner, inner, columns, x.width)
        for_x, for_weight = matmul_backward(product, x.width)
        forward = [product if bias is None else _more(product, bias.size_bytes)]
        before: list[Kernel] = []
        if recipe and self.narrow is not None:
            convert, for_x = narrowed(for_x, x.width, self.narrow)
            before.append(convert)
            for_weight = narrowed(for_weight, x.width, self.narrow)[1]
            forward = [*narrowed(forward[0], x.width, self.narrow)]
        summed = memory(out.size_bytes + columns * x.width)

        def backward(needed: frozenset[int]) -> Iterable[Kernel]:
            yield from before
            if 1 in needed:
                yield for_weight
            if 0 in needed:
                yield for_x
            if 2 in needed:
                yield summed

        return Rule(out, forward, backward)

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        """Batched: [..., rows, inner] by [..., inner, columns]."""
        *lead, rows, inner = a.shape
        columns, batch = b.shape[-1], a.count // (rows * inner)
        kernel = matmul(rows, inner, columns, a.width, batch=batch)
        back = matmul_backward(kernel, a.width)
        return self.tape.run(
            [kernel],
            Tensor((*lead, rows, columns), a.width),
            (a, b),
            lambda needed: [back[place] for place in sorted(needed)],
        )

    def attention(
        self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, version: AttentionVersion = "newest"
    ) -> Tensor:
        """Flash ``scaled_dot_product_attention``; [batch, heads, tokens, head], keys maybe of fewer heads.

        ``causal``: half of the scores are made.
        """
        if self.autocast:
            q, k, v = (self.cast(each, self.width) for each in (q, k, v))
        batch, heads, tokens, size = q.shape
        scores = (1 if causal else 2) * batch * heads * tokens * k.shape[2]
        flops = scores * (size + v.shape[-1])
        out = Tensor((batch, heads, tokens, v.shape[-1]), q.width)
        sums = batch * heads * tokens * FP32  # log-sum-exp of each row
        moved = q.size_bytes + k.size_bytes + v.size_bytes + out.size_bytes + sums
        gradients = q.size_bytes + k.size_bytes + v.size_bytes + out.size_bytes
        again = scores * (3 * size + 2 * v.shape[-1])
        forward = fused_attention(
            flops, moved, heads=batch * heads, queries=tokens, keys=k.shape[2], head=size, causal=causal,
            version=version,
        )  # fmt: skip
        back = replace(attention_backward(forward), flops=again, bytes_moved=moved + gradients)
        saved = out.size_bytes + sums
        return self.tape.run(
            [forward], out, (q, k, v), lambda _: [back], again=(), saved=saved, holds=(q, k, v, out),
            beside=sums,
        )  # fmt: skip

    # -- element by element ---------------------------------------------------------------------------

    def add(self, x: Tensor, y: Tensor, *, apart: bool = False) -> Tensor:
        """One shape: a gradient goes through as it is, cast where an operand was of a narrower type.

        ``apart``: they lie in memory differently.
        """
        out = Tensor(x.shape, max(x.width, y.width))

        def backward(needed: frozenset[int]) -> Iterable[TapeEvent]:
            for place in sorted(needed):
                width = (x, y)[place].width
                if width != out.width:
                    yield memory(out.count * (out.width + width))

        elements = 0 if x.width == y.width and not apart else out.count
        kernel = memory(x.size_bytes + y.size_bytes + out.size_bytes, elements=elements)
        return self.tape.run([kernel], out, (x, y), backward, keeps=False)

    def multiply(self, x: Tensor, y: Tensor) -> Tensor:
        """``y`` of the same shape, or broadcast: then its gradient is a product and a sum."""
        out = Tensor(x.shape, max(x.width, y.width))
        elements = 0 if (x.count, x.width) == (y.count, y.width) else out.count

        def backward(needed: frozenset[int]) -> Iterable[TapeEvent]:
            for place in sorted(needed):
                mine, other = (x, y)[place], (x, y)[1 - place]
                alike = (other.count, other.width) == (out.count, out.width)
                yield memory(2 * out.size_bytes + other.size_bytes, elements=0 if alike else out.count)
                if mine.count < out.count:
                    yield memory(out.size_bytes + mine.count * out.width)
                if mine.width != out.width:
                    yield memory(mine.count * (out.width + mine.width))

        kernel = memory(x.size_bytes + y.size_bytes + out.size_bytes, elements=elements)
        holds = tuple(one for one, other in ((x, y), (y, x)) if other.grad)
        return self.tape.run([kernel], out, (x, y), backward, holds=holds)

    def scale(self, x: Tensor) -> Tensor:
        """By a number that is known."""
        kernel = memory(2 * x.size_bytes)
        return self.tape.run([kernel], Tensor(x.shape, x.width), (x,), lambda _: [kernel], keeps=False)

    def negate(self, x: Tensor) -> Tensor:
        """``-x`` of a slice."""
        kernel = memory(2 * x.size_bytes, elements=x.count)
        return self.tape.run([kernel], Tensor(x.shape, x.width), (x,), lambda _: [kernel], keeps=False)

    def square(self, x: Tensor) -> Tensor:
        """``x.pow(2)``; backward is ``grad * (2 * x.pow(1))``."""
        x = self._full(x)
        two = memory(2 * x.size_bytes)
        back = [two, two, memory(3 * x.size_bytes)]
        return self.tape.run([two], Tensor(x.shape, x.width), (x,), lambda _: back)

    def mean(self, x: Tensor) -> Tensor:
        """Over the last dimension, which stays as 1."""
        out = Tensor((*x.shape[:-1], 1), x.width)
        moved = x.size_bytes + out.size_bytes
        back = memory(moved, elements=x.count)  # spread over the rows, divided
        return self.tape.run([memory(moved)], out, (x,), lambda _: [back], keeps=False)

    def add_number(self, x: Tensor) -> Tensor:
        """``x + epsilon``; backward has nothing to do."""
        return self.tape.run(
            [memory(2 * x.size_bytes)], Tensor(x.shape, x.width), (x,), lambda _: (), keeps=False
        )

    def inverse_root(self, x: Tensor) -> Tensor:
        """``rsqrt``; backward is ``-0.5 * grad * result.pow(3)``."""
        two, out = memory(2 * x.size_bytes), Tensor(x.shape, x.width)
        back = [two, two, memory(3 * x.size_bytes)]
        return self.tape.run([two], out, (x,), lambda _: back, holds=(out,))

    def activation(self, x: Tensor) -> Tensor:
        """SiLU or GeLU: backward reads the input again."""
        back = memory(3 * x.size_bytes)
        return self.tape.run([memory(2 * x.size_bytes)], Tensor(x.shape, x.width), (x,), lambda _: [back])

    def dropout(self, x: Tensor) -> Tensor:
        """``native_dropout``: its mask is kept."""
        mask, out = x.count * _BOOL, Tensor(x.shape, x.width)
        kernel = memory(2 * x.size_bytes + mask)
        return self.tape.run([kernel], out, (x,), lambda _: [kernel], holds=(), beside=mask)

    def softmax(self, x: Tensor, width: int) -> Tensor:
        """Over the last dimension; ``width``: of the result, made in the same kernel."""
        out = Tensor(x.shape, width)
        kernel = memory(x.size_bytes + out.size_bytes + _passes(x, 2))
        back = memory(2 * out.size_bytes + x.size_bytes + _passes(out, 1))
        return self.tape.run([kernel], out, (x,), lambda _: [back], holds=(out,))

    def copy(self, x: Tensor, *, back: bool = True) -> Tensor:
        """Made contiguous; ``back``: so is its gradient."""
        kernel = memory(2 * x.size_bytes, elements=x.count)
        return self.tape.run(
            [kernel], Tensor(x.shape, x.width), (x,), lambda _: [kernel] if back else (), keeps=False
        )

    def masked(self, x: Tensor, mask: Tensor) -> Tensor:
        """A mask added, which is broadcast."""
        kernel = memory(2 * x.size_bytes + mask.size_bytes, elements=x.count)
        return self.tape.run([kernel], Tensor(x.shape, x.width), (x,), lambda _: (), keeps=False)

    def spread(self, x: Tensor, times: int) -> Tensor:
        """Broadcast along the first dimension: a view; its gradient is a sum."""
        out = Tensor((times, *x.shape[1:]), x.width)
        back = [memory(out.size_bytes + x.size_bytes)] if times > 1 else []
        return self.tape.run((), out, (x,), lambda _: back, keeps=False)

    def repeated(self, x: Tensor, times: int) -> Tensor:
        """Each head of [batch, heads, tokens, head] several times over; backward sums them."""
        batch, heads, *rest = x.shape
        out = Tensor((batch, heads * times, *rest), x.width)
        moved = x.size_bytes + out.size_bytes
        kernel, back = memory(moved, elements=out.count), memory(moved)
        return self.tape.run([kernel], out, (x,), lambda _: [back], keeps=False)

    def split(self, x: Tensor, *columns: int) -> tuple[Tensor, ...]:
        """Views of so many columns each of the last dimension; one kernel puts their gradients together."""
        back = memory(2 * x.size_bytes, elements=x.count)
        whole = Tensor(x.shape, x.width, base=x.base or x, parted=True)
        self.tape.run((), whole, (x,), lambda _: [back], keeps=False)
        parts = (Tensor((*x.shape[:-1], each), x.width, base=whole.base) for each in columns)
        return tuple(self.tape.run((), part, (whole,), lambda _: (), keeps=False) for part in parts)

    # -- padding --------------------------------------------------------------------------------------

    def unpadded(self, x: Tensor) -> Tensor:
        """Rows that aren't padding, of [batch, tokens, ...]: flash-attn's ``bert_padding.unpad_input``.

        Here all are. The host waits for how many there are, and for the longest sequence; the rows are
        gathered, and their gradients scattered into zeros, element by element.
        """
        tokens = x.shape[0] * x.shape[1]
        mask, numbers, lengths = tokens * _BOOL, tokens * INDEX, x.shape[0] * FP32
        self.tape.forward.extend([
            memory(mask + lengths),  # tokens of each sequence
            memory(mask + numbers), Mark("host waits"),  # where they are
            memory(lengths), Mark("host waits"),  # the most
            memory(2 * lengths), memory(2 * lengths),  # where each sequence begins
        ])  # fmt: skip
        moved = 2 * x.size_bytes + numbers
        gathered = memory(moved, elements=x.count)
        back = [memory(x.size_bytes), gathered]
        return self.tape.run(
            [gathered], Tensor(x.shape, x.width), (x,), lambda _: back, holds=(), beside=numbers
        )

    def padded(self, x: Tensor) -> Tensor:
        """Rows back among padding: flash-attn's ``bert_padding.pad_input``, into zeros."""
        numbers = x.shape[0] * x.shape[1] * INDEX
        put = memory(2 * x.size_bytes + numbers, elements=x.count)
        return self.tape.run(
            [memory(x.size_bytes), put], Tensor(x.shape, x.width), (x,), lambda _: [put], holds=()
        )

    # -- norms ----------------------------------------------------------------------------------------

    def rms_norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """``torch.nn.RMSNorm``: one kernel each way; a number for each row is kept."""
        return self._norm(x, weight, numbers=1)

    def written_rms_norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """As model code writes it: to fp32, the mean square, its root, back, times the weight."""
        wide = self.cast(x, FP32)
        root = self.inverse_root(self.add_number(self.mean(self.square(wide))))
        return self.multiply(self.cast(self.multiply(wide, root), x.width), weight)

    def layer_norm(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """``torch.nn.LayerNorm``: one kernel each way; two numbers for each row are kept."""
        return self._norm(x, weight, bias, numbers=2)

    def _norm(self, x: Tensor, *vectors: Tensor, numbers: int) -> Tensor:
        """One kernel each way; ``numbers`` that are kept for each row."""
        x = self._full(x)
        rows = numbers * (x.count // x.shape[-1]) * FP32
        read = sum(vector.size_bytes for vector in vectors)

        def backward(needed: frozenset[int]) -> Iterable[TapeEvent]:
            own, weights = 0 in needed, 1 in needed
            again = 2 * (own and weights)  # the weights' gradient is made by a kernel of its own
            yield memory((2 + own + again) * x.size_bytes + rows + (1 + weights) * read)

        forward = memory(2 * x.size_bytes + rows + read)
        return self.tape.run([forward], Tensor(x.shape, x.width), (x, *vectors), backward, beside=rows)

    # -- positions ------------------------------------------------------------------------------------

    def rotated_halves(self, x: Tensor, *, sliced: bool, narrow: bool = False) -> Tensor:
        """``x * cos + cat(-x2, x1) * sin``; x [batch, heads, tokens, head], tables [tokens, head].

        Tables have the type of the residual stream, autocast's being fp32, or ``narrow`` ones that of x.
        ``sliced``: the halves are slices, each with a gradient of full size (``slice_backward``), and not
        chunks, whose gradients one kernel puts together.
        """
        width = FP32 if self.autocast and not narrow else x.width
        table = Tensor((x.shape[-2], x.shape[-1]), width, grad=False)
        straight = self.multiply(x, table)
        half = Tensor((*x.shape[:-1], x.shape[-1] // 2), x.width)
        if sliced:
            each = [memory(x.size_bytes + half.size_bytes, elements=half.count)]
            first, second = (
                self.tape.run((), Tensor(half.shape, x.width), (x,), lambda _: each, keeps=False)
                for _ in range(2)
            )
            turned = self._joined(self.negate(second), first)
        else:
            # Gradients of both chunks are put together once the later one, the negated one's, is there.
            whole = memory(2 * x.size_bytes, elements=x.count)
            chunks = self.tape.run((), Tensor(x.shape, x.width), (x,), lambda _: [whole], keeps=False)
            minus = memory(2 * half.size_bytes, elements=half.count)
            turned = self.tape.run(
                [minus, memory(2 * x.size_bytes, elements=x.count)],
                Tensor(x.shape, x.width),
                (chunks,),
                lambda _: [minus],
                keeps=False,
            )
        return self.add(straight, self.multiply(turned, table), apart=True)

    def _joined(self, first: Tensor, second: Tensor) -> Tensor:
        """Along the last dimension; gradients are views."""
        shape = (*first.shape[:-1], first.shape[-1] + second.shape[-1])
        out = Tensor(shape, first.width)
        kernel = memory(2 * out.size_bytes, elements=out.count)
        return self.tape.run([kernel], out, (first, second), lambda _: (), keeps=False)

    def rotated_complex(self, x: Tensor) -> Tensor:
        """Pairs as complex numbers, in fp32; x [batch, heads, tokens, head], table [tokens, head / 2]."""
        wide = self.cast(x, FP32)
        kernel, conjugated = complex_rotation(x)
        turned = self.tape.run(
            [kernel], Tensor(wide.shape, FP32), (wide,), lambda _: [conjugated, kernel], holds=()
        )
        return self.cast(turned, x.width)

    # -- both ends ------------------------------------------------------------------------------------

    def embedding(self, tokens: tuple[int, ...], table: Tensor) -> Tensor:
        """Rows of a table; its gradient is made in full: zeros, then the rows added."""
        out = Tensor((*tokens, table.shape[-1]), table.width)
        numbers = out.count // table.shape[-1] * INDEX
        back = memory(2 * out.size_bytes + numbers + table.size_bytes)
        kernel = memory(2 * out.size_bytes + numbers)
        return self.tape.run([kernel], out, (table,), lambda _: [back], holds=())

    def cross_entropy(self, logits: Tensor) -> Tensor:
        """Log-softmax, then the targets' mean; logits [tokens, vocabulary]."""
        logits = self._full(logits)
        rows = logits.count // logits.shape[-1]
        changed = Tensor(logits.shape, logits.width)
        kernel = memory(2 * logits.size_bytes + _passes(logits, 2))
        again = memory(3 * logits.size_bytes + _passes(logits, 1))
        self.tape.run([kernel], changed, (logits,), lambda _: [again], holds=(changed,))
        targets = rows * (INDEX + logits.width)
        back = [memory(logits.width), memory(logits.size_bytes + targets)]  # of 1, the gradient of the loss
        return self.tape.run([memory(targets)], Tensor((), logits.width), (changed,), lambda _: back)

    def metric(self, logits: Tensor) -> Iterable[Kernel]:
        """``composer.metrics.LanguageCrossEntropy`` under autocast, nothing kept: a sum of losses, and
        how many there are.
        """
        rows = logits.count // logits.shape[-1]
        if logits.width != FP32:
            yield memory(logits.count * (logits.width + FP32))
        yield memory(2 * logits.count * FP32 + _passes(Tensor(logits.shape, FP32), 2))
        yield memory(rows * (INDEX + FP32))
        yield memory(rows * (INDEX + _BOOL))
        yield memory(rows * _BOOL + INDEX)
        yield memory(3 * FP32)
        yield memory(3 * INDEX)

    def fused_cross_entropy(self, logits: Tensor) -> Tensor:
        """``flash_attn.losses.cross_entropy``: a kernel reads logits as they are, and makes each row's loss
        and log-sum-exp; backward reads them again and writes their gradient, not in their place unless asked.
        Targets to ignore are masked out, and what is left is averaged.
        """
        rows = logits.count // logits.shape[-1]
        row, target, flag = rows * FP32, rows * INDEX, rows * _BOOL
        masked = [memory(target + flag), memory(2 * row + flag)]
        forward = [
            memory(logits.size_bytes + target + 2 * row), *masked,
            memory(row), memory(target + flag), memory(flag + INDEX), memory(2 * FP32 + INDEX),
        ]  # fmt: skip
        back = [
            memory(2 * FP32 + INDEX),
            memory(FP32 + row),
            *masked,
            memory(2 * logits.size_bytes + target + 2 * row),
        ]
        return self.tape.run(forward, Tensor((), FP32), (logits,), lambda _: back, holds=(), beside=row)


def _passes(x: Tensor, times: int) -> int:
    """Bytes that a softmax reads besides, for rows' largest numbers and sums, where a row doesn't stay in a
    multiprocessor's shared memory (``SoftMax.cu``).
    """
    return times * x.size_bytes if x.shape[-1] * x.width >= _SHARED else 0


def _more(kernel: Kernel, size_bytes: int) -> Kernel:
    return Kernel(
        kernel.kind, kernel.flops, kernel.bytes_moved + size_bytes,
        kernel.batch, kernel.rows, kernel.inner, kernel.columns,
    )  # fmt: skip


def complex_rotation(x: Tensor) -> tuple[Kernel, Kernel]:
    """The product of pairs of x as complex numbers, in fp32, with a table's for each token; and what backward
    conjugates: the table.
    """
    table = x.shape[-2] * x.shape[-1] * FP32
    return memory(2 * x.count * FP32 + table), memory(2 * table)
