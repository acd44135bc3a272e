"""Sizes of a transformer, its parameters and its FLOPs in closed form.

Grouped-query attention: Ainslie et al., arXiv 2305.13245. Gated MLP (SwiGLU): Shazeer, arXiv 2002.05202.
Latent attention and shared experts: DeepSeek-V2 and V3, arXiv 2405.04434 and 2412.19437. Parameters are
those of the published checkpoints; FLOPs count a multiply-add as two, and a causal mask saves nothing there
(what kernels do under one is ``blocks``'). Sliding windows: Beltagy et al., arXiv 2004.05150.

Hybrids (``pattern``) have layers of one kind each: Mamba-2, attention, an MLP or experts, as Nemotron-H,
arXiv 2504.03624. Latent experts: Nemotron 3, arXiv 2512.20856.

Tokens predicted ahead (``ahead``): DeepSeek-V3's section 2.2, a module for each, that training has and
serving hasn't; a checkpoint's parameters are without them.

Not modelled: dropped tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from cosim.models.catalogue.mamba import Mamba
from cosim.models.contract import Model
from cosim.spec import Spec

if TYPE_CHECKING:
    from cosim.models.catalogue.workload import ModelWorkload
    from cosim.models.job import ModelJob


MAMBA, ATTENTION, MLP, EXPERTS = "M", "*", "-", "E"
"""Kinds of layers, by the letters of Megatron-Core's ``hybrid_layer_pattern``."""
_KINDS = {MAMBA: "Mamba-2", ATTENTION: "attention", MLP: "an MLP", EXPERTS: "experts"}


class Experts(Spec):
    """A mixture of experts in place of an MLP."""

    num: PositiveInt = Field(description="routed experts in a layer")
    top_k: PositiveInt = Field(description="routed experts that see a token")
    ffn: PositiveInt = Field(description="inner size of an expert")
    shared: NonNegativeInt = Field(0, description="experts that see every token")
    shared_ffn: PositiveInt | None = Field(None, description="inner size of a shared expert; omitted: ffn")
    latent: PositiveInt | None = Field(
        None, description="routed experts see tokens projected to so many numbers (LatentMoE); omitted: whole"
    )
    first_dense: NonNegativeInt = Field(0, description="layers at the beginning that have an MLP instead")
    biases: bool = Field(False, description="both products have a bias for each expert (GPT-OSS)")
    clamped: bool = Field(False, description="what goes into the gate is clamped before (GPT-OSS)")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.top_k > self.num:
            raise ValueError(f"a token can't go to {self.top_k} of {self.num} experts")
        return self

    @property
    def shared_inner(self) -> int:
        """Inner size of all shared experts together."""
        return self.shared * (self.shared_ffn or self.ffn)

    def width(self, hidden: int) -> int:
        """Numbers of a token that a routed expert sees."""
        return self.latent or hidden

    def projections(self, hidden: int) -> int:
        """Weights that project tokens to the latent and back."""
        return 2 * hidden * (self.latent or 0)


class Latent(Spec):
    """Multi-head latent attention: keys and values are kept as one small vector for all heads."""

    query_rank: PositiveInt = Field(description="inner size of the queries' projection")
    key_value_rank: PositiveInt = Field(description="size of what is kept of keys and values")
    nope: PositiveInt = Field(description="size of a head's key without rotary position")
    rope: PositiveInt = Field(description="size of the rotary part, one for all heads")
    value: PositiveInt = Field(description="size of a head's value")


