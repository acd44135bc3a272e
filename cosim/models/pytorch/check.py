"""What eager PyTorch has no way of doing, and settings that mean nothing to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cosim.gpu.gpus import DTYPE_BYTES
from cosim.models.catalogue.architecture import TransformerModel
from cosim.models.catalogue.cut import FUSED
from cosim.models.frameworks import PyTorch
from cosim.models.schedule import IN_ROUNDS, PARTED, V_SHAPED, even_rounds

if TYPE_CHECKING:
    from cosim.models.catalogue.workload import ModelWorkload

_HALF = 2


def fits_pytorch(spec: ModelWorkload, model: TransformerModel, framework: PyTorch) -> None:
    """Refuse what torchtitan's and FSDP2's way of training doesn't have.

    Raises
    ------
    ValueError
        Says which setting, and what would do.
    """
    p = spec.parallel
    name = "framework pytorch"
    if spec.task != "training":
        raise ValueError(f"{name} is for training; {spec.task} has kernels of its own")
    if model.latent is not None:
        raise ValueError(f"{name} has no latent attention ({model.name}); leave framework out")
    if p.schedule in IN_ROUNDS and p.pp > 1:
        even_rounds(spec.micro_batches, p.pp)
    if p.schedule in PARTED and p.pp > 1:
        _fits_parted(spec, model, framework)
    missing = {
        "sliding window (model.window): torch's attention makes all scores": model.window,
        "tokens predicted ahead (model.ahead)": model.ahead,
        "scaled positions (model.scaled_positions)": model.scaled_positions,
        "Mamba-2 layers (model.mamba); `cosim profile` has them of a script": model.mamba,
        "layers of one kind each (model.pattern)": model.pattern,
        "squared ReLU (model.squared_relu)": model.squared_relu,
        "latent experts (model.experts.latent)": model.experts is not None and model.experts.latent,
        "attention without positions (model.rotary: false)": not model.rotary,
    }
    for what, is_there in missing.items():
        if is_there:
            raise ValueError(f"{name} has no {what}; leave framework out")
    if p.cp > 1:
        raise ValueError(f"{name} has no context parallelism (parallel.cp); leave framework out, or cp")
    if p.spread:
        raise ValueError(f"{name} has no experts that tp and dp ranks share together (etp); leave it out")
    if model.experts is not None and p.tp > 1:
        raise ValueError(f"{name} shares experts by ep, not by tp; leave out tp, or framework")
    if model.kv % p.tp:
        raise ValueError(
            f"{name}: DTensor shards whole heads: kv_heads {model.kv} isn't a multiple of tp {p.tp}"
        )
    if not isinstance(spec.recompute, str):
        raise ValueError(
            f"{name} recomputes blocks (full), what isn't saved of them by operator (selective), or nothing;"
            " operators by name are Megatron-LM's"
        )
    if spec.recompute == "selective":
        _fits_selective(spec, model, framework)
    if spec.sharded_optimizer:
        raise ValueError(
            f"{name}: shard the optimizer by `parallel: {{fsdp: ..., reshard: false}}` (ZeRO stage 2)"
        )
    if not spec.overlap_gradients:
        raise ValueError(f"{name}: DDP and FSDP exchange gradients while backward goes on; leave it out")
    kept, width = DTYPE_BYTES[framework.parameter_dtype], DTYPE_BYTES[spec.dtype]
    if kept < width:
        raise ValueError(
            f"{name}: parameters are kept in {framework.parameter_dtype}, narrower than dtype {spec.dtype}"
        )
    given = "gradient_dtype" in spec.model_fields_set
    if p.fsdp == 1 and given and spec.gradient_dtype != framework.parameter_dtype:
        raise ValueError(
            f"{name}: without fsdp gradients have their parameter's type, {framework.parameter_dtype}"
            f" (framework: {{kind: pytorch, parameter_dtype: ...}}), not {spec.gradient_dtype}"
        )
    for what, is_there in (("fused_loss", framework.fused_loss), ("metrics", framework.metrics)):
        if is_there and framework.vocabulary_parallel_loss and p.tp > 1:
            raise ValueError(
                f"{name}: {what} is of whole logits; `vocabulary_parallel_loss: false` gathers them"
            )
    if framework.unpadded and spec.attends not in FUSED:
        raise ValueError(f"{name}: unpadded is of fused attention (attention: {', '.join(FUSED)})")
    if framework.fsdp_version == 1:
        _fits_flat(spec, framework)
    if framework.compile:
        _fits_compiled(spec, model, framework)
    if framework.async_tensor_parallel and p.tp > 1:
        _fits_async(spec, model, framework)


def _need(needed: Mapping[str, bool], who: str, instead: str) -> None:
    """Refuse the first of what is needed that isn't so."""
    for what, is_so in needed.items():
        if not is_so:
            raise ValueError(f"{who} {what}; {instead}")


