"""NSCC, RCCC, trimming, entropies: what the specification says of a steady state, closed forms, lots."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from cosim.network.balancing.balancers.reps import Reps
from cosim.network.balancing.balancers.spray import Spray
from cosim.network.balancing.contract import Balancer
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.controls.newreno import NewReno
from cosim.network.congestion.controls.nscc import Nscc
from cosim.network.congestion.controls.rccc import Rccc
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.topology.routing import EcmpPaths
from cosim.units import PS_PER_MS, PS_PER_US
from tests.network.balancing.worlds import leaf_spine, send, up_links
from tests.network.congestion.worlds import dumbbell, star, watch
from tests.network.congestion.worlds import graph as congestion_graph
from tests.network.worlds import graph


@pytest.mark.parametrize("flows", [2, 4, 8])
@pytest.mark.parametrize("rate", [100e9, 400e9])
def test_nscc_fills_a_link_shares_it_and_keeps_the_delay_near_its_target(flows: int, rate: float) -> None:
    """Delay grows until marks come with a mean over the target, 0.75 bare round trips, and falls then."""
    base = 12e-6 + 3 * 4160 * 8 / rate
    bdp = int(rate * base / 8)
    seen = watch(
        dumbbell(flows, rate, 2 * PS_PER_US, edge=rate),
        Nscc(),
        [(k, flows + k, 10**11) for k in range(flows)],
        PortSettings(4160, bdp, bdp // 5, bdp * 4 // 5, headers=False),
        until_ps=20 * PS_PER_MS,
        step_ps=10 * PS_PER_US,
    )
    late = len(seen.queue) // 2
    delay = seen.queue[late:, 0] * 8 / rate
    assert 0.5 * 0.75 * base < delay.mean() < 1.5 * 0.75 * base
    rates = seen.rate[late:].mean(axis=0)
    assert rates.sum() > 0.98 * rate
    assert rates.sum() ** 2 / (flows * (rates**2).sum()) > 0.99  # Jain's index


def test_nscc_alone_is_never_limited() -> None:
    """Its window is one and a half bandwidth-delay products, and nothing marks."""
    seen = watch(
        dumbbell(1, 100e9, PS_PER_US), Nscc(), [(0, 1, 10**8)], PortSettings(headers=False, mtu_bytes=4000)
    )
    assert seen.done_ps[0] == pytest.approx(8_000 * PS_PER_US + 3 * PS_PER_US, abs=PS_PER_US)


@pytest.mark.parametrize("control", [Nscc, NewReno])
def test_what_is_trimmed_never_waits_for_a_timeout(control: type[Any]) -> None:
    """32 to one through 16 packets: some lose twice. Dropped, they wait for the timer; trimmed, they don't.

    What a burst loses is counted by its mean, so that bytes are right to 2 %.
    """
    flows = [(k, 32, 200_000) for k in range(32)]
    ideal = 32 * 200_000 * 80  # ps at 100 Gb/s
    rto = PS_PER_MS
    last = {}
    for trims in (True, False):
        ports = PortSettings(
            headers=False, mtu_bytes=4000, buffer_bytes=64_000, trims=trims, least_rto_ps=rto, lossless=False
        )
        seen = watch(star(32, 100e9, PS_PER_US), control(), flows, ports)
        last[trims] = max(seen.done_ps.values())
        counted = seen.statistics.extra
        assert (counted["trims"] if trims else counted["drops"]).sum() > 0
        assert not trims or counted["drops"].sum() == 0
    assert last[False] > rto
    assert 0.98 * ideal < last[True] < min(rto, 1.35 * ideal)


@pytest.mark.parametrize("senders", [1, 3, 16])
def test_a_receiver_grants_its_port_in_equal_parts(senders: int) -> None:
    """All bytes at 0.99 of its rate, but in the first round trip: at line rate, as far as there is room."""
    size, base = 10**7, 4 * PS_PER_US + 2 * 4000 * 80
    ports = PortSettings(headers=False, mtu_bytes=4000, buffer_bytes=400_000)
    seen = watch(star(senders, 100e9, PS_PER_US), Rccc(), [(k, senders, size) for k in range(senders)], ports)
    least = senders * size * 80 / 0.99 - 400_000 * 80 - 2 * base
    assert (
        least
        < min(seen.done_ps.values())
        <= max(seen.done_ps.values())
        < senders * size * 80 / 0.99 + 2 * base
    )
    trimmed = senders * 100e9 * base / 8e12 - 400_000 - base / 80  # in the first round trip, of what comes
    assert seen.statistics.extra["trims"].sum() * 4000 == pytest.approx(max(trimmed, 0.0), rel=0.1)
    assert seen.statistics.extra["marks"][0] == 0  # the receiver's port, which has a queue


class NumpyRccc(Rccc):
    """RCCC again, as a user would write it"""

    kernel: ClassVar[Any] = None

    def start(self, c: Any) -> None:
        c.rate = c.line

    def update(self, c: Any) -> None:
        c.rate = self.pull * c.granted


@pytest.mark.parametrize("control", [Rccc, NumpyRccc])
def test_what_one_sender_cannot_use_is_granted_to_the_others(control: type[Rccc]) -> None:
    """Host 0 sends to four others, host 1 to one of those, too: half of that port is granted to each, of the
    other three all. Host 0's four take turns, a quarter each; what it can't use of the half to host 1.
    """
    line = 100e9
    taken = line / 4
    flows = [(0, k, 10**10) for k in range(2, 6)] + [(1, 2, 10**10)]
    links = [(6, k, 100e9, PS_PER_US) for k in range(6)]
    seen = watch(
        congestion_graph(6, 7, links),
        control(),
        flows,
        PortSettings(headers=False, mtu_bytes=4000),
        until_ps=PS_PER_MS,
        step_ps=PS_PER_US,
    )
    assert seen.rate[-1, :4] == pytest.approx([taken] * 4, rel=1e-3)
    assert seen.rate[-1, 4] == pytest.approx((line - taken) * 0.99, rel=1e-3)


def test_a_message_after_a_silence_goes_at_once_and_grants_end_with_who_asked() -> None:
    """Two at a time, then one alone, then the other again: who is alone has 0.99 of the port."""
    topology, size = star(2, 100e9, PS_PER_US), 10**6
    seen = watch(
        topology,
        Rccc(),
        [(0, 2, size), (1, 2, 5 * size), (0, 2, size)],
        PortSettings(headers=False, mtu_bytes=4000),
        starts_ps=[0, 0, 900 * PS_PER_US],
    )
    assert seen.done_ps[0] == pytest.approx(2 * size * 80 / 0.99, rel=0.02)
    assert seen.done_ps[1] == pytest.approx(6 * size * 80 / 0.99, rel=0.02)
    assert seen.done_ps[2] - 900 * PS_PER_US == pytest.approx(size * 80 / 0.99, rel=0.05)


def test_an_oversubscribed_fabric_lowers_credit_to_what_it_carries() -> None:
    """Four hosts through a link of one's rate: hardly anything is trimmed, 0.99 x 0.9 is used at least."""
    pairs = [(k, 4 + k, 10**10) for k in range(4)]
    ports = PortSettings(4000, 400_000, 100_000, 300_000, headers=False)
    held, free = (
        watch(
            dumbbell(4, 100e9, PS_PER_US),
            Rccc(oversubscription=ratio),
            pairs,
            ports,
            until_ps=2 * PS_PER_MS,
            step_ps=10 * PS_PER_US,
        )
        for ratio in (4.0, 1.0)
    )
    late = held.rate[100:].sum(axis=1)
    assert late.min() > 0.999 * 0.99 * 0.9 * 100e9
    assert late.mean() < 1.1 * 100e9
    # Without it every host goes on at line rate, and three quarters are trimmed.
    assert free.rate[-1].sum() > 3.9 * 100e9
    assert held.statistics.extra["trims"].sum() < 0.05 * free.statistics.extra["trims"].sum()


