"""``framework: {kind: pytorch, compile: true}``: a block's kernels are those that Inductor schedules."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from cosim.context import HERE
from cosim.models.catalogue.cut import Cut, Parallel, Recompute
from cosim.models.catalogue.workload import ModelWorkload
from cosim.models.frameworks import PyTorch
from cosim.models.parts import Exchange, Layer, Piece
from cosim.models.pytorch.blocks import EagerBlocks
from cosim.models.pytorch.compiled import GIVEN_UP, CompiledBlocks
from cosim.workload.check import check
from tests.lab.validation.crosscheck import CASES, Tally
from tests.profiler.profiled import needs_torch

# What Inductor of torch 2.13 schedules beside products and attention for a block of `compiled`'s sizes (512
# tokens of 512, bf16), forward and backward: bytes, in `python -m tests.lab.validation.crosscheck compiled`.
NORMS = [1051648, 1575936]
SUMS = [3690496, 9216, 9216]
ENDS = [3145728, 2097152]
COMPLEX = [1572864, 786432, 2162688, 1114112, 1572864, 786432]
HALVES = [1114112, 589824]
SCHEDULED = {
    "complex": ([*NORMS, *COMPLEX, *ENDS], [5242880, *COMPLEX, 131072, 3148800, 3148800, *SUMS]),
    "sliced": ([*NORMS, *HALVES, *ENDS], [5242880, *HALVES, 3148800, 3148800, *SUMS]),
    "chunked": ([*NORMS, *HALVES, *ENDS], [5242880, *HALVES, 3148800, 3148800, *SUMS]),
}
CASTS = [1572864, 786432, 786432, 1572864, 3145728, 3145728, 3145728]
AUTOCAST = {
    "forward": [1576960, 2101248, *HALVES, 3145728, 3145728, *CASTS],
    "backward": [1572864, 5242880, 5246976, *HALVES, 4722688, 4214784, 10240, 10240, *CASTS],
}
"""The same of `compiled-autocast-halves`, two sequences at a time."""
REPEATED = {
    "forward": ([1114112, 851968, 786432], [1572864, 786432, 2162688, 1114112, 1572864, 1048576, 786432]),
    "backward": (
        [1114112, 851968, 524288, 786432],
        [1572864, 786432, 2162688, 1114112, 1572864, 1048576, 131072, 786432],
    ),
}
"""Rotations of `compiled-repeat-halves` and `compiled-repeat`: keys and values are copied for their heads."""


TWO_RANKS = {
    "forward": [
        526336, 788480, 786432, 1114112, 786432, 393216, 589824, 393216, *[1048576] * 4, 1572864, 1048576,
    ],
    "backward": [
        1048576, 1048576, 2621440, 1572864, 1312768, 786432, 1114112, 786432, 393216, 589824, 393216, 131072,
        2097152, 1050624, 1058816, 5120, 5120,
    ],
}  # fmt: skip
"""The same of `compiled-tp`: two tensor-parallel ranks, each with half of the tokens between products."""


def block(kind: type[EagerBlocks], rotary: str, *, tp: int = 1, recompute: Recompute = "none") -> Layer:
    spec = workload(rotary=rotary)
    parallel = Parallel(fsdp=8 // tp, tp=tp)
    cut = Cut(parallel, batch=2, sequence=256, keys=256, width=2, recompute=recompute)
    framework = PyTorch.model_validate({"compile": True, "rotary": rotary})
    return kind(spec.model, cut, framework, autocast=False).layer(0)  # type: ignore[arg-type]


def workload(**framework: Any) -> ModelWorkload:
    given = {**CASES["compiled"].workload(), "framework": {"kind": "pytorch", "compile": True, **framework}}
    del given["kind"]
    return ModelWorkload.model_validate(given)


def between_products(pieces: tuple[Piece, ...]) -> Counter[int]:
    """Bytes of the kernels that calculate nothing to speak of."""
    return Counter(kernel.bytes_moved for piece in pieces for kernel in piece.kernels if not kernel.flops)


def flops(layer: Layer) -> int:
    return sum(kernel.flops for piece in all_pieces(layer) for kernel in piece.kernels)


def exchanges(layer: Layer) -> Counter[Exchange]:
    return Counter(piece.then for piece in all_pieces(layer) if piece.then is not None)


def all_pieces(layer: Layer) -> tuple[Piece, ...]:
    return (*layer.forward, *layer.recompute, *layer.backward)


@pytest.mark.parametrize("rotary", SCHEDULED)
def test_fused_kernels_are_those_that_inductor_schedules(rotary: str) -> None:
    made = block(CompiledBlocks, rotary)
    forward, backward = SCHEDULED[rotary]
    assert between_products(made.forward) == Counter(forward)
    assert between_products(made.backward) == Counter(backward)


def test_under_autocast_the_residual_is_wide_and_weights_are_cast() -> None:
    spec = workload(rotary="chunked")
    cut = Cut(Parallel(), batch=2, sequence=256, keys=256, width=2)
    framework = PyTorch.model_validate({"compile": True, "rotary": "chunked"})
    made = CompiledBlocks(spec.model, cut, framework, autocast=True).layer(0)  # type: ignore[arg-type]
    for way, wanted in AUTOCAST.items():
        assert between_products(getattr(made, way)) == Counter(wanted)


@pytest.mark.parametrize("rotary", ["chunked", "complex"])
def test_repeated_keys_are_made_by_the_kernel_that_turns_them(rotary: str) -> None:
    cut = Cut(Parallel(fsdp=8), batch=2, sequence=256, keys=256, width=2)
    for way, wanted in REPEATED.items():
        found = []
        for repeated in (True, False):
            framework = PyTorch.model_validate({"compile": True, "rotary": rotary, "repeat_kv": repeated})
            blocks = CompiledBlocks(workload().model, cut, framework, autocast=False)  # type: ignore[arg-type]
            found.append(between_products(getattr(blocks.layer(0), way)))
        forward, backward = SCHEDULED[rotary]
        own = HALVES if rotary == "chunked" else [*COMPLEX, *([131072] if way == "backward" else [])]
        assert not Counter(own) - Counter(forward if way == "forward" else backward)
        assert found[0] == found[1] - Counter(own) + Counter(wanted[rotary == "complex"])


@pytest.mark.slow
@needs_torch
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_gradients_become_ready_in_the_order_of_autograds_queue() -> None:
    """A compiled block gives all of them up at once; DDP's buckets of it are those that it builds anew."""
    import torch
    from torch import nn
    from torch.nn import functional

    names = ["attention norm", "mlp norm", "queries", "keys", "values", "projection"]
    names += ["mlp gate", "mlp up", "mlp down"]

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList(nn.RMSNorm(16) for _ in range(2))
            shapes = ((16, 16), (16, 8), (16, 8), (16, 16), (16, 32), (16, 32), (32, 16))
            self.products = nn.ModuleList(nn.Linear(*shape, bias=False) for shape in shapes)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v, o, gate, up, down = self.products
            inner = self.norms[0](x)
            a, b, c = (w(inner).unflatten(-1, (-1, 4)).transpose(1, 2) for w in (q, k, v))
            y = functional.scaled_dot_product_attention(a, b, c, is_causal=True, enable_gqa=True)
            x = x + o(y.transpose(1, 2).flatten(-2))
            inner = self.norms[1](x)
            return x + down(functional.silu(gate(inner)) * up(inner))

    model = nn.Sequential(nn.Linear(16, 16), Block())
    model[1].compile(backend="aot_eager")
    seen: list[str] = []
    for name, parameter in zip(names, model[1].parameters(), strict=True):
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: seen.append(name))
    model(torch.randn(2, 8, 16)).sum().backward()
    assert tuple(seen) == GIVEN_UP


