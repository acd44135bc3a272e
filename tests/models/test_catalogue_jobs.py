"""Catalogue models under a parallelism: FLOPs, bytes and times against closed forms."""

from typing import Any

import pytest
from pydantic import ValidationError

from cosim.context import HERE
from cosim.gpu.catalogue import H100_SXM
from cosim.models.catalogue.architecture import TransformerModel
from cosim.models.catalogue.workload import ModelWorkload
from cosim.registry import find
from cosim.workload.check import check
from cosim.workload.program import Operation, OpKind, Workload

SIZES = {
    "layers": 8,
    "hidden": 512,
    "heads": 16,
    "kv_heads": 8,
    "ffn": 1536,
    "vocabulary": 1024,
    "sequence": 256,
}
DENSE = {"kind": "transformer", **SIZES}
EXPERTS = {**DENSE, "experts": {"num": 16, "top_k": 2, "ffn": 256, "shared": 1, "first_dense": 1}}
LATENT = {
    **EXPERTS,
    "kv_heads": None,
    "latent": {"query_rank": 128, "key_value_rank": 64, "nope": 32, "rope": 16, "value": 32},
}


def make(model: Any, **settings: Any) -> ModelWorkload:
    values = {"model": model, "gpu": "a100-80gb", "memory": "ignore", **settings}
    return ModelWorkload.model_validate(values)


def workload(model: ModelWorkload) -> Workload:
    made = model.build(HERE)
    check(made)
    assert made.world_size == model.parallel.world_size
    return made


def of_all_ranks(made: Workload) -> list[Operation]:
    return [op for rank in range(made.world_size) for op in made.program(rank).operations]


CUTS: list[dict[str, Any]] = [
    {},
    {"tp": 4},
    {"tp": 2, "sp": False, "dp": 2},
    {"pp": 4, "dp": 2},
    {"pp": 2, "schedule": "interleaved", "virtual_stages": 2},
    {"fsdp": 4, "dp": 2},
    {"fsdp": 2, "cp": 2, "reshard": False, "pp": 2},
    {"cp": 4, "tp": 2},
    {"cp": 2, "cp_exchange": "all_gather"},
]


def trained_flops(made: ModelWorkload, again: int = 0) -> float:
    """Three times forward's products; of attention half of the scores, five products for two in backward."""
    model = made.model
    assert isinstance(model, TransformerModel)
    products = model.flops_per_token(0) + again
    attention = (model.flops_per_token(made.length) - model.flops_per_token(0)) / 2
    return made.samples * made.length * (3 * products + 3.5 * attention)


@pytest.mark.parametrize("model", [DENSE, EXPERTS, LATENT], ids=["dense", "experts", "latent"])
@pytest.mark.parametrize("parallel", CUTS, ids=str)
def test_flops_of_all_ranks_are_the_closed_form(model: dict[str, Any], parallel: dict[str, Any]) -> None:
    made = make(model, parallel=parallel, micro_batch=2)
    assert isinstance(made.model, TransformerModel)
    done = sum(op.flops for op in of_all_ranks(workload(made)))
    replicated = made.parallel.tp - 1 if model is LATENT else 0  # tp ranks all make the latent vectors
    h, latent = made.model.hidden, made.model.latent
    whole = h * (latent.query_rank + latent.key_value_rank + latent.rope) if latent else 0
    again = replicated * made.model.layers * 2 * whole
    experts = made.model.experts
    if experts is not None and not made.parallel.sequence_parallel:
        layers = made.model.layers - experts.first_dense
        again += (made.parallel.tp - 1) * layers * 2 * h * experts.num  # and route every token
    assert done == pytest.approx(trained_flops(made, again), rel=1e-12)


@pytest.mark.parametrize(
    "parallel", [{"dp": 4, "ep": 4}, {"dp": 4, "ep": 2, "tp": 2}, {"dp": 8, "ep": 4, "pp": 2}]
)
def test_tokens_go_to_their_experts_and_back(parallel: dict[str, Any]) -> None:
    made = make(EXPERTS, parallel=parallel)
    done = workload(made)
    sent = [op for op in of_all_ranks(done) if op.collective == "all_to_all"]
    p = made.parallel
    tokens = made.samples * made.length  # each rank has its share of them, twice there and back
    assert sum(op.size_bytes for op in sent) == 4 * 7 * tokens * 2 * 512 * 2
    assert {op.axes for op in sent} == {("ep",)}
    flops = sum(op.flops for op in of_all_ranks(done))
    assert flops == pytest.approx(trained_flops(made), rel=1e-12)
    busy = workload(make(EXPERTS, parallel={**parallel, "imbalance": 1.5}))
    more = [op for op in of_all_ranks(busy) if op.collective == "all_to_all"]
    assert sum(op.size_bytes for op in more) == 1.5 * sum(op.size_bytes for op in sent)
    # gradients of experts over the ranks that have the same ones, all others over all replicas
    reduced = {op.axes for op in of_all_ranks(done) if op.collective == "all_reduce" and op.size_bytes > 8000}
    assert reduced == {("edp", "ep"), ("edp",)} if p.dp > p.ep else {("ep",)}