def _fits_parted(spec: ModelWorkload, model: TransformerModel, framework: PyTorch) -> None:
    """Refuse what has no backward in parts, or one that nobody should want."""
    p = spec.parallel
    fewest = 2 * p.pp if p.schedule == "dualpipev" else 1
    needed = {
        "compile: false: a compiled backward makes all gradients at once": not framework.compile,
        "async_tensor_parallel: false": not framework.async_tensor_parallel or p.tp == 1,
        "recompute: none: each weight's gradient would run its block again": spec.recompute == "none",
        "no experts": model.experts is None,
        "no recipe: its products make both gradients at once": spec.recipe is None,
        "parallel.fsdp instead of dp alone: DDP doesn't see gradients that are made apart": (
            p.fsdp > 1 or p.dp == 1
        ),
        "parallel.reshard: false: weights given up after forward have no gradients at the end": (
            p.fsdp == 1 or not p.reshard
        ),
        "tied: false: first and last layers are on one stage": not model.tied or p.schedule not in V_SHAPED,
        f"at least {fewest} micro-batches": spec.micro_batches >= fewest,
    }
    _need(needed, f"framework pytorch: schedule {p.schedule} needs", "or `schedule: interleaved`")


def _fits_selective(spec: ModelWorkload, model: TransformerModel, framework: PyTorch) -> None:
    """Refuse what torchtitan's list of saved operators isn't of, or isn't compared with a profile."""
    needed = {
        "async_tensor_parallel: false": not framework.async_tensor_parallel or spec.parallel.tp == 1,
        "no experts": model.experts is None,
        "no recipe: its products are no operators that are saved": spec.recipe is None,
        "unpadded: false": not framework.unpadded,
    }
    _need(needed, "framework pytorch: recompute: selective needs", "or `recompute: full`")


def _fits_flat(spec: ModelWorkload, framework: PyTorch) -> None:
    """Refuse what FSDP1 isn't wrapped around here: parts of a model, and units other than blocks."""
    for axis in ("tp", "pp", "ep"):
        if getattr(spec.parallel, axis) > 1:
            raise ValueError(
                f"framework pytorch: fsdp_version 1 goes with fsdp and dp alone, not with {axis}; 2 does"
            )
    if framework.fsdp_units == "each" and "fsdp_units" in framework.model_fields_set:
        raise ValueError(
            "framework pytorch: with fsdp_version 1 each block is a unit and all else the root's;"
            " leave fsdp_units out"
        )


def _fits_async(spec: ModelWorkload, model: TransformerModel, framework: PyTorch) -> None:
    """Refuse what isn't a product beside a gather or a scatter."""
    kept = DTYPE_BYTES[framework.parameter_dtype] == DTYPE_BYTES[spec.dtype]
    needed = {
        "parallel.sp: true, gathers and scatters (not all-reduces)": spec.parallel.sequence_parallel,
        "biases: false: with one it is no product alone": not model.biases,
        "no recipe": spec.recipe is None,
        f"parallel.fsdp or parameter_dtype: {spec.dtype}: autocast's conversions come between": (
            spec.parallel.fsdp > 1 or kept
        ),
    }
    _need(needed, "framework pytorch: async_tensor_parallel needs", "or leave it out")


