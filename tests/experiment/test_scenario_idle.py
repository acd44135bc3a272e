"""A setting that can't matter draws a warning with its place; one that can, draws none."""

from __future__ import annotations

import pytest

from cosim.experiment.build import build
from cosim.experiment.scenario import loads

TEXT = """\
topology: {kind: switch, endpoints: 8, rate: 100Gbps, latency: 1us}
network: congestion_aware
jobs:
  - workload: {kind: collective, collective: all_reduce, ranks: 4, size: 1MiB}
  - workload: {kind: collective, collective: all_reduce, ranks: 4, size: 1MiB}
"""

P2P = "{kind: periodic, compute: 1ms, size: 1MB}"
WRITTEN = (
    "{kind: operations, world_size: 2, programs: [{operations: [{name: a, kind: compute, duration: 1ms}]}]}"
)
GATHER = ["jobs[0].workload.collective=all_gather", "jobs[1].workload.collective=all_gather"]
BARRIER = [
    "jobs[0].workload={kind: collective, collective: barrier, ranks: 4}",
    "jobs[1].workload={kind: collective, collective: barrier, ranks: 4}",
]
SWIFT = "network={model: congestion, control: swift, ecn_min: 100kB}"
FULL = "network={model: congestion, control: dctcp, ecn_min: 2MB, buffer: 1MB}"
CUSTOM = ["collectives.all_reduce={algorithm: chakra, path: nowhere}"]


def warnings(*settings: str) -> list[str]:
    return list(build(loads(TEXT, settings, name="x.yaml")).warnings)


@pytest.mark.parametrize(
    ("settings", "place", "why"),
    [
        (["jobs[1].weight=2"], "--set jobs[1].weight=2", "does not share links by it"),
        (["jobs[1].priority=2"], "--set jobs[1].priority=2", "does not share links by it"),
        (["seed=5"], "--set seed=5", "nothing in this scenario draws from it"),
        (
            ["share_endpoints=true", "jobs[1].placement={kind: explicit, endpoints: [4, 5, 6, 7]}"],
            "--set share",
            "no two jobs",
        ),
        (["collectives.active_chunks=4"], "--set collectives.active_chunks=4", "splits: 1"),
        (["collectives.all_gather=direct"], "--set collectives.all_gather=direct", "they have all_reduce"),
        (["jobs[0].workload.root=0"], "--set jobs[0].workload.root=0", "all_reduce has no root"),
        (
            ["network=fair_share", "jobs[0].weight=2", "jobs[1].weight=2"],
            "--set jobs[0].weight=2",
            "every job has the same",
        ),
        (["collectives.optimization=baseline"], "--set collectives.optimization", "one algorithm"),
        ([*GATHER, "collectives.reduction_rate=1TB/s"], "--set collectives.reduction_rate", "is reduced"),
        ([*CUSTOM, "collectives.splits=2"], "--set collectives.splits=2", "files say all"),
        ([*BARRIER, "collectives.sizing=floor"], "--set collectives.sizing=floor", "carries no data"),
        (
            [f"jobs[0].workload={P2P}", "jobs[0].workload.communication=barrier"],
            "--set jobs[0].workload=",
            "carries no data",
        ),
        ([SWIFT], "--set network=", "Swift does not look at marks"),
        ([FULL], "--set network=", "the buffer of 1 MB is full before a packet is marked"),
        ([f"jobs[0].workload={WRITTEN}", "jobs[0].workload.rendezvous=true"], "--set jobs[0]", "is a send"),
    ],
)
def test_an_idle_setting_is_said(settings: list[str], place: str, why: str) -> None:
    said = warnings(*settings)
    assert any(warning.startswith(place) and why in warning for warning in said), said


@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["jobs[0].weight=1", "jobs[0].priority=0"],
        ["network=fair_share", "jobs[1].weight=2"],
        ["network=fair_share", "jobs[1].priority=1"],
        ["seed=5", "jobs[1].placement=random"],
        [
            "seed=5",
            "topology={kind: fat_tree, k: 4, rate: 1Gbps, latency: 1us}",
        ],
        ["share_endpoints=true"],
        ["collectives.splits=4", "collectives.active_chunks=4"],
        ["collectives.all_reduce=direct", "collectives.endpoint_delay=10ns"],
        ["release=engine"],
    ],
)
def test_a_setting_that_matters_is_not_said(settings: list[str]) -> None:
    assert warnings(*settings) == []


def test_how_collectives_are_carried_is_idle_where_there_are_none() -> None:
    said = warnings(f"jobs[0].workload={P2P}", f"jobs[1].workload={P2P}", "collectives.endpoint_delay=10ns")
    assert [warning.split(": has")[0] for warning in said] == ["--set collectives.endpoint_delay=10ns"]


def test_a_lone_job_has_nobody_to_be_weighed_against() -> None:
    text = TEXT.replace("congestion_aware", "fair_share").rsplit("  - ", 1)[0] + "    weight: 2\n"
    (said,) = build(loads(text, name="x.yaml")).warnings
    assert said == "x.yaml:5: jobs[0].weight: has no effect: there is no other job to compare with"


def test_packets_that_overtake_each_other_are_said_where_a_transport_goes_back() -> None:
    clos = (
        "topology={kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 4, latency: 1us, rate: 1Gbps}"
    )

    def said(control: str, balancer: str) -> list[str]:
        asked = f"network={{model: congestion, control: {control}, balancer: {balancer}}}"
        return [str(one) for one in build(loads(TEXT, [clos, asked], name="x.yaml")).doubts]

    (one,) = said("dcqcn", "spray")
    assert one.startswith("--set network=")
    assert "Dcqcn's transport sends again all after a gap (go-back-N), which is not modelled" in one
    assert said("dcqcn", "flowlet") == said("dctcp", "spray") == []
