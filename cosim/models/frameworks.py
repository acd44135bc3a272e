"""Which framework a catalogue model is trained with: how its kernels are fused, and what happens around."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from cosim.gpu.gpus import DType
from cosim.models.catalogue.cut import Attention, Dispatcher, Graphed, Linear, Recipe
from cosim.models.contract import Framework
from cosim.models.schedule import PARTED
from cosim.spec import Spec, TimePs
from cosim.units import PS_PER_MS, PS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cosim.models.catalogue.architecture import TransformerModel
    from cosim.models.catalogue.workload import ModelWorkload
    from cosim.models.job import ModelJob
    from cosim.workload.program import Program


class MegatronSettings(Spec):
    """What a training job of Megatron-LM can be told."""

    blocking_sends: bool = Field(
        False, description="computation waits until what it sent to the next stage has arrived"
    )
    synchronous_passes: bool = Field(
        False, description="the host waits for the GPU after each pass, as Megatron-LM's timers make it"
    )
    synchronous_exchanges: bool = Field(
        False,
        description="the host waits for each tensor-parallel exchange, as NCCL_BLOCKING_WAIT=1 makes it",
    )

    overlap_param_gather: bool = Field(
        False,
        description="sharded_optimizer: parameters are gathered by bucket during the first forward passes",
    )
    tp_comm_overlap: bool = Field(
        False, description="tensor-parallel gathers and scatters go on beside their products (userbuffers)"
    )
    overlap_input_gradients: bool = Field(
        False,
        description="tensor-parallel sums of input gradients go on beside the products of weights' gradients,"
        " as Megatron-Core and Transformer Engine have it without userbuffers, too",
    )

    def idle_with(self, *, stages: int, tensor_parallel: int) -> list[tuple[str, str]]:
        """(field, why) of what so many stages and tensor-parallel ranks don't have."""
        one_stage, whole = "pp is 1: there is one stage", "tp is 1: a layer is whole"
        idle = [
            ("blocking_sends", one_stage, stages == 1),
            ("synchronous_exchanges", whole, tensor_parallel == 1),
            ("tp_comm_overlap", whole, tensor_parallel == 1),
            ("overlap_input_gradients", whole, tensor_parallel == 1),
        ]
        return [(name, why) for name, why, is_idle in idle if is_idle and name in self.model_fields_set]


