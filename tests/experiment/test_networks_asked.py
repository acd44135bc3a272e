"""The same question to several networks."""

from __future__ import annotations

import pytest

from cosim.errors import InputError, ScenarioError
from cosim.experiment.networks import run_networks, split
from cosim.experiment.scenario import loads

LEAF = """
topology: {kind: leaf_spine, endpoints_per_leaf: 4, leaves: 1, spines: 1, rate: 100Gbps, latency: 1us}
network: fair_share
jobs:
  - workload: {kind: collective, collective: all_reduce, size: 1MB, ranks: 4}
"""


def test_commas_inside_a_mapping_stay() -> None:
    assert split("a, {simulator: ns3, mtu: 1500 B},b") == ["a", "{simulator: ns3, mtu: 1500 B}", "b"]


def test_every_design_is_asked_of_every_network() -> None:
    vary = ["jobs[0].workload.size=1MB,2MB", "topology.rate=100Gbps,50Gbps"]
    asked = run_networks(loads(LEAF), "congestion_unaware,fair_share", vary)
    assert len(asked.results) == 8
    times = asked.times("fair_share")
    assert times[1] > times[0]
    assert times[2] == pytest.approx(2 * times[0], rel=0.1)
    assert asked.correlation("congestion_unaware") is not None


@pytest.mark.parametrize(
    ("networks", "vary", "says"),
    [
        ("fair_share,,ns3", [], "empty entry"),
        ("fair_share,fair_share", [], "each network once"),
        ("fair_share", ["topology.rate"], "no '='"),
    ],
)
def test_mistakes(networks: str, vary: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        run_networks(loads(LEAF), networks, vary)


def test_an_unknown_network_is_answered_with_a_near_one() -> None:
    with pytest.raises(ScenarioError, match="fair_share"):
        run_networks(loads(LEAF), "fair_shar")
