"""Llama blocks in plain PyTorch, under any of FSDP2, tensor and sequence parallelism, context parallelism."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

parser = argparse.ArgumentParser()
for name, value in dict(
    layers=2, hidden=512, heads=8, ffn=1024, vocab=1024, batch=2, seq=256, tp=1, cp=1
).items():
    parser.add_argument(f"--{name}", type=int, default=value)
parser.add_argument("--sp", action="store_true")
parser.add_argument("--no-reshard", action="store_true")
parser.add_argument("--replicate", type=int, default=1)
options = parser.parse_args()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = options.hidden // options.heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(options.hidden, options.hidden, bias=False) for _ in range(4)
        )

    def forward(self, x):
        q, k, v = (p(x).unflatten(-1, (-1, self.head)).transpose(1, 2) for p in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
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

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(options.vocab, options.hidden)
        self.blocks = nn.ModuleList(Block() for _ in range(options.layers))
        self.norm = nn.RMSNorm(options.hidden)
        self.head = nn.Linear(options.hidden, options.vocab, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
shards = dist.get_world_size() // options.tp // options.cp // options.replicate
mesh = init_device_mesh(
    "cuda",
    (options.replicate, shards, options.cp, options.tp),
    mesh_dim_names=("dp_replicate", "dp_shard", "cp", "tp"),
)
with torch.device("cuda"):
    model = Model()
if options.tp > 1:
    split = {
        "attention.q": ColwiseParallel(),
        "attention.k": ColwiseParallel(),
        "attention.v": ColwiseParallel(),
        "attention.o": RowwiseParallel(output_layouts=Shard(1) if options.sp else None),
        "mlp.gate": ColwiseParallel(),
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(output_layouts=Shard(1) if options.sp else None),
    }
    if options.sp:
        gather = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
        split |= {
            "norm1": SequenceParallel(),
            "norm2": SequenceParallel(),
            "attention": gather,
            "mlp": gather,
        }
    for block in model.blocks:
        parallelize_module(block, mesh["tp"], split)
    if options.sp:
        whole = {
            "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "norm": SequenceParallel(),
            "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
        }
        parallelize_module(model, mesh["tp"], whole)
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
data_mesh = mesh["dp_replicate", "dp_shard"] if options.replicate > 1 else mesh["dp_shard"]
if shards > 1 or options.replicate > 1:
    for block in model.blocks:
        fully_shard(block, mesh=data_mesh, mp_policy=policy, reshard_after_forward=not options.no_reshard)
    fully_shard(model, mesh=data_mesh, mp_policy=policy)
else:
    model.to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(3):
    tokens = torch.randint(options.vocab, (options.batch, options.seq), device="cuda")
    labels = torch.randint(options.vocab, (options.batch, options.seq), device="cuda")
    if options.cp > 1:
        with context_parallel(mesh["cp"], buffers=[tokens, labels], buffer_seq_dims=[1, 1]):
            logits = model(tokens)
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
            loss.backward()
    else:
        loss = F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
