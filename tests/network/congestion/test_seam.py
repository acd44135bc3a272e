"""The congestion network at the seam: cuts, releases, rests and compilation change nothing; misuse has
names."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.errors import NetworkError
from cosim.network.congestion import Control
from cosim.network.congestion.contract import TCP_HEADER_BYTES
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.controls.newreno import NewReno
from cosim.network.congestion.controls.rccc import Rccc
from cosim.network.congestion.credits import Credits
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.testing import check_network
from cosim.testing.strategies.traffic import Traffic as World
from cosim.testing.strategies.traffic import traffic as worlds
from cosim.topology.routing import ShortestPaths
from cosim.units import NEVER, PS_PER_MS
from tests.network.congestion.worlds import dumbbell, graph, locked_ring, star, watch
from tests.network.worlds import drive, drive_by_caller

Make = Callable[..., CongestionNetwork]
some = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def marking(**change: Any) -> CongestionNetwork:
    return CongestionNetwork(Dctcp(), PortSettings(mark_from_bytes=20_000, **change))


def dropping(**change: Any) -> CongestionNetwork:
    return CongestionNetwork(NewReno(), PortSettings(buffer_bytes=40_000, mtu_bytes=1_000, **change))


def pausing(**change: Any) -> CongestionNetwork:
    return CongestionNetwork(Dctcp(), PortSettings(lossless=True, pause_bytes=20_000, **change))


def granting(**change: Any) -> CongestionNetwork:
    return CongestionNetwork(Rccc(), PortSettings(buffer_bytes=40_000, mtu_bytes=1_000, **change))


def crediting(**change: Any) -> CongestionNetwork:
    given = Credits(buffer=20_000, bit_errors=1e-7, retry="1us")
    return CongestionNetwork(Dctcp(), PortSettings(credits=given, **change))


every_make = st.sampled_from([marking, dropping, pausing, granting, crediting])


def driven(make: Make, world: World) -> dict[tuple[int, int], tuple[int, int]]:
    """Starts and ends; none where ports lock up, as they may on graphs with circles: it has to say so."""
    try:
        return drive(make(), world)
    except NetworkError as error:
        assert "deadlock" in str(error)  # noqa: PT017
        return {}


@some
@given(world=worlds(), seed=st.integers(0, 1_000), make=every_make)
def test_cuts_and_releases_change_nothing(world: World, seed: int, make: Make) -> None:
    plain = driven(make, world)
    if not plain:
        return
    assert drive(make(), world, cuts=random.Random(seed)) == plain
    assert drive_by_caller(make(), world) == plain
    assert drive(make(), world.reacting(NEVER)) == plain


@some
@given(world=worlds(), make=every_make)
def test_rests_change_nothing(world: World, make: Make) -> None:
    plain = driven(make, world)
    if plain:
        assert drive(make(rest=False), world) == plain


class NumpyDctcp(Control):
    """DCTCP again, as a user would write it"""

    state: ClassVar[dict[str, float]] = {"alpha": 1.0, "threshold": 1e18, "cut": 0.0}
    settles: ClassVar[bool] = True
    acks_wait: ClassVar[bool] = True
    header_bytes: ClassVar[int] = TCP_HEADER_BYTES

    def start(self, c: Any) -> None:
        c.window = 10 * c.mss

    def update(self, c: Any) -> None:
        alpha = (1 - 1 / 16) * c.alpha + 1 / 16 * c.marked
        c.alpha = np.where(alpha < 2.0**-10, 0.0, alpha)
        cut = (c.marked > 0) & ((c.cut == 0) | (c.again != 0))
        smaller = np.maximum(c.window * (1 - 0.5 * c.alpha), 2 * c.mss)
        begins = (c.window < c.threshold) & (c.cut == 0)
        slow = begins & (c.window < 2 * c.flight) & ~cut
        steady = ~begins & (c.cut == 0) & (c.limited != 0)
        larger = np.where(
            slow,
            np.minimum(c.window + c.acked, c.threshold),
            np.where(steady, c.window + c.mss * np.minimum(c.acked / c.window, 1), c.window),
        )
        c.slow_start = slow
        c.window = np.where(cut, smaller, larger)
        c.threshold = np.where(cut, smaller, c.threshold)
        c.cut = cut


@some
@given(world=worlds())
def test_a_control_in_numpy_and_in_c_are_the_same(world: World) -> None:
    ports = PortSettings(mark_from_bytes=20_000)
    in_numpy = drive(CongestionNetwork(NumpyDctcp(), ports), world)
    assert in_numpy == drive(CongestionNetwork(Dctcp(), ports), world)


def test_a_numpy_plug_in_gives_what_the_compiled_control_gives() -> None:
    flows = [(k, 4, 3_000_000) for k in range(4)]
    ports = PortSettings(mark_from_bytes=100_000)
    own = watch(star(4, 100e9, 1_000_000), NumpyDctcp(), flows, ports)
    built_in = watch(star(4, 100e9, 1_000_000), Dctcp(), flows, ports)
    assert own.done_ps == built_in.done_ps
    assert own.updates == built_in.updates > 100


def test_a_priority_of_its_own_is_served_first() -> None:
    """The first class has the link to itself; the second gets it afterwards."""
    flows = [(0, 2, 5_000_000), (1, 3, 5_000_000)]
    rate, latency = 10e9, 1_000_000
    seen = watch(dumbbell(2, rate, latency, edge=40e9), Dctcp(), flows, priorities=[1, 0])
    alone = watch(dumbbell(2, rate, latency, edge=40e9), Dctcp(), flows[:1])
    assert seen.done_ps[1] == pytest.approx(alone.done_ps[0], rel=1e-3)
    # ... when its own round, long where nothing was served, has ended
    assert 1.0 <= seen.done_ps[0] / (2 * 5_000_000 * 8e12 / rate) <= 1.1


@pytest.mark.parametrize("size", [210_000, 260_000, 330_000])
def test_who_was_served_for_a_part_of_a_round_does_not_rest_after_it(size: int) -> None:
    """A second class gets the link in the midst of a round. Its control saw little of its window used, and
    grew nothing; with the link to itself it uses all, and grows.
    """
    ports = PortSettings(buffer_bytes=100_000, mtu_bytes=1_000)
    direct = graph(2, 2, [(0, 1, 400e9, 500_000)])
    flows, starts = [(0, 1, size), (0, 1, 1_000_000)], [0, 3_000_000]
    done = [
        watch(
            direct, NewReno(), flows, starts_ps=starts, priorities=[0, 1],
            network=CongestionNetwork(NewReno(), dataclasses.replace(ports, rest=rest)),
        ).done_ps
        for rest in (True, False)
    ]  # fmt: skip
    assert done[0] == done[1]


def test_priorities_have_eight_classes() -> None:
    with pytest.raises(NetworkError, match="priority 8 is not one of the 8 classes"):
        watch(star(2, 1e9, 0), Dctcp(), [(0, 2, 1)], priorities=[8])


def test_a_message_alone_takes_its_bytes_at_line_rate_and_the_path() -> None:
    """3 links of 100 Gb/s and 1 us: latencies, the bytes once, and a packet's time on each further link."""
    plain = PortSettings(headers=False)
    seen = watch(dumbbell(1, 100e9, 1_000_000), Dctcp(), [(0, 1, 9_000)], plain)
    assert seen.done_ps[0] == 3 * 1_000_000 + 3 * 720_000
    assert watch(dumbbell(1, 100e9, 1_000_000), Dctcp(), [(0, 1, 0)]).done_ps[0] == 3_000_000


