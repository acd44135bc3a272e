"""Activations that wait in remote memory: which, when they are waited for, and what is left on the GPU."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

import cosim
from cosim.context import HERE
from cosim.errors import WorkloadError
from cosim.models.activations import windows
from cosim.models.catalogue.blocks import Blocks
from cosim.models.catalogue.cut import Cut, Parallel
from cosim.models.catalogue.memory import activation_bytes, saved_bytes
from cosim.models.catalogue.workload import ModelWorkload

LAYERS, OUT, MICRO_BATCHES = 8, 4, 2
STAYS = dict.fromkeys(("optimizer", "gradients", "parameters"), "local")


def job(out: int = OUT, **changes: Any) -> dict[str, Any]:
    return {
        "model": {"kind": "llama3-8b", "layers": LAYERS}, "gpu": "h100-sxm", "parallel": {"fsdp": 4},
        "batch": 4 * MICRO_BATCHES, "sequence": 4096, "cuda_graphs": True,
        "offload": {**STAYS, "activations": out} if out else None, **changes,
    }  # fmt: skip


def make(**changes: Any) -> ModelWorkload:
    return ModelWorkload.model_validate(job(**changes))


def seconds(rate: str = "100GB/s", **changes: Any) -> float:
    found = cosim.run(
        {
            "topology": {"kind": "switch", "endpoints": 4, "rate": "3.6Tbps", "latency": "1us"},
            "network": "fair_share",
            "memory": {"kind": "per_npu", "rate": rate} if changes.get("out", OUT) else None,
            "jobs": [{"workload": {"kind": "model", **job(**changes)}}],
        }
    )
    assert isinstance(found, cosim.Run)
    return int(found.summary.jobs[0].iteration_ps[0]) / 1e12


@pytest.mark.parametrize("parallel", [{"fsdp": 4}, {"dp": 4}, {"fsdp": 2, "tp": 2}])
def test_each_micro_batch_s_first_layers_go_out_and_come_back(parallel: dict[str, int]) -> None:
    spec = make(parallel=parallel)
    ops = [one for one in spec.build(HERE).programs[0].operations if one.access]
    size = spec.job().training.saved_bytes
    each = [("store", "forward", size)] * OUT + [("load", "backward", size)] * OUT
    assert [(one.access, one.phase, one.size_bytes) for one in ops] == each * spec.micro_batches


@pytest.mark.parametrize(("layers", "total"), [(40, 80), (20, 80), (3, 80), (30, 80), (79, 80), (1, 2)])
def test_copies_are_spread_over_all_layers(layers: int, total: int) -> None:
    """Where each is waited for, as Transformer Engine's ``layer_window_map`` is filled."""
    theirs, constant = {}, 0
    for i in range(layers):
        theirs[i] = (total // layers) * (i + 1) - 1
        if i < total % layers:
            theirs[i] += i + 1
            constant = i + 1
        else:
            theirs[i] += constant
    assert windows(layers, total) == list(theirs.values())
    assert theirs[layers - 1] == total - 1


def test_fast_memory_costs_nothing_and_slow_memory_what_the_copies_take() -> None:
    plain = seconds(out=0)
    assert seconds("10TB/s") == pytest.approx(plain, rel=1e-3)
    copies = 2 * MICRO_BATCHES * OUT * make().job().training.saved_bytes / 1e9
    # Each copy is waited for, but the last one of forward, which goes on beside what comes first in backward.
    assert copies < seconds("1GB/s") < copies + plain


@pytest.mark.parametrize("recipe", [None, "fp8", "nvfp4"])
def test_what_is_kept_is_what_the_closed_form_says_with_operands_in_the_recipe_s_type(
    recipe: Any,
) -> None:
    model = make().model
    blocks = Blocks(model, Cut(Parallel(), batch=1, sequence=4096, keys=4096, width=2, recipe=recipe))  # type: ignore[arg-type]
    wide, h, ffn, kv = activation_bytes(blocks, 0), 4096, 14336, 1024
    assert saved_bytes(Blocks(model, Cut(Parallel(), 1, 4096, 4096, 2))) == wide  # type: ignore[arg-type]
    width = {None: 2, "fp8": 1, "nvfp4": 0.5}[recipe]
    again = h if recipe else 0  # attention's result, once for attention and once for the projection
    token = 2 * (2 * h) + 2 * h * width + 2 * (2 * h + 2 * kv) + again * width + 2 * 2 * ffn + ffn * width
    assert saved_bytes(blocks) == 4096 * token


def test_two_of_those_layers_are_left_on_the_gpu() -> None:
    spec = make()
    made, saved = spec.build(HERE), spec.job().training.saved_bytes
    assert made.remote_bytes == OUT * saved
    assert made.work is not None
    assert made.work.memory_bytes == make(out=0).job().memory.total - (OUT - 2) * saved


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"out": LAYERS}, "8 of 8 layers, the last of which backward needs at once; 7 at most"),
        ({"parallel": {"pp": 2, "fsdp": 2}}, "on one stage"),
        ({"recompute": "full"}, "of dense layers that run once"),
        ({"model": {"kind": "mixtral-8x7b", "layers": LAYERS}}, "of dense layers that run once"),
        ({"framework": "pytorch"}, "Megatron's training on one stage"),
        (
            {
                "parallel": {"dp": 4}, "sharded_optimizer": True,
                "framework": {"kind": "megatron", "overlap_param_gather": True},
            },
            "doesn't go with overlap_param_gather",
        ),
    ],
)  # fmt: skip
def test_what_has_no_such_offload_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        make(memory="ignore", **changes).build(HERE)


def test_a_negative_number_of_layers_is_refused() -> None:
    with pytest.raises(ValidationError, match="activations"):
        make(out=-1)
