"""What real scripts are full of, each run as it is written: it goes through, and counts as on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.errors import WorkloadError
from cosim.profiler import file
from cosim.profiler.file import Profile
from cosim.profiler.launch import ProfileRequest, profile
from cosim.profiler.lower import merged
from cosim.profiler.workload import build, named_gpu
from cosim.workload.program import CPU_STREAM
from tests.profiler.profiled import (
    SCRIPTS,
    flops,
    needs_torch,
    needs_transformers,
    operations,
    profiled,
    sizes,
)

pytestmark = needs_torch

WIDTH, LAYERS, ROWS, PARTS = 256, 3, 32, 2  # habits.py's
MATRICES = LAYERS * 8 * WIDTH * WIDTH
PARAMETERS = MATRICES + LAYERS * 5 * WIDTH


def test_accumulation_recomputation_scaling_and_logs_under_ddp() -> None:
    made = profiled("habits.py")
    assert flops(made, "forward") == PARTS * 2 * ROWS * MATRICES
    assert flops(made, "recompute") == PARTS * 2 * ROWS * MATRICES // 2, (
        "a block's last product is not needed"
    )
    assert flops(made, "backward") == PARTS * (4 * ROWS * MATRICES - 2 * ROWS * 4 * WIDTH * WIDTH)
    reduced = sizes(made, "all_reduce", "dp")
    assert sum(size * n for size, n in reduced.items()) == PARAMETERS * 4 + 4, (
        "once; and the loss that is logged"
    )
    assert any(
        made.kernels[k][0] == "aten._fused_adamw_" for s in made.programs[0].steps for k, _ in s.kernels
    )
    assert "checkpoints are not written" in made.assumed
    spawned = profiled("habits.py", "--spawn")
    assert spawned.programs == made.programs
    assert spawned.kernels == made.kernels


def test_fsdp1_gathers_halves_ahead_and_reduces_once() -> None:
    made = profiled("habits.py", "--fsdp1")
    unit = PARAMETERS // LAYERS
    gathered = sizes(made, "all_gather", "dp")
    assert set(gathered) == {unit * 2 // 8, unit * 4 // 8}
    assert gathered[unit * 4 // 8] == LAYERS, "the checkpoint's state is gathered whole, in full precision"
    assert sizes(made, "reduce_scatter", "dp") == {unit * 4: LAYERS}
    program = operations(made)
    first, second = [
        n for n, s in enumerate(program.steps) if s.kind == "all_gather" and s.size_bytes == unit * 2 // 8
    ][:2]
    uses = next(n for n, s in enumerate(program.steps) if s.stream == "compute" and first in s.deps)
    assert uses not in program.steps[second].deps, "the next gather does not wait for the first block"


def test_a_cuda_graph_is_replayed_whole_and_launched_once() -> None:
    made = profiled("graphs.py", world_size=1)
    products, attention = (
        2 * 512 * 256 * 768,
        4 * 2 * 4 * 256 * 256 * 64,
    )  # batch 2, heads 4, length 256, width 64
    assert flops(made, "forward") == products + attention
    assert flops(made, "backward") == products + attention * 5 // 2  # nobody asks for the input's gradient
    program = operations(made)
    assert [(s.phase, s.graphed) for s in program.steps] == [
        ("forward", False), ("forward", True), ("backward", True), ("optimizer", True)
    ]  # fmt: skip
    launched = [
        op for op in build(made, named_gpu("h100-sxm")).programs[0].operations if op.stream == CPU_STREAM
    ]
    assert len(launched) == len([s for s in made.programs[0].steps if not s.graphed]), (
        "the rest, the graph launches"
    )
    assert made.unknown == {"triton.scale_kernel": 1}
    half = 2 * 256 * 256 * 2
    assert ("triton.scale_kernel", "memory", "bf16", 0, 2 * half, 0, 0, 0, 0) in made.kernels


def test_parameters_keep_their_marks_where_a_gpu_run_does() -> None:
    made = profiled("marked.py")
    # Cast and moved they keep them; out of `meta` torch makes new ones, which are reduced.
    assert sizes(made, "all_reduce", "dp") == {2 * 16 * 16: 1, 2 * 16 * 8: 1}


def test_graphed_steps_are_written_and_read(tmp_path: Path) -> None:
    made = profiled("graphs.py", world_size=1)
    file.write(made, tmp_path / "job.yaml")
    assert file.read(tmp_path / "job.yaml") == made
    text = (tmp_path / "job.yaml").read_text().replace('"graph"]', '"grapf"]')
    (tmp_path / "job.yaml").write_text(text)
    with pytest.raises(WorkloadError, match="only `graph` may stand there"):
        file.read(tmp_path / "job.yaml")


@needs_transformers
def test_transformers_mixtral_routes_tokens_evenly() -> None:
    made = profiled("hf_moe.py", world_size=1)
    h, f, v, kv, tokens, layers, experts, top = 256, 512, 1000, 128, 4 * 128, 2, 8, 2
    matrices = layers * (2 * h * h + 2 * h * kv + h * experts + top * 3 * h * f) + h * v
    attention = layers * 4 * 4 * 128 * 128 * h
    rotary = 2 * 128 * 32 // 2
    assert 0 <= flops(made, "forward") - (2 * tokens * matrices + attention) <= 16 * rotary
    assert flops(made, "backward") == 4 * tokens * matrices + attention * 5 // 2
    assert any("routed evenly: 1024 over 8 experts" in text for text in made.assumed)


_ASKING = """
import torch, torch.distributed.checkpoint as dcp
name, capability = torch.cuda.get_device_name(), torch.cuda.get_device_capability()
halves = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
draw = torch.Generator(device="cuda").manual_seed(1)
model = torch.nn.Linear(64, 64, device="cuda", dtype=halves)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    x = model(torch.randn(2, 4, 128, 64, device="cuda", dtype=halves, generator=draw))
    torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True).mean().backward()
    optimizer.step()
    dcp.save({"model": model.state_dict()}, checkpoint_id="never-written")