class Megatron(MegatronSettings, Framework):
    """Megatron-LM's fused layers, vocabulary-parallel loss and gradient buckets."""

    transformer_impl: Literal["transformer_engine", "local"] = Field(
        "transformer_engine",
        description="local: torch's operators and its foreach AdamW, as without Apex and Transformer Engine",
    )
    graphs: tuple[Graphed, ...] = Field(
        (), description="parts of a layer that CUDA graphs have; workload's cuda_graphs: the whole iteration"
    )
    accumulation_fusion: bool = Field(
        False,
        description="products of gradients add to them, nobody else does (gradient_accumulation_fusion)",
    )
    fused_loss: bool = Field(
        False,
        description="cross entropy in two kernels, of logits as they are (cross_entropy_fusion_impl: te)",
    )
    fp8_attention: bool = Field(False, description="attention's products have FP8 operands")
    fp8_output_proj: bool = Field(
        False, description="recipe mxfp8: the products of logits have FP8 operands, too (fp8_output_proj)"
    )
    recipes: dict[Linear, Recipe | Literal["none"]] = Field(
        {},
        description="linear layers whose recipe isn't the workload's, {attention: none, mamba_out: mxfp8}"
        " (a quant_recipe); ahead: none or as the others",
    )
    wide_layers: tuple[NonNegativeInt, NonNegativeInt] = Field(
        (0, 0),
        description="layers at the beginning and at the end whose operands no recipe makes narrow"
        " (first_last_layers_bf16)",
    )
    dispatcher: Dispatcher = Field(
        "all_to_all",
        description="tokens go once to each expert; deepep: once to each rank, or host; hybridep: with their"
        " weights of all experts there, and ranks know who sends them where",
    )
    expert_hosts: PositiveInt = Field(
        1,
        description="deepep, hybridep: NVLink domains that an expert-parallel group spans, each sent a token"
        " once",
    )
    dispatcher_efficiency: float = Field(
        1.0,
        gt=0,
        le=1,
        description="deepep, hybridep over several hosts: its rate over NICs as a fraction of NCCL's;"
        " HybridEP on two hosts of H100s: 0.69 (its README: 34 of 50 GB/s)",
    )
    padded_experts: bool = Field(
        False,
        description="experts take a fixed number of tokens, others are dropped: without it the host waits for"
        " each layer's counts (moe_pad_expert_input_to_capacity)",
    )
    fused_experts: bool = Field(
        False, description="experts' products are one kernel with what is between, not one for each expert"
    )
    fused_margin: NonNegativeInt = Field(
        0,
        le=1000,
        description="fused_experts: multiprocessors that the products leave to all-to-alls beside them, as"
        " CUDNNFE_CLUSTER_OVERLAP_MARGIN does in pairs; not those of weights' gradients",
    )
    overlap_experts: bool = Field(
        False,
        description="experts' all-to-alls go on beside another micro-batch's computation (1F1B overlap)",
    )

    @property
    def recipes_of(self) -> tuple[tuple[Linear, Recipe | None], ...]:
        """For a cut."""
        return tuple((name, None if one == "none" else one) for name, one in self.recipes.items())

    def job(self, workload: ModelWorkload, model: TransformerModel) -> ModelJob:
        """See :meth:`Framework.job`."""
        from cosim.models.catalogue.jobs import local_job, megatron_job

        if self.transformer_impl == "local":
            return local_job(workload, model)
        return megatron_job(workload, model, self)

    def check(self, workload: ModelWorkload, model: TransformerModel) -> None:
        """Refuse rounds that aren't whole, and what local layers don't have."""
        from cosim.models.catalogue.fits import divides

        if workload.parallel.schedule in PARTED:
            raise ValueError(
                f"framework megatron has no schedule {workload.parallel.schedule}: Megatron-Core's backward"
                " is whole; `schedule: interleaved`, or framework: pytorch"
            )
        if workload.parallel.schedule == "interleaved":
            divides("micro-batches", workload.micro_batches, "pp", workload.parallel.pp)
        self._check_recipes(workload)
        if self.transformer_impl == "local":
            from cosim.models.megatron.check import fits_local

            fits_local(workload, model)

    def _check_recipes(self, workload: ModelWorkload) -> None:
        """Refuse recipes of linear layers that aren't one family: FP4 beside FP8, FP8 of two kinds."""
        whole = workload.recipe
        for name, one in self.recipes.items():
            if whole is None and one != "none":
                raise ValueError(f"framework.recipes: {name}: {one} needs a recipe of the workload's")
            beside = {"none", whole, *(("mxfp8",) if whole == "nvfp4" else ())}
            if whole is not None and one not in (beside if name != "ahead" else {"none", whole}):
                known = ", ".join(sorted(str(each) for each in beside))
                raise ValueError(f"framework.recipes: {name}: {one} beside recipe {whole}; {known} would do")

    def idle_under(self, workload: ModelWorkload) -> list[tuple[str, str]]:
        """Settings that have no effect under the parallelism."""
        p = workload.parallel
        idle = self.idle_with(stages=p.pp, tensor_parallel=p.tp)
        given = self.model_fields_set
        sent = ("dispatcher", "expert_hosts", "dispatcher_efficiency", "overlap_experts")
        idle += [(name, "ep is 1: nobody sends tokens") for name in sent if p.ep == 1 and name in given]
        if p.ep > 1 and self.expert_hosts == 1 and "dispatcher_efficiency" in given:
            idle.append(("dispatcher_efficiency", "expert_hosts is 1: no token goes to another host"))
        if workload.recipe is None:
            narrow = ("recipes", "wide_layers")
            idle += [
                (name, "there is no recipe: operands are as they are") for name in narrow if name in given
            ]
        if workload.recipe != "mxfp8" and self.fp8_output_proj:
            idle.append(("fp8_output_proj", "recipe isn't mxfp8"))
        if not workload.model.is_uneven():
            own = ("fused_experts", "fused_margin", "padded_experts")
            idle += [(name, "the model has no experts") for name in own if name in given]
        elif self.fused_margin and not self.fused_experts:
            idle.append(("fused_margin", "fused_experts is false: their products leave nothing"))
        if workload.cuda_graphs and self.graphs:
            idle.append(("graphs", "cuda_graphs: the whole iteration is one"))
        return [("framework", f"{name}: {why}") for name, why in idle]


