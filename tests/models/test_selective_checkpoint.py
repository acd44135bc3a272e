"""``framework: pytorch``, ``recompute: selective``: what is saved and run again, against PyTorch's own."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from cosim.models.catalogue.cut import Cut, Parallel, Recompute
from cosim.models.catalogue.workload import ModelWorkload
from cosim.models.frameworks import PyTorch
from cosim.models.parts import Layer, Piece
from cosim.models.pytorch.blocks import EagerBlocks
from tests.profiler.profiled import needs_torch

HIDDEN, HEADS, KV, FFN, SEQUENCE, BATCH, LAYERS = 256, 8, 4, 512, 64, 2, 4
DENSE = {
    "kind": "transformer", "layers": LAYERS, "hidden": HIDDEN, "heads": HEADS, "kv_heads": KV, "ffn": FFN,
    "vocabulary": 1024, "sequence": SEQUENCE,
}  # fmt: skip
HEAD = HIDDEN // HEADS


def make(**settings: Any) -> ModelWorkload:
    values = {
        "model": DENSE, "gpu": "h100-sxm", "memory": "ignore", "framework": "pytorch",
        "recompute": "selective", "parallel": {"fsdp": 4}, **settings,
    }  # fmt: skip
    return ModelWorkload.model_validate(values)


def blocks(recompute: Recompute, **framework: Any) -> EagerBlocks:
    cut = Cut(Parallel(fsdp=4), BATCH, SEQUENCE, SEQUENCE, width=2, recompute=recompute)
    return EagerBlocks(make().model, cut, PyTorch(**framework), autocast=False)  # type: ignore[arg-type]


def flops(pieces: tuple[Piece, ...]) -> int:
    return sum(kernel.flops for piece in pieces for kernel in piece.kernels)


def launches(layer: Layer) -> int:
    return sum(len(piece.kernels) for piece in layer.recompute)


@needs_torch
def test_saved_are_as_many_bytes_as_pytorch_saves() -> None:
    """A block on the CPU under torchtitan's policy; what its checkpoint holds beside the block's input."""
    import torch
    from torch import nn
    from torch.nn import functional
    from torch.utils.checkpoint import (
        CheckpointPolicy,
        checkpoint,
        create_selective_checkpoint_contexts,
    )
    from torch.utils.flop_counter import FlopCounterMode

    aten = torch.ops.aten
    saved = {aten.mm.default, aten._scaled_dot_product_flash_attention_for_cpu.default}
    products = {False: 0, True: 0}
    contexts: list[Any] = []

    def policy(ctx: Any, operator: Any, *_: Any, **__: Any) -> CheckpointPolicy:
        if operator is aten.mm.default:
            products[ctx.is_recompute] += 1
        first = operator is not aten.mm.default or products[ctx.is_recompute] % 2
        saves = operator in saved and first
        return CheckpointPolicy.MUST_SAVE if saves else CheckpointPolicy.PREFER_RECOMPUTE

    def context() -> Any:
        contexts.append(create_selective_checkpoint_contexts(policy))
        return contexts[-1]

    shapes = [(HIDDEN, HIDDEN), (HIDDEN, KV * HEAD), (HIDDEN, KV * HEAD), (HIDDEN, HIDDEN)]
    shapes += [(HIDDEN, FFN), (HIDDEN, FFN), (FFN, HIDDEN)]
    q, k, v, o, gate, up, down = (nn.Linear(*shape, bias=False).bfloat16() for shape in shapes)
    norms = [nn.RMSNorm(HIDDEN).bfloat16() for _ in range(2)]

    def block(x: torch.Tensor) -> torch.Tensor:
        inner = norms[0](x)
        a, b, c = (each(inner).unflatten(-1, (-1, HEAD)).transpose(1, 2) for each in (q, k, v))
        out = functional.scaled_dot_product_attention(a, b, c, is_causal=True, enable_gqa=True)
        x = x + o(out.transpose(1, 2).flatten(-2))
        inner = norms[1](x)
        return x + down(functional.silu(gate(inner)) * up(inner))

    x = torch.randn(BATCH, SEQUENCE, HIDDEN, dtype=torch.bfloat16, requires_grad=True)
    checkpoint(block, x, use_reentrant=False, context_fn=context)
    held = sum(
        one.val.nbytes
        for outputs in contexts[-1][0].storage.values()
        for output in outputs.values()
        for one in torch.utils._pytree.tree_leaves(output)
        if isinstance(getattr(one, "val", None), torch.Tensor)
    )
    ours = blocks("selective")
    layer = ours.layer(0)
    assert layer.keeps == x.nbytes + held
    with FlopCounterMode(display=False) as counter:
        checkpoint(block, x, use_reentrant=False, context_fn=context).sum().backward()
    once = 2 * BATCH * SEQUENCE * sum(rows * columns for rows, columns in shapes)
    assert flops(layer.recompute) == counter.get_flop_counts()["Global"][aten.mm] - 3 * once


def test_less_is_kept_than_of_all_and_less_is_run_again_than_all() -> None:
    kept, again = [], []
    for how in ("full", "selective", "none"):
        made = blocks(how)
        layer = made.layer(0)
        kept.append(layer.keeps)
        again.append((flops(layer.recompute), launches(layer)))
    assert kept == sorted(kept)
    assert again == sorted(again, reverse=True)
    assert again[-1] == (0, 0)


def test_the_last_of_so_many_blocks_is_checkpointed() -> None:
    spec = make(recompute="full", framework={"kind": "pytorch", "checkpoint_every": 2})
    layers = spec.job().stages[0][0][1:-1]
    assert [bool(layer.recompute) for layer in layers] == [False, True, False, True]
    kept = []
    for how, every in (("full", 1), ("full", 2), ("full", 4), ("none", 1)):
        made = make(recompute=how, framework={"kind": "pytorch", "checkpoint_every": every})
        kept.append(sum(layer.keeps for layer in made.job().stages[0][0]))
    assert kept == sorted(kept)
    assert len(set(kept)) == len(kept)
    told = dict(make(recompute="none", framework={"kind": "pytorch", "checkpoint_every": 2}).idle_settings())
    assert told["framework"] == "checkpoint_every: recompute is none: nothing is checkpointed"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"recipe": "fp8"}, "no recipe: its products are no operators that are saved"),
        ({"model": {**DENSE, "experts": {"num": 8, "top_k": 2, "ffn": 512}}}, "no experts"),
        (
            {
                "parallel": {"fsdp": 2, "tp": 2},
                "framework": {"kind": "pytorch", "async_tensor_parallel": True},
            },
            "async_tensor_parallel: false",
        ),
        ({"recompute": ["norm"]}, "operators by name are Megatron-LM's"),
        ({"framework": {"kind": "pytorch", "checkpoint_every": 0}}, "checkpoint_every"),
    ],
)
def test_what_isnt_compared_is_refused_with_what_would_do(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make(**settings)
