"""What a queue holds goes to whom it was sent to, also where its sender has gone another way meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.network.balancing.contract import Balancer
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.topology.graph import Topology
from cosim.topology.routing import EcmpPaths
from cosim.units import PS_PER_US
from tests.network.balancing.worlds import send
from tests.network.worlds import graph

LEAVES_AT = 100 * PS_PER_US
TO_BIG, TO_SMALL, LEFT_WAY = 2, 3, 6
"""Links to either receiver, and the one behind the port with the queue."""
BIG, SMALL = 4_000_000, 50_000
ROOM = PortSettings(headers=False, mtu_bytes=1000, lossless=False, buffer_bytes=10**9)


class Leaves(Balancer):
    """By the first path; who sends fast goes by the second after 100 us."""

    def choose(self, c: Any) -> None:
        fast = c.line > 1e10
        c.path = np.where(fast & (c.first == 0), 1, 0)
        c.again = np.where(fast & (c.first != 0), LEAVES_AT, 0)


def two_ways() -> Topology:
    """0 and 1 to 2 and 3, by node 5 (40 Gb/s) or node 6 (80 Gb/s); 1 sends at 1 Gb/s, 3 takes 2 Gb/s."""
    links = [(0, 4, 80e9, 0), (1, 4, 1e9, 0), (7, 2, 200e9, 0), (7, 3, 2e9, 0)]
    links += [(4, 5, 40e9, 0), (4, 6, 80e9, 0), (5, 7, 200e9, 0), (6, 7, 200e9, 0)]
    return replace(graph(4, 8, links), routing=EcmpPaths())


def test_a_queue_that_its_sender_left_goes_to_its_receiver_and_not_to_who_still_feeds_it() -> None:
    """After 100 us 512.5 kB stand before node 5, of 81 parts 80 for 2, and 1 goes on to feed that queue."""
    network = CongestionNetwork(Fixed(bdp=1e6), ROOM, Leaves())
    times, counted = send(network, two_ways(), [(0, 2, BIG), (1, 3, SMALL)])
    carried = counted.busy_ps.sum(axis=0) * 1e-12 / 8
    assert carried[TO_BIG] * 200e9 == pytest.approx(BIG, rel=0.002)
    assert carried[TO_SMALL] * 2e9 == pytest.approx(SMALL, rel=0.03)
    # 512.5 kB take 102.5 us; what the slow one brought meanwhile, behind them, then comes at 40 Gb/s to a
    # link of 2, and nothing of the other's.
    behind = 102.5e-6 * 1e9 / 8 * (1 - 2 / 40)
    assert counted.extra["queue_max_bytes"][TO_SMALL] == pytest.approx(behind, rel=0.05)
    assert counted.extra["queue_max_bytes"][TO_BIG] < 2 * ROOM.mtu_bytes
    # 1 MB in the first 100 us, of which half is there by then, then 80 Gb/s; the slow one's last byte has no
    # queue before it any more.
    assert times[0] / PS_PER_US == pytest.approx(400, rel=0.01)
    assert times[1] / PS_PER_US == pytest.approx(8 * SMALL / 1e3, rel=0.03)


def test_the_same_where_a_link_dies_behind_which_a_queue_of_another_stands() -> None:
    """At 100 us the way from node 5 on is down for who went there; its queue before that is gone with it."""
    topology = two_ways()
    changes = LinkChanges([LinkChange(LEAVES_AT, LEFT_WAY, 0.0)], 10 * PS_PER_US)
    network = CongestionNetwork(Fixed(bdp=1e6), ROOM)
    times, counted = send(network, replace(topology, changes=changes), [(0, 2, BIG), (1, 3, SMALL)])
    carried = counted.busy_ps.sum(axis=0) * 1e-12 / 8
    assert carried[TO_BIG] * 200e9 <= BIG * 1.01
    assert carried[TO_SMALL] * 2e9 <= SMALL * 1.01
    assert (times > 0).all()


class Stays(Balancer):
    """By the first path."""

    def choose(self, c: Any) -> None:
        c.path = 0


def test_what_came_and_ended_behind_a_queue_goes_on_when_that_has_left() -> None:
    """The slow one starts when 250 kB stand before node 5 and ends while its first byte waits behind them."""
    network = CongestionNetwork(Fixed(bdp=1e6), ROOM, Stays())
    starts = [0, LEAVES_AT // 2]
    times, counted = send(network, two_ways(), [(0, 2, BIG), (1, 3, SMALL // 10)], starts)
    carried = counted.busy_ps.sum(axis=0) * 1e-12 / 8
    assert carried[TO_SMALL] * 2e9 == pytest.approx(SMALL // 10, rel=0.03)
    # Sent in 40 us, in which 200 kB more come before its last byte.
    assert times[1] / PS_PER_US == pytest.approx(50 + 40 + 450e3 * 8 / 40e3, rel=0.05)
