"""A GPT or a Llama in plain PyTorch on one GPU: eager or compiled, under autocast or in bf16 throughout."""

from __future__ import annotations

import argparse
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.checkpoint import checkpoint

read = argparse.ArgumentParser()
read.add_argument("--model", choices=("gpt", "llama"), default="llama")
read.add_argument("--layers", type=int, default=8)
read.add_argument("--width", type=int, default=2048)
read.add_argument("--heads", type=int, default=16)
read.add_argument("--groups", type=int, default=16)
read.add_argument("--ffn", type=int, default=5632)
read.add_argument("--words", type=int, default=32000)
read.add_argument("--batch", type=int, default=4)
read.add_argument("--length", type=int, default=2048)
read.add_argument("--steps", type=int, default=3)
read.add_argument("--compile", action="store_true")
read.add_argument("--checkpoint", action="store_true")
read.add_argument("--bf16", action="store_true", help="parameters, too; else autocast of fp32 ones")
read.add_argument(
    "--fp8", action="store_true", help="linear layers of blocks, scaled by their largest number"
)
read.add_argument("--by-tensor", action="store_true", help="AdamW tensor by tensor, else its fused kernel")
options = read.parse_args()
HEAD = options.width // options.heads
LLAMA = options.model == "llama"


def norm() -> nn.Module:
    return nn.RMSNorm(options.width) if LLAMA else nn.LayerNorm(options.width)


def narrowed(x: torch.Tensor, kind: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """In FP8, and what it was divided by: one scale a tensor, of its largest number, now."""
    scale = x.abs().amax().float().clamp(min=1e-12) / torch.finfo(kind).max
    return (x / scale).to(kind), scale


class ScaledProduct(torch.autograd.Function):
    """``x @ weight.t()`` and its two products backward in FP8, as FP8 training does: E4M3, gradients E5M2."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        (a, one), (b, two) = narrowed(x, torch.float8_e4m3fn), narrowed(weight, torch.float8_e4m3fn)
        return torch._scaled_mm(a, b.t(), one, two, out_dtype=x.dtype, use_fast_accum=True)

    @staticmethod
    def backward(ctx: Any, given: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, weight = ctx.saved_tensors
        g, one = narrowed(given, torch.float8_e5m2)
        a, two = narrowed(x, torch.float8_e4m3fn)
        b, three = narrowed(weight, torch.float8_e4m3fn)
        to_x = torch._scaled_mm(g, b.t().contiguous().t(), one, three, out_dtype=x.dtype)
        to_weight = torch._scaled_mm(
            g.t().contiguous(), a.t().contiguous().t(), one, two, out_dtype=weight.dtype
        )
        return to_x, to_weight


class ScaledLinear(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ScaledProduct.apply(x.flatten(0, -2), self.weight).unflatten(0, x.shape[:-1])


def linear(inner: int, outer: int) -> nn.Linear:
    return (ScaledLinear if options.fp8 else nn.Linear)(inner, outer, bias=not LLAMA)


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    one, two = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((-two, one), dim=-1) * sin).type_as(x)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.o = linear(options.width, options.width), linear(options.width, options.width)
        self.kv = linear(options.width, 2 * options.groups * HEAD)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        q = self.q(x).unflatten(-1, (-1, HEAD)).transpose(1, 2)
        k, v = self.kv(x).unflatten(-1, (2, -1, HEAD)).permute(2, 0, 3, 1, 4)
        if LLAMA:
            q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        if options.groups < options.heads:
            k, v = (each.repeat_interleave(options.heads // options.groups, dim=1) for each in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).flatten(-2))


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = linear(options.width, options.ffn), linear(options.ffn, options.width)
        if LLAMA:
            self.gate = linear(options.width, options.ffn)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x) if LLAMA else F.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.attention = norm(), Attention()
        self.between, self.feed_forward = norm(), FeedForward()

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before(x), cos, sin)
        return x + self.feed_forward(self.between(x))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(options.words, options.width)
        self.places = None if LLAMA else nn.Embedding(options.length, options.width)
        self.blocks = nn.ModuleList(Block() for _ in range(options.layers))
        self.norm, self.head = norm(), nn.Linear(options.width, options.words, bias=False)

    def forward(self, tokens: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        if self.places is not None:
            x = x + self.places.weight
        for block in self.blocks:
            if options.checkpoint:
                x = checkpoint(block, x, cos, sin, use_reentrant=False)
            else:
                x = block(x, cos, sin)
        return self.head(self.norm(x))


torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
kind = torch.bfloat16 if options.bf16 else torch.float32
with torch.device("cuda"):
    model: Any = Model().to(kind)
    angles = torch.outer(torch.arange(options.length), 1e-4 ** (torch.arange(0, HEAD, 2) / HEAD)).repeat(1, 2)
    cos, sin = angles.cos().bfloat16(), angles.sin().bfloat16()
if options.compile:
    for block in model.blocks:
        block.compile()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=not options.by_tensor)
for _ in range(options.steps):
    tokens = torch.randint(options.words, (options.batch, options.length), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=not options.bf16):
        logits = model(tokens, cos, sin)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
