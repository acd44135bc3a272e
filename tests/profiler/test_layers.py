"""Layers that are copies of others alike: the profile is that of every layer recorded, whatever the script
does around them; what only looks alike is recorded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cosim.profiler.file import Profile
from cosim.profiler.launch import ProfileRequest, profile
from tests.profiler.profiled import SCRIPTS, needs_torch

pytestmark = needs_torch


def both(script: str, arguments: str, world_size: int, **given: int) -> tuple[Profile, list[str]]:
    """The profile with copies, equal to the one without, and what was said of it."""
    order = ProfileRequest(str(SCRIPTS / script), tuple(arguments.split()), world_size, iteration=1)
    order = replace(order, **given)  # type: ignore[arg-type]
    said: list[str] = []
    made, _ = profile(order, said.append)
    recorded, _ = profile(replace(order, every_layer=True))
    assert made == recorded
    return made, [text for text in said if "cop" in text or "every layer" in text]


def test_copied_layers_have_the_operations_of_recorded_ones() -> None:
    _, said = both("alike.py", "--fsdp --tp --checkpoint", 8)
    assert said == ["rank 0: 12 calls of layers are copies of others alike"]


def test_layer_that_reads_its_number_is_recorded() -> None:
    assert both("alike.py", "--fifth", 1)[1] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "copied"),
    [
        ("--wrapped", 10),
        ("--autocast", 12),
        ("--halves", 10),
        ("--numbered", 10),
        ("--hooked", 8),
        ("--tapped", 7),
        ("--accumulating", 3),
        ("--every-second --layers 12", 12),
        ("--reentrant", 0),
        ("--remembers", 0),
        ("--draws", 0),
        ("--reads", 0),
    ],
)
def test_only_what_is_alike_is_copied(arguments: str, copied: int) -> None:
    _, said = both("alike.py", arguments, 1)
    assert said == ([f"rank 0: {copied} calls of layers are copies of others alike"] if copied else [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("--keep-gradients", "layers that look alike do not do the same"),
        ("--steps 1", "the script ended before the iteration that copies were meant for"),
    ],
)
def test_iteration_that_is_unlike_the_one_before_is_recorded_again(arguments: str, why: str) -> None:
    assert both("alike.py", arguments, 1)[1] == [f"every layer is recorded now: {why}"]


@pytest.mark.slow
def test_pipeline_stages_copy_their_layers() -> None:
    made, said = both("llama_3d.py", "--layers 16", 8)
    assert made.mesh == {"pp": 2, "dp": 2, "tp": 2}
    assert said == [f"rank {rank}: 25 calls of layers are copies of others alike" for rank in (0, 4)]