class TransformerModel(Model):
    """A transformer of your own sizes: dense, of experts, grouped-query or latent attention; or a hybrid."""

    layers: PositiveInt = Field(le=1_000_000, description="transformer layers")
    pattern: str | None = Field(
        None,
        description="a letter for each layer: M Mamba-2, * attention, - an MLP, E experts; omitted: each"
        " has attention and an MLP or experts",
    )
    mamba: Mamba | None = Field(None, description="pattern: sizes of its Mamba-2 layers")
    hidden: PositiveInt = Field(description="hidden size h")
    heads: NonNegativeInt = Field(description="query heads; 0: no layer has attention")
    kv_heads: PositiveInt | None = Field(None, description="key and value heads; omitted: heads")
    head_dim: PositiveInt | None = Field(None, description="size of a head; omitted: hidden / heads")
    ffn: NonNegativeInt = Field(description="inner size of the MLP; 0: no layer has one")
    gated: bool = Field(True, description="MLP of three matrices (SwiGLU), not two (GeLU)")
    squared_relu: bool = Field(
        False, description="gated: false: relu(x)^2 between the two matrices, not GeLU (Nemotron)"
    )
    vocabulary: PositiveInt = Field(description="tokens in the vocabulary")
    sequence: PositiveInt = Field(description="sequence length it was trained with")
    positions: NonNegativeInt = Field(0, description="learned positions; 0: rotary ones, without parameters")
    rotary: bool = Field(True, description="false: attention knows no positions (Nemotron-H)")
    scaled_positions: bool = Field(
        False, description="rotary positions' sines are scaled (YaRN): Megatron has no kernel for them in one"
    )
    token_types: NonNegativeInt = Field(0, description="token types with an embedding (BERT)")
    tied: bool = Field(False, description="the head has the embedding's weights")
    biases: bool = Field(False, description="linear layers have biases")
    norm: Literal["rms", "layer"] = Field("rms", description="normalisation: one vector, or two")
    dropout: bool = Field(False, description="dropout after attention and MLP")
    final_norm: bool = Field(True, description="a norm after the last layer; BERT's is after the embedding")
    causal: bool = Field(True, description="a token attends to those before it only; false: to all (BERT)")
    window: PositiveInt | None = Field(
        None, description="sliding window: tokens that one attends to at most; omitted: all"
    )
    window_every: PositiveInt = Field(1, description="every so many layers have the window, the others not")
    pooler: bool = Field(False, description="a linear layer over the first token (BERT)")
    experts: Experts | None = Field(None, description="a mixture of experts in place of the MLP")
    head_norms: bool = Field(False, description="queries' and keys' heads are normalised (Qwen3)")
    latent: Latent | None = Field(None, description="latent attention in place of grouped-query")
    ahead: NonNegativeInt = Field(
        0, description="tokens that training predicts beside the next: a layer, a projection, the head again"
    )
    ahead_pattern: str | None = Field(
        None, description="pattern: layers of what predicts a token ahead, as in `*E`; omitted: the last one"
    )
    ahead_shared: bool = Field(
        False, description="all tokens ahead are predicted by one module, again and again (Nemotron 3)"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self._fits_pattern()
        if self.squared_relu and self.gated:
            raise ValueError("squared_relu is of two matrices: write `gated: false` beside it")
        if self.head_dim is None and self.heads and self.hidden % self.heads:
            raise ValueError(f"hidden {self.hidden} isn't a multiple of heads {self.heads}; give head_dim")
        if self.heads and self.heads % self.kv:
            raise ValueError(f"heads {self.heads} isn't a multiple of kv_heads {self.kv}")
        if self.scaled_positions and (self.positions or self.latent):
            whose = "learned (`positions`)" if self.positions else "latent attention's, which have a kernel"
            raise ValueError(f"scaled_positions: the model's positions are {whose}; leave it out")
        return self

    def _fits_pattern(self) -> None:
        """Refuse layers of kinds that aren't there, and sizes that are missing or no layer's."""
        for name in ("pattern", "ahead_pattern"):
            text: str | None = getattr(self, name)
            if text is not None and (wrong := sorted(set(text) - set(_KINDS))):
                known = ", ".join(f"{letter} {kind}" for letter, kind in _KINDS.items())
                raise ValueError(f"{name} has a layer {wrong[0]!r}; there are {known}")
        if self.pattern is not None and len(self.pattern) != self.layers:
            raise ValueError(
                f"pattern has {len(self.pattern)} letters for {self.layers} layers, where each has one: write"
                f" `layers: {len(self.pattern)}`, or a pattern of {self.layers}"
            )
        if self.pattern is None and self.ahead_pattern is not None:
            raise ValueError("ahead_pattern is of models with a pattern; leave it out")
        if self.pattern is not None and self.experts is not None and self.experts.first_dense:
            raise ValueError("experts.first_dense: the pattern says which layers have experts; leave it out")
        used = {kind for number in range(self.layers) for kind in self.kinds(number)}
        if self.ahead:
            used |= set(self.ahead_kinds)
        has = {
            MAMBA: ("mamba", self.mamba is not None),
            ATTENTION: ("heads", self.heads > 0),
            MLP: ("ffn", self.ffn > 0),
            EXPERTS: ("experts", self.experts is not None),
        }
        for kind, (name, there) in has.items():
            if kind in used and not there:
                raise ValueError(f"layers have {_KINDS[kind]}: give {name}")
        if self.mamba is not None and MAMBA not in used:
            raise ValueError("mamba: no layer is one; give a pattern with an M, or leave it out")

    def kinds(self, layer: int) -> str:
        """What a layer has, each after a norm and beside a residual: a letter of the pattern, or two."""
        if self.pattern is not None:
            return self.pattern[layer]
        return ATTENTION + (EXPERTS if self.has_experts(layer) else MLP)

    @property
    def ahead_kinds(self) -> str:
        """What a module that predicts a token ahead has."""
        return self.ahead_pattern or self.kinds(self.layers - 1)

    def count(self, kind: str) -> int:
        """Layers that have it."""
        return sum(kind in self.kinds(layer) for layer in range(self.layers))

    @property
    def kv(self) -> int:
        """Key and value heads."""
        return self.kv_heads or self.heads

    @property
    def head(self) -> int:
        """Size of a head."""
        return self.head_dim or (self.hidden // self.heads if self.heads else 0)

    @property
    def size(self) -> str:
        """For ``cosim list model``."""
        text = f"{_count(self.parameters)} parameters"
        if self.active_parameters != self.parameters:
            text += f", {_count(self.active_parameters)} for a token"
        return text

    @property
    def num_layers(self) -> int:
        """See :class:`~cosim.models.contract.Model`."""
        return self.layers

    @property
    def tokens(self) -> int:
        """Tokens of a sequence as it is trained."""
        return self.sequence

    def is_uneven(self) -> bool:
        """Where there are experts."""
        return self.experts is not None

    def check(self, workload: ModelWorkload) -> None:
        """See :meth:`Model.check`."""
        from cosim.models.catalogue.fits import fits_transformer

        fits_transformer(workload, self)

    def job(self, workload: ModelWorkload) -> ModelJob:
        """Trained as the framework does it, or serving."""
        from cosim.models.catalogue.jobs import inference_job

        if workload.task == "training":
            return workload.framework.job(workload, self)
        return inference_job(workload, self)

    # -- parameters -----------------------------------------------------------------------------------

    @property
    def norm_parameters(self) -> int:
        """Parameters of one norm."""
        return self.hidden * (2 if self.norm == "layer" else 1)

    @property
    def attention_matrices(self) -> int:
        """Weights of a layer's attention."""
        h, heads = self.hidden, self.heads
        if self.latent is None:
            return h * (heads + 2 * self.kv) * self.head + heads * self.head * h
        m = self.latent
        return (
            h * m.query_rank
            + m.query_rank * heads * (m.nope + m.rope)
            + h * (m.key_value_rank + m.rope)
            + m.key_value_rank * heads * (m.nope + m.value)
            + heads * m.value * h
        )

    @property
    def attention_parameters(self) -> int:
        """Weights, biases and inner norms of a layer's attention."""
        bias = (self.heads + 2 * self.kv) * self.head + self.hidden if self.biases else 0
        inner = self.latent.query_rank + self.latent.key_value_rank if self.latent else 0
        inner += 2 * self.head if self.head_norms else 0
        return self.attention_matrices + bias + inner

    def mlp_matrices(self, ffn: int) -> int:
        """Weights of an MLP or an expert of that inner size."""
        return (3 if self.gated else 2) * self.hidden * ffn

    @property
    def mlp_parameters(self) -> int:
        """Parameters of a dense layer's MLP."""
        return self.mlp_matrices(self.ffn) + (self.ffn + self.hidden if self.biases else 0)

    def has_experts(self, layer: int) -> bool:
        """Whether that layer has experts, not an MLP."""
        if self.pattern is not None:
            return self.pattern[layer] == EXPERTS
        return self.experts is not None and layer >= self.experts.first_dense

    def window_of(self, layer: int) -> int | None:
        """The sliding window of a layer; None: it has none."""
        return self.window if layer % self.window_every == 0 else None

    def layer_parameters(self, layer: int) -> int:
        """Parameters of a layer, all experts."""
        return sum(self.kind_parameters(kind) for kind in self.kinds(layer))

    def kind_parameters(self, kind: str) -> int:
        """Parameters of one kind of a layer's parts, with the norm before it."""
        if kind == MAMBA and self.mamba is not None:
            return self.norm_parameters + self.mamba.parameters(self.hidden)
        if kind == ATTENTION:
            return self.norm_parameters + self.attention_parameters
        if kind == MLP or self.experts is None:
            return self.norm_parameters + self.mlp_parameters
        e = self.experts
        routed = e.num * (self.expert_matrices + self.bias_of_an_expert)
        shared = self.mlp_matrices(e.shared_inner) + e.projections(self.hidden)
        return self.norm_parameters + routed + shared + self.hidden * e.num

    @property
    def expert_matrices(self) -> int:
        """Weights of a routed expert."""
        if self.experts is None:
            return 0
        return (3 if self.gated else 2) * self.experts.width(self.hidden) * self.experts.ffn

    @property
    def bias_of_an_expert(self) -> int:
        """Numbers of an expert's biases."""
        if self.experts is None or not self.experts.biases:
            return 0
        return (2 if self.gated else 1) * self.experts.ffn + self.experts.width(self.hidden)

    @property
    def embedding_parameters(self) -> int:
        """Tokens, positions, types, and the norm after them if there is one."""
        rows = self.vocabulary + self.positions + self.token_types
        return rows * self.hidden + (0 if self.final_norm else self.norm_parameters)

    @property
    def head_parameters(self) -> int:
        """Last norm, output matrix if it has its own, pooler."""
        own = 0 if self.tied else self.vocabulary * self.hidden
        pooler = self.hidden**2 + self.hidden if self.pooler else 0
        return own + pooler + (self.norm_parameters if self.final_norm else 0)

    @property
    def parameters(self) -> int:
        """Parameters of the whole model."""
        layers = sum(self.layer_parameters(layer) for layer in range(self.layers))
        return layers + self.embedding_parameters + self.head_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters that a token meets."""
        if self.experts is None:
            return self.parameters
        idle = (self.experts.num - self.experts.top_k) * self.expert_matrices
        return self.parameters - idle * self.count(EXPERTS)

    # -- FLOPs ----------------------------------------------------------------------------------------

    def flops_per_token(self, keys: int, *, head: bool = True) -> int:
        """FLOPs of a forward pass: twice the weights of each product, and attention over ``keys`` tokens."""
        width = 2 * self.head
        if self.latent is not None:
            width = self.latent.nope + self.latent.rope + self.latent.value
        total = self.count(ATTENTION) * (2 * self.attention_matrices + 2 * keys * self.heads * width)
        total += self.count(MLP) * 2 * self.mlp_matrices(self.ffn)
        if self.mamba is not None:
            each = 2 * self.mamba.matrices(self.hidden) + self.mamba.flops_per_token()
            total += self.count(MAMBA) * each
        if self.experts is not None:
            e = self.experts
            each = 2 * self.expert_matrices * e.top_k + 2 * self.mlp_matrices(e.shared_inner)
            total += self.count(EXPERTS) * (each + 2 * e.projections(self.hidden) + 2 * self.hidden * e.num)
        return total + (2 * self.vocabulary * self.hidden if head else 0)

    def forward_flops(self, length: int) -> float:
        """See :meth:`Model.forward_flops`: attention of every token over the whole sequence."""
        return length * self.flops_per_token(length)

    def kept_per_token(self) -> int:
        """Numbers of an attention layer's key-value cache for a token."""
        if self.latent is not None:
            return self.latent.key_value_rank + self.latent.rope
        return 2 * self.kv * self.head


def _count(number: int) -> str:
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6)):
        if number >= size:
            return f"{number / size:.4g} {unit}"
    return str(number)
