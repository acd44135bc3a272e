"""A catalogue model's settings made into layers on stages, a way of training, and bytes on a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cosim.answers import check_answer
from cosim.gpu.gpus import DTYPE_BYTES, Gpu
from cosim.models.catalogue.architecture import TransformerModel
from cosim.models.catalogue.assemble import (
    Inference,
    InferenceStage,
    ShardedStage,
    ShardedTraining,
    stages,
)
from cosim.models.catalogue.blocks import Blocks
from cosim.models.catalogue.cut import FUSED, TP, Cut
from cosim.models.catalogue.memory import (
    Kept,
    Memory,
    adam_bytes,
    inference_memory,
    saved_bytes,
    training_memory,
)
from cosim.models.contract import DataParallelModel
from cosim.models.frameworks import Megatron, PyTorch
from cosim.models.job import ModelJob
from cosim.models.parts import Exchange, Layer
from cosim.models.schedule import LOOPED, PARTED, ScheduleName
from cosim.models.stage import StageBuilder
from cosim.models.training import Training

if TYPE_CHECKING:
    from cosim.models.catalogue.workload import ModelWorkload


def _cut(spec: ModelWorkload) -> Cut:
    parallel, width = spec.cut_by, DTYPE_BYTES[spec.dtype]
    own = spec.length // parallel.cp
    return Cut(
        parallel,
        spec.together,
        own,
        spec.length,
        width,
        spec.attends,
        packed=spec.packed,
        recompute=spec.recompute,
        recipe=spec.recipe,
        fp8_turned=not isinstance(spec.gpu, Gpu) or spec.gpu.fp8_turned,
    )


def _stages(blocks: Blocks, *last: Layer, schedule: ScheduleName = "1f1b") -> list[list[list[Layer]]]:
    """Layers by stage and chunk, the embedding first; ``last``: what follows them."""
    parallel, layers = blocks.cut.parallel, blocks.model.layers
    parts = parallel.layers_of_parts(layers)
    return stages(parts, parallel.pp, blocks.layer, blocks.embedding(), *last, schedule=schedule)


def megatron_job(spec: ModelWorkload, model: TransformerModel, framework: Megatron) -> ModelJob:
    """Training of a transformer, as Megatron-LM does it."""
    cut = replace(
        _cut(spec),
        fp8_attention=framework.fp8_attention,
        graphed=framework.graphs,
        dispatcher=framework.dispatcher,
        expert_hosts=framework.expert_hosts,
        dispatcher_efficiency=framework.dispatcher_efficiency,
        fused_experts=framework.fused_experts,
        fused_margin=framework.fused_margin,
        accumulated=framework.accumulation_fusion,
        overlap_input_gradients=framework.overlap_input_gradients,
        fused_loss=framework.fused_loss,
        fp8_output_proj=framework.fp8_output_proj and spec.recipe == "mxfp8",
        recipes=framework.recipes_of,
        wide_layers=framework.wide_layers,
        counts_read=not (framework.padded_experts or framework.fused_experts),
    )
    parallel, width = cut.parallel, cut.width
    blocks = Blocks(model, cut)
    made = _stages(blocks, *blocks.predicted_ahead(), blocks.head(copy=model.tied and parallel.pp > 1))
    training = _megatron_training(spec, framework, blocks)
    if training.overlap_experts:
        from cosim.models.catalogue.schedule_nodes import in_nodes

        made = [[[in_nodes(layer) for layer in chunk] for chunk in stage] for stage in made]
    gradient_width = training.gradient_width
    kept = Kept(width, gradient_width, spec.sharded_optimizer, spec.micro_batches, width, adam_bytes(width))
    return ModelJob(
        model.name,
        made,
        training,
        training_memory(blocks, made, kept),
        ShardedStage if parallel.fsdp > 1 else StageBuilder,
        _assumed(spec, model),
    )


def local_job(spec: ModelWorkload, model: TransformerModel) -> ModelJob:
    """Training of a GPT by Megatron-LM's local layers, without Apex and Transformer Engine."""
    from cosim.models.megatron.blocks import LocalBlocks
    from cosim.models.megatron.stage import LocalStage
    from cosim.models.megatron.training import LocalTraining

    cut = _cut(spec)
    parallel, width, gradient_width = cut.parallel, cut.width, DTYPE_BYTES[spec.gradient_dtype]
    blocks = LocalBlocks(model, cut)
    made = _stages(blocks, blocks.head(copy=model.tied and parallel.pp > 1))
    tied = blocks.vocabulary // parallel.tp * model.hidden * gradient_width if model.tied else 0
    training = LocalTraining(
        mesh=parallel.mesh,
        micro_batches=spec.micro_batches,
        schedule=parallel.schedule,
        boundary_bytes=cut.state_bytes(model.hidden),
        tied_bytes=tied if parallel.pp > 1 else 0,
        gradient_width=gradient_width,
        parameter_width=width,
        replica_axes=parallel.gradient_axes,
        tokens=cut.tokens,
        mask_bytes=cut.tokens * cut.sequence,
    )
    kept = Kept(width, gradient_width, False, spec.micro_batches, width, adam_bytes(width))
    said = "kernels of Megatron-LM without Apex and Transformer Engine; nothing of data, logs and checkpoints"
    return ModelJob(model.name, made, training, training_memory(blocks, made, kept), LocalStage, (said,))