def test_tensor_parallel_ranks_sum_gradients_as_they_bring_them_into_order() -> None:
    made = block(CompiledBlocks, "complex", tp=2)
    for way, wanted in TWO_RANKS.items():
        assert between_products(getattr(made, way)) == Counter(wanted)


def test_a_checkpointed_block_runs_again_inside_its_backward() -> None:
    made = block(CompiledBlocks, "complex", recompute="full")
    forward, backward = SCHEDULED["complex"]
    # In `compiled-checkpoint`, norms keep no number for each of the 512 rows, nor the gate its product.
    assert between_products(made.forward) == Counter([each - 512 * 4 for each in NORMS] + forward[2:])
    assert between_products(made.recompute) == Counter([*NORMS, *COMPLEX])
    assert between_products(made.backward) == Counter([6291456, *backward[1:]])


def test_what_is_not_saved_by_operator_runs_again_beside_gradients() -> None:
    """Of `compiled-selective` with hidden 768, 12 heads, ffn 2560 and rotations by halves: the kernel of the
    MLP's norm's gradients, 5,512,192 bytes, makes attention's norm again.
    """
    sizes = {"hidden": 768, "heads": 12, "ffn": 2560}
    given = replace(CASES["compiled-selective"], sizes=sizes).workload()
    del given["kind"]
    spec = ModelWorkload.model_validate(given)
    cut = Cut(Parallel(fsdp=8), batch=2, sequence=256, keys=256, width=2, recompute="selective")
    framework = PyTorch.model_validate({"compile": True, "rotary": "chunked"})
    blocks = CompiledBlocks(spec.model, cut, framework, autocast=False)  # type: ignore[arg-type]
    made = blocks.layer(0)
    turned = [1638400, 589824]
    assert between_products(made.forward) == Counter([1574400, 2360832, *turned, 7864320, 3145728])
    assert between_products(made.recompute) == Counter([2362880])
    assert between_products(made.backward) == Counter(
        [15728640, 5512192, *turned, *turned, 4722176, 5533696, 13824, 13824]
    )
    eager = EagerBlocks(spec.model, cut, framework, autocast=False)  # type: ignore[arg-type]
    assert eager.layer(0).keeps == made.keeps


