"""A transformer's layers on one rank, forward and backward, cut by every parallelism.

Tensor and sequence parallelism as in Megatron-LM (arXiv 1909.08053, 2205.05198). Context parallelism: ring
attention (Liu et al., arXiv 2310.01889), whose rounds of keys and values are here one ring all-gather beside
the attention kernels, backward an all-reduce beside them (keys and values once more, and their gradients); or
an all-gather before.
With experts ``imbalance`` times the mean load are computed and exchanged by every rank, as all wait for the
busiest (:mod:`cosim.models.catalogue.experts`).

Under a causal mask a fused attention computes half of the scores (with context parallelism each rank half of
its own: Megatron-LM gives it an early and a late part of the sequence), in a sliding window those within it.
With a ``recipe`` linear layers' products have narrow operands: what goes in is converted by a kernel of its
own, once for forward and for the weights' gradient, and so is the gradient that comes back; weights are
converted by the optimizer's step, which isn't timed. Where attention is narrow, its products are (scores stay
wide). What ``recompute`` names backward runs again first, its inputs being kept alone.

Not modelled: rounds of ring attention waiting for each other one by one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from cosim.gpu.kernels import Kernel, fused_attention, matmul, memory
from cosim.models.catalogue.architecture import TransformerModel
from cosim.models.catalogue.block_parts import BlockPart, ExchangePair, backward_pieces, forward_pieces
from cosim.models.catalogue.cut import FUSED, TP, Cut
from cosim.models.catalogue.ends import embedding_layer, head_layer
from cosim.models.catalogue.experts import ExpertLayer
from cosim.models.parts import Exchange, Layer, Piece

_FP32 = 4
_MASK = 1
"""Bytes of a dropout mask's element."""
_FUSED_SOFTMAX = 4
"""Megatron-LM's fused softmax is for a multiple of so many heads x sequences."""


