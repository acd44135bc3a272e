"""Experts, what backward runs again, and what training predicts ahead, against counts by hand."""

from itertools import combinations
from math import comb
from typing import Any

import pytest
from pydantic import ValidationError

from cosim.context import HERE
from cosim.gpu.catalogue import read
from cosim.models.catalogue.architecture import Experts
from cosim.models.catalogue.block_parts import forward_pieces
from cosim.models.catalogue.cut import Cut, Parallel
from cosim.models.catalogue.experts import ExpertLayer, places
from cosim.models.catalogue.workload import ModelWorkload
from cosim.models.parts import Exchange, Piece, overlapped
from cosim.workload.program import CPU_STREAM, Operation, OpKind

MODEL = {
    "kind": "transformer", "layers": 4, "hidden": 512, "heads": 8, "ffn": 1024, "vocabulary": 1000,
    "sequence": 256, "experts": {"num": 16, "top_k": 2, "ffn": 256},
}  # fmt: skip
TOKENS = 256
LATENT = {"query_rank": 96, "key_value_rank": 64, "nope": 32, "rope": 16, "value": 32}


def job(**more: Any) -> ModelWorkload:
    settings = {"model": MODEL, "gpu": "h100-sxm", "parallel": {"dp": 8, "ep": 8}, "memory": "ignore", **more}
    return ModelWorkload.model_validate(settings)


def operations(**more: Any) -> tuple[Operation, ...]:
    return job(**more).build(HERE).programs[0].operations


def flops(**more: Any) -> float:
    return sum(one.flops for one in operations(**more))


