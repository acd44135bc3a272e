"""Llama 3 in plain PyTorch under FSDP2 x tensor and sequence parallel x pipeline (1F1B). Defaults: a tiny one."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

parser = argparse.ArgumentParser()
sizes = dict(layers=4, hidden=256, heads=8, kv_heads=4, ffn=512, vocab=1024, seq=128)
for name, value in dict(sizes, batch=1, microbatches=2, tp=2, pp=2).items():
    parser.add_argument(f"--{name}", type=int, default=value)
options = parser.parse_args()


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = options.hidden // options.heads
        kv = options.kv_heads * self.head
        self.q = nn.Linear(options.hidden, options.hidden, bias=False)
        self.k = nn.Linear(options.hidden, kv, bias=False)
        self.v = nn.Linear(options.hidden, kv, bias=False)
        self.o = nn.Linear(options.hidden, options.hidden, bias=False)

    def forward(self, x, cos, sin):
        q, k, v = (p(x).unflatten(-1, (-1, self.head)).transpose(1, 2) for p in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(
            rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True, enable_gqa=True
        )
        return self.o(y.transpose(1, 2).flatten(-2))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(options.hidden, options.ffn, bias=False)
        self.up = nn.Linear(options.hidden, options.ffn, bias=False)
        self.down = nn.Linear(options.ffn, options.hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(options.hidden), nn.RMSNorm(options.hidden)
        self.attention, self.mlp = Attention(), Mlp()

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm1(x), cos, sin)
        return x + self.mlp(self.norm2(x))


class Stage(nn.Module):
    def __init__(self, layers, first, last):
        super().__init__()
        self.embedding = nn.Embedding(options.vocab, options.hidden) if first else None
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm = nn.RMSNorm(options.hidden) if last else None
        self.head = nn.Linear(options.hidden, options.vocab, bias=False) if last else None
        angles = torch.outer(
            torch.arange(options.seq), 5e5 ** -torch.arange(0, 1, 2 * options.heads / options.hidden)
        )
        table = torch.cat((angles, angles), -1)
        self.register_buffer("cos", table.cos().bfloat16(), persistent=False)
        self.register_buffer("sin", table.sin().bfloat16(), persistent=False)

    def forward(self, x):
        if self.embedding is not None:
            x = self.embedding(x)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return x if self.head is None else self.head(self.norm(x))


def split_over(stage, mesh):
    gather = PrepareModuleInput(
        input_layouts=(Shard(1), None, None), desired_input_layouts=(Replicate(), None, None)
    )
    plan = {
        "norm1": SequenceParallel(),
        "norm2": SequenceParallel(),
        "attention": gather,
        "attention.q": ColwiseParallel(),
        "attention.k": ColwiseParallel(),
        "attention.v": ColwiseParallel(),
        "attention.o": RowwiseParallel(output_layouts=Shard(1)),
        "mlp": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        "mlp.gate": ColwiseParallel(),
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(output_layouts=Shard(1)),
    }
    for block in stage.blocks:
        parallelize_module(block, mesh, plan)
    if stage.embedding is not None:
        layouts = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=True)
        parallelize_module(stage, mesh, {"embedding": layouts})
    if stage.head is not None:
        plan = {
            "norm": SequenceParallel(),
            "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
        }
        parallelize_module(stage, mesh, plan)


dist.init_process_group("nccl")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
shards = dist.get_world_size() // options.tp // options.pp
mesh = init_device_mesh("cuda", (options.pp, shards, options.tp), mesh_dim_names=("pp", "dp", "tp"))
place = mesh["pp"].get_local_rank()
# As Llama 3 has it: where layers don't divide, the first and the last stage have fewer.
each = -(-options.layers // options.pp)
short = options.pp * each - options.layers
layers = each - (short > 0) * (place == options.pp - 1) - (short > 1) * (place == 0)
with device:
    stage = Stage(layers, place == 0, place == options.pp - 1)
split_over(stage, mesh["tp"])
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
for block in stage.blocks:
    fully_shard(block, mesh=mesh["dp"], mp_policy=policy, reshard_after_forward=False)
fully_shard(stage, mesh=mesh["dp"], mp_policy=policy, reshard_after_forward=False)
pipeline = PipelineStage(stage, place, options.pp, device, group=mesh["pp"].get_group())
loss_of = lambda logits, labels: F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())  # noqa: E731
schedule = Schedule1F1B(pipeline, options.microbatches, loss_fn=loss_of)
optimizer = torch.optim.AdamW(stage.parameters(), lr=1e-4)
for _ in range(2):
    tokens = torch.randint(options.vocab, (options.batch * options.microbatches, options.seq), device=device)
    if place == 0:
        schedule.step(tokens)
    elif place == options.pp - 1:
        schedule.step(target=tokens)
    else:
        schedule.step()
    torch.nn.utils.clip_grad_norm_(stage.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
