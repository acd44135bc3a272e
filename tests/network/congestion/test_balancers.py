"""Balancers on ``congestion``: closed forms, links that fail, and that nothing depends on how it is asked."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.errors import NetworkError
from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.network.balancing.balancers.adaptive import Adaptive
from cosim.network.balancing.balancers.flowlet import Flowlet
from cosim.network.balancing.balancers.least_loaded import LeastLoaded
from cosim.network.balancing.balancers.reps import Reps
from cosim.network.balancing.balancers.spray import Spray
from cosim.network.balancing.balancers.ugal import Ugal
from cosim.network.balancing.balancers.valiant import Valiant
from cosim.network.balancing.balancers.weighted import Weighted
from cosim.network.balancing.contract import Balancer
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.controls.hpcc import Hpcc
from cosim.network.congestion.controls.newreno import NewReno
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.testing.strategies.traffic import Traffic as World
from cosim.testing.strategies.traffic import traffic as worlds
from cosim.topology.routing import EcmpPaths
from cosim.units import PS_PER_MS
from tests.network.balancing.in_numpy import NumpyAdaptive, NumpyValiant, NumpyWeighted
from tests.network.balancing.test_failures import Stubborn, fabric
from tests.network.balancing.worlds import groups_of, leaf_spine, send, up_links
from tests.network.worlds import drive, graph

some = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
EVERY: list[Callable[[], Balancer]] = [
    Adaptive,
    Flowlet,
    LeastLoaded,
    Reps,
    Spray,
    Ugal,
    Valiant,
    Weighted,
]
SIZE = 8_000_000
"""Bytes that take 800 us at 80 Gbps."""
ON_WIRES = 4 * 1_000_000 + 3 * 100_000
"""Four links, and a packet of 1000 bytes on three of them."""
PERMUTATION = [(k, (k + 4) % 16, SIZE) for k in range(16)]


def unlimited(balancer: Balancer | None = None, **ports: object) -> CongestionNetwork:
    """A control that never limits anybody, and buffers that hold all."""
    settings: dict[str, object] = {"mtu_bytes": 1000, "lossless": False, "buffer_bytes": 10**9} | ports
    window = Fixed(bdp=1e6)
    return CongestionNetwork(window, PortSettings(headers=False, **settings), balancer)  # type: ignore[arg-type]


@pytest.mark.parametrize("balancer", [Spray, Reps])
def test_a_sprayed_permutation_takes_the_time_of_the_hosts_own_links(balancer: type[Balancer]) -> None:
    topology = leaf_spine()
    times, counted = send(unlimited(balancer()), topology, PERMUTATION)
    assert (times == 800_000_000 + ON_WIRES).all()
    assert np.abs(counted.link_bytes[up_links(topology)] - SIZE).max() <= 16  # rounded at each look
    assert counted.extra["queue_max_bytes"].max() < 1
    ecmp, _ = send(unlimited(), topology, PERMUTATION)
    assert ecmp.max() >= 1_600_000_000  # two on one link somewhere


def test_a_window_is_of_all_subflows_together() -> None:
    window = Fixed(bdp=0.05)
    for balancer in (None, Spray()):
        network = CongestionNetwork(window, PortSettings(headers=False, mtu_bytes=1000), balancer)
        times, _ = send(network, leaf_spine(), [(0, 4, SIZE)])
        assert times[0] == pytest.approx(20 * 800_000_000, rel=0.001)


def test_a_sprayed_message_ends_when_its_slowest_part_has() -> None:
    """0 to 2 over two ways, one of which has a quarter of the rate: half of it waits there."""
    links = [(0, 4, 80e9, 0), (1, 4, 80e9, 0), (4, 5, 80e9, 0), (4, 6, 20e9, 0)]
    links += [(5, 7, 80e9, 0), (6, 7, 80e9, 0), (7, 2, 80e9, 0), (7, 3, 80e9, 0)]
    topology = graph(4, 8, links)
    object.__setattr__(topology, "routing", EcmpPaths())
    times, counted = send(unlimited(Spray()), topology, [(0, 2, SIZE)])
    assert abs(times[0] - 1_600_000_000) < 1_500_000  # and packets' times
    assert counted.link_bytes[2] == counted.link_bytes[3] == SIZE // 2
    for balancer in (Adaptive(), Reps()):
        network = CongestionNetwork(Dctcp(), PortSettings(headers=False, mtu_bytes=1000), balancer)
        adapted, _ = send(network, topology, [(0, 2, SIZE)])
        assert adapted[0] < 1_400_000_000  # both ways together take 640 us


@pytest.mark.parametrize("balancer", [Spray, Reps])
def test_queues_that_end_with_what_is_sent_hold_no_last_byte_for_longer(balancer: type[Balancer]) -> None:
    """Two hosts at each of two leaves send 800 us over two spines, to a third leaf. One leaf's way to a spine
    has half the rate, so that half of what goes there waits when all is sent; the spine's own queue, as long,
    then shrinks by what the other leaf brought: it is gone as the last byte comes. 1,600 us, others 1,200.
    """
    leaf, spine = (8, 9, 10), (11, 12)
    links = [(host, leaf[host // 2], 80e9, 0) for host in range(4)]
    links += [(leaf[2], host, 80e9, 0) for host in range(4, 8)]
    links += [(leaf[k], one, 40e9 if (k, one) == (0, 12) else 80e9, 0) for k in (0, 1) for one in spine]
    links += [(one, leaf[2], 160e9 if one == 11 else 80e9, 0) for one in spine]
    topology = graph(8, 13, links)
    object.__setattr__(topology, "routing", EcmpPaths())
    times, counted = send(unlimited(balancer()), topology, [(k, 4 + k, SIZE) for k in range(4)])
    assert times / PS_PER_MS == pytest.approx([1.6, 1.6, 1.2, 1.2], abs=0.001)  # and packets' times
    assert counted.extra["queue_max_bytes"].max() == pytest.approx(SIZE / 2, rel=0.001)


def test_reps_leaves_a_path_that_marks() -> None:
    """0 sends over four spines, on one of which somebody else queues."""
    topology = leaf_spine(leaves=3, below=2, spines=4)
    up = up_links(topology)

    def sent(balancer: Balancer) -> np.ndarray:
        network = CongestionNetwork(Dctcp(), PortSettings(headers=False, mtu_bytes=1000), balancer)
        slow = [LinkChange(0, up[0], 4e9)]
        object.__setattr__(topology, "changes", LinkChanges(slow))
        _, counted = send(network, topology, [(0, 2, 4 * SIZE)])
        return counted.link_bytes[up[:4]] / (4 * SIZE)

    assert sent(Spray()) == pytest.approx([0.25] * 4, abs=0.001)
    found = sent(Reps())
    assert found[0] < 0.15
    assert found[1:] == pytest.approx([(1 - found[0]) / 3] * 3, abs=0.001)


def test_flowlets_part_where_a_full_path_cuts_windows_and_stay_where_they_do_not() -> None:
    """Two hosts send over two spines for 800 us, or for 1,600 where they share one, as every other pair does.
    Each silence and cut lets them draw: after five each one in 32 pairs is left. What they send meanwhile,
    and windows that are cut, cost less than they win.
    """
    topology = leaf_spine(leaves=2, below=2, spines=2)

    def last(gap: Any, seed: int) -> tuple[float, int]:
        network = CongestionNetwork(Dctcp(), PortSettings(headers=False, mtu_bytes=1000), Flowlet(gap=gap))
        times, counted = send(network, topology, [(0, 2, SIZE), (1, 3, SIZE)], seed=seed)
        assert counted.balancing is not None
        return times.max() / 1e6, counted.balancing.choices

    still, parted = (np.array([last(gap, seed) for seed in range(16)]) for gap in ("10ms", "2us"))
    assert (still[:, 1] == 2).all()
    shared = still[:, 0] > 1_600
    assert 4 <= shared.sum() <= 12
    assert (parted[shared, 1] > 2).all()
    assert (parted[:, 0] > 1_600).sum() <= 2
    assert parted[:, 0].mean() < 0.9 * still[:, 0].mean()


@pytest.mark.parametrize(("gap", "draws"), [("1.3us", False), ("1.1us", True)])
def test_a_flowlet_ends_between_packets_that_are_further_apart_than_the_gap(gap: Any, draws: bool) -> None:
    """Twelve messages of a host at 80 Gbps: a packet of 1,000 bytes each 1.2 us."""
    flows = [(0, 4 + k, SIZE) for k in range(12)]
    _, counted = send(unlimited(Flowlet(gap=gap)), leaf_spine(), flows)
    assert counted.balancing is not None
    choices = counted.balancing.choices
    assert choices > 10 * len(flows) if draws else choices == len(flows)


@pytest.mark.parametrize("balancer", [Spray, Adaptive])
def test_parts_leave_a_dead_link_after_the_detection_and_come_back_after_the_repair(
    balancer: type[Balancer],
) -> None:
    topology = fabric([(3, 4, 0.0), (8, 4, 250e6 * 8)])
    times, counted = send(unlimited(balancer()), topology, [(0, 1, 10_000_000)])
    # 3 MB; nothing for a millisecond of detection; then 7 MB leave in 7 ms. Of the 5 MB until 9 ms three
    # quarters pass, and what is left of them waits in three queues, which are full until 11 ms.
    exact = 11 * PS_PER_MS + 5 * PS_PER_MS // 3
    if balancer is Spray:
        assert times[0] == pytest.approx(exact, rel=0.001)
    else:  # the fourth path takes more when it is back
        assert 12.25 * PS_PER_MS < times[0] < exact
    assert counted.link_bytes[0] == 10_000_000


def test_a_path_that_is_known_to_be_dead_is_refused() -> None:
    with pytest.raises(NetworkError, match=r"'path' is 0 for .* a link of that path is down"):
        send(unlimited(Stubborn()), fabric([(1, 2, 0.0)]), [(0, 1, 10_000_000)])


@pytest.mark.parametrize("eager", [True, False])
def test_who_comes_while_a_link_is_dead_moves_nobody_else(eager: bool) -> None:
    """0 to 2 by a link of its own, dead for 4 us and known to be, while 0 to 0 comes: it waits until then,
    and never goes by way of 1, whose link to 2 another message has to itself.
    """
    topology = graph(3, 3, [(0, 2, 8e9, 0), (0, 1, 8e9, 0), (1, 2, 8e9, 0)])
    object.__setattr__(topology, "routing", EcmpPaths(endpoints_forward=True))
    rows = [LinkChange(10**6, 0, 0.0), LinkChange(5 * 10**6, 0, 8e9)]
    object.__setattr__(topology, "changes", LinkChanges(rows, 10**5))
    groups = groups_of([(0, 2, 10**6), (1, 2, 10**6), (0, 0, 0)])
    given = tuple({0: (start, start)} for start in (0, 0, 2 * 10**6))
    found = drive(marking(Reps()), World(topology, tuple(groups), given), eager=eager)
    assert [found[k, 0][1] for k in range(3)] == [PS_PER_MS + 4 * 10**6, PS_PER_MS, 2 * 10**6]


def marking(balancer: Balancer) -> CongestionNetwork:
    return CongestionNetwork(Dctcp(), PortSettings(headers=False, mark_from_bytes=20_000), balancer)


def dropping(balancer: Balancer) -> CongestionNetwork:
    ports = PortSettings(headers=False, buffer_bytes=40_000, mtu_bytes=1_000)
    return CongestionNetwork(NewReno(), ports, balancer)


def pausing(balancer: Balancer, **more: bool) -> CongestionNetwork:
    return CongestionNetwork(Hpcc(), PortSettings(headers=False, lossless=True, pause_bytes=20_000), balancer)


@pytest.mark.parametrize("balancer", EVERY)
@some
@given(
    world=worlds(),
    make=st.sampled_from([marking, dropping, pausing]),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_cuts_and_compiling_change_nothing_where_links_fail_too(
    balancer: Callable[[], Balancer],
    world: World,
    make: Callable[..., CongestionNetwork],
    seed: int,
    data: st.DataObject,
) -> None:
    links = world.topology.num_links
    rates = world.topology.link_rate_bps
    chosen = data.draw(st.lists(st.integers(0, links - 1), max_size=3, unique=True))
    rows = [LinkChange(10**6, k, 0.0) for k in sorted(chosen)]
    rows += [LinkChange(5 * 10**6, k, float(rates[k])) for k in sorted(chosen)]
    object.__setattr__(world.topology, "routing", EcmpPaths(world.topology.routing.endpoints_forward))
    object.__setattr__(world.topology, "changes", LinkChanges(rows, 10**5))
    try:
        whole = drive(make(balancer()), world)
    except NetworkError as error:
        assert "PFC deadlock" in str(error)  # noqa: PT017
        return
    assert np.all([end >= start for start, end in whole.values()])
    assert drive(make(balancer()), world, eager=False) == whole
    assert drive(make(balancer()), world, cuts=random.Random(seed)) == whole


@pytest.mark.parametrize(
    ("in_c", "in_numpy"), [(Adaptive, NumpyAdaptive), (Valiant, NumpyValiant), (Weighted, NumpyWeighted)]
)
@pytest.mark.parametrize("make", [marking, dropping])
@some
@given(world=worlds())
def test_in_numpy_and_in_c_are_the_same(
    in_c: Callable[[], Balancer],
    in_numpy: Callable[[], Balancer],
    make: Callable[[Balancer], CongestionNetwork],
    world: World,
) -> None:
    object.__setattr__(world.topology, "routing", EcmpPaths(world.topology.routing.endpoints_forward))
    assert drive(make(in_numpy()), world) == drive(make(in_c()), world)
