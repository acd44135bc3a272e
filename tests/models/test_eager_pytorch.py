"""``framework: pytorch``: what eager kernels add up to, against closed forms; what it refuses."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError

from cosim.context import HERE
from cosim.models.catalogue.workload import ModelWorkload
from cosim.models.pytorch.operators import Operators
from cosim.models.pytorch.tape import Tape, Tensor, pieces
from cosim.workload.check import check
from cosim.workload.program import Operation, OpKind, Workload

SIZES = {
    "layers": 4,
    "hidden": 256,
    "heads": 8,
    "kv_heads": 4,
    "ffn": 512,
    "vocabulary": 1024,
    "sequence": 64,
}
DENSE = {"kind": "transformer", **SIZES}
EXPERTS = {**DENSE, "experts": {"num": 8, "top_k": 2, "ffn": 512}}
ATTENTION = 4 * 4 * 64 * 64 * 256
"""Forward, of all layers and one sequence: two products of scores."""


def make(model: Any = DENSE, **settings: Any) -> ModelWorkload:
    values = {"model": model, "gpu": "h100-sxm", "memory": "ignore", "framework": "pytorch", **settings}
    return ModelWorkload.model_validate(values)


def workload(model: ModelWorkload) -> Workload:
    made = model.build(HERE)
    check(made)
    return made


def of_all_ranks(made: Workload) -> list[Operation]:
    return [op for rank in range(made.world_size) for op in made.program(rank).operations]


def moved(made: Workload, collective: str) -> Counter[tuple[str, ...]]:
    """Bytes of one kind of collective that rank 0 has, by axes."""
    found: Counter[tuple[str, ...]] = Counter()
    for op in made.program(0).operations:
        if op.collective == collective:
            found[op.axes] += op.size_bytes
    return found


@pytest.mark.parametrize(
    ("parallel", "more"),
    [
        ({"dp": 4}, {}),
        ({"fsdp": 4}, {}),
        ({"dp": 2, "fsdp": 2, "tp": 2}, {"micro_batch": 2}),
        ({"fsdp": 2, "tp": 4, "pp": 2}, {"batch": 8}),
        ({"tp": 2, "sp": False, "dp": 2}, {}),
        ({"fsdp": 4, "pp": 4, "schedule": "gpipe"}, {"batch": 16}),
        ({"fsdp": 2, "pp": 2, "schedule": "interleaved", "virtual_stages": 2}, {"batch": 8}),
        ({"dp": 2, "pp": 2, "schedule": "looped_bfs", "virtual_stages": 2}, {"batch": 8}),
        ({"pp": 2, "schedule": "looped_bfs", "virtual_stages": 2}, {"batch": 7}),
    ],
)
def test_flops_are_the_closed_form_and_attention_makes_its_scores_again(
    parallel: dict[str, Any], more: dict[str, Any]
) -> None:
    model = make(parallel=parallel, **more)
    ops = of_all_ranks(workload(model))
    # Under a causal mask a token attends to half of the others, on average.
    forward = model.samples * 64 * model.model.flops_per_token(32)  # type: ignore[attr-defined]
    assert sum(op.flops for op in ops if op.phase == "forward") == forward
    attention = model.samples * ATTENTION // 2
    backward = 2 * (forward - attention) + attention * 5 // 2
    assert sum(op.flops for op in ops if op.phase == "backward") == backward


def test_a_checkpointed_block_runs_again_up_to_its_last_product() -> None:
    plain, again = (workload(make(parallel={"fsdp": 4}, recompute=how)) for how in ("none", "full"))
    more = [sum(op.flops for op in made.program(0).operations) for made in (again, plain)]
    block = 2 * 64 * (256 * (8 + 2 * 4 + 8) * 32 + 2 * 256 * 512) + 4 * 64 * 32 * 256
    assert more[0] - more[1] == 4 * block


def test_parameters_are_gathered_for_each_pass_and_the_head_once() -> None:
    model = make(parallel={"fsdp": 4})
    made = workload(model)
    head = 1024 * 256 + 256
    every = model.model.parameters  # type: ignore[attr-defined]
    assert moved(made, "all_gather") == {("fsdp",): (2 * every - head) // 4 * 2}
    assert moved(made, "reduce_scatter") == {("fsdp",): every * 4}
    kept = workload(make(parallel={"fsdp": 4, "reshard": False}))
    assert moved(kept, "all_gather") == {("fsdp",): every // 4 * 2}


@pytest.mark.parametrize("framework", ["megatron", "pytorch"])
def test_experts_are_sharded_over_the_ranks_that_have_the_same_ones(framework: str) -> None:
    parallel = {"fsdp": 8, "ep": 2, "reshard": False}
    made = workload(make(EXPERTS, parallel=parallel, framework=framework))
    assert dict(made.mesh.axes) == {"pp": 1, "efsdp": 4, "ep": 2}
    experts = 4 * 8 * 3 * 256 * 512
    rest = make(EXPERTS).model.parameters - experts  # type: ignore[attr-defined]
    assert moved(made, "all_gather") == {("efsdp",): experts // 2 // 4 * 2, ("efsdp", "ep"): rest // 8 * 2}
    assert moved(made, "reduce_scatter") == {("efsdp",): experts // 2 * 4, ("efsdp", "ep"): rest * 4}
    sent = [op.size_bytes for op in made.program(0).operations if op.collective == "all_to_all"]
    assert sum(size for size in sent if size > 64) == 4 * 4 * 64 * 2 * 256 * 2  # there and back, both ways
    busy = workload(make(EXPERTS, parallel={**parallel, "imbalance": 1.5}, framework=framework))
    assert moved(busy, "all_to_all")["ep",] > 1.49 * sum(sent)


def test_data_parallel_buckets_fill_as_gradients_become_ready() -> None:
    made = workload(make(parallel={"dp": 8}, bucket=2**21))
    ops = made.program(0).operations
    sizes = [op.size_bytes for op in ops if op.collective == "all_reduce"]
    every = make().model.parameters * 4  # type: ignore[attr-defined]
    assert sum(sizes) == every
    assert sizes[0] == 1024 * 256 * 4  # the head fills the first bucket of 1 MiB
    assert all(2**21 <= size < 2**21 + 512 * 256 * 4 for size in sizes[1:-1])
    first = next(k for k, op in enumerate(ops) if op.collective == "all_reduce")
    later = [op for op in ops[first + 1 :] if op.phase == "backward" and op.flops]
    assert later, "backward goes on while the first bucket is exchanged"


def test_heads_are_normalised_where_the_model_does_it() -> None:
    """Two norms more in a block: their weights the model's, their bytes each number read and written."""
    layers = []
    for flag in (False, True):
        framework = {"kind": "pytorch", "parameter_dtype": "bf16", "norm": "fused"}
        model = make({**DENSE, "head_norms": flag}, framework=framework)
        chunk = model.job().stages[0][0]
        weights = sum(weight.count for layer in chunk for weight in layer.weights)
        assert weights == model.model.parameters  # type: ignore[attr-defined]
        layers.append(chunk[1])
    plain, normed = ([kernel for piece in each.forward for kernel in piece.kernels] for each in layers)
    more = [kernel.bytes_moved for kernel in normed if kernel not in plain]
    numbers = (SIZES["heads"] + SIZES["kv_heads"]) * SIZES["hidden"] // SIZES["heads"] * SIZES["sequence"]
    assert len(normed) == len(plain) + 2
    assert sum(more) == pytest.approx(2 * 2 * numbers, rel=0.1)


