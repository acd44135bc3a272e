"""A transformer's layers on one rank, forward and backward, cut by every parallelism.

Tensor and sequence parallelism as in Megatron-LM (arXiv 1909.08053, 2205.05198). Context parallelism: ring
attention (Liu et al., arXiv 2310.01889), whose rounds of keys and values are here one ring all-gather beside
the attention kernels, backward an all-reduce beside them (keys and values once more, and their gradients); or
an all-gather before.
With experts ``imbalance`` times the mean load are computed and exchanged by every rank, as all wait for the
busiest (:mod:`cosim.models.catalogue.experts`).

With a ``recipe`` linear layers' products have narrow operands: what goes in is converted by a kernel of its
own, once for forward and for the weights' gradient, and so is the gradient that comes back; weights are
converted by the optimizer's step, which isn't timed. Where attention is narrow, its products are (scores stay
wide). What ``recompute`` names backward runs again first, its inputs being kept alone.

Not modelled: rounds of ring attention waiting for each other one by one.
"""

from __future__ import annotations

from dataclasses import replace

from cosim.gpu.kernels import Kernel, matmul, memory
from cosim.models.catalogue.architecture import ATTENTION, EXPERTS, MAMBA, MLP, TransformerModel
from cosim.models.catalogue.attention_layer import AttentionLayer
from cosim.models.catalogue.block_parts import BlockPart, ExchangePair, backward_pieces, forward_pieces
from cosim.models.catalogue.conversion import linear
from cosim.models.catalogue.cut import TP, Cut, Graphed
from cosim.models.catalogue.ends import embedding_layer, head_layer
from cosim.models.parts import Exchange, Layer, Piece

