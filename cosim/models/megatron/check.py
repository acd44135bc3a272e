"""What Megatron-LM's local layers have no way of doing, as far as they are written here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosim.models.catalogue.architecture import TransformerModel
from cosim.models.frameworks import Megatron

if TYPE_CHECKING:
    from cosim.models.catalogue.workload import ModelWorkload


def fits_local(spec: ModelWorkload, model: TransformerModel) -> None:
    """Refuse what isn't a GPT trained by torch's operators.

    Raises
    ------
    ValueError
        Says which setting, and what would do.
    """
    name, p = "framework megatron with transformer_impl: local", spec.parallel
    gpt = {
        "norm: layer": model.norm == "layer",
        "gated: false": not model.gated,
        "biases: true": model.biases,
        "learned positions, as in `positions: 2048`": model.positions > 0,
        "as many kv_heads as heads": model.kv == model.heads,
        "no experts": model.experts is None,
        "no latent attention": model.latent is None,
        "no pattern": model.pattern is None,
        "squared_relu: false": not model.squared_relu,
        "no head_norms": not model.head_norms,
        "no window": model.window is None,
        "a causal mask and a norm at the end": model.causal and model.final_norm,
        "no tokens predicted ahead": model.ahead == 0,
    }
    for needed, is_so in gpt.items():
        if not is_so:
            raise ValueError(f"{name} has GPT's layers: {model.name} needs {needed}; or leave it out")
    job = {
        "task: training": spec.task == "training",
        "attention: unfused": spec.attends == "unfused",
        "recompute: none": spec.recompute == "none",
        "no recipe": spec.recipe is None,
        "no offload": spec.offload is None,
        "sharded_optimizer: false": not spec.sharded_optimizer,
        "overlap_gradients: false (one bucket, without --overlap-grad-reduce)": not spec.overlap_gradients,
        "parallel.sp: false": not (p.sequence_parallel and p.tp > 1),
        "parallel.schedule: 1f1b": p.schedule == "1f1b",
        "no parallel.fsdp, cp, ep": p.fsdp == p.cp == p.ep == 1,
        "no stale gradients": spec.staleness == 0 and spec.local_sgd is None,
    }
    for needed, is_so in job.items():
        if not is_so:
            raise ValueError(f"{name}: these layers are written here with {needed}")
    other = spec.framework.model_fields_set & (Megatron.model_fields.keys() - {"kind", "transformer_impl"})
    if other:
        raise ValueError(f"{name} has no {sorted(other)[0]}; leave it out")
