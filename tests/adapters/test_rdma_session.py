"""RDMA in ns-3 as a server: conformance, the same results however they are asked for, refusals, warnings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

import cosim
from cosim.engine.replay import replay
from cosim.errors import CosimError, RefusedError, ScenarioError
from cosim.experiment.build import build
from cosim.experiment.idle import idle_settings
from cosim.experiment.scenario import loads
from cosim.network.congestion.settings import Congestion
from cosim.protocol.client import RemoteNetwork, launch
from cosim.protocol.rdma import Ns3Rdma
from cosim.testing import check_server
from tests.adapters.ns3_worlds import US, graph, star
from tests.adapters.rdma_worlds import CONTROLS, network, rdma, run
from tests.cli.processes import PATIENCE_S
from tests.protocol.small_run import Hooked, Killer

RING = """
topology: {kind: leaf_spine, endpoints_per_leaf: 4, leaves: 2, spines: 2, rate: 100Gbps, latency: 1us}
network: %s
share_endpoints: true
jobs:
  - workload: {kind: collective, collective: all_reduce, size: 1MB, ranks: 8, repeat: 2}
    weight: 2
  - workload: {kind: collective, collective: all_to_all, size: 1MB, ranks: 8, repeat: 2}
collectives: {all_reduce: ring}
"""
FLUID = {
    "dcqcn": "{kind: dcqcn, preset: connectx, timer: 100us}",
    "dctcp": "{kind: dctcp, threshold: 300 kB}",
    "fixed": "{kind: fixed, bdp: 2}",
    "hpcc": "{kind: hpcc, eta: 0.9}",
    "nscc": "{kind: nscc, target: 9us, gamma: 0.7}",
    "swift": "{kind: swift, base_target: 30us}",
    "timely": "{kind: timely, patched: true}",
}


def test_conformance() -> None:
    report = check_server([rdma()], deadline_s=PATIENCE_S)
    assert report.passed, str(report)


@pytest.mark.parametrize(
    "control",
    [
        *(pytest.param(one, marks=[pytest.mark.slow] * (one not in ("dcqcn", "nscc"))) for one in CONTROLS),
        "{kind: mltcp, over: dcqcn}",
    ],
)
def test_dependent_flows_released_by_ns3_or_by_the_engine_end_alike(control: str) -> None:
    rdma()
    seen = set()
    releases: tuple[Literal["network", "engine"], ...] = ("network", "engine", "network")
    for release in releases:
        built = build(loads(RING % f"{{model: ns3_rdma, control: {control}}}"))
        remote = network_of(f"{{model: ns3_rdma, control: {control}, buffer: 300 kB}}")
        records = replay(built.topology, remote, built.jobs, built.planner, release=release)
        assert remote.last is not None
        seen.add((records.digest, remote.last.events))
    assert len(seen) == 1


def network_of(text: str) -> RemoteNetwork:
    """The session that a scenario's network asks for."""
    spec = loads(RING % text).network
    assert isinstance(spec, Ns3Rdma)
    return launch([rdma()], **vars(spec.settings()))


@pytest.mark.parametrize("control", CONTROLS)
def test_the_fluid_networks_text_holds_with_another_name(control: str) -> None:
    """Every parameter arrives at the adapter with its value, and the adapter has no other."""
    ports = "mtu: 4000 B, buffer: 2 MB, ecn_min: 100 kB, ecn_max: 200 kB, rto: 1ms"
    text = f"{{model: %s, control: {FLUID[control]}, {ports}}}"
    fluid = loads(RING % (text % "congestion")).network
    assert isinstance(fluid, Congestion)
    remote = network_of(text % "ns3_rdma")
    remote.open(star(2))
    told = {key: value for key, value in remote.settings.items() if key.startswith(f"{control}.")}
    remote.close()
    fields = {key: value for key, value in vars(fluid.control).items() if key != "preset"}
    assert {key.split(".")[1] for key in told} == set(fields)
    for key, value in fields.items():
        assert value is None or float(told[f"{control}.{key}"]) == pytest.approx(float(value))


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (
            {"buffer": "4 kB", "mtu": 1500},
            "buffer of n2, 8000 bytes in all, is smaller than the headroom .* needs there",
        ),
        ({"buffer": "1 kB", "mtu": 1500, "pfc": False}, "no room for two packets"),
        ({"pfc_threshold": "90 kB", "buffer": "100 kB", "mtu": 1500}, "do not fit into its buffer of 200000"),
        (
            {"control": "dctcp", "shared_buffer": False, "buffer": "100 kB"},
            "marks from 585000 bytes on, which its buffer",
        ),
    ],
)
def test_buffers_and_thresholds_that_cannot_work_are_refused(wanted: dict[str, Any], says: str) -> None:
    remote = network(**wanted)
    with pytest.raises(RefusedError, match=says):
        remote.open(star(2))
    remote.close()


def test_pfc_needs_a_way_back() -> None:
    one_way = graph(2, [(0, 2, 100.0, US), (2, 1, 100.0, US), (1, 3, 100.0, US), (3, 0, 100.0, US)])
    remote = network()
    with pytest.raises(RefusedError, match="the link the other way, which n0 -> n2 has not"):
        remote.open(one_way)
    remote.close()
    assert run(one_way, [(0, 1, 100_000)], pfc=False).end_ps[0] > 0


