"""A Llama's block as ``torch.compile`` makes it of the same operators: Inductor's fusions, each a kernel.

Products and attention stay libraries' (and complex numbers' products PyTorch's); what is between them is
fused (Ansel et al., "PyTorch 2", ASPLOS 2024, doi:10.1145/3620665.3640366): a residual sum with the norm that
reads it, which is therefore never written but made again, a gate with what it gates, a rotation by halves
whole, sums of several gradients with what reads the sum. Bytes are each operand and result of a kernel once.
A norm's weight has its gradient in two kernels, the first of which does both norms'. The compiled backward
gives up all gradients at its end.

Tensor-parallel ranks gather and scatter along the sequence: a sum of products' gradients is made as it is
brought into the order in which ranks add it up, so that a norm's backward reads one gradient. A checkpointed
block runs again inside its backward, up to the product that nothing of backward reads; there the gate's
product is made by the kernel that makes the gate's gradients. Where backward runs again what isn't saved by
operator, so is attention's norm by the kernel of the MLP's norm's gradients; between tensor-parallel ranks
the projection isn't, as what was scattered is saved.

Under autocast the residual stream is fp32, which kernels between products read and write beside what products
made; each weight is cast by a kernel of its own, and its copy kept until backward; so is its gradient, back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cosim.gpu.kernels import Kernel, fused
from cosim.models.catalogue.cut import FUSED, TP, Recompute
from cosim.models.parts import Exchange, Layer
from cosim.models.pytorch.blocks import EagerBlocks, Writer
from cosim.models.pytorch.compiled_gpt import CompiledGptBlock
from cosim.models.pytorch.operators import FP32, Operators, complex_rotation
from cosim.models.pytorch.rows import row_blocks
from cosim.models.pytorch.tape import Ready, Tape, TapeEvent, Tensor, pieces

GIVEN_UP = (
    "attention norm", "queries", "mlp norm", "mlp down", "mlp up", "projection", "keys", "mlp gate", "values",
)  # fmt: skip
"""The order in which a block's gradients become ready: all are put into autograd's queue at once, as forward
reads their weights, and this is how a binary heap lets equals go (``torch/csrc/autograd/engine.cpp``).
"""


class CompiledBlocks(EagerBlocks):
    """Blocks are compiled one by one, embedding and head are not (torchtitan's ``apply_compile``)."""

    def layer(self, number: int) -> Layer:
        """One block."""
        again = self.again(number)
        if self.model.norm == "layer":
            return CompiledGptBlock(self, f"layer {number}").whole()
        made = CompiledBlock(self, f"layer {number}", again=again).whole()
        # What is saved of a block that runs again doesn't depend on what is fused.
        return made if again == "none" else replace(made, keeps=super().layer(number).keeps)


class CompiledBlock(Writer):
    """A block being written: library calls in order, fused kernels between them."""

    def __init__(self, blocks: EagerBlocks, name: str, *, again: Recompute) -> None:
        super().__init__(blocks, name)
        self.state = self.input()
        self.half = Tensor(self.state.shape, self.cut.width)
        """As products read and make it."""
        names = ("attention norm", "mlp norm")
        summed = TP if self.tp > 1 else ()
        self.norms = [self.weight(name, self.model.hidden, summed=summed) for name in names]
        self.whole_again, self.some_again = again == "full", again == "selective"
        self.again = again != "none"
        self.recomputed: list[TapeEvent] = []

    def whole(self) -> Layer:
        """Both ways."""
        forward, backward = self._attention()
        forward_mlp, backward_mlp = self._mlp()
        sums = self._sums_of_norms()
        named = {weight.name.removeprefix(f"{self.name} "): weight for weight in self.weights}
        ready = [Ready(named[name]) for name in GIVEN_UP]
        count = sum(weight.count for weight in self.weights)
        mlp_norm = self._norm_backward(2, beside=self.some_again)
        back = [*backward_mlp, mlp_norm, *backward, self._norm_backward(3), *sums, *ready]
        if self.at.autocast:
            back.insert(0, fused(self.state.size_bytes + self.half.size_bytes))
        return Layer(
            self.name,
            pieces(self.name, [*forward, *forward_mlp]),
            pieces(self.name, back),
            pieces(self.name, self.recomputed if self.again else ()),
            parameters=self.blocks.sharded(count, 0),
            weights=tuple(self.weights),
            keeps=self._kept,
            most=self._kept + max(self._wide + self.state.size_bytes, count * self.kept),
        )

    @property
    def _kept(self) -> int:
        """Bytes of the input, what both norms make, queries, keys, values, what they choose, the projection,
        the MLP's halves and their product, a number or two for each row, and weights that were cast.
        """
        m, cut = self.model, self.cut
        heads = m.heads // self.tp
        kv = heads if self.framework.repeat_kv else m.kv // self.tp
        attention = cut.tokens * (2 * (heads + kv) * m.head * cut.width + heads * FP32)
        states = self.state.size_bytes + self.half.size_bytes + 2 * self.split.whole(self.half).size_bytes
        cast = sum(weight.count for weight in self.weights) - 2 * m.hidden if self.at.autocast else 0
        return states + attention + 3 * self._wide + 2 * self._row_numbers + cast * cut.width

    @property
    def _wide(self) -> int:
        """Bytes of one of the MLP's halves."""
        return self.cut.tokens * self.model.ffn // self.tp * self.cut.width

    def _attention(self) -> tuple[list[TapeEvent], list[TapeEvent]]:
        """Norm to projection, and back to the gradients of queries, keys and values."""
        m, cut = self.model, self.cut
        heads, kv = m.heads // self.tp, m.kv // self.tp
        q, k, v = (Tensor((cut.batch, n, cut.sequence, m.head), cut.width) for n in (heads, kv, kv))
        products = [
            self._product(name, m.hidden, count * m.head)
            for name, count in (("queries", heads), ("keys", kv), ("values", kv))
        ]
        chosen = Operators(Tape(), cut.width)
        keys, values = (self._repeated(each) for each in (k, v))
        out = chosen.attention(q, keys, values, causal=m.causal, version=FUSED[cut.attention])
        projection = self._product("projection", heads * m.head, m.hidden)
        turned, back = self._turned(q, k)
        if values is not v:
            kernel = fused(v.size_bytes + values.size_bytes)
            turned, back = [*turned, kernel], [*back, kernel]
        forward = self._gathered()
        for there, _ in products:
            forward += there
        forward += [*turned, *chosen.tape.forward, *projection[0], *self._scattered(1)]
        if self.whole_again:
            self.recomputed += [self._norm(1), *forward]
        again: list[TapeEvent] = []
        if self.some_again:
            again = [*self._gathered(), *products[1][0], *turned]
            self.recomputed += projection[0] if self.tp == 1 else []  # what is scattered is saved
        backward = [*again, *self._gathered(), *projection[1], *chosen.tape.backward(out), *back]
        for _, here in products:
            backward += here
        return [self._norm(1, kept=not self.again), *forward], [*backward, *self._scattered(3)]

    def _mlp(self) -> tuple[list[TapeEvent], list[TapeEvent]]:
        """Sum and norm to the sum at the end, and back to the gradients of gate and what it gates."""
        m, ffn = self.model, self.model.ffn // self.tp
        gate, up = (self._product(f"mlp {name}", m.hidden, ffn) for name in ("gate", "up"))
        down = self._product("mlp down", ffn, m.hidden)
        wide = self.cut.tokens * ffn * self.cut.width
        # The block's input, both changes, and their sum.
        end = fused(2 * (self.state.size_bytes + self.half.size_bytes))
        products = [*self._gathered(), *gate[0], *up[0]]
        self.recomputed += [self._norm(2), *(products if self.whole_again else [*self._gathered(), *up[0]])]
        norm = self._norm(2, kept=not self.again)
        forward = [norm, *products, fused(3 * wide), *down[0], *self._scattered(1), end]
        gated = fused((6 if self.again else 5) * wide)  # run again, the product is another result of it
        backward = [*self._gathered(), *down[1], gated, *gate[1], *up[1], *self._scattered(2)]
        return forward, backward

    def _product(self, name: str, inner: int, columns: int) -> tuple[list[TapeEvent], list[TapeEvent]]:
        """A linear layer's forward and backward."""
        at, x = Operators(Tape(), self.cut.width), Tensor((self.cut.tokens, inner), self.cut.width)
        weight = self.weight(name, columns, inner)
        out = at.linear(x, Tensor(weight.shape, self.cut.width))
        if not self.at.autocast:
            return at.tape.forward, at.tape.backward(out)
        cast = fused(weight.count * (weight.width + self.cut.width))
        return [cast, *at.tape.forward], [*at.tape.backward(out), cast]

    def _repeated(self, x: Tensor) -> Tensor:
        """Keys or values, a copy for each query head that uses them where that is asked for."""
        if not self.framework.repeat_kv or self.model.kv == self.model.heads:
            return x
        batch, _, *rest = x.shape
        return Tensor((batch, self.model.heads // self.tp, *rest), x.width)

    def _turned(self, q: Tensor, k: Tensor) -> tuple[list[TapeEvent], list[TapeEvent]]:
        """Queries and keys, forward and backward; keys are repeated by the kernel that ends it."""
        turned: list[TapeEvent] = []
        back: list[TapeEvent] = []
        for each, out in ((q, q), (k, self._repeated(k))):
            if self.framework.rotary != "complex":  # a kernel for each, of the tables' both halves
                tables = 2 * self.cut.sequence * self.model.head * self.cut.width
                kernel = fused(each.size_bytes + out.size_bytes + tables)
                turned.append(kernel)
                back += [kernel] if out is each else [kernel, fused(2 * each.size_bytes)]
                continue
            # PyTorch's own product of complex numbers, between conversions.
            wide, product = each.count * FP32, complex_rotation(each)[0]
            come, go = fused(each.size_bytes + wide), fused(wide + out.size_bytes)
            turned += [come, product, go]
            back += [go, product, come]
        # Of complex numbers both have one table, which is conjugated.
        return turned, [complex_rotation(q)[1], *back] if self.framework.rotary == "complex" else back

    # -- tensor-parallel ranks ---------------------------------------------------------------------------

    def _gathered(self) -> list[TapeEvent]:
        """All ranks' tokens, which many sequences have in another order than they came in."""
        if self.tp == 1:
            return []
        return self.split.gather(self.half, self.split.whole(self.half))

    def _scattered(self, parts: int) -> list[TapeEvent]:
        """The sum of so many products added up over ranks: it is made as it is brought into their order."""
        if self.tp == 1:
            return []
        size = self.split.whole(self.half).size_bytes
        return [fused((parts + 1) * size), Exchange("reduce_scatter", TP, size)]

    # -- norms and residual sums -----------------------------------------------------------------------

    @property
    def _row_numbers(self) -> int:
        """Bytes of one number for each row of the state."""
        return self.cut.own_tokens * FP32

    def _norm(self, parts: int, *, kept: bool = True) -> Kernel:
        """The norm of the sum of so many parts; ``kept``: with what backward needs."""
        rows = self._row_numbers if kept else 0
        states = self.state.size_bytes + parts * self.half.size_bytes
        return fused(states + rows + self.norms[0].size_bytes)

    def _readers(self, products: int) -> int:
        """Gradients of what so many products read: ranks have them as one, added up on the way."""
        return products if self.tp == 1 else 1

    def _norm_backward(self, products: int, *, beside: bool = False) -> Kernel:
        """From gradients of the products that read the norm, its input, and the residual's gradient, to their
        sum.

        Attention's norm has three readers and one input, the MLP's two of each, and under autocast its result
        once more, as the projection's products read it. ``beside``: attention's norm is made again from what
        both read.
        """
        changes = 3 - products  # beside the block's input
        halves = self._readers(products) + changes * (1 + self.at.autocast) + beside
        norms = 1 + beside
        numbers = norms * (self._row_numbers + self.norms[0].size_bytes)
        return fused(halves * self.half.size_bytes + 3 * self.state.size_bytes + numbers)

    def _sums_of_norms(self) -> Iterable[Kernel]:
        """Gradients of both weights: sums over rows, first of blocks of rows, in one kernel for both."""
        m = self.model
        blocks = row_blocks(self.cut.own_tokens, m.hidden)
        read = self._readers(2) + self._readers(3) + 1  # products' gradients, attention's change
        states = read * self.half.size_bytes + self.state.size_bytes
        if blocks == 1:
            yield fused(states + 2 * (self._row_numbers + self.norms[0].size_bytes))
            return
        partial = blocks * m.hidden * FP32
        yield fused(states + 2 * (self._row_numbers + partial))
        for weight in self.norms:
            yield fused(partial + weight.size_bytes)
