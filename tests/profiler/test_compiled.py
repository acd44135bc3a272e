"""``torch.compile``: launches, bytes and breaks against what kernels have to move and eager execution."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from cosim.errors import WorkloadError
from cosim.profiler.file import Profile
from cosim.profiler.launch import ProfileRequest, profile
from tests.profiler.profiled import SCRIPTS, flops, needs_torch, profiled, sizes

pytestmark = needs_torch

ROWS, WIDTH, BF16, F32 = 64, 256, 2, 4  # compiled.py's
ROW = ROWS * WIDTH * BF16
STATISTICS = 2 * ROWS * F32
WEIGHTS = 2 * WIDTH * BF16


def generated(made: Profile) -> Counter[tuple[str, int]]:
    """Phase and bytes of each kernel that Inductor would generate."""
    return Counter(
        (step.phase, made.kernels[k][4])
        for step in made.programs[0].steps
        for k, _ in step.kernels
        if made.kernels[k][0].startswith("inductor.")
    )


def products(made: Profile) -> Counter[tuple[int, ...]]:
    """Batch, rows, inner and columns of each product."""
    return Counter(
        made.kernels[k][5:]
        for step in made.programs[0].steps
        for k, _ in step.kernels
        if made.kernels[k][1] == "matmul"
    )


def test_what_is_fused_moves_its_inputs_and_outputs_once() -> None:
    made = profiled("compiled.py", world_size=1)
    found = generated(made)
    assert found["forward", 2 * ROW + WEIGHTS + STATISTICS] == 1  # layer norm
    assert found["forward", 2 * 4 * ROW] == 1  # gelu
    assert found["backward", 3 * 4 * ROW] == 1  # its backward, and no gelu made again
    assert found.total() == 4
    for phase, times in (("forward", 2), ("backward", 4)):
        assert flops(made, phase) == times * 2 * ROWS * WIDTH * 4 * WIDTH
    told = made.made["compiled"]
    assert told["launches"] == 4 + 6
    assert told["graph breaks"] == {}


@pytest.mark.slow
def test_products_are_those_of_eager_execution() -> None:
    made, _ = profile(ProfileRequest(str(SCRIPTS / "compiled.py"), compile=False))
    assert products(made) == products(profiled("compiled.py", world_size=1))
    assert any("taken for eager" in text for text in made.assumed)
    assert "compiled" not in made.made


@pytest.mark.slow
def test_a_graph_breaks_where_the_script_prints() -> None:
    made = profiled("compiled.py", "--breaks", world_size=1)
    told = made.made["compiled"]
    assert told["graphs"] == 4  # twice forward, twice backward
    line = next(
        n for n, text in enumerate((SCRIPTS / "compiled.py").read_text().splitlines(), 1) if "print(" in text
    )
    (where,) = told["graph breaks"]
    assert where.startswith(f"compiled.py:{line}:")
    assert generated(made) == generated(profiled("compiled.py", world_size=1))


@pytest.mark.slow
def test_cuda_graphs_launch_all_of_a_graph_after_a_copy_of_its_inputs() -> None:
    made = profiled("compiled.py", "--mode", "reduce-overhead", world_size=1)
    steps = made.programs[0].steps
    assert sum(step.graphed for step in steps) == made.made["compiled"]["launches"]
    copies = [made.kernels[k][4] for s in steps for k, _ in s.kernels if "cudagraph" in made.kernels[k][0]]
    assert copies == [2 * ROW, 2 * ROW]  # the batch and the gradient; parameters stay where they are


@pytest.mark.slow
@pytest.mark.parametrize("argument", ["--mode", "--backend"])
def test_what_torch_does_not_know_is_its_own_error(argument: str) -> None:
    with pytest.raises(WorkloadError, match="nosuch"):
        profile(ProfileRequest(str(SCRIPTS / "compiled.py"), (argument, "nosuch")))


PARALLEL = """
import os, sys
import torch
from torch import distributed as dist, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(256, 1024, bias=False), nn.Linear(1024, 256, bias=False)

    def forward(self, x):
        return x + self.down(nn.functional.silu(self.up(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = Model().cuda().bfloat16()
if sys.argv[1] == "tp":
    mesh = init_device_mesh("cuda", (dist.get_world_size(),), mesh_dim_names=("tp",))
    for block in model.blocks:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    model = torch.compile(model)
elif sys.argv[1] == "fsdp":
    for block in model.blocks:
        block.compile()
        fully_shard(block)
    fully_shard(model)
else:
    model = torch.compile(DistributedDataParallel(model))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(64, 256, device="cuda", dtype=torch.bfloat16)).sum().backward()
    optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["tp", "fsdp", "ddp"])
def test_collectives_and_products_are_those_of_eager_execution(how: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(PARALLEL)
    compiled, _ = profile(ProfileRequest(str(path), (how,), world_size=4))
    eager, _ = profile(ProfileRequest(str(path), (how,), world_size=4, compile=False))
    assert compiled.made["compiled"]["fused"] > 0
    assert products(compiled) == products(eager)
    axis = "tp" if how == "tp" else "dp"
    for kind in ("all_reduce", "all_gather", "reduce_scatter"):
        assert sizes(compiled, kind, axis) == sizes(eager, kind, axis)


@pytest.mark.slow
def test_dropout_is_compiled_with_its_seed(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("""
import torch

model = torch.nn.Linear(256, 256, device="cuda")
dropped = torch.compile(lambda x, y: torch.nn.functional.dropout(x, 0.1) + y)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    x = torch.empty(64, 256, device="cuda")
    dropped(model(x), x).sum().backward()
    optimizer.step()
""")
    made, _ = profile(ProfileRequest(str(path), world_size=1))
    assert not any("not compiled" in text for text in made.assumed)
    forward = Counter(
        (made.kernels[k][0].partition("_")[0], made.kernels[k][4])
        for step in made.programs[0].steps
        for k, _ in step.kernels
        if step.phase == "forward" and made.kernels[k][0].startswith(("inductor.", "prims."))
    )
    numbers = 64 * 256
    mask, seed = numbers, 8
    assert forward == {("prims.inductor", seed): 1, ("inductor.poi", 3 * numbers * F32 + mask + seed): 1}
