"""What popular scripts do with batches: memory-mapped tokens at random places, evaluation before training."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel

WIDTH, LENGTH, ROWS, WORDS, HEADS = 64, 32, 4, 96, 4


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ahead = nn.LayerNorm(WIDTH)
        self.attend, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.behind = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            each.view(x.size(0), x.size(1), HEADS, WIDTH // HEADS).transpose(1, 2)
            for each in self.attend(self.ahead(x)).split(WIDTH, dim=2)
        )
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.behind(x))))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.size(1), device=tokens.device))
        return F.cross_entropy(self.head(self.blocks(x)).view(-1, WORDS), targets.view(-1))


def batch(file: Path, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    data = np.memmap(file, dtype=np.uint16, mode="r")
    at = torch.randint(len(data) - LENGTH, (ROWS,))
    x, y = (
        torch.stack([torch.from_numpy(data[k + n : k + n + LENGTH].astype(np.int64)) for k in at])
        for n in (0, 1)
    )
    if device == "cpu":
        return x, y
    return x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)


@torch.no_grad()
def evaluate(model: nn.Module, file: Path, device: str, times: int) -> float:
    model.eval()
    losses = torch.zeros(times)
    for k in range(times):
        losses[k] = model(*batch(file, device)).item()
    model.train()
    return losses.mean().item()


def main() -> None:
    read = argparse.ArgumentParser()
    read.add_argument("--device", default="cuda")
    read.add_argument("--evaluations", type=int, default=2)
    read.add_argument("--steps", type=int, default=3)
    options = read.parse_args()
    init_process_group("gloo" if options.device == "cpu" else "nccl")
    rank = int(os.environ["RANK"])
    device = "cpu" if options.device == "cpu" else f"cuda:{os.environ['LOCAL_RANK']}"
    if device != "cpu":
        torch.cuda.set_device(device)
    torch.manual_seed(1337 + rank)
    file = Path(tempfile.mkdtemp()) / "train.bin"
    np.random.default_rng(0).integers(0, WORDS, 10_000).astype(np.uint16).tofile(file)
    model = DistributedDataParallel(Model().to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(options.steps):
        if step == 0 and options.evaluations:
            print(evaluate(model, file, device, options.evaluations))
        model(*batch(file, device)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    destroy_process_group()


if __name__ == "__main__":
    main()
