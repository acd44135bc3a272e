"""``accuracy``: several rounds at once are as near to each round by itself as a scenario says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import cosim
from cosim.errors import CosimError
from cosim.network.congestion.contract import Control
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.controls.swift import Swift
from cosim.network.congestion.controls.timely import Timely
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.results.too_fast import too_fast
from cosim.topology.graph import Topology
from cosim.units import PS_PER_US
from tests.lab.benchmarks.many_flows import network_of, once
from tests.network.congestion.worlds import graph, on_wire, star, watch

SCENARIO = """
topology: {kind: leaf_spine, leaves: 4, spines: 4, endpoints_per_leaf: 4, rate: 100Gbps, latency: 1us}
network: {model: congestion, control: dctcpACCURACY}
jobs: [{workload: {kind: collective, collective: all_to_all, ranks: 16, size: 16MB}}]
"""
F64 = NDArray[np.float64]


class Marked(Control):
    """Half a packet more without marks, an eighth less with them; in Python."""

    gives: ClassVar[Any] = "window"
    state: ClassVar[dict[str, float]] = {"rounds": 0.0}

    def update(self, c: Any) -> None:
        """Count rounds as well."""
        c.rounds = c.rounds + 1
        c.window = np.where(c.marked > 0, np.maximum(c.window * 0.875, c.mss), c.window + 0.5 * c.mss)

    def marking(self, rate_bps: float, mtu_bytes: int) -> tuple[float, float, float]:  # noqa: ARG002
        """From 30 packets."""
        return 30.0 * mtu_bytes, 30.0 * mtu_bytes, 1.0


def completions(
    control: Control, topology: Topology, flows: list[Any], tolerance: float, starts_ps: Sequence[int] = ()
) -> tuple[F64, int]:
    """When each flow is there, ps, and how often the control was asked."""
    network = CongestionNetwork(control, PortSettings(tolerance=tolerance))
    seen = watch(topology, control, flows, starts_ps=starts_ps, network=network)
    return np.array([seen.done_ps[k] for k in range(len(flows))], np.float64), network.control_updates


def all_to_all(ranks: int, size: int) -> list[Any]:
    return [(src, dst, size) for src in range(ranks) for dst in range(ranks) if src != dst]


@pytest.mark.parametrize("control", ["dctcp", "swift", "timely", "nscc"])
def test_flows_that_share_ports_end_as_with_each_round_by_itself(control: str) -> None:
    exact, _, asked = once(control, 32, "exact")
    coarse, _, asked_less = once(control, 32, "1%")
    assert asked_less < asked / 2
    assert abs(coarse.mean() / exact.mean() - 1) < 0.01
    assert np.abs(coarse / exact - 1).mean() < 0.02


def test_a_control_in_python_is_asked_for_each_round_too() -> None:
    topology, flows = network_of("dctcp", 16, "exact")[1], all_to_all(16, 300_000)
    exact, asked = completions(Marked(), topology, flows, 0.0)
    coarse, asked_less = completions(Marked(), topology, flows, 0.01)
    assert asked_less < asked
    assert abs(coarse.mean() / exact.mean() - 1) < 0.01


@pytest.mark.parametrize("control", [Dctcp(), Swift(), Timely()], ids=lambda one: type(one).__name__)
def test_a_symmetric_all_to_all_takes_what_its_ports_take(control: Control) -> None:
    """Closed form: each port carries 15 messages, at its rate."""
    size = 1_000_000
    topology = graph(16, 17, [(k, 16, 100e9, PS_PER_US) for k in range(16)])
    took, _ = completions(control, topology, all_to_all(16, size), 0.01)
    ideal_ps = 15 * on_wire(control, size, 9_000) * 80
    assert ideal_ps <= took.min()
    assert took.max() <= 1.01 * ideal_ps


def test_an_incast_takes_what_its_link_takes() -> None:
    size, senders = 4_000_000, 64
    flows = [(k, senders, size) for k in range(senders)]
    took, _ = completions(Dctcp(), star(senders, 100e9, PS_PER_US), flows, 0.01)
    ideal_ps = senders * on_wire(Dctcp(), size, 9_000) * 80
    assert 0.995 * ideal_ps <= took.max() <= 1.01 * ideal_ps


def test_a_long_flow_makes_room_for_one_that_comes_late() -> None:
    """Its rounds have become long by then; the queue that begins ends them."""
    flows, starts_ps = [(0, 2, 400_000_000), (1, 2, 10_000_000)], (0, 10_000_000_000)
    topology = star(2, 100e9, PS_PER_US)
    exact, _ = completions(Dctcp(), topology, flows, 0.0, starts_ps)
    coarse, _ = completions(Dctcp(), topology, flows, 0.01, starts_ps)
    assert np.abs(coarse / exact - 1).max() < 0.01


def test_exact_is_what_holds_without_the_setting() -> None:
    plain = cosim.run(SCENARIO.replace("ACCURACY", ""))
    assert cosim.run(SCENARIO.replace("ACCURACY", ", accuracy: exact")).digest == plain.digest
    coarse = cosim.run(SCENARIO.replace("ACCURACY", ", accuracy: 1%"))
    assert coarse.digest == cosim.run(SCENARIO.replace("ACCURACY", ", accuracy: 0.01")).digest
    one, other = (run.records.end_ps for run in (plain, coarse))
    assert abs(other / one - 1) < 0.01


@pytest.mark.parametrize("given", ["0", "-1%", "0%", "50%", "soon", "1 %%", "true", "nan%", ".nan", "[1%]"])
def test_what_is_no_accuracy_is_refused(given: str) -> None:
    with pytest.raises(CosimError, match="accuracy"):
        cosim.run(SCENARIO.replace("ACCURACY", f", accuracy: {given}"))


INCAST = """
topology: {kind: switch, endpoints: 17, rate: 100Gbps, latency: 1us}
network: {model: congestion, control: CONTROL, accuracy: ACCURACY, buffer: 2MB, pfc_threshold: 60kB}
jobs: [{workload: {kind: periodic, compute: 0ns, size: 4MB, communication: incast, ranks: 17}}]
"""


def both(text: str) -> list[Any]:
    """Runs with each round by itself, and with several at once."""
    return [cosim.run(text.replace("ACCURACY", accuracy), messages=True) for accuracy in ("exact", "1%")]


@pytest.mark.parametrize("control", ["hpcc", "{kind: fixed, bdp: 20}"])
def test_an_incast_pauses_as_with_each_round_by_itself(control: str) -> None:
    exact, coarse = both(INCAST.replace("CONTROL", control))
    pauses = [run.records.links.extra["pause_ps"].sum() for run in (exact, coarse)]
    assert 0 < pauses[0] == pytest.approx(pauses[1], rel=0.01)
    assert abs(coarse.records.end_ps / exact.records.end_ps - 1) < 0.01
    assert abs(coarse.summary.fct.mean_ps / exact.summary.fct.mean_ps - 1) < 0.01


@pytest.mark.parametrize("balancer", ["spray", "adaptive", "{kind: flowlet, gap: 5us}"])
def test_no_link_is_too_fast_where_messages_change_their_paths(balancer: str) -> None:
    exact, coarse = both(SCENARIO.replace("ACCURACY", f", balancer: {balancer}, accuracy: ACCURACY"))
    assert too_fast(coarse.records) == []
    assert abs(coarse.summary.fct.mean_ps / exact.summary.fct.mean_ps - 1) < 0.01