class Blocks:
    """Layers of a model on a rank of a cut."""

    def __init__(self, model: TransformerModel, cut: Cut) -> None:
        self.model, self.cut = model, cut
        self.tp = cut.parallel.tp
        self.vocabulary = -(-model.vocabulary // self.tp) * self.tp
        """Padded, so that each rank has as much of it."""
        opens, closes = cut.exchanges(model.hidden)
        # Without sequence parallelism nothing opens forward, and what closes it opens backward.
        gathered = Exchange("all_gather", TP, cut.state_bytes(model.hidden) // self.tp) if opens else None
        self.opens = ExchangePair(opens, closes)
        self.closes = ExchangePair(closes, gathered)

    @property
    def mlp_tensors(self) -> int:
        """Tensors of the inner size that an MLP keeps for backward."""
        return 3 if self.model.gated else 2

    @property
    def logits_bytes(self) -> int:
        """What the last stage keeps of a micro-batch's logits."""
        width = self.cut.width if self.cut.fused_loss else _FP32
        return self.cut.tokens * self.vocabulary // self.tp * width

    def checkpointed_bytes(self, number: int) -> int | None:  # noqa: ARG002 - for those that tell layers apart
        """What is kept of a micro-batch of a layer that backward runs again as a whole; None: it doesn't."""
        own = self.cut.own_tokens * self.model.hidden * self.cut.width
        return own if self.cut.recompute == "full" else None

    # -- layers ---------------------------------------------------------------------------------------

    def layer(self, number: int) -> Layer:
        """One layer, for training or, its forward pieces, for inference."""
        name = f"layer {number}"
        parts = [
            self._norm_part(name, (), self.opens),
            *self._attention(f"{name} attention", self.model.window_of(number)),
            self._norm_part(name, (self._add(),)),
            *self._mlp_parts(name, number),
            BlockPart(f"{name} residual", (self._add(),), plain=True),
        ]
        dense, experts, tensors = self.parameters(number)
        forward = tuple(forward_pieces(parts, self.cut))
        backward = list(backward_pieces(parts, self.cut))
        own = (dense + experts) * self.cut.width
        accumulate = memory(3 * own, launches=tensors)
        if self.cut.accumulated:  # the products read what is there, too
            accumulate = memory(own, launches=0)
        backward[-1] = replace(backward[-1], kernels=(*backward[-1].kernels, accumulate))
        return Layer(
            name,
            forward,
            tuple(backward),
            forward if self.cut.recompute == "full" else (),
            self.sharded(dense, experts),
            self.own_experts(experts),
        )

    def parameters(self, number: int) -> tuple[int, int, int]:
        """Of a layer, before fsdp shards them: dense ones on this rank, experts on this rank, tensors."""
        m, tp = self.model, self.tp
        norms = 2 * m.norm_parameters
        latent = m.latent
        if latent is None:
            kv = 2 * max(m.kv // tp, 1) * m.head  # fewer heads than ranks: some have the same
            sharded = 2 * m.head if m.head_norms else 0
            sharded += m.hidden * (m.heads * m.head // tp + kv) + m.heads * m.head // tp * m.hidden
            bias = m.heads * m.head // tp + kv + m.hidden if m.biases else 0
            attention = sharded + bias
        else:
            whole = m.hidden * (latent.query_rank + latent.key_value_rank + latent.rope)
            whole += latent.query_rank + latent.key_value_rank  # norms
            heads = latent.query_rank * (latent.nope + latent.rope) + m.hidden * latent.value
            heads += latent.key_value_rank * (latent.nope + latent.value)
            attention = whole + m.heads // tp * heads
        matrices = 12 if m.biases else 9
        if not m.has_experts(number) or m.experts is None:
            bias = m.ffn // tp + m.hidden if m.biases else 0
            return norms + attention + m.mlp_matrices(m.ffn) // tp + bias, 0, matrices
        e = m.experts
        router, shared = m.hidden * e.num, m.mlp_matrices(e.ffn) * e.shared // tp
        own = e.num // self.cut.parallel.ep
        routed = m.mlp_matrices(e.ffn) * own // tp + m.bias_of_an_expert * own
        return norms + attention + router + shared, routed, matrices + 3 * own

    def sharded(self, dense: int, experts: int = 0) -> dict[tuple[str, ...], int]:
        """Parameters that this rank keeps, by the axes over which their gradients are summed."""
        parallel = self.cut.parallel
        shards = parallel.size(parallel.shard_axes)
        kept = {parallel.gradient_axes: -(-dense // shards)}
        if experts:
            axes = parallel.expert_axes
            kept[axes] = kept.get(axes, 0) + self.own_experts(experts)
        return kept

    def own_experts(self, experts: int) -> int:
        """Of experts' parameters, those that this rank keeps."""
        return -(-experts // self.cut.parallel.size(self.cut.parallel.expert_shard_axes))

    def embedding(self) -> Layer:
        """Tokens, and positions if they are learned."""
        made = embedding_layer(self.cut, self.model.hidden)
        forward, backward = made.forward, made.backward
        if not self.model.dropout:  # nothing is added or dropped after the look-up
            forward = forward[:1]
            backward = (replace(backward[0], kernels=()), *backward[1:])
        return replace(
            made,
            forward=forward,
            backward=backward,
            parameters=self.sharded(self.embedding_parameters),
        )

    @property
    def embedding_parameters(self) -> int:
        """On one rank: a share of the vocabulary, everything else whole."""
        own = self.vocabulary // self.tp * self.model.hidden
        return own + self.model.embedding_parameters - self.model.vocabulary * self.model.hidden

    def head(self, *, copy: bool) -> Layer:
        """Last norm, logits, loss; ``copy``: a tied embedding that is on another stage."""
        return replace(
            head_layer(self.cut, self.model.hidden, self.vocabulary),
            parameters=self.sharded(self.head_parameters(copy=copy)),
        )

    def predicted_ahead(self) -> list[Layer]:
        """Modules that predict a token after the next (DeepSeek-V3, arXiv 2412.19437, section 2.2): the state
        and the token's embedding, each normalised, projected to one, a layer, and the head, which is shared.
        """
        m, cut = self.model, self.cut
        project = BlockPart(
            "ahead", (self._norm(), self._norm(), self._linear(cut.own_tokens, 2 * m.hidden, m.hidden))
        )
        made: list[Layer] = []
        for number in range(m.ahead):
            layer, head = self.layer(m.layers - 1), head_layer(cut, m.hidden, self.vocabulary)
            dense, experts, _ = self.parameters(m.layers - 1)
            made.append(
                Layer(
                    f"token {number + 2}",
                    (*forward_pieces([project], cut), *layer.forward, *head.forward),
                    (*head.backward, *layer.backward, *backward_pieces([project], cut)),
                    layer.recompute,
                    self.sharded(dense + 2 * m.hidden**2 + 3 * m.norm_parameters, experts),
                    layer.experts,
                )
            )
        return made

    def head_parameters(self, *, copy: bool) -> int:
        """On one rank."""
        matrix = self.vocabulary // self.tp * self.model.hidden
        rest = self.model.head_parameters - (
            0 if self.model.tied else self.model.vocabulary * self.model.hidden
        )
        return rest + (matrix if copy or not self.model.tied else 0)

    def next_token(self) -> Layer:
        """Logits of each sequence's last token, gathered on every rank, which then choose the same token."""
        own, rows = self.vocabulary // self.tp, self.cut.batch
        logits = matmul(rows, self.model.hidden, own, self.cut.width)
        gather = Exchange("all_gather", TP, rows * own * self.cut.width) if self.tp > 1 else None
        norm = memory(2 * rows * self.model.hidden * self.cut.width)
        choose = memory(rows * self.vocabulary * self.cut.width)
        pieces = (Piece("logits", (norm, logits), gather), Piece("sample", (choose,)))
        return Layer("head", pieces, (), (), self.sharded(self.head_parameters(copy=False)))

    # -- parts ----------------------------------------------------------------------------------------

    def _norm_part(
        self, name: str, before: tuple[Kernel, ...], then: ExchangePair | None = None
    ) -> BlockPart:
        again = (self._norm(),) if self.cut.runs_again("norm") else ()
        graphed = "attention" in self.cut.graphed
        kernels = (*before, self._norm())
        exchange = then or ExchangePair()
        return BlockPart(f"{name} norm", kernels, exchange, again=again, plain=True, graphed=graphed)

    def _norm(self) -> Kernel:
        return memory(2 * self.cut.own_tokens * self.model.hidden * self.cut.width)

    def _add(self) -> Kernel:
        """Residual, with bias and dropout in one where there are any."""
        mask = _MASK if self.model.dropout else 0
        return memory(self.cut.own_tokens * self.model.hidden * (3 * self.cut.width + mask))

    def _linear(self, rows: int, inner: int, columns: int) -> Kernel:
        """The product of a linear layer; converting what goes in is added where kernels are issued."""
        return replace(matmul(rows, inner, columns, self.cut.width), narrow=self.cut.narrow)

    def _attention(self, name: str, window: int | None) -> list[BlockPart]:
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
        first = [self._linear(tokens, m.hidden, (heads + 2 * kv) * m.head)]
        if m.head_norms:
            first.append(memory(2 * tokens * (heads + kv) * m.head * cut.width, launches=2))
        if not m.positions:
            first.append(self._rotated(tokens * (heads + kv) * m.head * cut.width))
        last = self._linear(tokens, heads * m.head, m.hidden)
        return tuple(first), self._core(heads, kv, m.head, window), (last,)

    def _rotated(self, size_bytes: int) -> Kernel:
        """Rotary positions of queries and keys; where scaled, operator by operator: half negated, halves
        joined, two products, a sum, joined with what isn't rotated (Megatron-Core's ``rope_utils``).
        """
        if not self.model.scaled_positions:
            return memory(2 * size_bytes)
        return memory(12 * size_bytes, launches=12)

    def _fused(self, heads: int, size: int, moved: int, window: int | None = None) -> Kernel:
        """Fused attention; ``size`` numbers of a head's key and value together."""
        cut = self.cut
        causal = self.model.causal and not cut.decode
        scores, keys = cut.tokens * cut.keys * heads, cut.keys
        if window is not None and window < cut.keys:  # a token sees the window; the first ones, less
            scores = cut.tokens * window * heads
            if causal:
                scores -= cut.tokens * heads * window * window // (2 * cut.keys)
            causal = False
            keys = min(keys, 2 * window)  # a block's loop is as long as under a causal mask over so many
        elif causal:
            scores //= 2
        made = fused_attention(
            2 * scores * size, moved, heads=cut.batch * heads, queries=cut.sequence, keys=keys,
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
            self._linear(tokens, m.hidden, latent.query_rank + rank + latent.rope),
            memory(2 * tokens * (latent.query_rank + rank) * width),  # norms
            self._linear(tokens, latent.query_rank, heads * (latent.nope + latent.rope)),
            memory(2 * tokens * (heads + 1) * latent.rope * width),
        ]
        last = self._linear(tokens, heads * latent.value, m.hidden)
        if cut.decode:
            first.append(matmul(tokens, latent.nope, rank, width, batch=heads))
            flops = 2 * tokens * cut.keys * heads * (2 * rank + latent.rope)
            moved = (cut.batch * cut.keys * (rank + latent.rope) + 2 * tokens * heads * rank) * width
            out = matmul(tokens, rank, latent.value, width, batch=heads)
            return tuple(first), (fused_attention(flops, moved),), (out, last)
        first.append(self._linear(tokens, rank, heads * (latent.nope + latent.value)))
        each = latent.nope + latent.rope + latent.value
        moved = 2 * tokens * heads * each * width
        core = (*self._converted(heads, each + latent.nope + latent.rope), self._fused(heads, each, moved))
        return tuple(first), core, (last,)

    def _mlp(self, ffn: int) -> tuple[Kernel, ...]:
        cut, own, hidden = self.cut, ffn // self.tp, self.model.hidden
        wide = 2 if self.model.gated else 1
        return (
            self._linear(cut.tokens, hidden, wide * own),
            memory((wide + 1) * cut.tokens * own * cut.width),
            self._linear(cut.tokens, own, hidden),
        )

    def _mlp_parts(self, name: str, number: int) -> list[BlockPart]:
        """An MLP; or shared experts as one, and routed ones."""
        m = self.model
        if m.experts is None or not m.has_experts(number):
            return self._dense(f"{name} mlp", m.ffn, normed=True)
        shared = m.experts.shared * m.experts.ffn
        routed = ExpertLayer(m.experts, self.cut, m.hidden, m.gated).parts(name)
        return [*(self._dense(f"{name} shared experts", shared) if shared else ()), *routed]

    def _dense(self, name: str, ffn: int, *, normed: bool = False) -> list[BlockPart]:
        """``normed``: the norm before is one kernel's with the first product's conversion, as Transformer
        Engine's ``LayerNormLinear`` has it.
        """
        kernels = self._mlp(ffn)
        again: tuple[Kernel, ...] = ()
        if self.cut.runs_again("mlp"):
            again = kernels
        elif self.cut.runs_again("activation"):
            again = kernels[1:2]
        graphed = "mlp" in self.cut.graphed
        return [
            BlockPart(f"{name} in", (), self.opens, plain=True),
            BlockPart(name, kernels, self.closes, again=again, normed=normed, gathers=True, graphed=graphed),
        ]
