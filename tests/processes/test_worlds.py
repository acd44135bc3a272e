"""Random worlds have one digest however they are run; the command in worlds.py runs any number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.processes.worlds import Served, World, differences


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with ExitStack() as stack:
        yield Served(stack)


SEEDS = [*range(4), *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 8)]]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_world_is_the_same_in_process_cut_and_served(seed: int, served: Served) -> None:
    assert list(differences(seed, served, killed=False)) == []


STARTED = [seed for seed in range(12) if isinstance(World(seed).network, str)]
"""Of a network by its name, whose server a command starts."""


@pytest.mark.parametrize(
    "seed", [STARTED[0], *[pytest.param(seed, marks=pytest.mark.slow) for seed in STARTED[1:3]]]
)
def test_a_server_that_is_killed_comes_back_to_the_same(seed: int) -> None:
    assert list(differences(seed, None, killed=True)) == []