@pytest.mark.parametrize(("num", "top_k", "groups"), [(8, 2, 4), (12, 3, 3), (6, 6, 2), (8, 1, 8)])
def test_places_are_the_mean_over_every_choice_of_experts(num: int, top_k: int, groups: int) -> None:
    each = num // groups
    seen = sum(len({one // each for one in chosen}) for chosen in combinations(range(num), top_k))
    expected = seen / comb(num, top_k)
    assert places(Experts(num=num, top_k=top_k, ffn=1), groups) == pytest.approx(expected)


def test_deepep_sends_a_token_once_to_a_rank_and_once_to_a_host() -> None:
    def sent(**framework: Any) -> int:
        made = operations(framework={"kind": "megatron", **framework})
        return next(one.size_bytes for one in made if one.collective == "all_to_all")

    width, hidden = 2, 512
    assert sent() == 2 * TOKENS * hidden * width
    to_ranks = 8 * (1 - comb(14, 2) / comb(16, 2))  # two experts on each
    assert sent(dispatcher="deepep") == pytest.approx(to_ranks * TOKENS * hidden * width, rel=0.01)
    to_hosts = 2 * (1 - comb(8, 2) / comb(16, 2))
    found = sent(dispatcher="deepep", expert_hosts=2)
    assert found == pytest.approx(to_hosts * TOKENS * hidden * width, rel=0.01)
    slower = sent(dispatcher="deepep", expert_hosts=2, dispatcher_efficiency=0.5)
    assert slower == pytest.approx(2 * found, rel=0.01)


def test_all_to_alls_go_beside_computation_in_passes_that_have_another_beside_them() -> None:
    send = Exchange("all_to_all", ("ep",), 1)
    pieces = [Piece("a", (), send), Piece("b", (), send), Piece("c", ())]
    assert overlapped(pieces, ()) == pieces

    def waited_for(**framework: Any) -> set[str]:
        made = operations(batch=8 * 3, framework={"kind": "megatron", **framework})
        found = set()
        for number, one in enumerate(made):
            after = next((other for other in made[number + 1 :] if other.stream == "compute"), None)
            if one.collective == "all_to_all" and after is not None and number in after.deps:
                found.add(one.name[: len("micro-batch 0")] + " " + one.phase)
        return found

    every = {f"micro-batch {number} {phase}" for number in range(3) for phase in ("forward", "backward")}
    assert waited_for() == every
    # Megatron-Core's combined 1F1B: the first forward and the last backward pass have nothing beside them.
    assert waited_for(overlap_experts=True) == {"micro-batch 0 forward", "micro-batch 2 backward"}


def test_the_host_makes_and_runs_nodes_where_all_to_alls_overlap() -> None:
    def issued(phase: str, **more: Any) -> int:
        made = operations(framework={"kind": "megatron", **more})
        found = sum(one.duration_ps for one in made if one.stream == CPU_STREAM and one.phase == phase)
        return found // 10_000_000

    layers, forward, backward, freed, apart = 4, 6, 7, 2, 3
    # Embedding and head are a node each; of a layer's four two compute, three free what went into them.
    more = issued("forward", overlap_experts=True) - issued("forward")
    assert more == layers * (4 * forward + 3 * freed) + 2 * forward
    more = issued("backward", overlap_experts=True) - issued("backward")
    assert more == layers * (4 * backward + 2 * apart) + 2 * (backward + apart)
    dense = {"experts": {**MODEL["experts"], "first_dense": 1}}  # type: ignore[dict-item]
    one = (
        job(model=MODEL | dense, framework={"kind": "megatron", "overlap_experts": True})
        .job()
        .stages[0][0][1]
    )
    assert sum(piece.issued for piece in one.forward) == 2 * forward
    assert sum(piece.issued for piece in one.backward) == 2 * (backward + apart)


def test_graphs_and_fused_experts_leave_the_host_less_to_issue() -> None:
    def host_ps(**framework: Any) -> int:
        made = operations(framework={"kind": "megatron", **framework})
        return sum(one.duration_ps for one in made if one.stream == CPU_STREAM)

    plain = host_ps()
    router, fused = host_ps(graphs=["router"]), host_ps(fused_experts=True)
    assert plain > router > host_ps(graphs=["router", "attention"])
    # Two experts on a rank, two products forward and four backward, five operators each or one.
    assert plain - fused >= 4 * (2 * 5 - 1) * 6 * 10_000_000
    assert operations(cuda_graphs=True)[0].stream != CPU_STREAM


def test_the_routers_graph_has_the_shared_experts_and_the_mlps_has_not() -> None:
    def issued(*graphs: str) -> int:
        experts = {**MODEL["experts"], "shared": 1}  # type: ignore[dict-item]
        framework = {"kind": "megatron", "graphs": graphs}
        layer = job(model=MODEL | {"experts": experts}, framework=framework).job().stages[0][0][1]
        pieces = (*layer.forward, *layer.backward)
        shared = [piece for piece in pieces if piece.name.endswith("shared experts")]
        return sum(kernel.operators for piece in shared for kernel in piece.kernels)

    assert issued() == issued("mlp", "attention") == 3 + 5
    assert issued("router") == 0


def test_products_that_leave_a_half_of_the_gpu_take_twice_the_waves_but_for_the_weights() -> None:
    def products(margin: int) -> list[int]:
        kind = {"kind": "megatron", "fused_experts": True, "fused_margin": margin}
        large = MODEL | {"hidden": 4096, "experts": {"num": 16, "top_k": 2, "ffn": 4096}}
        work = job(model=large, micro_batch=64, gpu="b200", framework=kind)
        (layers,) = work.job().stages[0]
        pieces = [piece for piece in layers[1].backward if piece.name.endswith(" experts")]
        timer = read("b200").timer("bf16")
        own = [each for piece in pieces for each in piece.kernels if each.kind.value == "matmul"]
        return [timer.kernel_ps(each) for each in own]

    whole, half = products(0), products(148 // 2)
    assert [round(two / one) for one, two in zip(whole, half, strict=True)] == [2, 1, 2, 1]


def test_the_host_waits_for_the_counts_of_each_layer_unless_experts_are_padded() -> None:
    def waits(**framework: Any) -> list[str]:
        made = operations(framework={"kind": "megatron", **framework})
        return [
            made[dep].name
            for one in made
            if one.stream == CPU_STREAM and one.phase == "forward"
            for dep in one.deps
            if made[dep].stream == "compute"
        ]

    layers = [f"layer {number} " for number in range(4)]
    assert [name.split(" to ")[-1] for name in waits()] == [f"{layer}router forward" for layer in layers]
    assert not waits(padded_experts=True)
    assert not waits(fused_experts=True)


def test_a_fused_loss_reads_logits_twice_and_writes_and_scales_their_gradient() -> None:
    dense = {name: value for name, value in MODEL.items() if name != "experts"}

    def moved(**framework: Any) -> float:
        kind = {"kind": "megatron", **framework}
        return sum(one.bytes_moved for one in operations(model=dense, parallel={}, framework=kind))

    unfused = 2 * 6 + 4 * 8 + 2 * 4 + 2 * 8  # conversions, changes, scans, moves
    fused = 2 + 2 + 2 + 2 + 2
    assert moved() - moved(fused_loss=True) == TOKENS * 1000 * (unfused - fused) - 12 * TOKENS
    tp = {"parallel": {"tp": 2}, "model": dense}
    found = operations(framework={"kind": "megatron", "fused_loss": True}, **tp)
    small = [(one.collective, one.size_bytes) for one in found if 8 < one.size_bytes <= 12 * TOKENS]
    assert small == [("all_gather", 12 * TOKENS)]


def test_scaled_rotary_positions_are_twelve_passes_where_others_are_two() -> None:
    dense = {name: value for name, value in MODEL.items() if name != "experts"}

    def moved(**model: Any) -> float:
        made = operations(model=dense | model, parallel={})
        return sum(one.bytes_moved for one in made if one.phase == "forward")

    heads, size, width, layers = 8 + 8, 64, 2, 4
    assert moved(scaled_positions=True) - moved() == layers * 10 * TOKENS * heads * size * width
    with pytest.raises(ValidationError, match="positions are learned"):
        job(model=dense | {"scaled_positions": True, "positions": 256})


def test_backward_runs_the_operators_again_that_are_named() -> None:
    model = MODEL | {"latent": LATENT, "experts": {**MODEL["experts"], "shared": 1}}  # type: ignore[dict-item]
    kept = flops(model=model)
    assert flops(model=model, recompute=["norm", "activation"]) == kept  # arithmetic that doesn't count
    up = 96 * 8 * (32 + 16) + 64 * 8 * (32 + 32)
    assert flops(model=model, recompute=["latent"]) - kept == 4 * 2 * TOKENS * up
    shared = 3 * 512 * 256
    assert flops(model=model, recompute=["mlp"]) - kept == 4 * 2 * TOKENS * shared
    assert flops(model=model, recompute=["attention"]) == flops(model=model, recompute="selective")
    whole = job(model=model).job().memory.activations
    for name in ("norm", "activation", "latent", "mlp"):
        assert job(model=model, recompute=[name]).job().memory.activations < whole


def test_a_token_ahead_is_a_layer_a_projection_and_the_head_again() -> None:
    dense = {name: value for name, value in MODEL.items() if name != "experts"}
    alone: dict[str, Any] = {"parallel": {}}
    one, two = (flops(model=dense | {"layers": layers}, **alone) for layers in (4, 5))
    head = 3 * 2 * TOKENS * 512 * 1000
    project = 3 * 2 * TOKENS * 2 * 512 * 512
    assert flops(model=dense | {"ahead": 1}, **alone) - two == head + project
    assert two > one


def test_a_layout_says_how_many_layers_each_part_has() -> None:
    parallel = {"pp": 2, "virtual_stages": 2, "schedule": "interleaved", "layout": [2, 1, 1, 0]}
    found = job(model=MODEL | {"experts": None}, parallel=parallel).job().stages
    names = [[[layer.name for layer in chunk] for chunk in stage] for stage in found]
    assert names == [[["embedding", "layer 0", "layer 1"], ["layer 3"]], [["layer 2"], ["head"]]]
    with pytest.raises(ValidationError, match="layout has 3 parts; pp x virtual_stages are 2"):
        job(parallel={"pp": 2, "layout": [1, 2, 1]})
    with pytest.raises(ValidationError, match="layout has 3 layers in all; custom has 4"):
        job(parallel={"pp": 2, "layout": [1, 2]})


def test_narrow_attention_saves_its_products_not_its_exponentials() -> None:
    model = MODEL | {"experts": None, "sequence": 16384, "hidden": 1024, "heads": 8}

    def computed(**framework: Any) -> int:
        made = operations(
            model=model, parallel={}, cuda_graphs=True, framework={"kind": "megatron", **framework}
        )
        return sum(one.duration_ps for one in made if one.kind is OpKind.COMPUTE)

    assert 0.6 < computed(fp8_attention=True) / computed() < 0.95


def test_biases_and_clamps_of_experts_are_memory_traffic_unless_fused() -> None:
    rows, hidden, ffn, width, layers = 2 * TOKENS, 512, 256, 2, 4

    def moved(fused: bool, **experts: Any) -> float:
        model = MODEL | {"experts": {"num": 16, "top_k": 2, "ffn": ffn, **experts}}
        made = operations(
            model=model,
            parallel={},
            cuda_graphs=True,
            framework={"kind": "megatron", "fused_experts": fused},
        )
        return sum(one.bytes_moved for one in made if one.phase == "forward")

    plain = moved(fused=False)
    clamps = 2 * 2 * rows * 2 * ffn * width  # to each half, then both together, read and written
    assert moved(fused=False, clamped=True) - plain == layers * clamps
    each = 4 + (width + 8) + 8 + (4 + width)  # weighted, added, joined, converted
    assert moved(fused=False, biases=True) - plain == layers * rows * hidden * each
    assert moved(fused=True, biases=True, clamped=True) == moved(fused=True)


def test_backward_of_clamps_and_biases_is_what_torch_dispatches() -> None:
    """As Megatron-Core writes them, ``weighted_bias_quick_geglu_impl`` and ``_apply_bias``."""
    torch = pytest.importorskip("torch")
    from tests.models.dispatched import dispatched

    experts, rows, hidden = 4, 256, 512
    wide = torch.randn(rows, 2 * hidden, dtype=torch.bfloat16, requires_grad=True)
    gate, linear = wide.chunk(2, -1)
    clamped = torch.cat((gate.clamp(max=7.0), linear.clamp(min=-7.0, max=7.0)), -1)
    made = torch.randn(rows, hidden, dtype=torch.bfloat16, requires_grad=True)
    biases = [torch.randn(hidden, dtype=torch.bfloat16, requires_grad=True) for _ in range(experts)]
    chosen = torch.rand(rows, 1, requires_grad=True)
    each = zip(torch.split(made, rows // experts), biases, torch.split(chosen, rows // experts), strict=True)
    biased = torch.cat([one + bias * weight for one, bias, weight in each]).to(made.dtype)
    given, returned = torch.ones_like(wide), torch.ones_like(made)
    found = [
        dispatched(lambda: torch.autograd.grad(clamped, wide, given)),
        dispatched(lambda: torch.autograd.grad(biased, [made, chosen, *biases], returned)),
    ]
    told = Experts(num=experts, top_k=1, ffn=hidden, biases=True, clamped=True)
    layer = ExpertLayer(told, Cut(Parallel(), 1, rows, rows, 2), hidden, gated=True)
    kernels = [one for part in layer.parts("") for one in part.kernels if one.returned is not None]
    small = 64 * (rows + experts * hidden)  # bytes of what has one number for a row or for a column
    for kernel, (launches, size) in zip(kernels, found, strict=True):
        assert kernel.returned is not None
        (made,) = kernel.returned
        assert made.launches == launches
        assert made.bytes_moved == pytest.approx(size, abs=small)


def test_a_library_has_a_kernel_for_each_expert_a_fused_one_has_them_together() -> None:
    """16 experts on a rank: each product's waves of tiles, and its fixed time, are its own."""

    def computing(fused: bool) -> int:
        made = operations(
            parallel={},
            cuda_graphs=True,
            framework={"kind": "megatron", "fused_experts": fused},
        )
        return sum(one.duration_ps for one in made if one.phase == "forward")

    each = read("h100-sxm").efficiency.kernel_time
    assert (
        computing(fused=False) - computing(fused=True) > 4 * 2 * 15 * each
    )  # layers, products, kernels more


def test_a_grouped_product_is_issued_once_and_for_each_expert_nvfp4s_kernels_all_at_once() -> None:
    def issued(own: int, recipe: str | None) -> int:
        cut = Cut(Parallel(dp=4, ep=4), 1, 256, 256, 2, recipe=recipe)  # type: ignore[arg-type]
        layer = ExpertLayer(Experts(num=4 * own, top_k=2, ffn=256), cut, 512, gated=True)
        pieces = [one for one in forward_pieces(layer.parts(""), cut) if one.name == " experts"]
        return sum(kernel.operators for one in pieces for kernel in one.kernels)

    assert issued(16, None) - issued(8, None) == 2 * 8 * 3
    assert issued(16, "mxfp8") - issued(8, "mxfp8") == 2 * 2 * 8 * 3
    assert issued(16, "nvfp4") - issued(8, "nvfp4") == 2 * 8 * (3 + 2)
    assert issued(8, "mxfp8") == 2 * 2 * (32 + 8 * 3) + 1
