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


SEEDS = [*range(8), *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 60)]]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_world_is_the_same_in_process_cut_and_served(seed: int, served: Served) -> None:
    assert list(differences(seed, served, killed=False)) == []


@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.slow) for seed in (3, 6, 7, 9)]])
def test_a_server_that_is_killed_comes_back_to_the_same(seed: int, served: Served) -> None:
    """Seed 0 is of a network by name, whose server can be started by a command."""
    assert isinstance(World(0).network, str)
    assert list(differences(seed, served, killed=True)) == []