def _megatron_training(spec: ModelWorkload, framework: Megatron, blocks: Blocks) -> Training:
    """How Megatron-LM does an iteration; with ``fsdp`` parameters are sharded."""
    parallel, model = blocks.cut.parallel, blocks.model
    gradient_width = DTYPE_BYTES[spec.gradient_dtype]
    boundary, gather = _boundary(blocks)
    tied = blocks.vocabulary // parallel.tp * model.hidden * gradient_width if model.tied else 0
    reduced = parallel.size(parallel.gradient_axes) > 1
    settings: dict[str, Any] = {
        "mesh": parallel.mesh,
        "micro_batches": spec.micro_batches,
        "schedule": parallel.schedule,
        "boundary_bytes": boundary,
        "boundary_gather": gather,
        "tied_bytes": tied // parallel.size(parallel.shard_axes) if parallel.pp > 1 else 0,
        "gradient_width": gradient_width,
        "parameter_width": blocks.cut.width,
        "bucket": spec.bucket if spec.overlap_gradients and reduced else None,
        "sharded_optimizer": spec.sharded_optimizer,
        "norm_axes": ("tp", "pp", *parallel.shard_axes),
        "blocking_sends": framework.blocking_sends,
        "synchronous_passes": framework.synchronous_passes,
        "synchronous_exchanges": framework.synchronous_exchanges,
        "overlap_parameters": framework.overlap_param_gather
        and spec.sharded_optimizer
        and reduced
        and parallel.fsdp == 1,
        "overlap_exchanges": framework.tp_comm_overlap and parallel.sequence_parallel,
        "overlap_experts": framework.overlap_experts and parallel.ep > 1,
        "saved_bytes": saved_bytes(blocks) if spec.recompute == "none" and spec.attends in FUSED else 0,
        "ep_axes": parallel.ep_axes,
    }
    if parallel.fsdp == 1:
        return Training(**settings)
    return ShardedTraining(
        **settings,
        shard_axes=parallel.shard_axes,
        expert_shard_axes=parallel.expert_shard_axes,
        reshard=parallel.reshard,
    )


def eager_job(spec: ModelWorkload, model: TransformerModel, framework: PyTorch) -> ModelJob:
    """Training of a transformer in eager PyTorch."""
    from cosim.models.pytorch.blocks import EagerBlocks
    from cosim.models.pytorch.compiled import CompiledBlocks
    from cosim.models.pytorch.looped import LoopedStage
    from cosim.models.pytorch.memory import eager_memory
    from cosim.models.pytorch.operators import FP32
    from cosim.models.pytorch.parted import PartedStage
    from cosim.models.pytorch.stage import EagerStage
    from cosim.models.pytorch.symmetric import AsyncBlocks
    from cosim.models.pytorch.training import EagerTraining

    cut = _cut(spec)
    parallel, width, kept = cut.parallel, cut.width, DTYPE_BYTES[framework.parameter_dtype]
    sharded = parallel.fsdp > 1
    made_by = CompiledBlocks if framework.compile else EagerBlocks
    if framework.async_tensor_parallel and parallel.tp > 1:
        made_by = AsyncBlocks
    blocks = made_by(model, cut, framework, autocast=not sharded and kept != width)
    head = blocks.head(copy=model.tied and parallel.pp > 1)
    made = _stages(blocks, head, schedule=parallel.schedule)
    residual = kept if blocks.autocast else width
    own = parallel.tp if parallel.sequence_parallel else 1
    tied = blocks.vocabulary // parallel.tp * model.hidden * kept if model.tied else 0
    logits = cut.tokens * blocks.vocabulary * width
    if framework.vocabulary_parallel_loss:
        logits //= parallel.tp
    training = EagerTraining(
        mesh=parallel.mesh,
        micro_batches=spec.micro_batches,
        schedule=parallel.schedule,
        boundary_bytes=cut.tokens // own * model.hidden * residual,
        tied_bytes=tied // parallel.size(parallel.shard_axes) if parallel.pp > 1 else 0,
        gradient_width=DTYPE_BYTES[spec.gradient_dtype] if sharded else kept,
        parameter_width=width,
        bucket=spec.bucket,
        shard_axes=parallel.shard_axes,
        replica_axes=parallel.gradient_axes,
        expert_shard_axes=parallel.expert_shard_axes,
        expert_replica_axes=parallel.expert_axes,
        kept_width=kept,
        flat=framework.fsdp_version == 1,
        prefetch=framework.backward_prefetch,
        forward_prefetch=framework.forward_prefetch,
        units=framework.fsdp_units,
        reshard=parallel.reshard,
        merged_bytes=logits if framework.merge_outputs else 0,
        clip=framework.clip_gradients,
        optimizer=framework.optimizer,
    )
    outputs = logits * (spec.micro_batches if framework.merge_outputs else 1)
    metric = 2 * FP32 * logits // width if framework.metrics else 0
    memory = eager_memory(made, training, parallel, outputs, metric)
    kernels = "eager PyTorch, one for each operator"
    if framework.compile:
        kernels = "PyTorch, of blocks those that Inductor fuses"
    said = f"kernels of {kernels}; nothing of what a script does beside the model"
    builder = EagerStage
    if parallel.pp > 1 and parallel.schedule in (*LOOPED, *PARTED):
        builder = PartedStage if parallel.schedule in PARTED else LoopedStage
    return ModelJob(model.name, made, training, memory, builder, (said, *_assumed(spec, model)))


