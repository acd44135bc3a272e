"""A module under torch.compile, with a break in its graph and with CUDA graphs where that is asked for."""

from __future__ import annotations

import argparse

import torch
from torch import nn

ROWS, WIDTH = 64, 256


class Block(nn.Module):
    def __init__(self, breaks: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)
        self.breaks = breaks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        if self.breaks:
            print("here the graph is broken")
        return x + self.down(torch.nn.functional.gelu(self.up(y)))


read = argparse.ArgumentParser()
read.add_argument("--breaks", action="store_true")
read.add_argument("--mode")
read.add_argument("--backend", default="inductor")
read.add_argument("--steps", type=int, default=2)
options = read.parse_args()
block = Block(options.breaks).cuda().bfloat16()
compiled = torch.compile(block, mode=options.mode, backend=options.backend)
optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
for _ in range(options.steps):
    x = torch.randn(ROWS, WIDTH, device="cuda", dtype=torch.bfloat16)
    compiled(x).sum().backward()
    optimizer.step()
