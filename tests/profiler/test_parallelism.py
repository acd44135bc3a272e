"""A script under another data parallelism than its own, beside scripts that are written that way."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.errors import InputError, WorkloadError
from cosim.profiler.file import Profile
from cosim.profiler.launch import PARALLELISMS, ProfileRequest, profile
from tests.lab.benchmarks.public_scripts import issued
from tests.lab.benchmarks.real_ranks import run
from tests.profiler.profiled import SCRIPTS, needs_torch

pytestmark = needs_torch

OWN = """
import os, torch, torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
class Layer(torch.nn.Linear):
    def forward(self, x):
        {inside}
        return super().forward(x)
model = {wrapped}
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    loss = model(torch.ones(4, 8, device="cuda")).sum()
    loss.backward()
    dist.all_reduce(loss.detach())
    optimizer.step()
"""


def exchanged(how: str, script: str = "plain_gpt.py", *arguments: str) -> Profile:
    """A script's profile, exchanged for ``how`` unless its arguments say it (``by_hand.py``)."""
    asked = "" if how in arguments else how
    path = str(SCRIPTS / script)
    return profile(ProfileRequest(path, arguments, world_size=4, per_node=2, parallelism=asked))[0]


def same(one: Profile, other: Profile) -> bool:
    return (one.mesh, one.kernels, one.programs) == (other.mesh, other.kernels, other.programs)


def refused(folder: Path, how: str, inside: str, wrapped: str) -> str:
    (folder / "train.py").write_text(OWN.format(inside=inside, wrapped=wrapped))
    with pytest.raises(WorkloadError) as error:
        profile(ProfileRequest(str(folder / "train.py"), world_size=4, parallelism=how))
    return str(error.value)


def test_ddp_as_hsdp_is_the_script_written_that_way() -> None:
    asked, written = exchanged("hsdp"), exchanged("hsdp", "by_hand.py", "hsdp")
    assert same(asked, written)
    assert any("hsdp in place of DDP: fully_shard of 2 Block and the rest" in text for text in asked.assumed)


def test_fsdp_as_ddp_is_the_script_written_that_way() -> None:
    asked = exchanged("ddp", "by_hand.py", "zero3")
    assert same(asked, exchanged("ddp"))
    assert any("ddp in place of fully_shard: DDP of Model" in text for text in asked.assumed)


@pytest.mark.slow
def test_fsdp_as_zero1_is_the_script_written_that_way() -> None:
    assert same(exchanged("zero1", "by_hand.py", "zero2"), exchanged("zero1", "by_hand.py", "zero1"))


@pytest.mark.slow
def test_fsdp_as_ddp_sums_gradients_when_the_script_says_so(tmp_path: Path) -> None:
    """Two passes an iteration, of which the second sums."""

    def accumulating(wrapped: str, sums: str, how: str) -> Profile:
        text = OWN.format(inside="pass", wrapped=f"{wrapped}(Layer(8, 8).cuda())")
        text = text.replace(
            "for _ in range(3):", f"for step in range(6):\n    last = step % 2 == 1\n    {sums}"
        )
        text = text.replace("    optimizer.step()", "    if last: optimizer.step()")
        (tmp_path / "train.py").write_text(text)
        return profile(ProfileRequest(str(tmp_path / "train.py"), world_size=4, parallelism=how))[0]

    asked = accumulating("fully_shard", "model.set_requires_gradient_sync(last)", "ddp")
    assert same(asked, accumulating("DistributedDataParallel", "model.require_backward_grad_sync = last", ""))


@pytest.mark.slow
@pytest.mark.parametrize("how", PARALLELISMS[1:])
def test_four_gloo_processes_of_the_script_written_that_way_issue_the_same(how: str) -> None:
    asked, written = exchanged(how), exchanged(how, "by_hand.py", how)
    assert same(asked, written)
    assert issued(asked) == run(4, str(SCRIPTS / "by_hand.py"), (how,))


@pytest.mark.parametrize(
    ("how", "inside", "wrapped", "said"),
    [
        ("zero3", "dist.all_reduce(x)", "DistributedDataParallel(Layer(8, 8).cuda())",
         "train.py:9: a module's own all_reduce can't be kept under zero3"),
        ("zero2", "pass", "Layer(8, 8).cuda()", "wraps no model in DDP or fully_shard"),
        ("ddp", "pass", "fully_shard(Layer(8, 8).cuda(), mp_policy=MixedPrecisionPolicy(torch.bfloat16))",
         "train.py:11: fully_shard with a mp_policy can't be exchanged for ddp: use autocast"),
        ("hsdp", "pass", "DistributedDataParallel(Layer(8, 8).cuda())", "two whole hosts or more"),
    ],
)  # fmt: skip
def test_what_cannot_be_exchanged(tmp_path: Path, how: str, inside: str, wrapped: str, said: str) -> None:
    assert said in refused(tmp_path, how, inside, wrapped)


def test_a_parallelism_that_is_none() -> None:
    with pytest.raises(InputError, match="parallelism is 'zero4'"):
        profile(ProfileRequest(str(SCRIPTS / "plain_gpt.py"), parallelism="zero4"))
