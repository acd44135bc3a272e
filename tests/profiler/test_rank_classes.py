"""Stages that are parted by hand: groups of two ranks, messages that tell shapes, and all ranks together."""

from __future__ import annotations

from pathlib import Path

from cosim.profiler.launch import ProfileRequest, profile
from tests.profiler.profiled import needs_torch

pytestmark = needs_torch

PIPELINE = """
import torch, torch.distributed as dist
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
replicas = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
model = torch.nn.Linear(4, 6).cuda() if rank < 2 else torch.nn.Linear(6, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    if rank < 2:
        out = model(torch.randn(8, 4, device="cuda"))
        dist.send(torch.tensor(out.shape, device="cuda"), rank + 2)
        dist.send(out, rank + 2)
        back = torch.empty_like(out)
        dist.recv(back, rank + 2)
        out.backward(back)
    else:
        shape = torch.zeros(2, dtype=torch.int64, device="cuda")
        dist.recv(shape, rank - 2)
        x = torch.empty(shape.tolist(), device="cuda", requires_grad=True)
        dist.recv(x.data, rank - 2)
        model(x).sum().backward()
        dist.send(x.grad, rank - 2)
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, group=replicas)
    dist.all_reduce(torch.ones(1, device="cuda"))
    optimizer.step()
"""


def test_two_stages_of_two_replicas_are_two_classes_and_the_last_rank_learns_its_inputs_shape(
    tmp_path: Path,
) -> None:
    path = tmp_path / "train.py"
    path.write_text(PIPELINE)
    made, _ = profile(ProfileRequest(str(path), world_size=4, verify=True))
    assert made.mesh == {"axis2": 2, "axis1": 2}
    assert [program.at for program in made.programs] == [{"axis2": 0}, {"axis2": 1}]
    assert made.made["verified"] == 3
    first, last = (
        sum(made.kernels[k][3] * n for step in program.steps for k, n in step.kernels)
        for program in made.programs
    )
    assert first == 2 * (2 * 8 * 4 * 6)  # forward, and the weight's gradient
    assert last == 3 * (2 * 8 * 6 * 2)  # and the input's
    sent = [s.size_bytes for s in made.programs[0].steps if s.kind == "send"]
    assert sent == [2 * 8, 8 * 6 * 4]
