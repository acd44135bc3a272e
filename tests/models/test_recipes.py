"""FP8 and FP4 recipes, sliding windows, exchanges beside computation: what each changes, and nothing else."""

from typing import Any

import pytest
from pydantic import ValidationError

from cosim.context import HERE
from cosim.gpu.kernels import Kernel
from cosim.models.catalogue.workload import ModelWorkload
from cosim.workload.program import Operation, OpKind

SHAPE: dict[str, Any] = {
    "kind": "transformer", "layers": 4, "hidden": 4096, "heads": 32, "ffn": 16384, "vocabulary": 32000,
    "sequence": 2048,
}  # fmt: skip


def job(model: dict[str, Any] | None = None, **more: Any) -> ModelWorkload:
    values = {"model": {**SHAPE, **(model or {})}, "gpu": "b200", "memory": "ignore", **more}
    return ModelWorkload.model_validate(values)


def kernels(work: ModelWorkload) -> list[Kernel]:
    (layers,) = work.job().stages[0]
    return [
        kernel for layer in layers for piece in (*layer.forward, *layer.backward) for kernel in piece.kernels
    ]


def operations(work: ModelWorkload) -> tuple[Operation, ...]:
    return work.build(HERE).program(0).operations


@pytest.mark.parametrize(("recipe", "narrow"), [("fp8", "fp8"), ("mxfp8", "fp8"), ("nvfp4", "fp4")])
def test_a_recipe_is_for_linear_layers_only(recipe: str, narrow: str) -> None:
    plain, made = kernels(job()), kernels(job(recipe=recipe))
    # Four linear layers a block, a product forward and two backward of each; the head's stay.
    assert sum(kernel.narrow == narrow for kernel in made) == 4 * 4 * 3
    assert sum(kernel.flops for kernel in made) == sum(kernel.flops for kernel in plain)
    assert len(made) == len(plain) + 4 * 4 * 2  # what goes in is converted, and the gradient
    times = [sum(op.duration_ps for op in operations(work)) for work in (job(), job(recipe=recipe))]
    assert times[1] < times[0]


@pytest.mark.parametrize(
    ("recipe", "gpu", "bytes_each", "after_norm", "launches"),
    [
        ("mxfp8", "b200", 2 + 2, 2 + 2, (1, 1)),
        ("fp8", "b200", 2 + 2 + 1, 2 + 1, (4, 2)),  # read for the largest number, again to be converted
        ("fp8", "h100-sxm", 2 + 2 + 2, 2 + 2, (4, 2)),  # written turned round, too
    ],
)
def test_operands_are_read_and_written_as_the_recipe_needs(
    recipe: str, gpu: str, bytes_each: int, after_norm: int, launches: tuple[int, int]
) -> None:
    def of_memory(work: ModelWorkload) -> tuple[int, int]:
        own = [kernel for kernel in kernels(work) if kernel.kind.value == "memory"]
        return sum(kernel.bytes_moved for kernel in own), sum(kernel.launches for kernel in own)

    (plain, before), (made, after) = of_memory(job(gpu=gpu)), of_memory(job(gpu=gpu, recipe=recipe))
    tokens, hidden, ffn, layers = 2048, 4096, 16384, 4
    normed = 2 * hidden  # of queries, keys and values, and of the MLP
    others = hidden + ffn + (3 * hidden + hidden + 2 * ffn + hidden)  # forward, backward
    assert made - plain == layers * tokens * (normed * after_norm + others * bytes_each)
    assert after - before == layers * (6 * launches[0] + 2 * launches[1])


@pytest.mark.parametrize(
    ("recipe", "gpu", "number", "reduced", "both", "turned"),
    [
        ("mxfp8", "b200", 1, False, 2, 0),
        ("nvfp4", "b200", 0.5625, True, 2, 0),  # half a byte, and a scale's byte for sixteen
        ("fp8", "b200", 1, True, 1, 0),
        ("fp8", "h100-sxm", 1, True, 1, 2),  # read and written once more, turned round
    ],
)
def test_tensor_parallel_ranks_gather_what_they_made_narrow(
    recipe: str, gpu: str, number: float, reduced: bool, both: int, turned: int
) -> None:
    given: dict[str, Any] = {"gpu": gpu, "parallel": {"tp": 4}}
    tokens, hidden, ffn, layers, tp = 2048, 4096, 16384, 4, 4
    share = tokens * hidden // tp

    def exchanged(work: ModelWorkload) -> list[tuple[str, int]]:
        found = [op for op in operations(work) if op.kind is OpKind.COLLECTIVE and op.axes == ("tp",)]
        return sorted((op.collective, op.size_bytes) for op in found)

    plain, made = exchanged(job(**given)), exchanged(job(**given, recipe=recipe))
    # What opens attention and the MLP, and in backward what closes them; embedding and head gather the rest.
    for _ in range(layers * 4):
        plain.remove(("all_gather", 2 * share))
    for _ in range(layers * 2):
        made.remove(("all_gather", int(number * share)))
    for _ in range(layers * 2):
        made.remove(("all_gather", int(number * share) * both))
    for _ in range(layers * 4 * reduced):
        made.remove(("all_reduce", 4))
    assert plain == made

    def of_memory(work: ModelWorkload) -> int:
        return sum(each.bytes_moved for each in kernels(work) if each.kind.value == "memory")

    ways = 1 if recipe == "fp8" else 2
    once, read = ways * number, 2 * (1 + reduced)
    after_norm = 2 if recipe == "fp8" else read
    own = 2 * share * (after_norm + once) + 2 * share * (read + once) + 4 * tp * share * turned
    whole = (hidden + ffn + 3 * hidden + 2 * ffn) // tp  # forward, backward: what nobody gathers
    whole_each = read + once + (turned > 0)
    added = of_memory(job(**given, recipe=recipe)) - of_memory(job(**given))
    assert added == layers * (own + tokens * whole * whole_each)


