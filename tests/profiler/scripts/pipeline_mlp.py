"""A pipeline of Linear layers: GPipe, 1F1B, interleaved, or without bubbles."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleZBVZeroBubble,
)
from torch.distributed.pipelining.schedules import ScheduleDualPipeV

parser = argparse.ArgumentParser()
parser.add_argument("--schedule", default="1f1b")
for name, value in dict(pp=4, layers=8, width=256, rows=64, microbatches=8).items():
    parser.add_argument(f"--{name}", type=int, default=value)
options = parser.parse_args()

dist.init_process_group("nccl")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
mesh = init_device_mesh(
    "cuda", (dist.get_world_size() // options.pp, options.pp), mesh_dim_names=("dp", "pp")
)
group, place = mesh["pp"].get_group(), mesh["pp"].get_local_rank()
chunks = 1 if options.schedule in ("gpipe", "1f1b") else 2
num_stages = options.pp * chunks
numbers = [place + k * options.pp for k in range(chunks)]
if options.schedule in ("zbv", "dualpipev"):  # down and up again
    numbers = [place, num_stages - 1 - place]
each = options.layers // num_stages
modules = [
    nn.Sequential(*[nn.Linear(options.width, options.width, bias=False, device=device) for _ in range(each)])
    for _ in range(chunks)
]
stages = [
    PipelineStage(module, number, num_stages, device, group=group)
    for number, module in zip(numbers, modules, strict=True)
]
schedule_of = {
    "gpipe": ScheduleGPipe,
    "1f1b": Schedule1F1B,
    "interleaved": ScheduleInterleaved1F1B,
    "interleaved-zb": ScheduleInterleavedZeroBubble,
    "zbv": ScheduleZBVZeroBubble,
    "dualpipev": ScheduleDualPipeV,
}
schedule = schedule_of[options.schedule](
    stages if chunks > 1 else stages[0], options.microbatches, loss_fn=lambda y, t: (y - t).pow(2).mean()
)
optimizer = torch.optim.SGD([p for module in modules for p in module.parameters()], lr=1e-2)
x = torch.randn(options.rows * options.microbatches, options.width, device=device)
for _ in range(3):
    optimizer.zero_grad()
    inputs = (x,) if 0 in numbers else ()
    schedule.step(*inputs, **({"target": x} if num_stages - 1 in numbers else {}))
    optimizer.step()