class PyTorch(Framework):
    """Eager PyTorch: a kernel for each operator; FSDP2 or 1, DDP, DTensor, torch.distributed.pipelining.

    Defaults are PyTorch's own: scaled_dot_product_attention takes FlashAttention-2 (2.2 to 2.10; cuDNN's
    only where it is preferred), torch.nn.RMSNorm is several operators (before 2.9), AdamW is foreach.
    """

    own_attention: ClassVar[Attention] = "flash2"

    compile: bool = Field(
        False, description="torch.compile of each block: Inductor fuses what is between its products"
    )
    optimize_ddp: bool = Field(
        True,
        description="compile under DDP: graphs are cut where a bucket of gradients is full, which isn't"
        " written; false: whole, as by torch._dynamo.config.optimize_ddp = False",
    )
    norm: Literal["fused", "written"] = Field(
        "written",
        description="RMS norms: operators, as models write them and torch.nn.RMSNorm has them before 2.9, or"
        " its one kernel since",
    )
    rotary: Literal["complex", "chunked", "sliced", "none"] = Field(
        "complex",
        description="rotary positions: complex numbers (torchtitan), halves by chunk, slice (Hugging Face)",
    )
    rotary_tables: Literal["residual", "dtype"] = Field(
        "residual",
        description="rotary by halves under autocast: tables of the residual stream's type, fp32 (Hugging"
        " Face), or of dtype",
    )
    fused_qkv: bool = Field(
        False, description="queries, keys and values are made by one matrix (GPT-2's c_attn, MPT's Wqkv)"
    )
    repeat_kv: bool = Field(
        False, description="keys and values are copied for each query head that uses them"
    )
    unpadded: bool = Field(
        False,
        description="attention's operands are taken out of their padding and its result is put back, the host"
        " waiting for how many tokens there are (flash-attn's bert_padding; llm-foundry's attn_impl: flash)",
    )
    fp32_logits: bool = Field(True, description="logits are converted to fp32 before the loss")
    fused_loss: bool = Field(
        False,
        description="cross entropy in one kernel each way, of logits as they are (flash-attn's), or"
        " PyTorch's: log-softmax, then the targets'",
    )
    metrics: NonNegativeInt = Field(
        0,
        le=100,
        description="cross entropies in fp32 that are made of logits beside the loss, forward alone;"
        " Composer's of a language model: 2",
    )
    vocabulary_parallel_loss: bool = Field(
        True, description="tp: each rank keeps its logits (loss_parallel), or all are gathered on each"
    )
    optimizer: Literal["foreach", "fused"] = Field(
        "foreach", description="AdamW: an operator at a time over all parameters (the default), or one kernel"
    )
    clip_gradients: bool = Field(True, description="clip_grad_norm_ before the optimizer's step")
    merge_outputs: bool = Field(
        False,
        description="pp: logits of all micro-batches are put together: schedule.step(return_outputs=True)",
    )
    parameter_dtype: DType = Field(
        "fp32",
        description="of weights as they are kept; dtype another: FSDP's mixed precision, or autocast",
    )
    fsdp_units: Literal["each", "blocks"] = Field(
        "each",
        description="fsdp gathers embedding, blocks, head one by one; or all that is in no block at once",
    )
    fsdp_version: Literal[1, 2] = Field(
        2,
        description="2: fully_shard; 1: FullyShardedDataParallel, a block having one flat parameter",
    )
    backward_prefetch: Literal["early", "late"] = Field(
        "early",
        description="fsdp_version 1: backward gathers the next block before it issues a block's kernels"
        " (BACKWARD_PRE), or after (BACKWARD_POST)",
    )
    forward_prefetch: bool = Field(
        False, description="fsdp_version 1: forward gathers the next block before it issues a block's kernels"
    )

    checkpoint_every: PositiveInt = Field(
        1, description="recompute: of so many blocks one is checkpointed, the last of them"
    )
    early_stop: bool = Field(
        True,
        description="recompute: a block is run again until backward has what it needs (PyTorch from 2.1 on),"
        " or to its end",
    )
    async_tensor_parallel: bool = Field(
        False,
        description="blocks gather and scatter beside their products, part by part, through symmetric memory",
    )

    stalls: float = Field(
        0.0,
        ge=0,
        le=0.001,
        description="fraction of its time for which each rank's host stands still (garbage collection, the"
        " operating system), in expectation; llm-foundry's jobs: 0.00028",
    )
    stall_length: TimePs = Field(
        100 * PS_PER_MS,
        ge=0,
        le=10 * PS_PER_S,
        description="stalls: how long a host stands still at a time, on average; what its GPU has been given"
        " by then hides as much. 0: nothing hides it",
    )

    def stretch(self, ranks: int, programs: Callable[[], Sequence[Program]]) -> float:
        """Ranks stand still one after another, as rarely as they do: what one loses, all do.

        Beside its own, which its kernels' measured times have, a rank waits for ``ranks - 1`` others.
        """
        if not self.stalls or ranks == 1:
            return 1.0
        from cosim.models.stalls import seen

        return 1 + self.stalls * seen(programs(), self.stall_length) * (ranks - 1)

    def job(self, workload: ModelWorkload, model: TransformerModel) -> ModelJob:
        """See :meth:`Framework.job`."""
        from cosim.models.catalogue.jobs import eager_job

        return eager_job(workload, model, self)

    def check(self, workload: ModelWorkload, model: TransformerModel) -> None:
        """Refuse what torchtitan's and FSDP2's way of training doesn't have."""
        from cosim.models.pytorch.check import fits_pytorch

        fits_pytorch(workload, model, self)

    def idle_under(self, workload: ModelWorkload) -> list[tuple[str, str]]:
        """See :meth:`Framework.idle_under`."""
        from cosim.models.pytorch.check import idle_in_pytorch

        return idle_in_pytorch(workload, self)
