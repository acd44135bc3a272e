"""A profile beside real gloo processes: the same products and collectives, in the same order."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.profiler.launch import ProfileRequest, profile
from tests.lab.benchmarks.public_scripts import issued
from tests.lab.benchmarks.real_ranks import run
from tests.profiler.profiled import SCRIPTS, needs_torch, profiled

pytestmark = [needs_torch, pytest.mark.slow]

ASKS_MUCH_OF_CUDA = """
import os, torch, torch.distributed as dist
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
device = torch.device("cuda", torch.cuda.current_device())
assert device.type == "cuda" and torch.cuda.get_device_properties(device).multi_processor_count
dist.init_process_group("nccl", device_id=device)
pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])][local // 2]
own = [dist.new_group([rank]) for rank in range(4)][local]
torch.cuda.set_rng_state(torch.cuda.get_rng_state())
weight = torch.nn.Parameter(torch.ones(8, 8, dtype=torch.bfloat16, device=torch.cuda.current_device()))
assert weight.type() == "torch.cuda.BFloat16Tensor"
optimizer, aside = torch.optim.AdamW([weight]), torch.cuda.Stream()
for _ in range(4):
    (torch.ones(4, 8, dtype=torch.bfloat16, device="cuda").pin_memory() @ weight).sum().backward()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside), dist._coalescing_manager(pairs):
        dist.all_reduce(weight.grad, group=pairs)
    happened = aside.record_event()
    dist.all_reduce(weight.grad, group=own)
    got, peer = torch.empty_like(weight.grad), local ^ 1
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, weight.grad, peer),
                                        dist.P2POp(dist.irecv, got, peer)]):
        work.wait()
    torch.cuda.current_stream().wait_event(happened)
    optimizer.step()
    optimizer.zero_grad()
"""


def test_four_gloo_processes_issue_what_the_profile_has() -> None:
    script = "plain_gpt.py"
    real = run(4, str(SCRIPTS / script), ("--evaluations=1", "--steps=5"))
    assert real == issued(profiled(script, world_size=4))
    assert [kind for kind, _ in real if kind != "product"] == ["all_reduce"]


def test_streams_groups_and_messages_are_carried_out_on_the_host(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(ASKS_MUCH_OF_CUDA)
    real = run(4, str(script), ())
    assert real == issued(profile(ProfileRequest(str(script), world_size=4))[0])
    # 4 x 8 by 8 x 8, and its gradient's; of 64 numbers of two bytes: what a pair exchanges, nobody alone.
    exchanged = [("all_reduce", 128), ("send", 128), ("recv", 128)]
    assert real == [("product", 512), ("product", 512), *exchanged]


def test_ddp_compares_parameters_once(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text((SCRIPTS / "ddp_mlp.py").read_text())
    arguments = ("--layers=2", "--width=16", "--batch=4")
    first = profile(ProfileRequest(str(script), arguments, world_size=4, iteration=0))[0]
    real = run(4, str(script), arguments, iteration=0)
    assert real == issued(first)
    # A count; shapes and strides of two weights and two biases, 2 x (4 + 2) numbers; the parameters.
    assert real[:3] == [("all_gather", 8), ("broadcast", 96), ("broadcast", 4 * 2 * (16 * 16 + 16))]
