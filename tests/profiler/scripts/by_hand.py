"""What ``plain_gpt.py`` does, in a data parallelism written by hand: by_hand.py zero1|zero2|zero3|hsdp."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from plain_gpt import WORDS, Model, batch, evaluate
from torch import nn
from torch.distributed import init_process_group
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

how, ranks = sys.argv[1], int(os.environ["WORLD_SIZE"])
init_process_group("nccl")
device = f"cuda:{os.environ['LOCAL_RANK']}"
torch.cuda.set_device(device)
torch.manual_seed(1337 + int(os.environ["RANK"]))
file = Path(tempfile.mkdtemp()) / "train.bin"
np.random.default_rng(0).integers(0, WORDS, 10_000).astype(np.uint16).tofile(file)
model = Model().to(device)
if how == "zero1":
    model = DistributedDataParallel(model)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)
else:
    mesh = init_device_mesh("cuda", (ranks,), mesh_dim_names=("dp",))
    if how == "hsdp":
        mesh = init_device_mesh("cuda", (ranks // 2, 2), mesh_dim_names=("dp_replicate", "dp_shard"))
    for block in model.blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=how != "zero2")
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    if step == 0:
        evaluate(model, file, device, 2)
    model(*batch(file, device)).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
