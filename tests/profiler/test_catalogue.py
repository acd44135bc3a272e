"""Two derivations of one job: a PyTorch script profiled, and the model catalogue's builder.

Told ``framework: pytorch`` the catalogue says the same, kernel by kernel, exchange by exchange. Told
``megatron``, what differs is known: the script's loss gathers all logits, Megatron-LM's is
vocabulary-parallel; FSDP2 makes one gather of everything that is in no block, Megatron-LM one of the
embedding and one of the head.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

from cosim.context import HERE
from cosim.models.catalogue.workload import ModelWorkload
from cosim.models.pytorch.rows import row_blocks
from cosim.profiler.file import Profile
from cosim.profiler.workload import counted_flops, named_gpu
from cosim.workload.program import Operation, OpKind
from tests.lab.validation.crosscheck import CASES, TOLERANCE, Case, Compared, compare
from tests.profiler.profiled import needs_torch, profiled, sizes

BATCH, SEQUENCE, HIDDEN, VOCABULARY, LAYERS = 2, 256, 512, 1024, 2
STATE = BATCH * SEQUENCE * HIDDEN * 2
LOSS = BATCH * SEQUENCE * 4
NORM = 8


def catalogue(**parallel: object) -> tuple[Operation, ...]:
    sizes_ = {"layers": LAYERS, "hidden": HIDDEN, "heads": 8, "ffn": 1024, "vocabulary": VOCABULARY}
    model = ModelWorkload.model_validate(
        {
            "model": {"kind": "transformer", **sizes_, "sequence": SEQUENCE},
            "gpu": "h100-sxm",
            "parallel": parallel,
            "micro_batch": BATCH,
        }
    )
    return model.build(HERE).programs[0].operations


def exchanged(ops: tuple[Operation, ...], kind: str, axis: str) -> Counter[int]:
    return Counter(op.size_bytes for op in ops if op.collective == kind and op.axes == (axis,))


def counted(made: Profile, phase: str) -> int:
    """FLOPs of every rank, of causal attention those of the scores that count."""
    steps = [step for step in made.programs[0].steps if step.phase == phase]
    return sum(counted_flops(made.kernels[k]) * times for step in steps for k, times in step.kernels)


def total(counts: Counter[int]) -> int:
    return sum(size * count for size, count in counts.items())


@needs_torch
@pytest.mark.parametrize(
    ("arguments", "parallel"),
    [
        (("--no-reshard",), {"fsdp": 8, "reshard": False}),
        (("--tp", "4", "--sp"), {"fsdp": 2, "tp": 4, "sp": True}),
    ],
    ids=["fsdp", "fsdp-tp-sp"],
)
def test_flops_are_the_profiles(arguments: tuple[str, ...], parallel: dict[str, object]) -> None:
    made, ops = profiled("llama_blocks.py", *arguments), catalogue(**parallel)
    for phase in ("forward", "backward"):
        mine = sum(op.flops for op in ops if op.kind is OpKind.COMPUTE and op.phase == phase)
        assert counted(made, phase) == mine


@needs_torch
def test_sharded_parameters_are_the_profiles() -> None:
    made, ops = profiled("llama_blocks.py", "--no-reshard"), catalogue(fsdp=8, reshard=False)
    gathered, theirs = exchanged(ops, "all_gather", "fsdp"), sizes(made, "all_gather", "dp_shard")
    assert total(gathered) == total(theirs)
    assert gathered.total() == theirs.total() + 1 == LAYERS + 2
    scattered, theirs = exchanged(ops, "reduce_scatter", "fsdp"), sizes(made, "reduce_scatter", "dp_shard")
    assert total(scattered) == total(theirs)
    block = scattered.most_common(1)[0]
    assert block[1] == LAYERS
    assert theirs[block[0]] == LAYERS


@needs_torch
def test_tensor_and_sequence_parallel_exchanges_are_the_profiles() -> None:
    made, ops = profiled("llama_blocks.py", "--tp", "4", "--sp"), catalogue(fsdp=2, tp=4, sp=True)
    gathered, theirs = exchanged(ops, "all_gather", "tp"), sizes(made, "all_gather", "tp")
    logits = Counter({STATE * VOCABULARY // HIDDEN // 4: 1})
    assert theirs - logits == gathered
    assert exchanged(ops, "reduce_scatter", "tp") == sizes(made, "reduce_scatter", "tp")
    assert exchanged(ops, "all_reduce", "tp") == Counter({LOSS: 3, NORM: 1})


BLOCKS = Case(
    8,
    {"fsdp": 8},
    framework={"fsdp_units": "blocks", "rotary": "none", "fp32_logits": False, "clip_gradients": False},
    sizes={"kv_heads": 8, "vocab": VOCABULARY},
    batch=BATCH,
    script="llama_blocks.py",
    axes={"dp_shard": "fsdp", "dp_replicate": "dp"},
)
"""What tests/profiler/scripts/llama_blocks.py does if nothing else is asked of it."""


LOOPED = (
    "interleaved", "interleaved-gathered-again", "interleaved-one-round", "looped-bfs",
    "zero-bubble", "zero-bubble-one-chunk", "zbv", "dualpipev",
)  # fmt: skip
CHECKPOINTED = ("fsdp-selective", "fsdp-tp-selective", "fsdp-every-second", "fsdp1-to-the-end")
"""What stands between passes of stages (parameters fetched and given up, gradients put together), and what is
run again, is told to another phase in a profile than in the catalogue: kernels' bytes are compared in all."""


