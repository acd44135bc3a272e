"""A profile beside four real gloo processes: the same products and collectives, in the same order."""

from __future__ import annotations

import pytest

from tests.benchmarks.public_scripts import issued
from tests.benchmarks.real_ranks import run
from tests.profiler.profiled import SCRIPTS, needs_torch, profiled


@needs_torch
@pytest.mark.slow
def test_four_gloo_processes_issue_what_the_profile_has() -> None:
    script = "plain_gpt.py"
    real = run(4, str(SCRIPTS / script), ("--evaluations=1", "--steps=5"))
    assert real == issued(profiled(script, world_size=4))
    assert [kind for kind, _ in real if kind != "product"] == ["all_reduce"]
