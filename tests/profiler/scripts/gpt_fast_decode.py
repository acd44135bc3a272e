"""A decode step of gpt-fast's Llama 2 7B for one sequence, eager; its folder, with `model.py`, is the argument.

A step is taken for a training iteration: the optimizer's parameter stands beside the model.
"""

from __future__ import annotations

import sys

import torch

sys.path.insert(0, sys.argv[1])
from model import Transformer  # noqa: E402

with torch.device("meta"):
    model = Transformer.from_name("7B")
model = model.to_empty(device="cuda").to(torch.bfloat16).eval()
with torch.device("cuda"):
    model.setup_caches(1, 256)


@torch.no_grad()
def decode(token: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    """The next token: temperature 0.8 among the 200 best, as gpt-fast draws it."""
    logits = model(token, place)[0, -1] / 0.8
    best, _ = torch.topk(logits, 200)
    logits = torch.where(logits < best.select(-1, -1).unsqueeze(-1), -float("Inf"), logits)
    probabilities = torch.nn.functional.softmax(logits, dim=-1)
    drawn = probabilities / torch.empty_like(probabilities).exponential_(1)
    return torch.argmax(drawn, dim=-1, keepdim=True).to(dtype=torch.int)


beside = torch.nn.Parameter(torch.zeros(1, device="cuda"))
optimizer = torch.optim.SGD([beside])
token = torch.zeros(1, 1, dtype=torch.int, device="cuda")
place = torch.tensor([128], device="cuda", dtype=torch.int)
for _ in range(3):
    token = decode(token, place).view(1, -1)
    place += 1
    beside.sum().backward()
    optimizer.step()