def inference_job(spec: ModelWorkload, model: TransformerModel) -> ModelJob:
    """Prefill or decoding: what each stage does forward."""
    parallel, width, decode = spec.cut_by, DTYPE_BYTES[spec.dtype], spec.task == "decode"
    cut = Cut(
        parallel,
        spec.together,
        1 if decode else spec.length,
        spec.length,
        width,
        attention=spec.attends,
        decode=decode,
        recipe=spec.recipe,
        forward_only=True,
    )
    blocks = Blocks(model, cut)
    made = _stages(blocks, blocks.next_token())
    boundary, gather = _boundary(blocks)
    training = Inference(
        mesh=parallel.mesh,
        micro_batches=spec.micro_batches,
        schedule="gpipe",
        boundary_bytes=boundary,
        boundary_gather=gather,
        steps=spec.tokens if decode else 1,
        sequences=spec.together,
    )
    memory = inference_memory(blocks, made, spec.micro_batches)
    name = f"{model.name} {spec.task}"
    return ModelJob(name, made, training, memory, InferenceStage, _assumed(spec, model))


def data_parallel_job(spec: ModelWorkload, model: DataParallelModel) -> ModelJob:
    """Training of a model that is not cut: a convolutional network, or a recommendation model."""
    parallel, width = spec.parallel, DTYPE_BYTES[spec.dtype]
    layers = model.layers(spec.together, width, parallel)
    kept, tables = model.activation_bytes(spec.together, width), model.table_bytes(width, parallel)
    for method, answer, wanted in (
        ("layers", layers, list[Layer]),
        ("activation_bytes", kept, int),
        ("table_bytes", tables, int),
    ):
        check_answer(model, method, answer, wanted)
    own = sum(layer.num_parameters for layer in layers)
    gradient_width = DTYPE_BYTES[spec.gradient_dtype]
    memory = Memory(
        own * width + tables,
        own * gradient_width,
        own * adam_bytes(width) // (parallel.dp if spec.sharded_optimizer else 1),
        kept,
    )
    training = Training(
        mesh=parallel.mesh,
        micro_batches=spec.micro_batches,
        schedule="1f1b",
        boundary_bytes=0,
        gradient_width=gradient_width,
        parameter_width=width,
        bucket=spec.bucket if spec.overlap_gradients and parallel.dp > 1 else None,
        sharded_optimizer=spec.sharded_optimizer,
    )
    return ModelJob(model.name, [[layers]], training, memory)


def _boundary(blocks: Blocks) -> tuple[int, Exchange | None]:
    """What a rank sends to the next stage, and how that makes it whole (Megatron-LM's scatter and gather)."""
    parallel, whole = blocks.cut.parallel, blocks.cut.state_bytes(blocks.model.hidden)
    if parallel.tp == 1:
        return whole, None
    share = -(-whole // parallel.tp)
    gathers = parallel.pp > 1 and not parallel.sequence_parallel
    return share, Exchange("all_gather", TP, share) if gathers else None


def _assumed(spec: ModelWorkload, model: TransformerModel) -> tuple[str, ...]:
    if model.experts is None or spec.parallel.ep == 1:
        return ()
    return (f"the busiest expert-parallel rank has {spec.parallel.imbalance:g} x the mean number of tokens",)