def test_a_sum_over_few_rows_is_one_kernel() -> None:
    """Of both norms' weights: of 128 rows, in `compiled-checkpoint-tp`, nobody makes partial sums."""
    cut = Cut(Parallel(tp=2), batch=1, sequence=256, keys=256, width=2)
    framework = PyTorch.model_validate({"compile": True, "rotary": "chunked"})
    made = CompiledBlocks(workload().model, cut, framework, autocast=False).layer(0)  # type: ignore[arg-type]
    moved = between_products(made.backward)
    assert moved[527360] == 1
    assert sum(moved.values()) == 2 + 1 + 1 + 2 + 1 + 1  # rotations, gate, scatters' sums, norms, and this


@pytest.mark.parametrize(
    ("tp", "recompute"), [(1, "none"), (1, "full"), (1, "selective"), (2, "none"), (2, "full")]
)
def test_what_is_calculated_and_trained_is_the_eager_blocks(tp: int, recompute: Recompute) -> None:
    compiled, eager = (
        block(kind, "complex", tp=tp, recompute=recompute) for kind in (CompiledBlocks, EagerBlocks)
    )
    assert flops(compiled) == flops(eager)
    assert exchanges(compiled) == exchanges(eager)
    assert compiled.parameters == eager.parameters
    assert {weight.name for weight in compiled.weights} == {weight.name for weight in eager.weights}


def test_a_compiled_job_has_fewer_launches_and_the_eager_ones_exchanges() -> None:
    made = [workload(compile=compiled, norm="fused").build(HERE) for compiled in (True, False)]
    for each in made:
        check(each)
    compiled, eager = (Tally.of(each.programs[0].operations, {}) for each in made)
    assert compiled.exchanged == eager.exchanged
    # A block less: a sum and the gate's activation forward; backward two of the gate's, five of sums
    # and a conjugate, where norms' weights have three kernels of their own.
    assert eager.launches - compiled.launches == 2 * (2 + 2 + 5 + 1 - 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parallel": {"dp": 8}}, "parallel.fsdp, or optimize_ddp: false: DDP cuts graphs by bucket"),
        (
            {"parallel": {}, "recompute": "full"},
            "parameter_dtype: bf16, or parallel.fsdp, with tp or recompute: not autocast",
        ),
        ({"parallel": {"fsdp": 4, "tp": 2, "sp": False}}, "parallel.sp: true"),
        (
            {
                "parallel": {"fsdp": 4, "tp": 2},
                "framework": {"kind": "pytorch", "compile": True, "async_tensor_parallel": True},
            },
            "async_tensor_parallel: false",
        ),
        ({"attention": "unfused"}, "attention: one that is fused"),
        ({"model": "gpt3-175b"}, "or as a GPT's, alone on a GPU"),
        (
            {
                "model": {"kind": "gpt3-1.7b", "kv_heads": 8, "dropout": False},
                "parallel": {},
                "framework": {"kind": "pytorch", "compile": True},
            },
            "kv_heads as many as heads",
        ),
        ({"model": "mixtral-8x7b"}, "no experts"),
        ({"framework": {"kind": "pytorch", "compile": True, "rotary": "none"}}, "rotary positions"),
        ({"framework": {"kind": "pytorch", "compile": "inductor"}}, "compile"),
        ({"framework": {"kind": "megatron", "compile": True}}, "compile"),
    ],
)
def test_what_isnt_written_is_refused_with_what_would_do(settings: dict[str, Any], message: str) -> None:
    given = {**CASES["compiled"].workload(), **settings}
    del given["kind"]
    with pytest.raises(ValidationError, match=message):
        ModelWorkload.model_validate(given)
