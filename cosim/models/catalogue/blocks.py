"""A transformer's layers on one rank, forward and backward, cut by every parallelism.

Parts follow each other with an exchange between two; backward runs them in reverse, with the dual exchange:
what was gathered is reduce-scattered, what an all-reduce closed is opened by none. Tensor and sequence
parallelism as in Megatron-LM (arXiv 1909.08053, 2205.05198). Context parallelism: ring attention (Liu et al.,
arXiv 2310.01889), whose rounds of keys and values are here one ring all-gather beside the attention kernels,
backward an all-reduce beside them (keys and values once more, and their gradients); or an all-gather before.
Experts: tokens go to their experts and back by all-to-all (arXiv 2006.16668); ``imbalance`` times the mean
load are computed and exchanged by every rank, as all wait for the busiest.

Under a causal mask a fused attention computes half of the scores (with context parallelism each rank half of
its own: Megatron-LM gives it an early and a late part of the sequence), in a sliding window those within it.
With a ``recipe`` linear layers' products have narrow operands: what goes in is converted by a kernel of its
own, once for forward and for the weights' gradient, and so is the gradient that comes back; weights are
converted by the optimizer's step, which isn't timed.

Not modelled: rounds of ring attention waiting for each other one by one, experts'
kernels whose tiles differ, dropped tokens; shared experts overlapping the all-to-all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cosim.gpu.kernels import (
    Kernel,
    KernelKind,
    Narrow,
    attention_backward,
    fused_attention,
    matmul,
    matmul_backward,
    memory,
    narrowed,
)
from cosim.models.catalogue.architecture import Experts, TransformerModel
from cosim.models.catalogue.cut import FUSED, TP, Cut
from cosim.models.catalogue.ends import embedding_layer, head_layer
from cosim.models.parts import Exchange, Layer, Piece

_FP32 = 4
_MASK = 1
"""Bytes of a dropout mask's element."""
_FUSED_SOFTMAX = 4
"""Megatron-LM's fused softmax is for a multiple of so many heads x sequences."""


@dataclass(frozen=True, slots=True)
class _ExchangePair:
    """What is exchanged after a part, and in its place in backward."""

    forward: Exchange | None = None
    backward: Exchange | None = None