@pytest.mark.parametrize("balancer", [Spray, Reps])
def test_entropies_are_hashed_to_paths_like_lots(balancer: Any) -> None:
    """Of n entropies k go by a path with the binomial's mean and variance; every part is a whole number."""
    entropies, size, spines, pairs = 16, 1_600_000, 8, 256
    topology = leaf_spine(leaves=4, below=64, spines=spines, rate="80Gbps", oversubscription=1)
    messages = [(k, (k + 64) % 256, size) for k in range(pairs)]

    def sent(seed: int) -> tuple[Any, Any]:
        network = CongestionNetwork(
            Fixed(bdp=1e6),
            PortSettings(headers=False, mtu_bytes=1000, lossless=False, buffer_bytes=10**9),
            balancer(entropies=entropies),
        )
        return send(network, topology, messages, seed=seed)

    times, counted = sent(0)
    lots = counted.link_bytes[up_links(topology)] / (size / entropies)
    if balancer is Spray:
        assert lots == pytest.approx(np.round(lots), abs=0.01)
    drawn = 64 * entropies  # for each leaf
    assert lots.sum() == pytest.approx(4 * drawn)
    if balancer is Spray:
        deviation = np.sqrt(drawn / spines * (1 - 1 / spines))
        assert 0.6 < np.std(lots) / deviation < 1.4
        assert np.abs(lots - drawn / spines).max() < 4.5 * deviation
    assert (times == sent(0)[0]).all()
    assert (times != sent(1)[0]).any()


class Partly(Balancer):
    """A little over the second of two paths."""

    gives = "parts"
    reorders: ClassVar[bool] = True
    second: float = 0.0

    def choose(self, c: Any) -> None:
        c.parts[:, 1] = self.second
        c.parts[:, 0] = 1.0 - self.second


@pytest.mark.parametrize(("second", "waits"), [(0.0, False), (0.001, False), (0.02, True)])
def test_less_than_half_a_packet_holds_no_message_back(second: float, waits: bool) -> None:
    """100 packets over a way of 80 Gb/s, and a part of them over one of 80 Mb/s: 2 of them take 200 us
    there, and 100 are a packet's time on it, as on each further link.
    """
    links = [(0, 2, 80e9, 0), (2, 3, 80e9, 0), (2, 4, 80e6, 0), (3, 5, 80e9, 0), (4, 5, 80e9, 0)]
    topology = graph(2, 6, [*links, (5, 1, 80e9, 0)])
    object.__setattr__(topology, "routing", EcmpPaths())
    network = CongestionNetwork(
        Fixed(bdp=1e6),
        PortSettings(headers=False, mtu_bytes=1000, lossless=False, buffer_bytes=10**9),
        Partly(second=second),
    )
    times, _ = send(network, topology, [(0, 1, 100_000)])
    exact = 300 if waits else 10
    assert times[0] / PS_PER_US == pytest.approx(exact, rel=0.06)
