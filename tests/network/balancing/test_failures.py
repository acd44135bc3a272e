"""Balancers and links that fail: those known to be dead are not chosen, and what they held back goes on."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.errors import NetworkError
from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.network.balancing.balancers.adaptive import Adaptive
from cosim.network.balancing.balancers.least_loaded import LeastLoaded
from cosim.network.balancing.balancers.spray import Spray
from cosim.network.balancing.balancers.weighted import Weighted
from cosim.network.balancing.contract import Balancer
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.network import CongestionNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowGroup, flat_table, pack_key
from cosim.network.simulator import NetworkSimulator
from cosim.testing.strategies.traffic import Traffic as World
from cosim.testing.strategies.traffic import traffic as worlds
from cosim.topology.graph import Topology
from cosim.topology.routing import EcmpPaths
from cosim.units import NEVER, PS_PER_MS
from tests.network.balancing.worlds import send
from tests.network.test_fair_share import GB_PER_S
from tests.network.worlds import batch, drive, graph

MB = 10**6
many = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
SPINES = 4


def fabric(rows: list[tuple[int, int, float]], detection_ps: int = PS_PER_MS) -> Topology:
    """From 0 to 1 over four spines of a quarter of the rate each; link 2 + 2 k goes up to spine k."""
    links = [(0, 2, GB_PER_S, 0), (3, 1, GB_PER_S, 0)]
    for spine in range(SPINES):
        links += [(2, 4 + spine, GB_PER_S / SPINES, 0), (4 + spine, 3, GB_PER_S / SPINES, 0)]
    changes = [LinkChange(time * PS_PER_MS, link, rate) for time, link, rate in rows]
    return replace(
        graph(2, 4 + SPINES, links), routing=EcmpPaths(), changes=LinkChanges(changes, detection_ps)
    )


@pytest.mark.parametrize("balancer", [Spray, Adaptive])
def test_parts_leave_a_dead_link_after_the_detection_and_come_back_after_the_repair(
    balancer: Callable[[], Balancer],
) -> None:
    topology = fabric([(3, 4, 0.0), (8, 4, GB_PER_S / SPINES)])
    times, counted = send(FairShareNetwork(balancer()), topology, [(0, 1, 10 * MB)])
    # 3 MB; nothing for a millisecond of detection; three quarters of the rate from 4 to 9 ms; then the rest.
    exact = 12 * PS_PER_MS + PS_PER_MS // 4
    if balancer is Spray:
        assert abs(int(times[0]) - exact) <= 20  # thirds are rounded up to a billionth
        assert abs(int(counted.link_bytes[4]) - (3 * MB + 3_250_000) // 4) <= 4
    else:  # moves back half-way at a time
        assert exact <= times[0] <= exact + PS_PER_MS // 10


def test_a_message_goes_on_by_another_path_or_waits_where_there_is_none() -> None:
    alive, counted = send(FairShareNetwork(Weighted()), fabric([]), [(0, 1, 2 * MB)])
    assert alive[0] == 8 * PS_PER_MS
    taken = next(k for k in range(2, 10, 2) if counted.link_bytes[k])
    moved, counted = send(FairShareNetwork(Weighted()), fabric([(4, taken, 0.0)]), [(0, 1, 2 * MB)])
    assert moved[0] == 9 * PS_PER_MS  # but for the millisecond of detection
    assert counted.link_bytes[taken] == MB
    everything = [(4, k, 0.0) for k in range(2, 10, 2)]
    back = [(20, k, GB_PER_S / SPINES) for k in range(2, 10, 2)]
    waited, _ = send(FairShareNetwork(Weighted()), fabric(everything + back), [(0, 1, 2 * MB)])
    assert waited[0] == 24 * PS_PER_MS


@pytest.mark.parametrize("network", [FairShareNetwork, lambda one: CongestionNetwork(Dctcp(), None, one)])
@pytest.mark.parametrize("balancer", [Adaptive, Spray])
def test_who_looks_again_and_again_comes_to_an_end_where_nothing_comes_back(
    network: Callable[[Balancer], NetworkSimulator], balancer: Callable[[], Balancer]
) -> None:
    made = network(balancer())
    made.open(fabric([(4, k, 0.0) for k in range(2, 10, 2)]))
    group = FlowGroup(0, flat_table([0], [1], [20 * MB]), np.array([0, 1], np.int32), pack_key(0, 0, 0, 0))
    step = made.advance(batch([group], [(0, 0, 0, 0)]), NEVER)
    assert (step.granted_ps, len(step.completions)) == (NEVER, 0)


class Stubborn(Balancer):
    """Path 0, whatever happens"""

    def choose(self, c: object) -> None:
        c.path = 0  # type: ignore[attr-defined]


def test_a_path_that_is_known_to_be_dead_is_refused() -> None:
    with pytest.raises(NetworkError, match=r"'path' is 0 for .* a link of that path is down"):
        send(FairShareNetwork(Stubborn()), fabric([(1, 2, 0.0)]), [(0, 1, 10 * MB)])


@pytest.mark.parametrize("balancer", [Spray, LeastLoaded, Adaptive])
@many
@given(world=worlds(), seed=st.integers(0, 2**32), detection=st.integers(0, 10**6), data=st.data())
def test_cuts_change_nothing_where_links_fail_and_come_back(
    balancer: Callable[[], Balancer], world: World, seed: int, detection: int, data: st.DataObject
) -> None:
    links = world.topology.num_links
    chosen = data.draw(st.lists(st.integers(0, links - 1), min_size=1, max_size=4, unique=True))
    rates = world.topology.link_rate_bps
    rows = [LinkChange(10**6, k, 0.0) for k in sorted(chosen)]
    rows += [LinkChange(5 * 10**6, k, float(rates[k])) for k in sorted(chosen)]
    object.__setattr__(world.topology, "routing", EcmpPaths(world.topology.routing.endpoints_forward))
    object.__setattr__(world.topology, "changes", LinkChanges(rows, detection))
    whole = drive(FairShareNetwork(balancer()), world)
    assert np.all([end >= start for start, end in whole.values()])
    assert drive(FairShareNetwork(balancer()), world, eager=False) == whole
    assert drive(FairShareNetwork(balancer()), world, cuts=random.Random(seed)) == whole
