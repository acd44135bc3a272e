"""TCP as a fluid: what its windows do, against closed forms and against ns-3."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.network.congestion.contract import Control
from cosim.network.congestion.controls.cubic import Cubic
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.controls.mltcp import Mltcp
from cosim.network.congestion.controls.newreno import NewReno
from cosim.network.congestion.fabric import PortSettings
from cosim.units import PS_PER_US
from tests.network.congestion.worlds import dumbbell, graph, star, watch

MTU = 1_000
RATE = 100e9


def test_slow_start_grows_by_a_packet_for_each_acknowledgement() -> None:
    """RFC 5681, section 3.1: with every second packet acknowledged a round trip brings half a window more."""
    latency = 100 * PS_PER_US
    rtt = 6 * latency
    ports = PortSettings(mtu_bytes=MTU)
    for ack_every, growth in ((1.0, 2.0), (2.0, 1.5)):
        three = int(MTU * 10 * (1 + growth + growth**2))
        for size, rounds in ((three, 3), (three + 10 * MTU, 4)):
            seen = watch(dumbbell(1, RATE, latency), NewReno(ack_every=ack_every), [(0, 1, size)], ports)
            # Rounds end on a grid of an eighth; what a round sends is spread over it.
            assert (rounds - 1) * rtt < seen.done_ps[0] - rtt // 2 <= rounds * 1.05 * rtt


class _Waits(Fixed):
    """Fixed windows whose acknowledgements wait behind data"""

    acks_wait: ClassVar[bool] = True


@pytest.mark.parametrize(("control", "waits"), [(Fixed(bdp=2), False), (_Waits(bdp=2), True)])
def test_acknowledgements_wait_where_data_goes_the_other_way(control: Control, waits: bool) -> None:
    """A window w is w / (rtt + queue of the other way) where it is not the link that limits."""
    rate, latency = 10e9, 10 * PS_PER_US
    links = (
        [(4, 5, rate, latency)]
        + [(k, 4, 40e9, latency) for k in (0, 1)]
        + [(5, k, 40e9, latency) for k in (2, 3)]
    )
    flows = [(2, 0, 10**9), (3, 1, 10**9), (0, 3, 10**9)]
    ports = PortSettings(mtu_bytes=MTU, buffer_bytes=10**9)
    seen = watch(
        graph(4, 6, links), control, flows, ports, until_ps=20_000 * PS_PER_US, step_ps=100 * PS_PER_US
    )
    half = len(seen.queue) // 2
    queue = seen.queue[half:, 1].mean()  # of two flows with two bandwidth-delay products each
    base = 6 * latency + MTU * 8e12 * (1 / rate + 2 / 40e9)
    window = 2 * 40e9 * base / 8e12
    wait = queue * 8e12 / rate if waits else 0.0
    assert queue > 100 * MTU
    assert seen.rate[half:, 2].mean() == pytest.approx(min(window * 8e12 / (base + wait), rate), rel=0.25)


def test_a_loss_is_known_a_round_trip_later_and_halves_what_is_on_its_way() -> None:
    """Two NewReno flows in slow start fill a queue of 260 packets: ns-3 drops 142 until they notice."""
    ports = PortSettings(mtu_bytes=9000, buffer_bytes=260 * 9000)
    flows = [(0, 2, 10_000_000), (1, 2, 10_000_000)]
    seen = watch(star(2, RATE, PS_PER_US), NewReno(), flows, ports, starts_ps=[0, PS_PER_US])
    assert seen.statistics.extra["drops"].sum() == pytest.approx(142, rel=0.35)


def test_what_is_lost_twice_waits_for_the_timeout() -> None:
    """Twelve flows into a short queue: some lose what they send again, and come back after the timeout."""
    flows = [(k, 12, 1_000_000) for k in range(12)]
    starts = [k * 3 * PS_PER_US for k in range(12)]
    last = []
    for rto_us in (500, 5_000):
        ports = PortSettings(mtu_bytes=9000, buffer_bytes=40 * 9000, least_rto_ps=rto_us * PS_PER_US)
        seen = watch(star(12, RATE, PS_PER_US), NewReno(), flows, ports, starts_ps=starts)
        last.append(max(seen.done_ps.values()) / PS_PER_US)
    assert last[0] < 5_000 < last[1]


def test_cubic_grows_by_a_twentieth_until_its_first_cut() -> None:
    """As Linux and ns-3 have it; the cubic itself would take seconds at these sizes."""
    rate, latency, size = 100e9, 5 * PS_PER_US, 60_000_000
    seen = watch(
        star(2, rate, latency),
        Cubic(friendly=False),
        [(0, 2, size), (1, 2, size)],
        PortSettings(mtu_bytes=9000, buffer_bytes=10**8),
        until_ps=8_000 * PS_PER_US,
        step_ps=10 * PS_PER_US,
    )
    queue = seen.queue[:, 0] / 9000
    at = np.arange(1, len(queue) + 1) * 10.0
    windows = queue + 4 * 5.0 / 0.72  # both: what waits, and what is on its way
    late = at > 1_000
    # dw/dt = w / 20 for each round trip of w * 0.72 us: one packet for twenty, at the link's rate
    slope = np.polyfit(at[late], windows[late], 1)[0]
    assert slope == pytest.approx(1 / 0.72 / 20, rel=0.1)


FABRIC = """
topology: {kind: leaf_spine, leaves: 4, spines: 4, endpoints_per_leaf: 4, rate: 100Gbps, latency: 1us,
           oversubscription: 1}
network: fair_share
jobs: [{workload: {kind: collective, collective: barrier, ranks: 2}}]
"""
LATE_COMERS = {
    "dctcp": (Dctcp(), [952, 2103, 1506, 1690]),
    "cubic": (Cubic(friendly=False, hystart_train=1.0), [939, 1897, 1982, 1606]),
}
"""Completion times in us by ns-3 3.37, means over four seeds (tests/lab/benchmarks/ns3_congestion.py)."""


@pytest.mark.parametrize("name", LATE_COMERS)
def test_late_comers_take_as_long_as_in_ns3(name: str) -> None:
    """8 MB each to one endpoint, 300 us apart: the first keeps what the others come into."""
    control, ns3 = LATE_COMERS[name]
    flows = [(4 + k, 0, 8_000_000) for k in range(4)]
    starts = [300 * k * PS_PER_US for k in range(4)]
    ports = PortSettings(mtu_bytes=9000, buffer_bytes=260 * 9000)
    seen = watch(build(loads(FABRIC)).topology, control, flows, ports, starts_ps=starts)
    took = np.array([seen.done_ps[k] - starts[k] for k in range(4)]) / PS_PER_US
    assert np.abs(took / np.array(ns3) - 1).mean() < 0.05


def test_mltcp_over_tcp_leaves_slow_start_alone() -> None:
    """Its first rounds are those of the control underneath."""
    flows = [(0, 1, 300_000)]
    alone = watch(dumbbell(1, RATE, 100 * PS_PER_US), NewReno(), flows).done_ps
    assert watch(dumbbell(1, RATE, 100 * PS_PER_US), Mltcp(over=NewReno()), flows).done_ps == alone
