"""Llama 3.1 8B as torchtitan trains it: FSDP2, each block compiled by itself, every other product's result and
attention's kept for the backward (selective activation checkpointing), AdamW in fp32.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

WIDTH, HEADS, GROUPS, FFN, WORDS = 4096, 32, 8, 14336, 128256
HEAD = WIDTH // HEADS
KEPT = {
    torch.ops.aten._scaled_dot_product_flash_attention.default,
    torch.ops._c10d_functional.reduce_scatter_tensor.default,
}


def rotated(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Rotary positions, as complex numbers."""
    turned = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) * angles
    return torch.view_as_real(turned).flatten(3).type_as(x)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wq, self.wo = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.wk, self.wv = (nn.Linear(WIDTH, GROUPS * HEAD, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        q, k, v = (layer(x).view(*x.shape[:2], -1, HEAD) for layer in (self.wq, self.wk, self.wv))
        q, k = rotated(q, angles), rotated(k, angles)
        k, v = (each.repeat_interleave(HEADS // GROUPS, dim=2) for each in (k, v))
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(x.shape))


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1, self.w3 = (nn.Linear(WIDTH, FFN, bias=False) for _ in range(2))
        self.w2 = nn.Linear(FFN, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class PartedNorm(nn.RMSNorm):
    """RMSNorm as PyTorch had it at the end of 2024: no kernel of its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.weight


class Block(nn.Module):
    def __init__(self, norm: type[nn.RMSNorm]) -> None:
        super().__init__()
        self.attention, self.feed_forward = Attention(), FeedForward()
        self.attention_norm, self.ffn_norm = norm(WIDTH), norm(WIDTH)

    def forward(self, x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x), angles)
        return x + self.feed_forward(self.ffn_norm(x))


class Model(nn.Module):
    def __init__(self, layers: int, norm: type[nn.RMSNorm]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Block(norm) for _ in range(layers))
        self.norm, self.output = norm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, angles)
        return self.output(self.norm(x))


def contexts() -> Any:
    """Of products, every other one is made again."""
    seen = {"forward": 0, "recompute": 0}

    def policy(context: Any, func: Any, *_: Any, **__: Any) -> CheckpointPolicy:
        if func is torch.ops.aten.mm.default:
            seen["recompute" if context.is_recompute else "forward"] += 1
        odd = seen["recompute" if context.is_recompute else "forward"] % 2
        keep = func in KEPT or (func is torch.ops.aten.mm.default and odd)
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def main() -> None:
    read = argparse.ArgumentParser()
    read.add_argument("--layers", type=int, default=32)
    read.add_argument("--batch", type=int, default=2)
    read.add_argument("--length", type=int, default=8192)
    read.add_argument("--compile", action="store_true")
    read.add_argument("--parted-norm", action="store_true")
    options = read.parse_args()
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    with torch.device("cuda"):
        model = Model(options.layers, PartedNorm if options.parted_norm else nn.RMSNorm)
        angles = torch.polar(*(torch.ones(1, options.length, 1, HEAD // 2) for _ in range(2)))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for place, layer in enumerate(model.layers):
        wrapped: Any = checkpoint_wrapper(layer, context_fn=contexts, preserve_rng_state=False)
        if options.compile:
            wrapped.compile()
        model.layers[place] = fully_shard(wrapped, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    for _ in range(2):
        tokens = torch.randint(WORDS, (options.batch, options.length), device="cuda")
        logits = model(tokens, angles)
        F.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