@pytest.mark.parametrize(
    ("transport", "options", "says"),
    [
        ("dcqcn", {"dcqcn.h": "1"}, "dcqcn does not read dcqcn.h; it reads g, timer"),
        ("hpcc", {"dcqcn.g": "1"}, "hpcc does not read dcqcn.g; it reads eta"),
        ("hpcc", {"hpcc.eta": "2"}, "takes a number from 0.001 to 1"),
        ("hpcc", {"headroom": "5"}, "no option headroom; there are"),
        ("hpcc", {"pfc": "maybe"}, "takes off or on"),
        ("hpcc", {"balancing": "best"}, "takes random, flowlet or adaptive"),
        (
            "dcqcn",
            {"delivery": "out_of_order", "retransmission": "go_back_n"},
            "throws away what comes out of order",
        ),
        ("nscc", {"delivery": "in_order"}, "each loss is told by its own header"),
    ],
)
def test_options_that_are_not_read_are_refused(transport: str, options: dict[str, str], says: str) -> None:
    remote = launch([rdma()], transport=transport, options=options)
    with pytest.raises(RefusedError, match=says):
        remote.open(star(2))
    remote.close()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{model: ns3_rdma, control: cubic}", "Cubic is no control of RDMA; there are dcqcn"),
        ("{model: ns3_rdma, control: dcqcn, ecn_min: 10 kB, ecn_max: 5 kB}", "ecn_max is below ecn_min"),
        (
            "{model: ns3_rdma, control: hpcc, routing: spray, retransmission: go_back_n}",
            "what comes out of order",
        ),
        ("{model: ns3_rdma, control: {kind: hpcc, k_min: 3}}", "k_min"),
        ("{model: ns3_rdma, control: hpcc, mtu: 70 kB}", "mtu"),
        ("{model: ns3_rdma, control: nscc, delivery: in_order}", "each loss is told by its own header"),
        ("{model: ns3_rdma, control: nscc, retransmission: go_back_n}", "what comes out of order"),
    ],
)
def test_mistakes_are_said_with_their_place(text: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        loads(RING % text)


@pytest.mark.parametrize(
    ("network", "says"),
    [
        ("control: hpcc, ecn_min: 10 kB", "ecn_min: has no effect: hpcc doesn't look at marks"),
        ("control: swift, pfc_threshold: 10 kB", "pfc_threshold: has no effect: nothing is paused"),
        (
            "control: hpcc, alpha: 1, pfc_threshold: 10 kB",
            "alpha: has no effect: links are stopped at a fixed",
        ),
        ("control: dcqcn, ecn_max: 10 kB", "ecn_max: has no effect: the control's own marking"),
        ("control: {kind: mltcp, over: fixed}", "control: has no effect: MLTCP scales growth"),
        ("control: dcqcn, trimming: true", "trimming: has no effect: nothing is dropped: pfc is on"),
        ("control: dcqcn, routing_seed: 3", "routing_seed: has no effect"),
        ("control: dcqcn, flowlet_gap: 3us", "flowlet_gap: has no effect: routing is auto, not flowlet"),
        ("control: dcqcn, delivery: out_of_order", "delivery: has no effect: all packets of a queue pair"),
    ],
)
def test_what_the_control_does_not_read_is_warned_of(network: str, says: str) -> None:
    scenario = loads(RING % f"{{model: ns3_rdma, {network}}}")
    built = build(loads(RING % "fair_share"))
    assert any(says in one for one in idle_settings(scenario, built.topology, built.jobs))


def test_priorities_beyond_eight_classes_are_refused() -> None:
    with pytest.raises(RefusedError, match="priority 8 is not one of the 8 classes"):
        run(star(2), [(0, 1, 1000)], priorities=[8])


def test_headroom_of_another_class_has_to_fit_too() -> None:
    with pytest.raises(RefusedError, match="smaller than the headroom that PFC needs there"):
        run(star(2), [(0, 1, 100_000)], priorities=[7], mtu=1500, buffer="100 kB")


RECORD = "record: {queues: ['* -> *'], rates: ['* -> *'], every: 10us}\n"


def test_queues_and_rates_over_time_are_those_of_the_packets() -> None:
    """What ports counted in the end is what the series counted; looking changes nothing."""
    rdma()
    text = RING % "{model: ns3_rdma, control: dcqcn, mtu: 1500 B, ecn_min: 20 kB}"
    run, unseen = cosim.run(loads(text + RECORD)), cosim.run(loads(text))
    assert run.records.digest == unseen.records.digest
    counted, series = run.records.links.extra, run.queues
    assert series is not None
    assert run.rates is not None
    assert series.marks.sum() > 0
    assert series.marks.sum() <= counted["marks"].sum()
    assert 0 < series.queue_bytes.max() <= counted["queue_max_bytes"].max()
    # A pair of endpoints has a connection of each job.
    assert 0 < run.rates.rate_bps.max() <= 2 * 100e9 * 1.001
    assert 0 < run.rates.marked.max() <= 1


def test_fast_forward_has_no_queues_over_time() -> None:
    rdma()
    with pytest.raises(CosimError, match="with fast_forward queues and rates are not simulated at all times"):
        cosim.run(loads(RING % "{model: ns3_rdma, control: dcqcn, fast_forward: exact}" + RECORD))


def test_a_killed_server_is_brought_back(tmp_path: Path) -> None:
    rdma()
    text = "{model: ns3_rdma, control: dcqcn}"
    built = build(loads(RING % text))
    whole = replay(built.topology, network_of(text), built.jobs, built.planner, release="engine")
    remote = network_of(text)
    remote.log_to(tmp_path / "log")
    killer = Killer(remote, [20, 60])
    mended = replay(built.topology, Hooked(remote, killer), built.jobs, built.planner, release="engine")
    assert mended.digest == whole.digest
    assert remote.session.deaths == 2
