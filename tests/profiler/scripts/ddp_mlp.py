"""An MLP under DDP, as tutorials have it: --layers Linear(width, width), AdamW, clipping, a DataLoader."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--layers", type=int, default=8)
parser.add_argument("--width", type=int, default=1024)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--bucket-mb", type=float, default=25)
parser.add_argument("--zero", action="store_true")
options = parser.parse_args()

dist.init_process_group("nccl")
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
model = nn.Sequential(*[nn.Linear(options.width, options.width) for _ in range(options.layers)]).cuda()
model = DistributedDataParallel(model, device_ids=[local], bucket_cap_mb=options.bucket_mb)
if options.zero:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)
else:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = TensorDataset(torch.randn(4 * options.batch * dist.get_world_size(), options.width))
loader = DataLoader(data, options.batch, sampler=DistributedSampler(data), num_workers=2, pin_memory=True)
for step, (x,) in enumerate(loader):
    loss = model(x.cuda(non_blocking=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item(), f"{loss:.4f}")
