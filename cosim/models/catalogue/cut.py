"""A parallelism, and what one rank has of a model under it.

Ranks are numbered tensor-parallel peers first, then context-parallel, then data-parallel, then stages: mesh
axes ``pp, dp, fsdp, cp, tp``; with expert parallelism the data-parallel ranks are ``edp, ep``, as in
Megatron-LM (arXiv 2104.04473, section 3; experts: arXiv 2201.05596), or those that shard parameters ``efsdp,
ep``, as in torchtitan and DeepSpeed-MoE: experts are sharded over ``efsdp``, all other parameters over both.
With ``etp: 1`` an expert-parallel group is ``ep, cp, tp``: tensor-parallel ranks first, then
context-parallel, then data-parallel ones, as Megatron-Core's ``expert_decoder_rank_generator`` has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from cosim.gpu.kernels import AttentionVersion, Narrow
from cosim.models.parts import Exchange
from cosim.models.schedule import LOOPED, PARTED, V_CHUNKS, V_SHAPED, ScheduleName
from cosim.spec import Spec
from cosim.workload.program import DeviceMesh

Recompute = Literal["none", "selective", "full"]
Recomputed = Literal["attention", "norm", "activation", "latent", "mlp", "experts"]
"""Operators that backward runs again: scores and softmax, norms, what is between an MLP's (or experts')
products, projections from latent vectors up to heads, whole MLPs (shared experts among them), all of an
experts' layer with its all-to-alls."""
Graphed = Literal["attention", "router", "mlp", "mamba"]
"""Parts of a layer that a CUDA graph may have: attention with the norms, the experts' router and shared
experts, the MLP, a Mamba-2 layer."""
Dispatcher = Literal["all_to_all", "deepep", "hybridep"]
Recipe = Literal["fp8", "mxfp8", "nvfp4"]
"""Linear layers' products in a narrow type: FP8 scaled by tensor; MXFP8, by blocks of 32 (OCP MX 1.0);
NVFP4, by blocks of 16 (arXiv 2509.25149). Attention, router, embedding and head stay as they are."""
Linear = Literal["attention", "mamba_out", "latent", "ahead"]
"""Linear layers that may have a recipe of their own: attention's, Mamba-2's product out, the projections of
latent experts, all that predicts tokens ahead."""
Attention = Literal["flash", "flash2", "triton", "unfused"]
FUSED: dict[Attention, AttentionVersion] = {"flash": "newest", "flash2": "flash2", "triton": "triton"}
"""Attention in one kernel, and its version."""
TP = ("tp",)