assert (name, capability) == {expected}, (name, capability)
"""


@pytest.mark.parametrize(
    ("gpu", "expected", "kernel"),
    [
        (
            "v100-sxm2",
            ("Tesla V100-SXM2-32GB", (7, 0)),
            ("aten._scaled_dot_product_efficient_attention", "fp16"),
        ),
        (
            "a100-80gb",
            ("NVIDIA A100-SXM4-80GB", (8, 0)),
            ("aten._scaled_dot_product_flash_attention", "bf16"),
        ),
    ],
)
def test_a_script_sees_the_gpu_that_it_is_profiled_for(
    tmp_path: Path, gpu: str, expected: tuple[str, tuple[int, int]], kernel: tuple[str, str]
) -> None:
    (tmp_path / "train.py").write_text(_ASKING.replace("{expected}", repr(expected)))
    made, _ = profile(ProfileRequest(str(tmp_path / "train.py"), gpu=gpu, iteration=2))
    assert kernel in {(name, dtype) for name, _, dtype, *_ in made.kernels}
    assert "checkpoints are not written" in made.assumed
    assert not list(tmp_path.glob("never*"))


def _refused(folder: Path, body: str, world_size: int = 4) -> str:
    path = folder / "train.py"
    path.write_text(body)
    with pytest.raises(WorkloadError) as caught:
        profile(ProfileRequest(str(path), world_size=world_size))
    return str(caught.value)


def test_a_script_that_decides_its_own_world_is_told_which_to_profile() -> None:
    with pytest.raises(
        WorkloadError, match=r"world_size=8, but this is rank 0 of 64: profile with the --world-size"
    ):
        profile(ProfileRequest(str(SCRIPTS / "habits.py"), ("--spawn",), world_size=64))


def test_ranks_that_a_script_starts_by_itself_are_said_not_to_be_followed(tmp_path: Path) -> None:
    body = (
        "from torch.multiprocessing import get_context\n"
        "rank = get_context('fork').Process(target=print)\nrank.start()\nrank.join()\n"
    )
    assert "started 1 processes of its own, which are not followed" in _refused(tmp_path, body)


def test_a_process_that_is_killed_is_an_error_and_no_hang(tmp_path: Path) -> None:
    text = _refused(
        tmp_path, "import os, sys\nprint('so long', file=sys.stderr, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    assert "rank 0's process was ended by SIGKILL without an answer (exit code -9)" in text
    assert "so long" in text


def test_buckets_that_fill_differently_are_named_where_no_law_holds() -> None:
    from cosim.profiler.scale import profile_scaled

    request = ProfileRequest(str(SCRIPTS / "ddp_mlp.py"), ("--width=512",), world_size=4)
    with pytest.raises(WorkloadError, match=r"no law that holds at 12[\s\S]*exchanged in buckets"):
        profile_scaled(request, ["layers=2,6,12"], ["layers=64"], lambda _: None)


def test_merging_keeps_graphs_apart() -> None:
    made: Profile = profiled("graphs.py", world_size=1)
    steps = merged(made.programs[0].steps)
    assert sum(len(s.kernels) for s in steps if s.graphed) > 3
