"""Scaled dot product attention by the kernel that a GPU would take. Dynamo traces into this module."""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch._subclasses.fake_tensor import FakeTensor


def install(*, ampere: bool) -> None:
    """Attention takes the kernel that a GPU would: flash, or the memory-efficient one with a mask, in fp32,
    before Ampere or with values of another width than keys.
    """
    plain = F.scaled_dot_product_attention
    aten = torch.ops.aten

    @functools.wraps(plain)
    def scaled_dot_product_attention(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        if torch.overrides.has_torch_function((query, key, value)) and not isinstance(query, FakeTensor):
            local = getattr(query, "_local_tensor", query)
        else:
            local = query
        if query.dim() != 4 or local.device.type != "cuda":
            return plain(
                query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
            )
        if torch.is_autocast_enabled("cuda"):
            lower = torch.get_autocast_dtype("cuda")
            query, key, value = (t.to(lower) if t.is_floating_point() else t for t in (query, key, value))
        halves = query.dtype in (torch.float16, torch.bfloat16)
        # Flash attention wants values as wide as keys; latent attention's are narrower.
        alike = query.size(-1) == value.size(-1)
        if attn_mask is None and halves and ampere and alike:
            return aten._scaled_dot_product_flash_attention(
                query, key, value, dropout_p, is_causal, return_debug_mask=False, scale=scale
            )[0]
        groups = query.size(1) // key.size(1)
        if groups > 1:
            key, value = (t.repeat_interleave(groups, 1) for t in (key, value))
        bias = attn_mask
        if bias is not None:
            if bias.dtype is torch.bool:
                bias = torch.zeros_like(bias, dtype=query.dtype).masked_fill(~bias, float("-inf"))
            bias = bias.expand(query.size(0), query.size(1), query.size(2), key.size(2))
        return aten._scaled_dot_product_efficient_attention(
            query, key, value, bias, query.requires_grad, dropout_p, is_causal, scale=scale
        )[0]

    scaled_dot_product_attention.__name__ = "scaled_dot_product_attention"
    F.scaled_dot_product_attention = scaled_dot_product_attention
