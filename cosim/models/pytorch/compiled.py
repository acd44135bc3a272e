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
"""

from __future__ import annotations

from collections.abc import Iterable

from cosim.gpu.kernels import Kernel, fused
from cosim.models.catalogue.cut import FUSED, TP, Recompute
from cosim.models.parts import Exchange, Layer
from cosim.models.pytorch.blocks import EagerBlocks, Writer
from cosim.models.pytorch.operators import FP32, Operators, complex_rotation
from cosim.models.pytorch.tape import Ready, Tape, TapeEvent, Tensor, pieces

_GPU_BLOCKS = 132 * 2048 // 256
"""Blocks of 256 threads that fill an H100."""
_COLUMNS, _ROWS = 128, 4
"""What a thread block has side by side, and a thread one below the other."""


class CompiledBlocks(EagerBlocks):
    """Blocks are compiled one by one, embedding and head are not (torchtitan's ``apply_compile``)."""

    @property
    def mlp_tensors(self) -> int:
        """Gate, what it gates, and the product: the gate's activation is made again."""
        return 3

    def layer(self, number: int) -> Layer:
        """One block."""
        again = self.again(number)
        if again == "selective":
            super().layer(number)  # which operators are saved doesn't depend on what is fused
        return CompiledBlock(self, f"layer {number}", again=again).whole()


class CompiledBlock(Writer):
    """A block being written: library calls in order, fused kernels between them."""

    def __init__(self, blocks: EagerBlocks, name: str, *, again: Recompute) -> None:
        super().__init__(blocks, name)
        self.state = self.input()
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
        ready = [Ready(weight) for weight in self.weights]
        count = sum(weight.count for weight in self.weights)
        mlp_norm = self._norm_backward(2, beside=self.some_again)
        back = [*backward_mlp, mlp_norm, *backward, self._norm_backward(3), *sums, *ready]
        return Layer(
            self.name,
            pieces(self.name, [*forward, *forward_mlp]),
            pieces(self.name, back),
            pieces(self.name, self.recomputed if self.again else ()),
            parameters=self.blocks.sharded(count, 0),
            weights=tuple(self.weights),
        )

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
        out = chosen.attention(q, k, v, causal=m.causal, version=FUSED[cut.attention])
        projection = self._product("projection", heads * m.head, m.hidden)
        turned, back = self._turned(q, k)
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
        end = fused(4 * self.state.size_bytes)  # the block's input, both changes, and their sum
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
        out = at.linear(x, Tensor(weight.shape, weight.width))
        return at.tape.forward, at.tape.backward(out)

    def _turned(self, q: Tensor, k: Tensor) -> tuple[list[TapeEvent], list[TapeEvent]]:
        """Queries and keys, forward and backward."""
        if self.framework.rotary != "complex":  # a kernel for each, of the tables' both halves
            tables = 2 * self.cut.sequence * self.model.head * self.cut.width
            kernels: list[TapeEvent] = [fused(2 * each.size_bytes + tables) for each in (q, k)]
            return kernels, kernels
        turned: list[TapeEvent] = []
        for each in (q, k):  # PyTorch's own product of complex numbers, between conversions
            convert = fused(each.size_bytes + each.count * FP32)
            turned += [convert, complex_rotation(each)[0], convert]
        return turned, [complex_rotation(q)[1], *turned]  # both have one table

    # -- tensor-parallel ranks ---------------------------------------------------------------------------

    def _gathered(self) -> list[TapeEvent]:
        """All ranks' tokens, which many sequences have in another order than they came in."""
        if self.tp == 1:
            return []
        return self.split.gather(self.state, self.split.whole(self.state))

    def _scattered(self, parts: int) -> list[TapeEvent]:
        """The sum of so many products added up over ranks: it is made as it is brought into their order."""
        if self.tp == 1:
            return []
        size = self.split.whole(self.state).size_bytes
        return [fused((parts + 1) * size), Exchange("reduce_scatter", TP, size)]

    # -- norms and residual sums -----------------------------------------------------------------------

    @property
    def _row_numbers(self) -> int:
        """Bytes of one number for each row of the state."""
        return self.cut.own_tokens * FP32

    def _norm(self, parts: int, *, kept: bool = True) -> Kernel:
        """Of the sum of so many parts; ``kept``: with what backward needs."""
        rows = self._row_numbers if kept else 0
        return fused((parts + 1) * self.state.size_bytes + rows + self.norms[0].size_bytes)

    def _readers(self, products: int) -> int:
        """Gradients of what so many products read: ranks have them as one, added up on the way."""
        return products if self.tp == 1 else 1

    def _norm_backward(self, products: int, *, beside: bool = False) -> Kernel:
        """Of gradients of the products that read the norm, its input, and the residual's gradient, to their
        sum.

        Attention's norm has three readers and one input, the MLP's two of each. ``beside``: attention's norm
        is made again from what both read.
        """
        states = self._readers(products) + (4 - products) + 2
        norms, states = (2, states + 1) if beside else (1, states)
        numbers = norms * (self._row_numbers + self.norms[0].size_bytes)
        return fused(states * self.state.size_bytes + numbers)

    def _sums_of_norms(self) -> Iterable[Kernel]:
        """Gradients of both weights: sums over rows, first of blocks of rows, in one kernel for both."""
        m = self.model
        blocks = row_blocks(self.cut.own_tokens, m.hidden)
        read = self._readers(2) + self._readers(3) + 2  # products' gradients, the input, attention's change
        states = read * self.state.size_bytes
        if blocks == 1:
            yield fused(states + 2 * (self._row_numbers + self.norms[0].size_bytes))
            return
        partial = blocks * m.hidden * FP32
        yield fused(states + 2 * (self._row_numbers + partial))
        for weight in self.norms:
            yield fused(partial + weight.size_bytes)


def row_blocks(rows: int, columns: int) -> int:
    """Into how many blocks of rows Inductor splits a sum over them (``choices.reduction_split_factor``).

    A thread adds up 32 numbers at least, and as many more as keep an H100 just filled; 512 where there is
    enough for that.
    """
    numbers, least, most = rows * columns, 32, 512
    thread = least
    if numbers >= most * 256 * _GPU_BLOCKS:
        thread = _even(rows, most, 50)
    elif numbers >= least * 256 * _GPU_BLOCKS:
        together = -(-_GPU_BLOCKS // -(-columns // _COLUMNS))
        thread = max(_even(rows, -(-rows // (_ROWS * together)), 20), least)
    return -(-rows // (_ROWS * thread))


def _even(rows: int, wanted: int, within: int) -> int:
    """A divisor of ``rows`` near what is wanted, if there is one."""
    nearest = min((n for n in range(1, rows + 1) if rows % n == 0), key=lambda n: abs(n - wanted))
    return nearest if abs(nearest - wanted) < within else wanted