_FP32 = 4
_MASK = 1
"""Bytes of a dropout mask's element."""


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
        self.attention = AttentionLayer(model, cut, self.closes)

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
        return self._layer(f"layer {number}", self.model.kinds(number), number)

    def _layer(self, name: str, kinds: str, number: int) -> Layer:
        """A norm, what the layer has, a residual, for each of its kinds."""
        if self._is_wide(number):
            return self.wide._layer(name, kinds, number)
        parts, own = [], []
        for place, kind in enumerate(kinds):
            opens = self.opens if kind in (ATTENTION, MAMBA) else None
            parts.append(self._norm_part(name, (self._add(),) if place else (), opens, kind=kind))
            own = self._parts(name, kind, number)
            parts += own
        parts.append(BlockPart(f"{name} residual", (self._add(),), plain=True))
        dense, experts, tensors = self.parameters(kinds)
        forward = tuple(forward_pieces(parts, self.cut))
        backward = list(backward_pieces(parts, self.cut))
        numbers = (dense + experts) * self.cut.width
        accumulate = memory(3 * numbers, launches=tensors)
        if self.cut.accumulated:  # the products read what is there, too
            accumulate = memory(numbers, launches=0)
        backward[-1] = replace(backward[-1], kernels=(*backward[-1].kernels, accumulate))
        again = forward if self.cut.recompute == "full" else ()
        if kinds.endswith(EXPERTS) and self.cut.runs_again("experts"):
            again = tuple(forward_pieces(own, self.cut))
        return Layer(
            name,
            forward,
            tuple(backward),
            again,
            self.sharded(dense, experts),
            self.own_experts(experts),
        )

    def _parts(self, name: str, kind: str, number: int) -> list[BlockPart]:
        """Between a norm and a residual."""
        if kind == MAMBA:
            return self._mamba(f"{name} mamba")
        if kind == ATTENTION:
            return self.attention.parts(f"{name} attention", self.model.window_of(number))
        return self._mlp_parts(name, kind)

    def _is_wide(self, number: int) -> bool:
        first, last = self.cut.wide_layers
        return self.cut.recipe is not None and not first <= number < self.model.layers - last

    @property
    def wide(self) -> Blocks:
        """The same layers without a recipe."""
        return Blocks(self.model, replace(self.cut, recipe=None))

    def parameters(self, kinds: str) -> tuple[int, int, int]:
        """Parameters of a layer before fsdp shards them: dense ones and experts on this rank, tensors."""
        found = [self._parameters_of(kind) for kind in kinds]
        dense, experts, tensors = (sum(each) for each in zip(*found, strict=True))
        return dense, experts, tensors

    def _parameters_of(self, kind: str) -> tuple[int, int, int]:
        m, tp, norm = self.model, self.tp, self.model.norm_parameters
        if kind == MAMBA and m.mamba is not None:
            return norm + m.mamba.parameters(m.hidden) // tp, 0, 9
        if kind == ATTENTION:
            return norm + self.attention.parameters(), 0, 7 if m.biases else 5
        matrices = 5 if m.biases else 4
        if kind == MLP or m.experts is None:
            bias = m.ffn // tp + m.hidden if m.biases else 0
            return norm + m.mlp_matrices(m.ffn) // tp + bias, 0, matrices
        e = m.experts
        router, shared = m.hidden * e.num, m.mlp_matrices(e.shared_inner) // tp
        own = e.num // self.cut.parallel.ep
        routed = m.expert_matrices * own // self.cut.parallel.expert_tp + m.bias_of_an_expert * own
        dense = norm + router + shared + e.projections(m.hidden)
        return dense, routed, matrices + (3 if m.gated else 2) * own

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
        """The experts' parameters that this rank keeps."""
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
        if self.cut.narrow_of("ahead") is None and self.cut.recipe is not None:
            return self.wide.predicted_ahead()
        m, cut, last = self.model, self.cut, self.model.layers - 1
        project = BlockPart(
            "ahead", (self._norm(), self._norm(), linear(cut, cut.own_tokens, 2 * m.hidden, m.hidden))
        )
        made: list[Layer] = []
        for number in range(m.ahead):
            layer = self._layer(f"layer {last}", m.ahead_kinds, last)
            head = head_layer(cut, m.hidden, self.vocabulary)
            dense, experts, _ = self.parameters(m.ahead_kinds)
            has_own = not (m.ahead_shared and number)
            made.append(
                Layer(
                    f"token {number + 2}",
                    (*forward_pieces([project], cut), *layer.forward, *head.forward),
                    (*head.backward, *layer.backward, *backward_pieces([project], cut)),
                    layer.recompute,
                    self.sharded(dense + 2 * m.hidden**2 + 3 * m.norm_parameters, experts) if has_own else {},
                    layer.experts if has_own else 0,
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
        self, name: str, before: tuple[Kernel, ...], then: ExchangePair | None = None, *, kind: str
    ) -> BlockPart:
        again = (self._norm(),) if self.cut.runs_again("norm") else ()
        graphed = ("mamba" if kind == MAMBA else "attention") in self.cut.graphed
        kernels = (*before, self._norm())
        exchange = then or ExchangePair()
        return BlockPart(f"{name} norm", kernels, exchange, again=again, plain=True, graphed=graphed)

    def _norm(self) -> Kernel:
        return memory(2 * self.cut.own_tokens * self.model.hidden * self.cut.width)

    def _add(self) -> Kernel:
        """Residual, with bias and dropout in one where there are any."""
        mask = _MASK if self.model.dropout else 0
        return memory(self.cut.own_tokens * self.model.hidden * (3 * self.cut.width + mask))

    def _mamba(self, name: str) -> list[BlockPart]:
        """Mamba-2: product in, convolution and scan, norm, product out."""
        from cosim.models.catalogue.mamba_layer import MambaLayer

        m, cut = self.model, self.cut
        assert m.mamba is not None
        mixer = MambaLayer(m.mamba, cut)
        kernels = (
            linear(cut, cut.tokens, m.hidden, mixer.projected),
            *mixer.kernels(),
            linear(cut, cut.tokens, mixer.inner, m.hidden, "mamba_out"),
        )
        graphed = "mamba" in cut.graphed
        return [BlockPart(name, kernels, self.closes, normed=True, gathers=True, graphed=graphed)]

    def _mlp(self, ffn: int) -> tuple[Kernel, ...]:
        cut, own, hidden = self.cut, ffn // self.tp, self.model.hidden
        wide = 2 if self.model.gated else 1
        return (
            linear(cut, cut.tokens, hidden, wide * own),
            memory((wide + 1) * cut.tokens * own * cut.width),
            linear(cut, cut.tokens, own, hidden),
        )

    def _mlp_parts(self, name: str, kind: str) -> list[BlockPart]:
        """An MLP; or shared experts as one, and routed ones."""
        m = self.model
        if m.experts is None or kind == MLP:
            return self._dense(f"{name} mlp", m.ffn, normed=True)
        shared = m.experts.shared_inner
        from cosim.models.catalogue.experts import ExpertLayer

        routed = ExpertLayer(m.experts, self.cut, m.hidden, m.gated).parts(name)
        if not shared:
            return routed
        return [*self._dense(f"{name} shared experts", shared, graph="router"), *routed]

    def _dense(self, name: str, ffn: int, *, normed: bool = False, graph: Graphed = "mlp") -> list[BlockPart]:
        """``normed``: the norm before is one kernel's with the first product's conversion, as Transformer
        Engine's ``LayerNormLinear`` has it. ``graph``: that it is in; the router's has shared experts, which
        are computed before it (Megatron-Core's ``shared_experts_compute``).
        """
        kernels = self._mlp(ffn)
        again: tuple[Kernel, ...] = ()
        if self.cut.runs_again("mlp"):
            again = kernels
        elif self.cut.runs_again("activation"):
            again = kernels[1:2]
        graphed = graph in self.cut.graphed
        return [
            BlockPart(f"{name} in", (), self.opens, plain=True),
            BlockPart(name, kernels, self.closes, again=again, normed=normed, gathers=True, graphed=graphed),
        ]