def test_a_circle_of_pauses_is_named() -> None:
    topology, flows = locked_ring()
    with pytest.raises(NetworkError, match=r"PFC deadlock at \d+ ps: .*n4 -> n5"):
        watch(topology, Fixed(bdp=100), flows, PortSettings(pause_bytes=20_000))


def test_the_conformance_kit_finds_nothing() -> None:
    check_network(lambda: CongestionNetwork(Fixed(), PortSettings(mtu_bytes=1_000)))


def test_hosts_that_pass_on_leave_nothing_behind() -> None:
    """On a row of hosts a queue is passed on by a host as by a switch, and is gone when it is empty."""
    links = [(0, 1, 40e9, 1_000_000), (1, 2, 10e9, 1_000_000), (2, 3, 10e9, 1_000_000)]
    late = 10 * PS_PER_MS
    row = dataclasses.replace(graph(4, 4, links), routing=ShortestPaths(endpoints_forward=True))
    alone = watch(row, Fixed(), [(2, 3, 10**6)], starts_ps=[late])
    after = watch(row, Fixed(bdp=8), [(0, 3, 10**6), (2, 3, 10**6)], starts_ps=[0, late])
    assert after.done_ps[0] < 2 * PS_PER_MS
    assert after.done_ps[1] == pytest.approx(alone.done_ps[0], rel=0.01)