def agree(found: Compared, launches: int, *, by_phase: bool = True, alone: bool = False) -> None:
    """``launches``: of what the script does beside the model, its random batch; the host has to issue it.
    ``alone``: without exchanges the GPU may wait for a launch more, where steps are put together otherwise.
    """
    for theirs, ours in zip(found.profiled, found.catalogue, strict=True):
        assert ours.flops == theirs.flops
        assert ours.exchanged == theirs.exchanged
        assert theirs.launches - ours.launches == launches
        assert ours.bytes_moved.total() == pytest.approx(theirs.bytes_moved.total(), rel=2e-4)
        # A batch and single numbers that are read beside the model are most of what differs, in one phase.
        if by_phase:
            assert ours.bytes_moved == pytest.approx(theirs.bytes_moved, rel=5e-4)
    each = named_gpu("h100-sxm").host.operator_time
    more = 1.01 * each if alone else 0.0
    assert found.times[1] + launches * each == pytest.approx(found.times[0], rel=1e-3, abs=more)


@needs_torch
@pytest.mark.parametrize(
    ("arguments", "parallel"),
    [
        ((), {"fsdp": 8}),
        (("--no-reshard",), {"fsdp": 8, "reshard": False}),
        (("--tp", "4", "--sp"), {"fsdp": 2, "tp": 4}),
        pytest.param(("--replicate", "2"), {"dp": 2, "fsdp": 4}, marks=pytest.mark.slow),
    ],
    ids=["fsdp", "zero-2", "fsdp-tp-sp", "hsdp"],
)
def test_eager_pytorch_is_the_profile_even_where_launches_take_longest(
    arguments: tuple[str, ...], parallel: dict[str, object]
) -> None:
    made: Profile = profiled("llama_blocks.py", *arguments)
    agree(compare(replace(BLOCKS, parallel=parallel), made), launches=2)


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "8b-fsdp", "compiled-pp", "compiled-tp", "compiled-tp-pp", "compiled-checkpoint",
        "compiled-selective", "compiled-selective-tp", "compiled-checkpoint-tp", "8b-compiled",
        "compiled-autocast", "compiled-autocast-halves", "compiled-ddp", "compiled-ddp-bf16",
        "compiled-gpt", "compiled-gpt-bf16", "compiled-repeat", "compiled-repeat-halves",
        "compiled-repeat-selective", "compiled-repeat-tp",
        "8b-compiled-tp", "8b-fsdp1", "fsdp1-accumulate", "fsdp1-zero2", "hsdp1", "fsdp1-forward",
        "fused-qkv", *LOOPED, *CHECKPOINTED,
    ],
)  # fmt: skip
def test_pytorch_is_the_profile_at_the_sizes_of_llama_3_8b_and_compiled(name: str) -> None:
    found = compare(CASES[name])
    alone = CASES[name].world_size == 1
    agree(found, launches=1, by_phase=name not in (*LOOPED, *CHECKPOINTED), alone=alone)
    assert abs(found.difference) < TOLERANCE


@needs_torch
@pytest.mark.slow
def test_sums_over_rows_are_split_as_inductor_splits_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import choices

    gpu = SimpleNamespace(
        multi_processor_count=132, warp_size_or_default=32, max_threads_per_multi_processor=2048, major=9
    )
    monkeypatch.setattr(choices.DeviceProperties, "create", lambda _: gpu)
    theirs = choices.InductorChoices.reduction_split_factor
    for rows in (256, 512, 1000, 2048, 4096, 6144, 8192, 12288, 16384, 32768, 50001):
        for columns in (512, 1280, 4096, 5120, 8192, 16384):
            assert row_blocks(rows, columns) == theirs(None, rows, columns, inner_reduction=False)