@dataclass(frozen=True, slots=True)
class _BlockPart:
    """Kernels, then an exchange. ``again``: what backward runs first; ``fetch``: what it exchanges first."""

    name: str
    kernels: tuple[Kernel, ...]
    then: _ExchangePair = _ExchangePair()
    beside: _ExchangePair = _ExchangePair()
    again: tuple[Kernel, ...] = ()
    fetch: Exchange | None = None
    plain: bool = False
    """Norms and residuals: backward launches two kernels for each."""


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
        self.opens = _ExchangePair(opens, closes)
        self.closes = _ExchangePair(closes, gathered)

    @property
    def mlp_tensors(self) -> int:
        """Tensors of the inner size that an MLP keeps for backward."""
        return 3 if self.model.gated else 2

    @property
    def logits_bytes(self) -> int:
        """What the last stage keeps of a micro-batch's logits."""
        return self.cut.tokens * self.vocabulary // self.tp * _FP32

    # -- layers ---------------------------------------------------------------------------------------

    def layer(self, number: int) -> Layer:
        """One layer, for training or, its forward pieces, for inference."""
        name = f"layer {number}"
        parts = [
            _BlockPart(f"{name} norm", (self._norm(),), self.opens, plain=True),
            *self._attention(f"{name} attention", self.model.window_of(number)),
            _BlockPart(f"{name} norm", (self._add(), self._norm()), plain=True),
            *(
                self._experts(name, self.model.experts)
                if self.model.experts is not None and self.model.has_experts(number)
                else self._dense(f"{name} mlp", self.model.ffn)
            ),
            _BlockPart(f"{name} residual", (self._add(),), plain=True),
        ]
        dense, experts, tensors = self.parameters(number)
        accumulate = memory(3 * (dense + experts) * self.cut.width, launches=tensors)
        forward = tuple(_forward(parts, self.cut.width))
        backward = list(_backward(parts, self.cut.width))
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
            sharded = m.hidden * (m.heads * m.head // tp + kv) + m.heads * m.head // tp * m.hidden
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
        return norms + attention + router + shared, m.mlp_matrices(e.ffn) * own // tp, matrices + 3 * own

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

    def _norm(self) -> Kernel:
        return memory(2 * self.cut.own_tokens * self.model.hidden * self.cut.width)

    def _add(self) -> Kernel:
        """Residual, with bias and dropout in one where there are any."""
        mask = _MASK if self.model.dropout else 0
        return memory(self.cut.own_tokens * self.model.hidden * (3 * self.cut.width + mask))

    def _linear(self, rows: int, inner: int, columns: int) -> Kernel:
        """The product of a linear layer; converting what goes in is added where kernels are issued."""
        return replace(matmul(rows, inner, columns, self.cut.width), narrow=self.cut.narrow)

    def _attention(self, name: str, window: int | None) -> list[_BlockPart]:
        first, core, last = self._latent_attention() if self.model.latent else self._grouped_attention(window)
        again = core if self.cut.recompute == "selective" else ()
        parallel = self.cut.parallel
        if parallel.cp == 1:
            return [_BlockPart(name, (*first, *core, *last), self.closes, again=again)]
        own = self._kept_bytes() * self.cut.tokens
        gather = Exchange("all_gather", ("cp",), own)
        if parallel.cp_exchange == "ring":
            beside = _ExchangePair(gather, Exchange("all_reduce", ("cp",), own * parallel.cp))
            return [
                _BlockPart(f"{name} in", first),
                _BlockPart(name, (*core, *last), self.closes, beside, again),
            ]
        scatter = Exchange("reduce_scatter", ("cp",), own * parallel.cp)
        return [
            _BlockPart(f"{name} in", first, _ExchangePair(gather, scatter)),
            _BlockPart(name, (*core, *last), self.closes, again=again, fetch=gather),
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
        if not m.positions:
            first.append(memory(2 * tokens * (heads + kv) * m.head * cut.width))  # rotary positions
        last = self._linear(tokens, heads * m.head, m.hidden)
        return tuple(first), self._core(heads, kv, m.head, window), (last,)

    def _fused(self, heads: int, size: int, moved: int, window: int | None = None) -> Kernel:
        """Fused attention; ``size`` numbers of a head's key and value together."""
        cut = self.cut
        causal = self.model.causal and not cut.decode
        scores = cut.tokens * cut.keys * heads
        if window is not None and window < cut.keys:  # a token sees the window; the first ones, less
            scores = cut.tokens * window * heads
            if causal:
                scores -= cut.tokens * heads * window * window // (2 * cut.keys)
            causal = False
        elif causal:
            scores //= 2
        return fused_attention(
            2 * scores * size, moved, heads=cut.batch * heads, queries=cut.sequence, keys=cut.keys,
            head=size // 2, causal=causal, version=FUSED.get(cut.attention, "newest"),
        )  # fmt: skip

    def _core(self, heads: int, kv: int, head: int, window: int | None) -> tuple[Kernel, ...]:
        cut, width = self.cut, self.cut.width
        if cut.attention in FUSED:
            moved = 2 * head * (cut.tokens * heads + cut.batch * cut.keys * kv) * width
            return (self._fused(heads, 2 * head, moved, window),)
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
        return tuple(first), (self._fused(heads, each, moved),), (last,)

    def _mlp(self, ffn: int) -> tuple[Kernel, ...]:
        cut, own, hidden = self.cut, ffn // self.tp, self.model.hidden
        wide = 2 if self.model.gated else 1
        return (
            self._linear(cut.tokens, hidden, wide * own),
            memory((wide + 1) * cut.tokens * own * cut.width),
            self._linear(cut.tokens, own, hidden),
        )

    def _dense(self, name: str, ffn: int) -> list[_BlockPart]:
        return [
            _BlockPart(f"{name} in", (), self.opens, plain=True),
            _BlockPart(name, self._mlp(ffn), self.closes),
        ]

    def _experts(self, name: str, experts: Experts) -> list[_BlockPart]:
        """Shared experts as an MLP; the router; tokens to their experts, and back."""
        cut, hidden, width = self.cut, self.model.hidden, self.cut.width
        parts = self._dense(f"{name} shared experts", experts.shared * experts.ffn) if experts.shared else []
        sent = math.ceil(cut.own_tokens * experts.top_k * cut.parallel.imbalance)
        rows = sent * (self.tp if cut.parallel.sequence_parallel else 1)
        size = sent * hidden * width
        exchange = Exchange("all_to_all", ("ep",), size)
        turn = _ExchangePair(exchange, exchange)
        opens, closes = self._spread(size)
        move = memory(2 * size, launches=2)  # into the experts' order, or back
        touched = min(experts.num // cut.parallel.ep, rows)
        wide = 2 if self.model.gated else 1
        own = experts.ffn // self.tp
        compute = (
            _grouped(rows, hidden, wide * own, touched, width, cut.narrow),
            memory((wide + 1) * rows * own * width),
            _grouped(rows, own, hidden, touched, width, cut.narrow),
        )
        router = matmul(cut.own_tokens, hidden, experts.num, width)
        choose = memory(cut.own_tokens * experts.num * (width + 2 * _FP32), launches=4)
        return [
            *parts,
            _BlockPart(f"{name} router", (router, choose, move), turn),
            _BlockPart(f"{name} experts in", (), opens),
            _BlockPart(f"{name} experts", compute, closes),
            _BlockPart(f"{name} experts out", (), turn),
            _BlockPart(f"{name} combine", (move,)),
        ]

    def _spread(self, size: int) -> tuple[_ExchangePair, _ExchangePair]:
        """What tensor-parallel ranks exchange before and after their parts of the experts."""
        if self.tp == 1:
            return _ExchangePair(), _ExchangePair()
        if not self.cut.parallel.sequence_parallel:
            closes = Exchange("all_reduce", TP, size)
            return _ExchangePair(None, closes), _ExchangePair(closes, None)
        gather, scatter = Exchange("all_gather", TP, size), Exchange("reduce_scatter", TP, size * self.tp)
        return _ExchangePair(gather, scatter), _ExchangePair(scatter, gather)


def _grouped(rows: int, inner: int, columns: int, groups: int, width: int, narrow: Narrow | None) -> Kernel:
    """``groups`` products that share ``rows``; each computes as if they shared alike."""
    moved = (rows * (inner + columns) + groups * inner * columns) * width
    flops = 2 * rows * inner * columns
    each = -(-rows // groups)
    return Kernel(KernelKind.MATMUL, flops, moved, groups, each, inner, columns, narrow=narrow)


def _forward(parts: Sequence[_BlockPart], width: int) -> Iterable[Piece]:
    for part in parts:
        yield Piece(part.name, _issued(part.kernels, width), part.then.forward, part.beside.forward)


def _issued(kernels: Sequence[Kernel], width: int) -> tuple[Kernel, ...]:
    """Forward's kernels; what goes into a narrow product is converted before, twice as much of it being
    written: also turned round, for the weights' gradient.
    """
    made: list[Kernel] = []
    for kernel in kernels:
        if kernel.narrow is None:
            made.append(kernel)
            continue
        convert, product = narrowed(kernel, width, kernel.narrow)
        made += [_turned_too(convert, kernel, width), product]
    return tuple(made)


def _turned_too(convert: Kernel, product: Kernel, width: int) -> Kernel:
    own = convert.bytes_moved - product.batch * product.rows * product.inner * width
    return replace(convert, bytes_moved=convert.bytes_moved + own)


def _backward(parts: Sequence[_BlockPart], width: int) -> Iterable[Piece]:
    """Last part first; what is exchanged after a part is the dual of what came before it in forward."""
    for number in reversed(range(len(parts))):
        part = parts[number]
        then = parts[number - 1].then.backward if number else None
        if part.fetch is not None:
            yield Piece(f"{part.name} again", (), part.fetch)
        kernels = (*_issued(part.again, width), *_kernels_backward(part, width))
        yield Piece(part.name, kernels, then, part.beside.backward)


def _kernels_backward(part: _BlockPart, width: int) -> Iterable[Kernel]:
    """Two products for each product, and one conversion; for others one and a half times the traffic."""
    for kernel in reversed(part.kernels):
        if kernel.kind is KernelKind.MATMUL:
            for_left, for_right = matmul_backward(kernel, width)
            if kernel.narrow is None:
                yield from (for_left, for_right)
                continue
            convert, first = narrowed(for_left, width, kernel.narrow)
            yield from (_turned_too(convert, for_left, width), first)
            yield narrowed(for_right, width, kernel.narrow)[1]
        elif kernel.kind is KernelKind.ATTENTION:
            yield attention_backward(kernel)
        else:
            yield memory(kernel.bytes_moved * 3 // 2, launches=kernel.launches * (1 + part.plain))