@pytest.mark.parametrize(("reshard", "gathers", "scatters"), [(True, 3, 3), (False, 1, 1)])
def test_sharded_parameters_come_together_for_each_pass(reshard: bool, gathers: int, scatters: int) -> None:
    made = make(DENSE, parallel={"fsdp": 4, "reshard": reshard}, batch=12)
    ops = workload(made).programs[0].operations
    parameters = made.model.parameters  # type: ignore[attr-defined]
    gathered = sum(op.size_bytes for op in ops if op.collective == "all_gather")
    if reshard:  # in backward again, but for the head, which is still there
        head = 512 * 1024 + 512
        gathered -= 3 * (parameters - head) // 4 * 2
    scattered = sum(op.size_bytes for op in ops if op.collective == "reduce_scatter")
    assert gathered == gathers * parameters // 4 * 2
    assert scattered == scatters * parameters * 4
    assert not [
        op for op in ops if op.collective == "all_reduce" and op.axes == ("fsdp",) and op.size_bytes > 8
    ]


def test_the_next_layers_parameters_are_fetched_while_a_layer_computes() -> None:
    ops = workload(make(DENSE, parallel={"fsdp": 4})).programs[0].operations
    gathers = [k for k, op in enumerate(ops) if op.stream == "comm-fsdp"]
    third, fourth = gathers[2], gathers[3]
    computed = [
        k for k in range(third, fourth) if ops[k].kind is OpKind.COMPUTE and ops[k].stream == "compute"
    ]
    assert any(third in ops[k].deps for k in computed)  # a layer needs its parameters
    assert not set(computed) & set(ops[fourth].deps)  # the next one's don't wait for it


def test_ring_attention_goes_on_beside_its_exchange() -> None:
    ops = workload(make(DENSE, parallel={"cp": 4})).programs[0].operations
    kept = [k for k, op in enumerate(ops) if op.axes == ("cp",) and op.phase == "forward"]
    assert len(kept) == 8
    assert all(ops[k].size_bytes == 64 * 2 * 8 * 32 * 2 for k in kept)  # keys and values of own tokens
    for k in kept:
        beside = ops[k + 1]
        assert beside.kind is OpKind.COMPUTE
        assert k not in beside.deps
    gathered = workload(make(DENSE, parallel={"cp": 4, "cp_exchange": "all_gather"})).programs[0].operations
    first = next(k for k, op in enumerate(gathered) if op.axes == ("cp",))
    attention = next(op for op in gathered[first:] if op.stream == "compute")
    assert first in attention.deps


def test_layers_left_over_are_in_the_middle() -> None:
    made = make("llama3-405b", gpu="h100-sxm", parallel={"tp": 8, "pp": 16, "dp": 128})
    stages = made.job().stages
    counts = [sum(layer.name.startswith("layer") for layer in stage[0]) for stage in stages]
    assert counts == [7, *[8] * 14, 7]  # arXiv 2407.21783, section 3.3.2
    names = [layer.name for stage in stages for layer in stage[0]]
    assert names == ["embedding", *[f"layer {k}" for k in range(126)], "head"]


def test_parameters_of_all_ranks_are_the_models() -> None:
    model = find("cosim.models", "deepseek-v3")
    stages = make(model, gpu="h100-sxm", parallel={"pp": 16, "dp": 64, "ep": 64}).job().stages
    mine = [layer for stage in stages for layer in stage[0]]
    dense = sum(layer.parameters.get(("ep",), 0) for layer in mine)
    experts = sum(layer.parameters.get((), 0) for layer in mine)
    assert dense + 64 * experts == model.parameters


def test_decoding_reads_weights_and_cache_once() -> None:
    model = find("cosim.models", "llama3-70b")
    made = make(
        model, gpu="h100-sxm", parallel={"tp": 8}, task="decode", micro_batch=16, sequence=4096, tokens=3
    )
    ops = of_all_ranks(workload(made))
    assert sum(op.flops for op in ops) == 3 * 16 * model.flops_per_token(4096)
    moved = sum(op.bytes_moved for op in ops) / 3
    weights = 2 * (model.parameters - model.embedding_parameters)
    cache = 16 * 4096 * 80 * 2 * 8 * 128 * 2
    assert moved == pytest.approx(weights + cache, rel=0.02)
    assert not [op for op in ops if op.phase == "backward"]


