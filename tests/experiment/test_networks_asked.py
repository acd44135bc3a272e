"""The same question to several networks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import cosim
from cosim.errors import InputError, ScenarioError, SimulationError
from cosim.experiment.executors.local import LocalExecutor
from cosim.experiment.store import trials
from cosim.experiment.studies.networks import split
from cosim.results.networks import NetworkComparison

LEAF = """
topology: {kind: leaf_spine, endpoints_per_leaf: 4, leaves: 1, spines: 1, rate: 100Gbps, latency: 1us}
network: fair_share
jobs:
  - workload: {kind: collective, collective: all_reduce, size: 1MB, ranks: 4}
"""


def networks(text: str, asked: str, vary: Sequence[str] = (), **given: Any) -> NetworkComparison:
    found: NetworkComparison = cosim.study(
        {"kind": "networks", "networks": asked, "vary": vary}, text, **given
    )
    return found


def test_commas_inside_a_mapping_stay() -> None:
    assert split("a, {simulator: ns3, mtu: 1500 B},b") == ["a", "{simulator: ns3, mtu: 1500 B}", "b"]


def test_every_design_is_asked_of_every_network() -> None:
    vary = ["jobs[0].workload.size=1MB,2MB", "topology.rate=100Gbps,50Gbps"]
    asked = networks(LEAF, "congestion_unaware,fair_share", vary)
    assert len(asked.results) == 8
    times = asked.times("fair_share")
    assert times[1] > times[0]
    assert times[2] == pytest.approx(2 * times[0], rel=0.1)
    assert asked.correlation("congestion_unaware") is not None


@pytest.mark.parametrize(
    ("asked", "vary", "says"),
    [
        ("fair_share,,ns3", [], "empty entry"),
        ("fair_share,fair_share", [], "each network once"),
        ("fair_share", ["topology.rate"], "no '='"),
    ],
)
def test_mistakes(asked: str, vary: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        networks(LEAF, asked, vary)


def test_an_unknown_network_is_answered_with_a_near_one() -> None:
    with pytest.raises(ScenarioError, match="fair_share"):
        networks(LEAF, "fair_shar")


def test_runs_come_from_a_store_and_go_to_an_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, vary = "congestion_unaware,fair_share", ["jobs[0].workload.size=1MB,2MB"]
    first = networks(LEAF, asked, vary, store=tmp_path)
    beside = networks(LEAF, asked, vary, executor=LocalExecutor(workers=2))
    monkeypatch.setattr(trials, "simulate", lambda *_, **__: pytest.fail("it is in the store"))
    again = networks(LEAF, asked, vary, store=tmp_path)
    for other in (beside, again):
        assert [one.design for one in other.results] == [one.design for one in first.results]
        assert [one.summary.digest for one in other.results] == [one.summary.digest for one in first.results]
    with pytest.raises(pytest.fail.Exception):
        networks(LEAF, asked, vary, store=tmp_path, again=True)
    with pytest.raises(InputError, match="doesn't go with an executor"):
        networks(LEAF, asked, (), executor=LocalExecutor(), workers=2)


def test_a_run_that_cannot_go_on_ends_it() -> None:
    text = LEAF.replace("1MB, ranks: 4}", "1GB, ranks: 4}")
    with pytest.raises(SimulationError, match="fair_share: takes longer than the 1 ms"):
        networks(text, "fair_share", executor=LocalExecutor(workers=1, timeout="1ms"))