class Parallel(Spec):
    """How many ranks share what."""

    dp: PositiveInt = Field(1, description="replicas, each with all parameters: mesh axis dp")
    fsdp: PositiveInt = Field(
        1, description="data-parallel ranks that shard parameters, gradients and optimizer (ZeRO stage 3)"
    )
    tp: PositiveInt = Field(1, description="ranks that share a layer: mesh axis tp")
    sp: bool | None = Field(
        None, description="tp ranks share norms and residuals along the sequence, too; omitted: where tp > 1"
    )
    pp: PositiveInt = Field(1, description="stages: mesh axis pp")
    cp: PositiveInt = Field(1, description="ranks that share a sequence: mesh axis cp")
    ep: PositiveInt = Field(
        1, description="ranks that share the experts, a part of fsdp, or without it of dp: mesh axis ep"
    )
    etp: PositiveInt | None = Field(
        None,
        description="tp ranks that share an expert: 1, experts lie whole on tp, cp and dp ranks together"
        " (expert_tensor_parallel_size), or as many as tp; omitted: tp",
    )
    schedule: ScheduleName = Field("1f1b", description="order of a stage's passes")
    virtual_stages: PositiveInt = Field(
        1, description="interleaved, looped_bfs, zero-bubble schedules: chunks of layers on each stage"
    )
    layout: tuple[NonNegativeInt, ...] | None = Field(
        None, description="layers of each part, chunk by chunk, stage by stage within; omitted: evenly spread"
    )
    cp_exchange: Literal["ring", "all_gather"] = Field(
        "ring", description="keys and values pass by while attention goes on, or come together before it"
    )
    reshard: bool = Field(
        True, description="fsdp: parameters are given up after a layer's forward, and gathered again"
    )
    imbalance: Annotated[float, Field(ge=1, le=1000)] = Field(
        1.0, description="tokens of the busiest expert-parallel rank, as a multiple of the mean"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        name, size = ("dp", self.dp) if self.fsdp == 1 else ("fsdp", self.fsdp)
        if self.etp not in (None, 1, self.tp):
            raise ValueError(f"etp {self.etp}: ranks that share an expert are 1 or tp, {self.tp}")
        if self.spread:
            self._fits_spread(name, size)
        elif size % self.ep:
            raise ValueError(
                f"{name} {size} isn't a multiple of ep {self.ep}: experts are shared within {name};"
                f" {-(-size // self.ep) * self.ep} would be"
                + (", or etp: 1, with experts on tp ranks, too" if self._might_spread(size) else "")
            )
        if self.schedule in V_SHAPED and self.pp > 1:
            if self.virtual_stages != V_CHUNKS:
                raise ValueError(f"schedule {self.schedule} is a V of two chunks: virtual_stages: 2")
        elif self.virtual_stages > 1 and (self.schedule not in (*LOOPED, *PARTED) or self.pp == 1):
            raise ValueError(
                f"virtual_stages {self.virtual_stages} needs `schedule: interleaved` (or looped_bfs)"
                f" and several stages; under framework pytorch also {', '.join(PARTED)}"
            )
        parts = self.pp * self.virtual_stages
        if self.layout is not None and len(self.layout) != parts:
            raise ValueError(f"layout has {len(self.layout)} parts; pp x virtual_stages are {parts}")
        return self

    def _fits_spread(self, name: str, size: int) -> None:
        """Refuse groups of experts that end within those of tensor parallelism, or span too much."""
        inner = self.tp * self.cp
        if self.ep % inner:
            raise ValueError(
                f"ep {self.ep} with etp 1 isn't a multiple of tp x cp {inner}, whose ranks are in one group;"
                f" {-(-self.ep // inner) * inner} would be"
            )
        if size * inner % self.ep:
            raise ValueError(
                f"{name} x tp x cp {size * inner} isn't a multiple of ep {self.ep}: experts are shared within"
            )
        if not self.sequence_parallel:
            raise ValueError("etp 1: tp ranks have the same tokens without sequence parallelism; `sp: true`")

    def _might_spread(self, size: int) -> bool:
        """Whether experts could lie on tensor-parallel ranks, too."""
        inner = self.tp * self.cp
        return self.tp > 1 and self.ep % inner == 0 and size * inner % self.ep == 0

    @property
    def spread(self) -> bool:
        """Whether experts lie whole on tensor-parallel ranks, too."""
        return self.etp == 1 and self.tp > 1 and self.ep > 1

    @property
    def expert_tp(self) -> int:
        """Tensor-parallel ranks that share an expert."""
        return 1 if self.spread else self.tp

    @property
    def _ep_rows(self) -> int:
        """Ranks of an expert-parallel group along data parallelism."""
        return self.ep // (self.tp * self.cp) if self.spread else self.ep

    def layers_of_parts(self, layers: int) -> tuple[int, ...]:
        """How many layers each part has: as ``layout`` says, or evenly; those left over are in the middle."""
        if self.layout is not None:
            return self.layout
        parts = self.pp * self.virtual_stages
        if layers < parts <= layers + 2:  # embedding and head are parts of their own: Megatron-LM counts them
            return (0, *[1] * layers, *[0] * (parts - layers - 1))
        each, left = divmod(layers, parts)
        first = (parts - left) // 2
        return tuple(each + (first <= part < first + left) for part in range(parts))

    @property
    def sequence_parallel(self) -> bool:
        """Whether tensor-parallel ranks share norms along the sequence."""
        return self.tp > 1 if self.sp is None else self.sp

    @property
    def replicas(self) -> int:
        """Ranks or groups of ranks that each have samples of their own."""
        return self.dp * self.fsdp

    @property
    def world_size(self) -> int:
        """GPUs in all."""
        return self.replicas * self.tp * self.pp * self.cp

    @property
    def mesh(self) -> DeviceMesh:
        """Axes that have more than one rank, and pp."""
        data = {"dp": self.dp, "fsdp": self.fsdp}
        rows = self._ep_rows
        if self.ep > 1 and self.fsdp > 1:
            data = {"dp": self.dp, "efsdp": self.fsdp // rows, "ep": rows}
        elif self.ep > 1:
            data = {"edp": self.dp // rows, "ep": rows}
        axes = {**data, "cp": self.cp, "tp": self.tp}
        return DeviceMesh({"pp": self.pp, **{name: size for name, size in axes.items() if size > 1}})

    def _axes(self, *names: str) -> tuple[str, ...]:
        return tuple(name for name in names if name in self.mesh.axes)

    @property
    def ep_axes(self) -> tuple[str, ...]:
        """Along which tokens go to experts."""
        return self._axes("ep", "cp", "tp") if self.spread else ("ep",)

    @property
    def gradient_axes(self) -> tuple[str, ...]:
        """Over which gradients of dense parameters are summed beside sharding."""
        return self._axes("dp") if self.fsdp > 1 else self._axes("dp", "edp", "ep", "cp")

    @property
    def expert_axes(self) -> tuple[str, ...]:
        """Over which gradients of experts are summed."""
        if self.ep == 1 or self.fsdp > 1:
            return self.gradient_axes
        return self._axes("edp") if self.spread else self._axes("edp", "cp")

    @property
    def shard_axes(self) -> tuple[str, ...]:
        """Over which parameters are sharded."""
        return self._axes("fsdp", "efsdp", "ep", "cp") if self.fsdp > 1 else ()

    @property
    def expert_shard_axes(self) -> tuple[str, ...]:
        """Over which experts' parameters are sharded."""
        if self.fsdp == 1:
            return ()
        return self._axes("fsdp", "efsdp") if self.spread else self._axes("fsdp", "efsdp", "cp")

    def size(self, axes: tuple[str, ...]) -> int:
        """Ranks of a group along axes."""
        total = 1
        for axis in axes:
            total *= self.mesh.axes[axis]
        return total

    def idle_settings(self) -> list[tuple[str, str]]:
        """Settings of what this parallelism doesn't have."""
        idle = [
            ("sp", "tp is 1: a layer is whole", self.tp == 1),
            ("etp", "tp is 1: a layer is whole", self.tp == 1),
            ("etp", "ep is 1: every rank has all experts", self.tp > 1 and self.ep == 1 and self.etp == 1),
            ("schedule", "pp is 1: there is one stage", self.pp == 1),
            ("layout", "pp is 1: there is one stage", self.pp == 1),
            ("cp_exchange", "cp is 1: a rank has whole sequences", self.cp == 1),
            ("reshard", "fsdp is 1: a rank has its parameters", self.fsdp == 1),
        ]
        return [(name, why) for name, why, is_idle in idle if is_idle and name in self.model_fields_set]


@dataclass(frozen=True, slots=True)
class Cut:
    """Sizes of a micro-batch on one rank: ``batch`` sequences of ``sequence`` tokens of its own.

    ``keys`` are the tokens that one attends to: the sequence of all context-parallel ranks, or in
    decoding what came before; ``packed``: of documents that share a sequence, so many. ``decode``:
    queries are one token for each sequence. ``forward_only``: the model serves, and keeps nothing for a
    backward pass. ``accumulated``: products of gradients add to what is there. ``counts_read``: the host
    learns how many tokens each expert has before it issues their products. ``fp8_turned``: the GPU's.
    ``recipes``: linear layers whose recipe isn't the others', ``wide_layers``: layers at the beginning
    and the end without one. Others are the framework's settings.
    """

    parallel: Parallel
    batch: int
    sequence: int
    keys: int
    width: int
    attention: Attention = "flash"
    packed: int | None = None
    recompute: Recompute | tuple[Recomputed, ...] = "none"
    decode: bool = False
    forward_only: bool = False
    recipe: Recipe | None = None
    recipes: tuple[tuple[Linear, Recipe | None], ...] = ()
    wide_layers: tuple[int, int] = (0, 0)
    fp8_turned: bool = True
    fp8_attention: bool = False
    graphed: tuple[Graphed, ...] = ()
    dispatcher: Dispatcher = "all_to_all"
    expert_hosts: int = 1
    dispatcher_efficiency: float = 1.0
    fused_experts: bool = False
    fused_margin: int = 0
    accumulated: bool = False
    overlap_input_gradients: bool = False
    counts_read: bool = False
    fused_loss: bool = False
    fp8_output_proj: bool = False

    def runs_again(self, what: Recomputed) -> bool:
        """Whether backward does, of a layer that it doesn't run again as a whole."""
        if self.recompute == "selective":
            return what == "attention"
        return what in self.recompute if isinstance(self.recompute, tuple) else False

    @property
    def tokens(self) -> int:
        """Rows of every matrix."""
        return self.batch * self.sequence

    @property
    def narrow(self) -> Narrow | None:
        """The type of linear layers' operands, where it isn't the others'."""
        return None if self.recipe is None else "fp4" if self.recipe == "nvfp4" else "fp8"

    def narrow_of(self, which: Linear) -> Narrow | None:
        """The type of some linear layers' operands."""
        for name, recipe in self.recipes if self.recipe is not None else ():
            if name == which:
                return None if recipe is None else "fp4" if recipe == "nvfp4" else "fp8"
        return self.narrow

    @property
    def own_tokens(self) -> int:
        """Rows between matrices: a share with sequence parallelism."""
        return self.tokens // self.parallel.tp if self.parallel.sequence_parallel else self.tokens

    def state_bytes(self, hidden: int) -> int:
        """One hidden state, whole: what a tensor-parallel all-reduce carries."""
        return self.tokens * hidden * self.width

    def exchanges(self, hidden: int) -> tuple[Exchange | None, Exchange | None]:
        """What opens and what closes a part that tensor-parallel ranks share."""
        tp, size = self.parallel.tp, self.state_bytes(hidden)
        if tp == 1:
            return None, None
        if not self.parallel.sequence_parallel:
            return None, Exchange("all_reduce", TP, size)
        return Exchange("all_gather", TP, size // tp), Exchange("reduce_scatter", TP, size)