def test_latent_attention_keeps_one_vector_for_all_heads() -> None:
    model = find("cosim.models", "deepseek-v3")
    made = make(
        model, gpu="h200-sxm", parallel={"dp": 32, "ep": 32}, task="decode", micro_batch=4, sequence=8192
    )
    assert made.job().memory.cache == 4 * 8192 * 61 * 576 * 2
    workload(made)


def test_stages_hand_tokens_back_for_the_next_step() -> None:
    made = make(DENSE, parallel={"pp": 2}, task="decode", batch=4, micro_batch=1, tokens=3)
    first, last = workload(made).programs
    back = [op for op in first.operations if op.kind is OpKind.RECV]
    assert len(back) == 4 * 2
    assert len([op for op in last.operations if op.kind is OpKind.SEND]) == len(back)


def test_no_interval_of_trainings_stands_under_serving() -> None:
    training, prefill, decode = (
        make(DENSE, gpu="h100-sxm", task=one).build(HERE) for one in ("training", "prefill", "decode")
    )
    assert training.error is not None
    assert prefill.error is None
    assert decode.error not in (None, training.error)
    assert any("no prefill was held against it" in line for line in prefill.report.assumed)
    for serving in (prefill, decode):
        assert not any("calibrated on" in line for line in serving.report.assumed)


def test_prefill_has_logits_of_the_last_token_only() -> None:
    made = make(DENSE, task="prefill", micro_batch=4)
    model = made.model
    assert isinstance(model, TransformerModel)
    flops = sum(op.flops for op in of_all_ranks(workload(made)))
    # Under a causal mask a token attends to half of the others, on average.
    assert flops == 4 * (256 * model.flops_per_token(128, head=False) + 2 * 512 * 1024)


def test_images_are_shared_out() -> None:
    made = make("resnet-50", parallel={"dp": 8}, micro_batch=32, dtype="fp16")
    ops = of_all_ranks(workload(made))
    assert sum(op.flops for op in ops) == 3 * 8 * 32 * made.model.flops  # type: ignore[attr-defined]
    assert (
        sum(op.size_bytes for op in ops if op.collective == "all_reduce" and op.size_bytes > 8)
        == 8 * 25557032 * 4
    )


def test_recommendation_exchanges_vectors_beside_the_bottom_mlp() -> None:
    made = make("dlrm", parallel={"dp": 8}, micro_batch=2048, dtype="fp32")
    program = workload(made).programs[0].operations
    sent = [k for k, op in enumerate(program) if op.collective == "all_to_all"]
    assert [program[k].size_bytes for k in sent] == [2048 * 26 * 128 * 4] * 2
    assert all(program[k + 1].name.startswith("micro-batch 0 bottom mlp") for k in sent)
    assert made.job().memory.weights == -(-24_034_227_072 // 8) * 4 + 2_368_897 * 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "llama3-70", "gpu": "h100-sxm"}, "did you mean 'llama3-70b'"),
        ({"parallel": {"tp": 3}}, "heads 16 isn't a multiple of tp 3; 18 would be"),
        ({"parallel": {"ep": 2, "dp": 2}}, "ep is 2, but custom has no experts"),
        ({"parallel": {"ep": 2, "dp": 3}}, "dp 3 isn't a multiple of ep 2"),
        (
            {"batch": 3, "parallel": {"dp": 2}},
            "batch 3 isn't a multiple of replicas x micro_batch 2; 4 would be",
        ),
        ({"parallel": {"pp": 16}}, "8 layers don't fill 16 stages"),
        ({"task": "decode", "parallel": {"fsdp": 2}}, "sharding parameters is for training, not for decode"),
        ({"model": "resnet-50", "parallel": {"tp": 2}}, "ResNet-50 is trained by dp alone"),
        ({"model": "vgg-16", "task": "decode"}, "VGG-16 can be trained; decode is for transformers"),
        ({"model": "vgg-16", "sequence": 8}, "VGG-16 is no transformer, it has no sequence"),
        (
            {"sequence": 254, "parallel": {"tp": 4}},
            "sequence 254 isn't a multiple of cp x tp 4; 256 would be",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ModelWorkload.model_validate({"model": DENSE, "gpu": H100_SXM, **settings})


def test_settings_of_what_is_not_there_are_idle() -> None:
    made = make(DENSE, task="decode", recompute="full", memory="ignore", memory_reserve="1GiB")
    assert dict(made.idle_settings()) == {
        "recompute": "decode has no backward pass",
        "memory_reserve": "nobody asks whether the job fits",
    }
    assert dict(make(DENSE, tokens=2, bucket="1MB").idle_settings()).keys() == {"tokens", "bucket"}
    assert make(DENSE, parallel={"imbalance": 2.0}).idle_settings()[0][0] == "parallel"
