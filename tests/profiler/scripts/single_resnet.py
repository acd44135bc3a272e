"""torchvision's ResNet-50 on one GPU, as its own reference trains it: channels last, autocast, SGD."""

from __future__ import annotations

import argparse

import torch
import torchvision

read = argparse.ArgumentParser()
read.add_argument("--batch", type=int, default=256)
read.add_argument("--steps", type=int, default=3)
read.add_argument("--compile", action="store_true")
options = read.parse_args()
torch.backends.cudnn.benchmark = True
model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
forward = torch.compile(model) if options.compile else model
for _ in range(options.steps):
    images = torch.randn(options.batch, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(1000, (options.batch,), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(forward(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
