"""A layer's attention on one rank: grouped-query or latent, fused or operator by operator.

Under a causal mask a fused attention computes half of the scores (with context parallelism each rank half of
its own: Megatron-LM gives it an early and a late part of the sequence), in a sliding window those within it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from cosim.gpu.kernels import Kernel, fused_attention, matmul, memory
from cosim.models.catalogue.architecture import TransformerModel
from cosim.models.catalogue.block_parts import BlockPart, ExchangePair
from cosim.models.catalogue.conversion import linear
from cosim.models.catalogue.cut import FUSED, Cut
from cosim.models.parts import Exchange

_FP32 = 4
_MASK = 1
"""Bytes of a dropout mask's element."""
_FUSED_SOFTMAX = 4
"""Megatron-LM's fused softmax is for a multiple of so many heads x sequences."""


@dataclass(frozen=True)
class AttentionLayer:
    """Between a norm and a residual; ``closes``: what tensor-parallel ranks exchange after it."""

    model: TransformerModel
    cut: Cut
    closes: ExchangePair

    @property
    def tp(self) -> int:
        """Ranks that share the heads."""
        return self.cut.parallel.tp

    def parameters(self) -> int:
        """On this rank, before fsdp shards them."""
        m, tp, latent = self.model, self.tp, self.model.latent
        if latent is None:
            kv = 2 * max(m.kv // tp, 1) * m.head  # fewer heads than ranks: some have the same
            sharded = 2 * m.head if m.head_norms else 0
            sharded += m.hidden * (m.heads * m.head // tp + kv) + m.heads * m.head // tp * m.hidden
            return sharded + (m.heads * m.head // tp + kv + m.hidden if m.biases else 0)
        whole = m.hidden * (latent.query_rank + latent.key_value_rank + latent.rope)
        whole += latent.query_rank + latent.key_value_rank  # norms
        heads = latent.query_rank * (latent.nope + latent.rope) + m.hidden * latent.value
        heads += latent.key_value_rank * (latent.nope + latent.value)
        return whole + m.heads // tp * heads

    def parts(self, name: str, window: int | None) -> list[BlockPart]:
        """Queries, keys and values, what they choose, the projection; with what ranks exchange."""
        first, core, last = self._latent_attention() if self.model.latent else self._grouped_attention(window)
        again = core if self.cut.runs_again("attention") else ()
        if self.model.latent and self.cut.runs_again("latent"):
            again = (first[2], *first[4:], *again)
        parallel = self.cut.parallel
        graphed, normed = "attention" in self.cut.graphed, self.model.latent is None
        part = partial(BlockPart, gathers=normed)
        if parallel.cp == 1:
            kernels = (*first, *core, *last)
            return [part(name, kernels, self.closes, again=again, normed=normed, graphed=graphed)]
        own = self._kept_bytes() * self.cut.tokens
        gather = Exchange("all_gather", ("cp",), own)
        if parallel.cp_exchange == "ring":
            beside = ExchangePair(gather, Exchange("all_reduce", ("cp",), own * parallel.cp))
            return [
                part(f"{name} in", first, normed=normed),
                part(name, (*core, *last), self.closes, beside, again),
            ]
        scatter = Exchange("reduce_scatter", ("cp",), own * parallel.cp)
        return [
            part(f"{name} in", first, ExchangePair(gather, scatter), normed=normed),
            part(name, (*core, *last), self.closes, again=again, fetch=gather),
        ]

    def _kept_bytes(self) -> int:
        """Keys and values of a token, on one rank."""
        m = self.model
        if m.latent is not None:
            return m.kept_per_token() * self.cut.width
        return 2 * max(m.kv // self.tp, 1) * m.head * self.cut.width

    def _grouped_attention(
        self, window: int | None
    ) -> tuple[tuple[Kernel, ...], tuple[Kernel, ...], tuple[Kernel, ...]]:
        """Queries, keys, values; scores and what they choose; projection."""
        m, cut, tokens = self.model, self.cut, self.cut.tokens
        heads, kv = m.heads // self.tp, max(m.kv // self.tp, 1)
        first = [linear(cut, tokens, m.hidden, (heads + 2 * kv) * m.head, "attention")]
        if m.head_norms:
            first.append(memory(2 * tokens * (heads + kv) * m.head * cut.width, launches=2))
        if not m.positions and m.rotary:
            first.append(self._rotated(tokens * (heads + kv) * m.head * cut.width))
        last = linear(cut, tokens, heads * m.head, m.hidden, "attention")
        return tuple(first), self._core(heads, kv, m.head, window), (last,)

    def _rotated(self, size_bytes: int) -> Kernel:
        """Rotary positions of queries and keys; where scaled, operator by operator: half negated, halves
        joined, two products, a sum, joined with what isn't rotated (Megatron-Core's ``rope_utils``).
        """
        if not self.model.scaled_positions:
            return memory(2 * size_bytes)
        return memory(12 * size_bytes, launches=12)

    def _fused(self, heads: int, size: int, moved: int, window: int | None = None) -> Kernel:
        """Fused attention; ``size`` numbers of a head's key and value together. Of packed sequences each
        document is one of its own.
        """
        cut = self.cut
        causal = self.model.causal and not cut.decode
        queries, keys = (cut.packed, cut.packed) if cut.packed else (cut.sequence, cut.keys)
        scores = cut.tokens * keys * heads
        if window is not None and window < keys:  # a token sees the window; the first ones, less
            scores = cut.tokens * window * heads
            if causal:
                scores -= cut.tokens * heads * window * window // (2 * keys)
            causal = False
            keys = min(keys, 2 * window)  # a block's loop is as long as under a causal mask over so many
        elif causal:
            scores //= 2
        made = fused_attention(
            2 * scores * size, moved, heads=cut.tokens * heads // queries, queries=queries, keys=keys,
            head=size // 2, causal=causal, version=FUSED.get(cut.attention, "newest"),
        )  # fmt: skip
        return replace(made, narrow="fp8") if cut.fp8_attention else made

    def _converted(self, heads: int, head: int) -> tuple[Kernel, ...]:
        """Queries, keys and values, as FP8 attention takes them."""
        if not self.cut.fp8_attention:
            return ()
        return (memory(self.cut.tokens * heads * head * (self.cut.width + 1), launches=1),)

    def _core(self, heads: int, kv: int, head: int, window: int | None) -> tuple[Kernel, ...]:
        cut, width = self.cut, self.cut.width
        if cut.attention in FUSED:
            moved = 2 * head * (cut.tokens * heads + cut.batch * cut.keys * kv) * width
            return (*self._converted(heads + 2 * kv, head), self._fused(heads, 2 * head, moved, window))
        batch = cut.batch * heads
        scores = batch * cut.sequence * cut.keys
        softmax = memory(2 * scores * width)
        if batch % _FUSED_SOFTMAX:
            softmax = memory(scores * (4 * width + 8 * _FP32), launches=5)
        dropped = (memory(scores * (2 * width + _MASK)),) if self.model.dropout else ()
        return (
            memory(2 * cut.tokens * (heads + 2 * kv) * head * width, launches=3),  # q, k and v apart
            matmul(cut.sequence, head, cut.keys, width, batch=batch),
            softmax,
            *dropped,
            matmul(cut.sequence, cut.keys, head, width, batch=batch),
            memory(2 * cut.tokens * heads * head * width),  # heads together
        )

    def _latent_attention(self) -> tuple[tuple[Kernel, ...], tuple[Kernel, ...], tuple[Kernel, ...]]:
        """Decoding attends in the latent space (section 2.1.2 of arXiv 2405.04434): one key for all heads."""
        m, cut, tokens, width = self.model, self.cut, self.cut.tokens, self.cut.width
        latent = m.latent
        assert latent is not None
        heads, rank = m.heads // self.tp, latent.key_value_rank
        first = [
            linear(cut, tokens, m.hidden, latent.query_rank + rank + latent.rope, "attention"),
            memory(2 * tokens * (latent.query_rank + rank) * width),  # norms
            linear(cut, tokens, latent.query_rank, heads * (latent.nope + latent.rope), "attention"),
            memory(2 * tokens * (heads + 1) * latent.rope * width),
        ]
        last = linear(cut, tokens, heads * latent.value, m.hidden, "attention")
        if cut.decode:
            first.append(matmul(tokens, latent.nope, rank, width, batch=heads))
            flops = 2 * tokens * cut.keys * heads * (2 * rank + latent.rope)
            moved = (cut.batch * cut.keys * (rank + latent.rope) + 2 * tokens * heads * rank) * width
            out = matmul(tokens, rank, latent.value, width, batch=heads)
            return tuple(first), (fused_attention(flops, moved),), (out, last)
        first.append(linear(cut, tokens, rank, heads * (latent.nope + latent.value), "attention"))
        each = latent.nope + latent.rope + latent.value
        moved = 2 * tokens * heads * each * width
        core = (*self._converted(heads, each + latent.nope + latent.rope), self._fused(heads, each, moved))
        return tuple(first), core, (last,)
