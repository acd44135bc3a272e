"""A few random worlds; ``python -m tests.kernel.worlds`` runs as many as are asked for."""

from __future__ import annotations

import pytest

from tests.kernel.worlds import NETWORKS, digest

_SEEDS = range(100, 104)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_run_in_pieces_is_the_same(network: str) -> None:
    for seed in _SEEDS:
        assert digest(network, seed, pieces=True) == digest(network, seed, pieces=False)
