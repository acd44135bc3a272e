"""A row of layers that are alike, or that only look alike; under FSDP2, tensor parallelism, checkpoints."""

import argparse
import os
import random

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--layers", type=int, default=6)
parser.add_argument("--steps", type=int, default=2)
parser.add_argument("--microbatches", type=int, default=2)
for name in (
    "fsdp tp wrapped checkpoint reentrant every-second autocast keep-gradients frozen in-place"
    " numbered fifth remembers draws reads hooked shared experts tapped halves fused accumulating"
).split():
    parser.add_argument(f"--{name}", action="store_true")
options = parser.parse_args()
WIDTH = 64
seen = []


class Layer(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number = number
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, scale=None):
        y = self.down(F.gelu(self.up(self.norm(x))))
        if scale is not None:
            y = y * scale
        if options.in_place:
            x += y
            return x
        return x + y


class Fifth(Layer):
    def forward(self, x, scale=None):
        x = super().forward(x, scale)
        return x * 2 if self.number == 4 else x


class Remembers(Layer):
    last = 0

    def forward(self, x, scale=None):
        self.last = super().forward(x, scale)
        return self.last


class Draws(Layer):
    def forward(self, x, scale=None):
        return super().forward(x, scale) if random.random() < 0.7 else x + 1


class Reads(Layer):
    def forward(self, x, scale=None):
        x = super().forward(x, scale)
        return x if x.sum().item() > 3 else x * 2


class Experts(Layer):
    def __init__(self, number):
        super().__init__(number)
        self.router = nn.Linear(WIDTH, 4)

    def forward(self, x, scale=None):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        counts = torch.bincount(chosen.flatten(), minlength=4).tolist()
        parts = x.flatten(0, 1).repeat(2, 1).split(counts)
        y = torch.cat([super(Experts, self).forward(part) for part in parts])
        return x + y.unflatten(0, (2, *x.shape[:2])).sum(0) * weights.sum(-1, keepdim=True)


class Halves(Layer):
    def forward(self, x, scale=None):
        x = super().forward(x, scale)
        return x, x.float().mean(-1)


kinds = dict(fifth=Fifth, remembers=Remembers, draws=Draws, reads=Reads, experts=Experts, halves=Halves)
kind = next((cls for name, cls in kinds.items() if getattr(options, name)), Layer)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        made = [kind(n if options.fifth or options.numbered else 0) for n in range(options.layers)]
        if options.every_second:
            made = [Experts(0) if n % 2 else Layer(0) for n in range(options.layers)]
        if options.shared:
            for each in made[1:]:
                each.down = made[0].down
        if options.wrapped:
            made = [checkpoint_wrapper(each) for each in made]
        self.layers = nn.ModuleList(made)
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        x = self.first(x)
        extra = 0
        scale = self.scale.exp() if options.accumulating else None
        for n, layer in enumerate(self.layers):
            if options.checkpoint or options.reentrant:
                x = checkpoint(layer, x, scale, use_reentrant=options.reentrant)
            else:
                x = layer(x, scale)
            if options.halves:
                x, more = x
                extra = extra + more.sum()
            if options.tapped and n == 3:
                extra = extra + x.float().pow(2).sum()
        return x.float().sum() + extra


dist.init_process_group("nccl")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
tp = 2 if options.tp else 1
mesh = init_device_mesh("cuda", (dist.get_world_size() // tp, tp), mesh_dim_names=("dp", "tp"))
model = Model().to(device)
if options.frozen:
    model.first.requires_grad_(False)
if options.hooked:
    model.layers[5].up.register_forward_hook(lambda *given: seen.append(given[2].pow(2)))
if options.tp:
    for layer in model.layers:
        parallelize_module(layer, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
if options.fsdp:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh["dp"], mp_policy=policy)
    fully_shard(model, mesh=mesh["dp"], mp_policy=policy)
optimizer = torch.optim.AdamW(
    model.parameters(), lr=1e-3, fused=options.fused, foreach=False if options.tp else None
)
for _ in range(options.steps):
    for _ in range(options.microbatches):
        with torch.autocast("cuda", torch.bfloat16, enabled=options.autocast):
            loss = model(torch.randn(4, 16, WIDTH, device=device))
        loss.backward()
    if not options.tp:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=not options.keep_gradients)
