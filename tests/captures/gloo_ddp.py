"""A small model under DDP, ten iterations, which wait for data: run by tests/captures/four_hosts.py, and by
cosim profile.
"""

import time

import torch
import torch.distributed as dist
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
dist.init_process_group("gloo")
layers = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(device)
model = nn.parallel.DistributedDataParallel(layers)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(10):
    time.sleep(0.5)
    loss = model(torch.randn(8, 512, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