def test_without_fp32_parameters_nothing_is_cast() -> None:
    launches = {}
    for kept in ("fp32", "bf16"):
        framework = {"kind": "pytorch", "parameter_dtype": kept, "fp32_logits": False, "norm": "fused"}
        model = make(framework=framework)
        issued = [layer for chunk in model.job().stages[0] for layer in chunk]
        launches[kept] = sum(len(piece.kernels) for layer in issued for piece in layer.forward)
    # autocast: seven weights a block and the head's; inputs of q, k, v, gate, up, head; logits for the loss
    assert launches["fp32"] - launches["bf16"] == 4 * (7 + 5) + 1 + 1 + 1


def test_a_norm_that_is_written_out_is_eight_operators() -> None:
    tape = Tape()
    at = Operators(tape, 2)
    x, weight = Tensor((1, 64, 256), 2), Tensor((256,), 2)
    out = at.written_rms_norm(x, weight)
    forward = [kernel for piece in pieces("norm", tape.forward) for kernel in piece.kernels]
    full, row = 64 * 256, 64
    assert [kernel.bytes_moved for kernel in forward] == [
        full * 6, full * 8, full * 4 + row * 4, row * 8, row * 8, full * 8 + row * 4, full * 6,
        full * 4 + 256 * 2,
    ]  # fmt: skip
    backward = [kernel for piece in pieces("norm", tape.backward(out)) for kernel in piece.kernels]
    # product with the weight: 2 and a sum; cast; product with the root: 2 and a sum; root: 3; mean: 1;
    # square: 3; the two ways to x added; cast
    assert len(backward) == 3 + 1 + 3 + 3 + 1 + 3 + 1 + 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": "decode"}, "is for training; decode"),
        ({"parallel": {"cp": 2}}, "no context parallelism"),
        (
            {"parallel": {"pp": 2, "schedule": "interleaved", "virtual_stages": 2}, "batch": 7},
            "7 micro-batches on 2 stages don't go in 3 equal rounds; 6 or 9 would",
        ),
        (
            {"parallel": {"pp": 2, "schedule": "interleaved", "virtual_stages": 4}},
            "layers don't fill 8 stages",
        ),
        ({"parallel": {"pp": 2, "virtual_stages": 2}}, "needs `schedule: interleaved` \\(or looped_bfs\\)"),
        ({"model": {**DENSE, "window": 128}}, r"no sliding window \(model.window\)"),
        ({"model": {**DENSE, "ahead": 1}}, r"no tokens predicted ahead \(model.ahead\)"),
        ({"model": {**DENSE, "scaled_positions": True}}, r"no scaled positions"),
        ({"parallel": {"tp": 8}}, "kv_heads 4 isn't a multiple of tp 8"),
        ({"recompute": ["norm"]}, "operators by name are Megatron-LM's"),
        ({"sharded_optimizer": True, "parallel": {"dp": 2}}, "reshard: false"),
        ({"gradient_dtype": "bf16", "parallel": {"dp": 2}}, "gradients have their parameter's type, fp32"),
        ({"model": EXPERTS, "parallel": {"ep": 2, "fsdp": 3}}, "fsdp 3 isn't a multiple of ep 2"),
        ({"model": EXPERTS, "parallel": {"tp": 2}}, "shares experts by ep"),
        ({"model": "resnet-50"}, "resnet-50 is no transformer|ResNet-50 is no transformer"),
        ({"framework": "jax"}, "there are: megatron, pytorch"),
    ],
)
def test_refusals_say_what_would_do(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make(settings.pop("model", DENSE), **settings)


def test_nobody_waits_for_the_host_with_cuda_graphs() -> None:
    made = workload(make(parallel={"fsdp": 4}, cuda_graphs=True))
    assert not [op for op in made.program(0).operations if op.stream == "cpu" and op.duration_ps]
    assert any(op.kind is OpKind.COMPUTE for op in made.program(0).operations)


def test_padding_is_taken_out_of_fused_attention_alone() -> None:
    framework = {"kind": "pytorch", "unpadded": True}
    with pytest.raises(ValidationError, match=r"unpadded is of fused attention \(attention: flash"):
        make(framework=framework, attention="unfused")
    for more, told in (({"compile": True}, "unpadded: false"), ({}, "unpadded: false; or `recompute: full`")):
        with pytest.raises(ValidationError, match=told):
            make(framework=framework | more, recompute="none" if more else "selective")


@pytest.mark.parametrize(
    ("framework", "told"),
    [
        ({"early_stop": False}, "early_stop: recompute is none: nothing is checkpointed"),
        ({"forward_prefetch": True}, "forward_prefetch: it is of fsdp_version 1"),
        ({"stall_length": "10ms"}, "stall_length: stalls is 0: no host stands still"),
    ],
)
def test_a_setting_that_cannot_matter_is_told(framework: dict[str, Any], told: str) -> None:
    made = make(parallel={"fsdp": 2}, framework={"kind": "pytorch", **framework})
    assert ("framework", told) in made.idle_settings()


def test_settings_without_effect_are_told() -> None:
    framework = {"kind": "pytorch", "fsdp_units": "blocks", "merge_outputs": True, "repeat_kv": True}
    told = dict.fromkeys(why for _, why in make(parallel={"dp": 2}, framework=framework).idle_settings())
    assert [why.partition(":")[0] for why in told] == ["fsdp_units", "merge_outputs"]
    assert ("bucket", "fsdp exchanges the gradients of a block at once") in make(
        parallel={"fsdp": 2}, bucket=2**20
    ).idle_settings()


def test_what_one_rank_loses_standing_still_all_lose() -> None:
    def computed(**framework: Any) -> int:
        job = {
            "model": {"kind": "llama3-8b", "layers": 2}, "gpu": "h100-sxm", "memory": "ignore",
            "parallel": {"fsdp": 101}, "framework": {"kind": "pytorch", **framework},
        }  # fmt: skip
        made = ModelWorkload.model_validate(job).build(HERE).programs[0].operations
        return sum(one.duration_ps for one in made if one.stream == "compute")

    whole = computed() * 100 * 0.0005
    assert computed(stalls=0.0005, stall_length=0) == pytest.approx(computed() + whole, rel=1e-6)
    hidden = [computed(stalls=0.0005, stall_length=length) - computed() for length in ("1ms", "100ms", "1s")]
    assert 0 < hidden[0] < hidden[1] < hidden[2] < whole


def test_a_host_that_waits_in_each_layer_hides_less() -> None:
    def computed(framework: dict[str, Any]) -> int:
        job = {
            "model": {"kind": "llama3-8b", "layers": 4}, "gpu": "h100-sxm", "memory": "ignore",
            "parallel": {"fsdp": 64}, "framework": {"kind": "pytorch", "fsdp_version": 1, **framework},
        }  # fmt: skip
        made = ModelWorkload.model_validate(job).build(HERE).programs[0].operations
        return sum(one.duration_ps for one in made if one.stream == "compute")

    def lost(**framework: Any) -> float:
        return computed({**framework, "stalls": 0.0005}) / computed(framework) - 1

    assert lost() < lost(unpadded=True) < 63 * 0.0005
