"""vLLM's engine: an unmodified script becomes a request, by closed forms and beside transformers.

Needs vLLM 0.33's source for no device, `VLLM_TARGET_DEVICE=empty pip install --no-deps vllm==0.33`, and what
its modules import.
"""

from __future__ import annotations

import importlib.util

import pytest

from cosim.profiler.file import Profile
from tests.profiler.profiled import flops, needs_torch, needs_transformers, profiled, sizes

pytestmark = [
    needs_torch,
    needs_transformers,
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None,
        reason="VLLM_TARGET_DEVICE=empty pip install --no-deps vllm==0.33, and what it imports",
    ),
]

RANKS, LAYERS, WIDTH, FFN, WORDS, ROWS, PROMPT, NEW, BF16 = 8, 2, 256, 512, 1024, 2, 32, 4, 2
EACH = LAYERS * (4 * WIDTH * WIDTH + 3 * WIDTH * FFN)


def step(tokens: int, keys: int) -> int:
    """FLOPs of a step: products, logits of the last tokens, attention of each token to so many keys."""
    return 2 * tokens * EACH + 2 * ROWS * WIDTH * WORDS + LAYERS * 2 * 2 * tokens * keys * WIDTH


def weights_read(made: Profile) -> int:
    """Bytes of the right operands of the products in decode steps."""
    return sum(
        times * made.kernels[k][7] * made.kernels[k][8] * BF16
        for one in made.programs[0].steps
        if one.phase == "decode"
        for k, times in one.kernels
        if made.kernels[k][0] == "aten.mm"
    )


def test_llama_over_eight_ranks() -> None:
    made = profiled("vllm_llama.py", "--tp", "8")
    assert made.mesh == {"tp": RANKS}
    assert made.made["decode steps"] == NEW - 1
    assert flops(made, "prefill") == step(ROWS * PROMPT, PROMPT) // RANKS
    assert flops(made, "decode") == sum(step(ROWS, PROMPT + n) for n in range(1, NEW)) // RANKS
    assert weights_read(made) == (NEW - 1) * (EACH + WIDTH * WORDS) * BF16 // RANKS
    # As in Megatron-LM: the embedding, each layer's attention and feed-forward; vLLM gathers the logits.
    summed = sizes(made, "all_reduce", "tp")
    assert summed == {ROWS * PROMPT * WIDTH * BF16: 1 + 2 * LAYERS, ROWS * WIDTH * BF16: 3 * (1 + 2 * LAYERS)}
    assert sizes(made, "all_gather", "tp") == {ROWS * WORDS // RANKS * BF16: NEW}


def test_the_same_products_as_transformers() -> None:
    served = profiled("vllm_llama.py", "--batch", "1", world_size=1)
    generated = profiled("generate.py", "--heads", "8", "--groups", "8", "--batch", "1", world_size=1)
    for phase in ("prefill", "decode"):
        assert flops(served, phase) == flops(generated, phase)
