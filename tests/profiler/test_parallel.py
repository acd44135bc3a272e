"""Every parallelism against its closed form: FLOPs and bytes to the last one, overlap by who waits for
whom."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.profiler.workload import build, named_gpu
from cosim.workload.check import check
from cosim.workload.program import OpKind
from tests.profiler.profiled import before, flops, needs_torch, operations, profiled, sizes

pytestmark = needs_torch

L, H, F, V, B, S = 2, 512, 1024, 1024, 2, 256  # llama_blocks.py's defaults
BLOCK = 4 * H * H + 3 * H * F + 2 * H
ROOT = 2 * V * H + H
TOKENS = B * S
MATMULS = L * (4 * H * H + 3 * H * F) + H * V
ATTENTION = L * 4 * B * S * S * H  # two products of s x s x h per sequence, the mask saves nothing


def test_data_parallel_buckets_are_torchs_and_overlap_with_backward() -> None:
    made = profiled("ddp_mlp.py", world_size=16)
    layers, width, rows = 8, 1024, 32
    square = 2 * rows * width * width
    assert made.mesh == {"dp": 16}
    assert flops(made, "forward") == layers * square
    assert flops(made, "backward") == (2 * layers - 1) * square  # nobody asks for the input's gradient
    assert flops(made, "optimizer") == 0
    layer = [width * width * 4, width * 4]
    exchanged = [step.size_bytes for step in made.programs[0].steps if step.kind == "all_reduce"]
    assert exchanged == _torch_buckets(layers, layer) == [sum(layer), 7 * sum(layer)]
    program = operations(made)
    first = next(n for n, step in enumerate(program.steps) if step.kind == "all_reduce")
    later = [
        n for n, s in enumerate(program.steps) if n > first and s.phase == "backward" and s.kind == "compute"
    ]
    assert first not in before(program, later[0]), "backward goes on while the first bucket is exchanged"
    last = max(n for n, step in enumerate(program.steps) if step.phase == "optimizer")
    talks = {n for n, step in enumerate(program.steps) if step.kind == "all_reduce"}
    assert talks <= before(program, last), "the optimizer waits for every bucket"


def _torch_buckets(layers: int, layer: list[int]) -> list[int]:
    """DDP's rule: parameters from the last to the first, a bucket is closed when it has reached its
    limit; 1 MiB, then 25 MiB."""
    found, filled, limits = [], 0, [2**20] + [25 * 2**20] * 10
    for size in [size for _ in range(layers) for size in reversed(layer)]:
        filled += size
        if filled >= limits[0]:
            found.append(filled)
            filled = 0
            limits.pop(0)
    return [*found, *([filled] if filled else [])]


def test_sharded_optimizer_of_zero_1_broadcasts_each_parameter() -> None:
    made = profiled("ddp_mlp.py", "--zero", world_size=4)
    width, layers = 1024, 8
    assert sizes(made, "broadcast", "dp") == {width * width * 4: layers, width * 4: layers}
    roots = {step.root for step in made.programs[0].steps if step.kind == "broadcast"}
    assert roots == {0, 1, 2, 3}


def test_fully_sharded_gathers_bf16_twice_and_reduces_fp32_once() -> None:
    made = profiled("llama_blocks.py")
    assert made.mesh == {"dp_shard": 8}
    assert flops(made, "forward") == 2 * TOKENS * MATMULS + ATTENTION
    assert flops(made, "backward") == 4 * TOKENS * MATMULS + ATTENTION * 5 // 2
    assert sizes(made, "all_gather", "dp_shard") == {BLOCK * 2 // 8: 2 * L, ROOT * 2 // 8: 1}
    assert sizes(made, "reduce_scatter", "dp_shard") == {BLOCK * 4: L, ROOT * 4: 1}


def test_fully_sharded_prefetches_the_next_gather() -> None:
    program = operations(profiled("llama_blocks.py"))
    gathers = [
        n for n, step in enumerate(program.steps) if step.kind == "all_gather" and step.phase == "forward"
    ]
    second, third = gathers[1], gathers[2]
    uses = next(
        n for n, step in enumerate(program.steps)
        if step.kind == "compute" and step.stream == "compute" and second in before(program, n)
    )  # fmt: skip
    assert uses not in before(program, third), "the third gather doesn't wait for what the second is for"


def test_without_resharding_as_zero_2_parameters_are_gathered_once() -> None:
    made = profiled("llama_blocks.py", "--no-reshard")
    assert sizes(made, "all_gather", "dp_shard") == {BLOCK * 2 // 8: L, ROOT * 2 // 8: 1}
    assert sizes(made, "reduce_scatter", "dp_shard") == {BLOCK * 4: L, ROOT * 4: 1}


def test_tensor_parallel_reduces_hidden_states() -> None:
    made = profiled("llama_blocks.py", "--tp", "4")
    assert made.mesh == {"dp_shard": 2, "tp": 4}
    # Forward: after attention and after the MLP. Backward: the input's gradient of each column-split matrix.
    assert sizes(made, "all_reduce", "tp") == {TOKENS * H * 2: L * (2 + 5)}
    own = 2 * TOKENS * (L * (4 * H * H + 3 * H * F) // 4 + H * V) + ATTENTION // 4
    assert flops(made, "forward") == own


def test_sequence_parallel_gathers_and_scatters_instead() -> None:
    made = profiled("llama_blocks.py", "--tp", "4", "--sp")
    hidden, logits = TOKENS * H * 2, TOKENS * V * 2
    assert sizes(made, "all_gather", "tp") == {hidden // 4: 4 * L + 2, logits // 4: 1}
    assert sizes(made, "reduce_scatter", "tp") == {hidden: 4 * L + 2}
    assert sizes(made, "all_reduce", "tp") == {H * 2: 2 * L + 1}  # gradients of the norms' weights


def test_context_parallel_gathers_keys_and_passes_gradients_round() -> None:
    made = profiled("llama_blocks.py", "--cp", "4")
    assert made.mesh == {"dp_shard": 2, "cp": 4}
    local = TOKENS // 4 * H
    assert sizes(made, "all_gather", "cp") == {2 * local * 2: 2 * L}  # keys and values, bf16
    assert sizes(made, "shift", "cp") == {2 * local * 4: 4 * L}  # their gradients, fp32, once round
    workload = build(made, named_gpu("h100-sxm"))
    check(workload)  # each message that goes round has its receiver
    ends = {
        op.peer.offset for p in workload.programs for op in p.operations if op.peer and op.kind is OpKind.SEND
    }
    assert ends == {1, -3}
    assert len(workload.programs) == 3


@pytest.mark.parametrize("imbalance", [1.0, 1.25])
def test_expert_parallel_exchanges_the_busiest_ranks_tokens(imbalance: float) -> None:
    made = profiled("experts.py", imbalance=imbalance)
    tokens, hidden, ffn, top = 512, 256, 512, 2
    arriving = int(tokens * top * imbalance)
    assert sizes(made, "all_to_all", "dp") == {8 * 8: 1, arriving * hidden * 2: 3}
    experts = 2 * arriving * 2 * hidden * ffn
    assert flops(made, "forward") == experts + 2 * tokens * hidden * 16
    assert any("routed evenly" in text for text in made.assumed)


def test_pipeline_1f1b_sends_each_micro_batch_both_ways_and_warms_up() -> None:
    made = profiled("pipeline_mlp.py", "--pp", "3", "--layers", "6", world_size=6)
    assert made.mesh == {"dp": 2, "pp": 3}
    assert [p.at for p in made.programs] == [{"pp": 0}, {"pp": 1}, {"pp": 2}]
    rows, width, batches = 64, 256, 8
    message = rows * width * 4
    for stage in range(3):
        neighbours = (stage > 0) + (stage < 2)
        assert sizes(made, "send", "pp", stage) == {message: batches * neighbours}
        assert sizes(made, "recv", "pp", stage) == {message: batches * neighbours}
        layer = 2 * rows * width * width * batches
        assert flops(made, "forward", stage) == 2 * layer
        assert flops(made, "backward", stage) == (4 - (stage == 0)) * layer
        steps = made.programs[stage].steps
        products = [
            step.phase for step in steps if any(made.kernels[k][1] == "matmul" for k, _ in step.kernels)
        ]
        ahead = products.index("backward") // 2  # two layers a stage
        assert ahead == 3 - stage, "forwards before the first backward"
    workload = build(made, named_gpu("h100-sxm"))
    check(workload)
    assert np.array_equal(workload.program_of, [0, 1, 2, 0, 1, 2])


@pytest.mark.slow
@pytest.mark.parametrize(
    (
        "schedule",
        "borders",
    ),  # between stages that two ranks hold: in a V, the stages at its tip are one rank's
    [("gpipe", 1), ("interleaved", 3), ("interleaved-zb", 3), ("zbv", 2), ("dualpipev", 2)],
)
def test_other_schedules(schedule: str, borders: int) -> None:
    made = profiled("pipeline_mlp.py", "--pp", "2", "--schedule", schedule, world_size=2)
    sent = [sum(sizes(made, "send", "pp", stage).values()) for stage in range(2)]
    assert sum(sent) == 2 * borders * 8, "each border is crossed both ways"
    rows, width, layers, batches = 64, 256, 8, 8
    own = 2 * rows * width * width * batches * layers // 2
    assert [flops(made, "forward", stage) for stage in range(2)] == [own, own]
    first = 2 * rows * width * width * batches  # nobody asks for the gradient of the pipeline's own input
    assert sum(flops(made, "backward", stage) for stage in range(2)) == 4 * own - first
    phases = [step.phase for step in made.programs[0].steps if step.kernels]
    if schedule == "gpipe":
        assert (
            "forward"
            not in phases[phases.index("backward") : len(phases) - 1 - phases[::-1].index("backward")]
        )
    check(build(made, named_gpu("h100-sxm")))


@pytest.mark.slow
def test_hybrid_sharding_reduces_between_replicas() -> None:
    made = profiled("llama_blocks.py", "--replicate", "2")
    assert made.mesh == {"dp_replicate": 2, "dp_shard": 4}
    assert sizes(made, "all_reduce", "dp_replicate") == {BLOCK * 4 // 4: L, ROOT * 4 // 4: 1}
