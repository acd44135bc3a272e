"""Whether a model and a job's settings go together; what would do, where they don't."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosim.models.catalogue.cut import FUSED
from cosim.models.contract import DataParallelModel
from cosim.models.frameworks import Megatron

if TYPE_CHECKING:
    from cosim.models.catalogue.architecture import TransformerModel
    from cosim.models.catalogue.workload import ModelWorkload


def fits_transformer(spec: ModelWorkload, model: TransformerModel) -> None:
    """Refuse settings that a transformer can't be trained or served with.

    Raises
    ------
    ValueError
        Says which, and what would do.
    """
    p = spec.cut_by
    divides("heads", model.heads, "tp", p.tp)
    divides("ffn", model.ffn, "tp", p.tp)
    if model.latent is None and model.kv % p.tp and p.tp % model.kv:
        raise ValueError(f"kv_heads {model.kv} and tp {p.tp}: one has to be a multiple of the other")
    if p.ep > 1 and model.experts is None:
        raise ValueError(f"ep is {p.ep}, but {model.name} has no experts")
    if model.experts is not None:
        divides("experts", model.experts.num, "ep", p.ep)
        divides("experts' ffn", model.experts.ffn, "etp" if p.spread else "tp", p.expert_tp)
    if model.mamba is not None:
        divides("mamba.groups", model.mamba.groups, "tp", p.tp)
        if p.cp > 1:
            raise ValueError(
                f"parallel.cp: {model.name} has Mamba-2 layers, whose states pass along the sequence:"
                " ranks that share it aren't written; leave it out"
            )
    if p.pp * p.virtual_stages > model.layers + (2 if p.virtual_stages > 1 else 0):
        raise ValueError(f"{model.layers} layers don't fill {p.pp * p.virtual_stages} stages")
    if p.layout is not None and sum(p.layout) != model.layers:
        raise ValueError(
            f"parallel.layout has {sum(p.layout)} layers in all; {model.name} has {model.layers}"
        )
    if spec.task != "decode":
        shared = p.cp * (p.tp if p.sequence_parallel else 1)
        divides("sequence", spec.length, "cp x tp" if p.sequence_parallel else "cp", shared)
    if spec.packed is not None:
        _fits_packed(spec, model)
    spec.framework.check(spec, model)
    if spec.task != "training":
        for name, text in (("fsdp", "sharding parameters"), ("cp", "context parallelism")):
            if getattr(p, name) > 1:
                raise ValueError(f"parallel.{name}: {text} is for training, not for {spec.task}")
        if p.sequence_parallel and spec.task == "decode":
            raise ValueError("parallel.sp: a token has no sequence to share; leave it out")
        if p.virtual_stages > 1:
            raise ValueError(f"virtual_stages are for training, not for {spec.task}")


def _fits_packed(spec: ModelWorkload, model: TransformerModel) -> None:
    """Refuse documents that make no sequence, and attention that isn't written for them."""
    if spec.packed is not None and spec.packed >= spec.length:
        raise ValueError(
            f"packed: documents of {spec.packed} tokens fill a sequence of {spec.length}; leave it out"
        )
    needed = {
        "task: training": spec.task == "training",
        "attention: flash, that is one kernel": spec.attends in FUSED,
        "no parallel.cp: ranks would have other documents": spec.parallel.cp == 1,
        "framework: megatron (torch's attention makes all scores under a mask)": (
            isinstance(spec.framework, Megatron)
        ),
        "a causal mask": model.causal,
    }
    for what, is_so in needed.items():
        if not is_so:
            raise ValueError(f"packed: sequences of documents are written with {what}; or leave it out")


def fits_data_parallel(spec: ModelWorkload, model: DataParallelModel) -> None:
    """Refuse settings of other models than those that every rank has all of.

    Raises
    ------
    ValueError
        Says which, and what would do.
    """
    p, name = spec.parallel, model.name
    if not isinstance(spec.framework, Megatron):
        raise ValueError(
            f"framework: {name} is no transformer, its kernels are PyTorch's anyway; leave it out"
        )
    if spec.task != "training":
        raise ValueError(f"{name} can be trained; {spec.task} is for transformers")
    if p.world_size > p.dp or p.ep > 1:
        raise ValueError(f"{name} is trained by dp alone, as in `parallel: {{dp: {p.world_size}}}`")
    given = spec.model_fields_set & {"sequence", "packed", "attention", "recompute"}
    if given:
        raise ValueError(f"{name} is no transformer, it has no {sorted(given)[0]}")


def divides(name: str, value: int, by: str, divisor: int) -> None:
    """Refuse a ``value`` that isn't a multiple of ``divisor``.

    Raises
    ------
    ValueError
        Says the next one that is.
    """
    if value % divisor:
        raise ValueError(
            f"{name} {value} isn't a multiple of {by} {divisor}; {-(-value // divisor) * divisor} would be"
        )
