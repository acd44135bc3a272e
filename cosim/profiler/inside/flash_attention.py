"""``flash_attn`` where it isn't installed (it is built with CUDA): its attention is torch's flash kernel.

Of the library's functions those of attention are here; Triton kernels that come with it are not.
"""

from __future__ import annotations

from typing import Any

import torch

from cosim.profiler.inside import stand_in


def flash_attn_func(
    q: Any, k: Any, v: Any, dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
    *_: Any, **__: Any,
) -> Any:  # fmt: skip
    """Attention of (batch, sequence, heads, head) tensors; windows and biases are taken for none."""
    query, key, value = (t.transpose(1, 2) for t in (q, k, v))
    out = torch.ops.aten._scaled_dot_product_flash_attention(
        query, key, value, dropout_p, causal, return_debug_mask=False, scale=softmax_scale
    )[0]
    return out.transpose(1, 2)


def flash_attn_varlen_func(
    q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, max_seqlen_q: int, max_seqlen_k: int,
    dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False, *_: Any, **__: Any,
) -> Any:  # fmt: skip
    """Attention of (tokens, heads, head) tensors that hold sequences one after the other."""
    return torch.ops.aten._flash_attention_forward(
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p, causal,
        return_debug_mask=False, scale=softmax_scale,
    )[0]  # fmt: skip


def flash_attn_qkvpacked_func(qkv: Any, *args: Any, **given: Any) -> Any:
    """Attention of one (batch, sequence, 3, heads, head) tensor."""
    return flash_attn_func(*qkv.unbind(2), *args, **given)


def flash_attn_kvpacked_func(q: Any, kv: Any, *args: Any, **given: Any) -> Any:
    """Attention of queries, and one (batch, sequence, 2, heads, head) tensor."""
    return flash_attn_func(q, *kv.unbind(2), *args, **given)


def install() -> None:
    """Be ``flash_attn``."""
    functions = (
        flash_attn_func,
        flash_attn_varlen_func,
        flash_attn_qkvpacked_func,
        flash_attn_kvpacked_func,
    )
    own = {function.__name__: function for function in functions}
    stand_in.install(
        "flash_attn", {"flash_attn": {"__version__": "2.8.3", **own}, "flash_attn.flash_attn_interface": own}
    )