def test_sums_of_input_gradients_go_beside_the_product_of_weights_gradients() -> None:
    given: dict[str, Any] = {"parallel": {"tp": 4}, "micro_batch": 2, "recipe": "nvfp4"}
    apart, beside = (
        operations(job(**given, framework={"kind": "megatron", "overlap_input_gradients": how}))
        for how in (False, True)
    )
    computing = [sum(op.duration_ps for op in ops if op.kind is OpKind.COMPUTE) for ops in (apart, beside)]
    assert computing[0] == pytest.approx(computing[1], rel=1e-6)
    scatters = [op for op in beside if op.collective == "reduce_scatter" and op.phase == "backward"]
    same = [op for op in beside if op.kind is OpKind.COMPUTE for other in scatters if op.deps == other.deps]
    assert len(same) == 2 * 4  # a product of attention's and one of the MLP's, in each layer
    tokens, hidden, tp = 2 * 2048, 4096, 4
    assert {op.flops for op in same} == {2 * tokens * hidden * wide // tp for wide in (3 * hidden, 2 * 16384)}


def test_logits_have_narrow_operands_where_the_recipe_is_mxfp8() -> None:
    def narrow(recipe: str) -> int:
        made = kernels(job(recipe=recipe, framework={"kind": "megatron", "fp8_output_proj": True}))
        return sum(each.narrow is not None and 32000 in (each.columns, each.inner) for each in made)

    assert (narrow("mxfp8"), narrow("fp8")) == (3, 0)


def test_a_window_bounds_attention_in_its_layers() -> None:
    def attention(work: ModelWorkload) -> list[int]:
        return [kernel.flops for kernel in kernels(work) if kernel.kind.value == "attention"]

    whole = attention(job())
    assert whole == [4 * 2048 * 2048 * 4096 // 2] * 4
    short = attention(job({"window": 128, "window_every": 2}))
    assert short[1::2] == whole[1::2]
    assert short[0] == 4 * 4096 * (2048 * 128 - 128 * 128 // 2)


def test_parameters_are_gathered_beside_the_first_forward_or_after_the_step() -> None:
    given: dict[str, Any] = {"parallel": {"dp": 8}, "sharded_optimizer": True, "bucket": "1MiB"}
    apart, beside = (
        operations(job(**given, framework={"kind": "megatron", "overlap_param_gather": how}))
        for how in (False, True)
    )
    sizes = [sum(op.size_bytes for op in ops if op.collective == "all_gather") for ops in (apart, beside)]
    assert sizes[1] == pytest.approx(sizes[0], rel=1e-3)
    first = next(number for number, op in enumerate(beside) if op.kind is OpKind.COMPUTE)
    assert {op.collective for op in beside[:first]} == {"all_gather"}
    assert not any(op.collective == "all_gather" for op in beside[first:])


def test_tensor_parallel_exchanges_go_beside_their_products() -> None:
    given: dict[str, Any] = {"parallel": {"tp": 4}, "micro_batch": 2}
    apart, beside = (
        operations(job(**given, framework={"kind": "megatron", "tp_comm_overlap": how}))
        for how in (False, True)
    )
    moved = [
        sorted((op.collective, op.size_bytes) for op in ops if op.kind is OpKind.COLLECTIVE)
        for ops in (apart, beside)
    ]
    assert moved[0] == moved[1]
    computing = [sum(op.duration_ps for op in ops if op.kind is OpKind.COMPUTE) for ops in (apart, beside)]
    assert computing[0] == pytest.approx(computing[1], rel=1e-6)
    free = {number for number, op in enumerate(beside) if op.kind is OpKind.COLLECTIVE}
    waits = sum(bool(free & {*op.deps}) for op in beside if op.kind is OpKind.COMPUTE)
    assert waits > 0


def test_packed_documents_see_themselves_alone() -> None:
    """Causal scores of 8 documents in a sequence are an eighth of the sequence's own."""
    model = {
        "kind": "transformer", "layers": 2, "hidden": 512, "heads": 8, "ffn": 1024, "vocabulary": 1024,
        "sequence": 1024,
    }  # fmt: skip

    def flops(**more: Any) -> float:
        work = ModelWorkload.model_validate({"model": model, "gpu": "h100-sxm", "memory": "ignore", **more})
        return sum(one.flops for one in work.build(HERE).programs[0].operations)

    scores = 2 * 4 * 1024 * 1024 // 2 * 512
    assert flops() - flops(packed=128) == pytest.approx((1 + 2.5) * scores * 7 / 8)
    for settings, said in (
        ({"packed": 1024}, "documents of 1024 tokens fill a sequence of 1024"),
        ({"packed": 128, "framework": "pytorch"}, "written with framework: megatron"),
        ({"packed": 128, "task": "prefill"}, "written with task: training"),
        ({"packed": 128, "parallel": {"cp": 2}}, "written with no parallel.cp"),
    ):
        with pytest.raises(ValidationError, match=said):
            ModelWorkload.model_validate({"model": model, "gpu": "h100-sxm", **settings})