def _fits_compiled(spec: ModelWorkload, model: TransformerModel, framework: PyTorch) -> None:
    """Refuse blocks whose fusions aren't written."""
    p, width = spec.parallel, DTYPE_BYTES[spec.dtype]
    gpt = model.norm == "layer" and not model.gated and model.biases and model.positions > 0
    alone = p.world_size == 1 and spec.recompute == "none"
    needed = {
        "norm: rms, gated: true, no biases or learned positions; or as a GPT's, alone on a GPU": (
            (gpt and alone)
            or (model.norm == "rms" and model.gated and not model.biases and model.positions == 0)
        ),
        "no dropout": not model.dropout,
        "kv_heads as many as heads": not gpt or model.kv == model.heads,
        "no experts": model.experts is None,
        "no head_norms": not model.head_norms,
        "fused_qkv: false": not framework.fused_qkv,
        "unpadded: false": not framework.unpadded,
        "attention: one that is fused": spec.attends in FUSED,
        "no recipe": spec.recipe is None,
        "parallel.sp: true, gathers and scatters (not all-reduces)": p.tp == 1 or p.sequence_parallel,
        "async_tensor_parallel: false": p.tp == 1 or not framework.async_tensor_parallel,
        "fsdp_version: 2": framework.fsdp_version == 2 or p.fsdp == 1,
        "dtype: bf16 or fp16": width == _HALF,
        "parallel.fsdp, or optimize_ddp: false: DDP cuts graphs by bucket": (
            p.fsdp > 1 or p.dp == 1 or not framework.optimize_ddp
        ),
        f"parameter_dtype: {spec.dtype}, or parallel.fsdp, with tp or recompute: not autocast": (
            p.fsdp > 1
            or DTYPE_BYTES[framework.parameter_dtype] == width
            or (p.tp == 1 and spec.recompute == "none")
        ),
        "rotary positions": framework.rotary != "none",
        "rotary_tables: dtype under autocast": (
            gpt
            or framework.rotary_tables == "dtype"
            or framework.rotary == "complex"
            or p.fsdp > 1
            or DTYPE_BYTES[framework.parameter_dtype] == width
        ),
    }
    _need(
        needed,
        f"framework pytorch with compile: {model.name}'s blocks are written with",
        "leave compile out, or profile the script (`cosim profile`), which has what Inductor fuses",
    )


def idle_in_pytorch(spec: ModelWorkload, framework: PyTorch) -> list[tuple[str, str]]:
    """(field of the workload, why) of settings, its framework's too, that mean nothing to such a job."""
    p, model = spec.parallel, spec.model
    if not isinstance(model, TransformerModel):
        return []
    idle = {
        "fsdp_units": (p.fsdp == 1, "fsdp is 1: a rank has its parameters"),
        "fsdp_version": (p.fsdp == 1, "fsdp is 1: a rank has its parameters"),
        "backward_prefetch": (
            p.fsdp == 1 or framework.fsdp_version == 2,
            "it is of fsdp_version 1; FSDP2 gathers early",
        ),
        "forward_prefetch": (
            p.fsdp == 1 or framework.fsdp_version == 2,
            "it is of fsdp_version 1",
        ),
        "vocabulary_parallel_loss": (p.tp == 1, "tp is 1: a rank has all logits"),
        "fp32_logits": (framework.fused_loss, "fused_loss reads logits as they are"),
        "optimize_ddp": (not framework.compile or p.fsdp > 1 or p.dp == 1, "nothing is compiled under DDP"),
        "checkpoint_every": (spec.recompute == "none", "recompute is none: nothing is checkpointed"),
        "early_stop": (spec.recompute == "none", "recompute is none: nothing is checkpointed"),
        "async_tensor_parallel": (p.tp == 1, "tp is 1: a layer is whole"),
        "stalls": (p.world_size == 1, "a rank alone waits for no other"),
        "stall_length": (not framework.stalls, "stalls is 0: no host stands still"),
        "merge_outputs": (p.pp == 1, "pp is 1: there is one stage"),
        "norm": (model.norm == "layer", f"{model.name} has layer norms, which are one kernel"),
        "rotary": (model.positions > 0, f"{model.name} has learned positions"),
        "rotary_tables": (
            framework.rotary not in ("chunked", "sliced")
            or p.fsdp > 1
            or framework.parameter_dtype == spec.dtype,
            "no halves are turned under autocast",
        ),
        "repeat_kv": (model.kv == model.heads, f"each of {model.name}'s heads has its own keys and values"),
    }
    found = [
        ("framework", f"{name}: {why}")
        for name, (nothing, why) in idle.items()
        if nothing and name in framework.model_fields_set
    ]
    if p.fsdp > 1:
        found.append(("bucket", "fsdp exchanges the gradients of a block at once"))
    return found
