"""A run's arrays are let go of with it: cycles would keep them until the garbage collector comes by."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import cosim
from cosim.network.compiled import CompiledNetwork

TEXT = """
topology: {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 4, rate: 100Gbps, latency: 1us}
jobs: [{workload: {kind: collective, collective: all_to_all, size: 1MB, ranks: 8}}]
network:
"""


@pytest.mark.parametrize(
    "network",
    [
        "congestion_aware",
        "congestion_unaware",
        "fair_share",
        "{model: fair_share, balancer: adaptive}",
        "{model: congestion, control: dctcp, balancer: spray}",
    ],
)
def test_a_network_goes_with_its_run(network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Any]] = []
    begin = CompiledNetwork.__init__

    def noted(self: CompiledNetwork, *what: Any) -> None:
        begin(self, *what)
        made.append(weakref.ref(self))

    monkeypatch.setattr(CompiledNetwork, "__init__", noted)
    gc.disable()
    try:
        cosim.run(f"{TEXT.strip()} {network}\n")
        assert [one() for one in made] == [None] * len(made) != []
    finally:
        gc.enable()
