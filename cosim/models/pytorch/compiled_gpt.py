"""A GPT's block as ``torch.compile`` makes it: layer norms, biases, GeLU.

See :mod:`cosim.models.pytorch.compiled`. A bias is read by its product's kernel; its gradient is a sum over
rows, as those of norms' weights and biases are, which are made together, both norms' in one kernel. GeLU is
one kernel each way. Alone on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable

from cosim.gpu.kernels import fused
from cosim.models.catalogue.cut import FUSED
from cosim.models.parts import Layer
from cosim.models.pytorch.blocks import EagerBlocks, Writer
from cosim.models.pytorch.operators import FP32, Operators
from cosim.models.pytorch.rows import row_blocks
from cosim.models.pytorch.tape import Ready, Tape, TapeEvent, Tensor, pieces


class CompiledGptBlock(Writer):
    """A block being written."""

    def __init__(self, blocks: EagerBlocks, name: str) -> None:
        super().__init__(blocks, name)
        self.state = self.input().size_bytes
        self.half = self.cut.tokens * self.model.hidden * self.cut.width
        self.row_numbers = self.cut.tokens * FP32
        self.vector = self.model.hidden * self.kept

    def whole(self) -> Layer:
        """Both ways."""
        m, cut, state, half = self.model, self.cut, self.state, self.half
        wide = cut.tokens * m.ffn * cut.width
        for name in ("attention norm", "mlp norm"):
            self.weight(name, m.hidden)
            self.weight(f"{name} bias", m.hidden)
        products = {
            name: self._product(name, inner, columns)
            for name, inner, columns in (
                *((each, m.hidden, m.hidden) for each in ("queries", "keys", "values", "projection")),
                ("mlp up", m.hidden, m.ffn),
                ("mlp down", m.ffn, m.hidden),
            )
        }
        chosen = Operators(Tape(), cut.width)
        shape = (cut.batch, m.heads, cut.sequence, m.head)
        q, k, v = (Tensor(shape, cut.width) for _ in range(3))
        out = chosen.attention(q, k, v, causal=m.causal, version=FUSED[cut.attention])
        projected = [*products["queries"][0], *products["keys"][0], *products["values"][0]]
        norms = 2 * (self.row_numbers + self.vector)
        forward: list[TapeEvent] = [
            fused(state + half + norms), *projected, *chosen.tape.forward, *products["projection"][0],
            fused(state + 2 * half + norms), *products["mlp up"][0], fused(2 * wide),
            *products["mlp down"][0], fused(2 * (state + half)),
        ]  # fmt: skip
        numbers = 2 * self.row_numbers + self.vector
        autocast = self.at.autocast
        back: list[TapeEvent] = [
            *([fused(state + half)] if autocast else []),
            *products["mlp down"][1], fused(3 * wide), *products["mlp up"][1],
            fused(3 * state + (2 + autocast) * half + numbers),
            *products["projection"][1], *chosen.tape.backward(out),
            *(event for name in ("queries", "keys", "values") for event in products[name][1]),
            *self._sums(state + 5 * half + 4 * self.row_numbers, m.hidden, vectors=4),
            fused(3 * (state + half) + numbers),
            *(Ready(weight) for weight in self.weights),
        ]  # fmt: skip
        count = sum(weight.count for weight in self.weights)
        cast = sum(rows * columns for rows, columns in self.matrices) * cut.width if autocast else 0
        keeps = state + 7 * half + m.heads * self.row_numbers + 2 * wide + 4 * self.row_numbers + cast
        return Layer(
            self.name,
            pieces(self.name, forward),
            pieces(self.name, back),
            parameters=self.blocks.sharded(count, 0),
            weights=tuple(self.weights),
            keeps=keeps,
            most=keeps + max(wide + state, count * self.kept),
        )

    @property
    def matrices(self) -> list[tuple[int, int]]:
        """Rows and columns of weights that products read."""
        h, ffn = self.model.hidden, self.model.ffn
        return [*[(h, h)] * 4, (ffn, h), (h, ffn)]

    def _product(self, name: str, inner: int, columns: int) -> tuple[list[TapeEvent], list[TapeEvent]]:
        """A linear layer with its bias, forward and backward."""
        width, tokens = self.cut.width, self.cut.tokens
        weights = self.weight(name, columns, inner), self.weight(f"{name} bias", columns)
        matrix, bias = (Tensor(each.shape, width) for each in weights)
        rule = self.at.rule(Tensor((tokens, inner), width), matrix, bias)
        casts = [fused(each.count * (each.width + width)) for each in weights] if self.at.autocast else []
        made = rule.backward(frozenset({0, 1}))
        return [*casts, *rule.forward], [*made, *casts[:1], *self._sums(tokens * columns * width, columns)]

    def _sums(self, read: int, columns: int, *, vectors: int = 1) -> Iterable[TapeEvent]:
        """Gradients of so many vectors: sums over rows, first of blocks of rows."""
        blocks, size = row_blocks(self.cut.tokens, columns), columns * self.kept
        if blocks == 1:
            yield fused(read + vectors * size)
            return
        partial = blocks * columns * FP32
        yield fused(read + vectors * partial)
        for _ in range(vectors):
            yield fused(partial + size)
