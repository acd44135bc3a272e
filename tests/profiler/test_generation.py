"""Requests of transformers' ``generate``: FLOPs and the cache's bytes against closed forms."""

from __future__ import annotations

from collections import Counter

from cosim.profiler.file import Profile
from tests.profiler.profiled import flops, needs_torch, needs_transformers, profiled

pytestmark = [needs_torch, needs_transformers]

LAYERS, WIDTH, HEADS, GROUPS, FFN, WORDS, ROWS, PROMPT, NEW, BF16 = 2, 256, 4, 2, 512, 1024, 2, 32, 4, 2
HEAD = WIDTH // HEADS
WEIGHTS = LAYERS * (2 * WIDTH * WIDTH + 2 * WIDTH * GROUPS * HEAD + 3 * WIDTH * FFN)


def attended(queries: int, keys: int) -> int:
    """FLOPs of the scores and of what they weigh, in all layers."""
    return LAYERS * 2 * 2 * ROWS * HEADS * queries * keys * HEAD


def kernels(made: Profile, phase: str, name: str) -> Counter[int]:
    """How often a kernel moves so many bytes."""
    found: Counter[int] = Counter()
    for step in made.programs[0].steps:
        for k, times in step.kernels:
            if step.phase == phase and made.kernels[k][0] == name:
                found[made.kernels[k][4]] += times
    return found


def test_a_request_is_a_prefill_and_decode_steps() -> None:
    made = profiled("generate.py", world_size=1)
    assert made.made["decode steps"] == NEW - 1
    assert {step.phase for step in made.programs[0].steps if step.kernels} == {"prefill", "decode"}
    token = 2 * ROWS * (WEIGHTS + WIDTH * WORDS)
    prefill = 2 * ROWS * PROMPT * WEIGHTS + 2 * ROWS * WIDTH * WORDS + attended(PROMPT, PROMPT)
    decode = sum(token + attended(1, PROMPT + n) for n in range(1, NEW))
    assert flops(made, "prefill") + flops(made, "decode") == prefill + decode


def test_a_decode_step_reads_the_whole_cache() -> None:
    made = profiled("generate.py", world_size=1)
    one = ROWS * GROUPS * HEAD * BF16  # a token's keys, or values, of one layer
    # The cache grows by being copied: what was there and the new token are read, and both written.
    grown = kernels(made, "decode", "aten.cat")
    for n in range(1, NEW):
        assert grown[2 * (PROMPT + n) * one] == 2 * LAYERS
