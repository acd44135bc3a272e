"""Asynchronous tensor parallelism: what goes on beside what, against closed forms and PyTorch's own pass."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError

from cosim.context import HERE
from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario
from cosim.gpu.kernels import total_flops
from cosim.models.catalogue.workload import ModelWorkload
from cosim.models.parts import Layer
from cosim.workload.program import COMPUTE_STREAM, Operation, OpKind
from tests.profiler.profiled import SCRIPTS, needs_torch

LAYERS = 2
DENSE = {
    "kind": "transformer", "layers": LAYERS, "hidden": 4096, "heads": 32, "kv_heads": 32, "ffn": 16384,
    "vocabulary": 1024, "sequence": 4096,
}  # fmt: skip
BOTH = pytest.mark.parametrize("recompute", ["none", "full"])


def make(asynchronous: bool, **settings: Any) -> ModelWorkload:
    framework = {"kind": "pytorch", "parameter_dtype": "bf16", "async_tensor_parallel": asynchronous}
    given: dict[str, Any] = {
        "model": DENSE, "gpu": "h100-sxm", "memory": "ignore", "parallel": {"tp": 4}, "cuda_graphs": True,
        "framework": {**framework, **settings.pop("framework", {})}, **settings,
    }  # fmt: skip
    return ModelWorkload.model_validate(given)


def blocks(workload: ModelWorkload) -> list[Layer]:
    return workload.job().stages[0][0][1:-1]


def exchanged(layers: list[Layer], *, beside: bool) -> Counter[tuple[str, str, int]]:
    """Way, collective and bytes of what goes on beside products, or by itself."""
    return Counter(
        (way, each.collective, each.size_bytes)
        for layer in layers
        for way in ("forward", "recompute", "backward")
        for piece in getattr(layer, way)
        for each in [piece.beside if beside else piece.then]
        if each is not None
    )


@BOTH
def test_exchanges_and_flops_are_those_of_plain_tensor_parallelism(recompute: str) -> None:
    plain, ours = (blocks(make(flag, recompute=recompute)) for flag in (False, True))
    assert exchanged(ours, beside=True) + exchanged(ours, beside=False) == exchanged(plain, beside=False)
    for way in ("forward", "recompute", "backward"):
        flops = [
            sum(total_flops(piece.kernels) for layer in each for piece in getattr(layer, way))
            for each in (plain, ours)
        ]
        assert flops[0] == flops[1]


@BOTH
def test_what_products_hide_an_iteration_does_not_take(recompute: str) -> None:
    """Products longer than an exchange: of each block's eight (recomputed: eleven) two are left, one for the
    gradients of what the queries', keys' and values' products read, one for the gate's.
    """
    left: list[int] = []
    for flag in (False, True):
        workload = make(flag, recompute=recompute)
        scenario = Scenario.model_validate(
            {
                "topology": {"kind": "switch", "endpoints": 4, "rate": "4.5Tbps", "latency": "1us"},
                "network": "fair_share",
                "collectives": dict.fromkeys(("all_gather", "reduce_scatter", "all_reduce"), "ring"),
                "jobs": [{"workload": workload}],
            }
        )
        records = run(scenario).records
        operations = workload.build(HERE).programs[0].operations
        left.append(int(records.iteration_end_ps[0].max()) - computing(operations))
        each = {one.end_ps - one.ready_ps for one in records.collectives if "reduce_scatter" in one.name}
    hidden = 6 if recompute == "none" else 9
    assert len(each) == 1
    assert left[0] - left[1] == pytest.approx(hidden * LAYERS * each.pop(), rel=0.001)


def computing(operations: tuple[Operation, ...]) -> int:
    return sum(
        op.duration_ps for op in operations if op.kind is OpKind.COMPUTE and op.stream == COMPUTE_STREAM
    )


@needs_torch
@pytest.mark.slow
def test_what_stays_by_itself_is_what_inductors_pass_leaves() -> None:
    from cosim.profiler.launch import ProfileRequest, profile

    sizes = "--layers 1 --hidden 2048 --heads 16 --kv_heads 8 --ffn 4096 --seq 1024 --vocab 1536 --batch 2"
    arguments = (*sizes.split(), "--tp", "4", "--compile", "--async-tp")
    made, _ = profile(ProfileRequest(str(SCRIPTS / "titan.py"), arguments, world_size=8, gpu="h100-sxm"))
    theirs = Counter(
        (step.phase, step.kind, step.size_bytes)
        for step in made.programs[0].steps
        if step.group == ("tp",) and step.kind != "all_reduce"
    )
    workload = make(
        True, micro_batch=2, parallel={"fsdp": 2, "tp": 4},
        model={**DENSE, "layers": 1, "hidden": 2048, "heads": 16, "kv_heads": 8, "ffn": 4096,
               "sequence": 1024, "vocabulary": 1536},
        framework={"parameter_dtype": "fp32", "vocabulary_parallel_loss": False},
    )  # fmt: skip
    ours = exchanged(workload.job().stages[0][0], beside=False)
    assert ours == theirs


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parallel": {"tp": 4, "sp": False}}, r"needs parallel.sp: true, gathers and scatters"),
        ({"model": {**DENSE, "biases": True}}, "needs biases: false"),
        ({"recipe": "fp8"}, "needs no recipe"),
        ({"framework": {"parameter_dtype": "fp32"}}, "needs parallel.fsdp or parameter_dtype: bf16"),
    ],
)
def test_refusals_say_what_would_do(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make(True, **settings)


def test_without_tensor_parallelism_it_has_no_effect() -> None:
    why = "async_tensor_parallel: tp is 1: a layer is whole"
    assert ("framework", why) in make(True, parallel={"dp": 2}).idle_settings()
