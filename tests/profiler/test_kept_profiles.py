"""Kept profiles of Llama 3.1 8B: FLOPs by closed forms, and a decode step that the host limits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import cosim
from cosim.profiler.file import Profile, read
from cosim.profiler.launch import ProfilingCost
from cosim.profiler.profile_page import tell
from cosim.profiler.workload import alone_ps
from tests.inputs import ROOT
from tests.profiler.profiled import flops

LAYERS, WIDTH, GROUPS, HEADS, FFN, WORDS = 32, 4096, 8, 32, 14336, 128256
QUERY, KEY, OUT, UP = WIDTH * WIDTH, WIDTH * WIDTH * GROUPS // HEADS, WIDTH * WIDTH, WIDTH * FFN
BLOCKS = LAYERS * (QUERY + 2 * KEY + OUT + 3 * UP)
HEAD = WIDTH * WORDS
PROMPT, FURTHER, DRAFTED = 2048, 8, 4


def kept(name: str) -> Profile:
    return read(ROOT / "scenarios" / "profiles" / f"llama-8b-{name}.yaml")


def attended(rows: int, queries: int, keys: int) -> int:
    """FLOPs of the scores and of what they weigh, in all layers."""
    return LAYERS * 2 * 2 * rows * queries * keys * WIDTH


@pytest.mark.parametrize("name", ["eager", "compiled"])
def test_a_training_steps_flops(name: str) -> None:
    """Of a block's seven products three are made again; attention's backward is 2.5 forwards."""
    tokens, made = 2 * 8192, kept(name)
    forward, again = 2 * tokens * (BLOCKS + HEAD), 2 * tokens * LAYERS * (KEY + OUT + UP)
    attention = attended(2, 8192, 8192)
    assert sum(flops(made, phase) for phase in ("forward", "backward", "recompute")) == (
        3 * forward + again + attention * 7 // 2
    )


@pytest.mark.parametrize("rows", [1, 16])
def test_a_requests_flops(rows: int) -> None:
    token = 2 * rows * (BLOCKS + HEAD)
    prefill = 2 * rows * (PROMPT * BLOCKS + HEAD) + attended(rows, PROMPT, PROMPT)
    assert flops(kept(f"{rows}-first"), "prefill") == prefill
    nine = kept(f"{rows}-nine")
    decode = sum(token + attended(rows, 1, PROMPT + n) for n in range(1, FURTHER + 1))
    assert flops(nine, "prefill") + flops(nine, "decode") == prefill + decode


def test_shorter_answers_take_the_longest_ones_time() -> None:
    drawn, full = kept("16-lengths"), kept("16-nine")
    assert drawn.programs == full.programs
    assert drawn.made["longest"] == full.made["longest"] == FURTHER + 1
    assert 16 + FURTHER < drawn.made["tokens"] < full.made["tokens"] == 16 * (FURTHER + 1)


def test_a_page_says_what_a_distribution_does(tmp_path: Path) -> None:
    lengths, plain = kept("1-first"), kept("1-nine")
    lengths = replace(lengths, made={**lengths.made, "lengths": "1"})
    page = tell(lengths, ProfilingCost(1, 1, 1), tmp_path / "job.yaml", plain)
    said = next(line for line in page.splitlines() if line.startswith("lengths 1: a request of 1 tokens"))
    assert "on h100-sxm, if communication is free; without: of 9 tokens, " in said
    assert f"({alone_ps(lengths) / alone_ps(plain) - 1:+.1%})" in said


def test_a_rank_by_itself_takes_what_the_engine_says() -> None:
    path = ROOT / "scenarios" / "profiles" / "llama-8b-1-nine.yaml"
    run = cosim.run({
        "topology": {"kind": "switch", "endpoints": 1, "rate": "400Gbps", "latency": "1us"},
        "network": "fair_share",
        "jobs": [{"workload": {"kind": "profile", "path": str(path)}}],
    })  # fmt: skip
    assert run.summary.jobs[0].iteration_mean_ps == alone_ps(kept("1-nine"))


@pytest.mark.parametrize("accepted", [4, 8])
def test_the_large_model_verifies_all_drafts_at_once(accepted: int) -> None:
    """Its head sees at most the drafts and the token before them, once a step."""
    made = kept(f"drafted-{accepted}")
    heads = [
        (made.kernels[k][6], times)
        for step in made.programs[0].steps
        for k, times in step.kernels
        if step.phase == "decode" and made.kernels[k][5:] == (1, made.kernels[k][6], WIDTH, WORDS)
    ]
    assert sum(times for _, times in heads) == made.made["decode steps"]
    assert all(1 <= rows <= DRAFTED + 1 for rows, _ in heads)
    assert (FURTHER + 1) / (DRAFTED + 1) <= 1 + made.made["decode steps"] <= FURTHER + 1


def test_a_slow_host_limits_a_decode_step() -> None:
    """Its operators, one after another, and nothing else, for one request as for 16."""
    sweep = cosim.Sweep.load(ROOT / "scenarios" / "generate.yaml")
    run = cosim.sweep(sweep, set={"only.launch": ["25us"]}, workers=1)
    first, nine, first_of_16, nine_of_16 = run.trials["iteration_ps"]
    decode = (step for step in kept("1-nine").programs[0].steps if step.phase == "decode")
    operators = sum(times for step in decode for _, times in step.kernels)
    assert operators == FURTHER * 1323
    assert nine - first == nine_of_16 - first_of_16 == operators * 25_000_000
