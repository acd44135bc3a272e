"""transformers' own tensor parallel plan: beside four real gloo processes, and generate by closed forms."""

from __future__ import annotations

import pytest

from tests.lab.benchmarks.public_scripts import issued
from tests.lab.benchmarks.real_ranks import run
from tests.profiler.profiled import SCRIPTS, flops, needs_torch, needs_transformers, profiled, sizes

pytestmark = [needs_torch, needs_transformers, pytest.mark.slow]

SCRIPT = "hf_tensor_parallel.py"
RANKS, LAYERS, WIDTH, HEADS, FFN, WORDS, ROWS, PROMPT, NEW, BF16 = 8, 2, 256, 8, 512, 1024, 2, 32, 4, 2


def test_training_issues_what_four_gloo_processes_do() -> None:
    assert run(4, str(SCRIPTS / SCRIPT), ()) == issued(profiled(SCRIPT, world_size=4))


def test_generate_over_eight_ranks() -> None:
    made = profiled(SCRIPT, "--generate")
    assert made.mesh == {"tp": RANKS}
    each = LAYERS * (4 * WIDTH * WIDTH + 3 * WIDTH * FFN)

    def step(tokens: int, keys: int) -> int:
        attended = LAYERS * 2 * 2 * tokens * keys * WIDTH
        return (2 * tokens * each + 2 * ROWS * WIDTH * WORDS + attended) // RANKS

    assert flops(made, "prefill") == step(ROWS * PROMPT, PROMPT)
    assert flops(made, "decode") == sum(step(ROWS, PROMPT + n) for n in range(1, NEW))
    # Embedding, attention and feed-forward of each layer are summed; the last logits are gathered.
    summed = sizes(made, "all_reduce", "tp")
    assert summed == {ROWS * PROMPT * WIDTH * BF16: 1 + 2 * LAYERS, ROWS * WIDTH * BF16: 3 * (1 + 2 * LAYERS)}
    assert sizes(made, "all_gather", "tp") == {ROWS * WORDS // RANKS * BF16: NEW}
