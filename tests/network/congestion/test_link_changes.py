"""Links that fail, slow down and come back under ``congestion``, against closed forms."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.errors import NetworkError
from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.controls.newreno import NewReno
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.testing.strategies.traffic import Traffic as World
from cosim.testing.strategies.traffic import traffic as worlds
from cosim.topology.graph import Topology
from cosim.units import PS_PER_MS
from tests.network.balancing.worlds import send
from tests.network.test_fair_share import GB_PER_S, one_link
from tests.network.test_link_changes import changing, two_ways
from tests.network.worlds import drive, graph

MB = 10**6
some = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def open_window(**change: object) -> CongestionNetwork:
    """A control that never limits anybody: what limits are links."""
    window = Fixed(bdp=1e6)
    return CongestionNetwork(window, PortSettings(headers=False, lossless=False, mtu_bytes=1000, **change))  # type: ignore[arg-type]


def near(*times_ps: int) -> object:
    """Shares of a port are rounded down, so that they never add up to more than it has."""
    return pytest.approx(times_ps, rel=0, abs=10)


def times(topology: Topology, *sizes: int) -> list[int]:
    found, _ = send(open_window(), topology, [(0, 1, size) for size in sizes])
    return [int(one) for one in found]


def test_a_link_at_half_its_rate_for_a_millisecond_costs_half_a_millisecond() -> None:
    topology = changing(one_link(), [(3, 0, GB_PER_S / 2), (4, 0, GB_PER_S)])
    assert times(topology, 10 * MB) == near(10 * PS_PER_MS + PS_PER_MS // 2)


def test_a_flow_without_another_path_waits_for_the_repair() -> None:
    topology = changing(one_link(), [(3, 0, 0.0), (8, 0, GB_PER_S)])
    assert times(topology, 10 * MB) == near(15 * PS_PER_MS)
    # Two, each at half the rate but for the 5 ms; the second is alone for the last 2 MB.
    assert times(topology, 4 * MB, 6 * MB) == near(13 * PS_PER_MS, 15 * PS_PER_MS)


def test_messages_that_begin_while_a_link_is_dead_wait_for_it() -> None:
    topology = changing(one_link(), [(3, 0, 0.0), (8, 0, GB_PER_S)])
    found, _ = send(open_window(), topology, [(0, 1, 0), (0, 1, 0)], [PS_PER_MS, 4 * PS_PER_MS])
    assert found.tolist() == [PS_PER_MS, 8 * PS_PER_MS + 1]
    found, _ = send(open_window(), topology, [(0, 1, MB)], [4 * PS_PER_MS])
    assert found.tolist() == near(9 * PS_PER_MS)


def test_what_was_sent_counts_and_the_rest_takes_the_other_path_until_the_repair() -> None:
    topology = changing(two_ways(), [(3, 1, 0.0), (10, 1, GB_PER_S)], detection_ps=PS_PER_MS)
    found, counted = send(open_window(), topology, [(0, 1, 10 * MB)])
    # 3 MB by 3 ms, a millisecond of nothing, from 4 to 11 ms 3.5 MB at half the rate; then the rest; and a
    # packet's time on the second link.
    assert found.tolist() == near(14 * PS_PER_MS + PS_PER_MS // 2 + 1_000_000)
    assert counted.link_bytes.tolist() == [6_500_000, 6_500_000, 3_500_000, 3_500_000]
    assert counted.link_busy_ps.tolist() == [6_500_000_000, 6_500_000_000, 7_000_000_000, 7_000_000_000]


def test_a_failure_shorter_than_its_detection_sends_flows_round_and_back() -> None:
    topology = changing(two_ways(), [(1, 1, 0.0), (2, 1, GB_PER_S)], detection_ps=2 * PS_PER_MS)
    assert times(topology, 10 * MB) == near(11 * PS_PER_MS + PS_PER_MS // 2 + 1_000_000)


def test_a_slower_link_queues_marks_and_is_shared_as_before_when_it_is_back() -> None:
    """Two senders through a link that has a quarter of its rate for a while: DCTCP keeps it full."""
    links = [(0, 2, 80e9, 10**6), (1, 2, 80e9, 10**6), (2, 3, 80e9, 10**6), (3, 4, 80e9, 10**6)]
    plain = graph(5, 5, links)
    rows = [LinkChange(PS_PER_MS, 2, 20e9), LinkChange(3 * PS_PER_MS, 2, 80e9)]
    topology = replace(plain, changes=LinkChanges(rows))
    messages = [(0, 4, 20 * MB), (1, 4, 20 * MB)]
    whole, _ = send(CongestionNetwork(Dctcp()), plain, messages)
    slow, counted = send(CongestionNetwork(Dctcp()), topology, messages)
    # 40 MB take 4 ms; at a quarter for 2 ms it is 1.5 ms more.
    assert whole.max() == pytest.approx(4.05 * PS_PER_MS, rel=0.02)
    assert slow.max() - whole.max() == pytest.approx(1.5 * PS_PER_MS, rel=0.03)
    assert counted.extra["marks"][2] > 0


@pytest.mark.parametrize("lossless", [False, True])
def test_what_waits_for_a_link_that_dies_has_arrived_and_pauses_nobody(lossless: bool) -> None:
    links = [(0, 2, 80e9, 10**6), (1, 2, 80e9, 10**6), (2, 3, 80e9, 10**6)]
    rows = [LinkChange(10**8, 2, 0.0), LinkChange(PS_PER_MS, 2, 80e9)]
    topology = replace(graph(4, 4, links), changes=LinkChanges(rows))
    window = Fixed(bdp=20.0)
    ports = PortSettings(headers=False, lossless=lossless, buffer_bytes=400_000)
    found, counted = send(CongestionNetwork(window, ports), topology, [(0, 3, 2 * MB), (1, 3, 2 * MB)])
    assert (found > PS_PER_MS).all()
    # 4 MB take 0.4 ms, 0.1 ms of which came before, and some in queues.
    assert found.max() <= PS_PER_MS + (310_000_000 if lossless else 1_000_000_000)
    assert counted.extra["pause_ps"].sum() < PS_PER_MS


def marking() -> CongestionNetwork:
    return CongestionNetwork(Dctcp(), PortSettings(headers=False, mark_from_bytes=20_000))


def dropping() -> CongestionNetwork:
    return CongestionNetwork(NewReno(), PortSettings(headers=False, buffer_bytes=40_000, mtu_bytes=1_000))


def pausing() -> CongestionNetwork:
    return CongestionNetwork(Dctcp(), PortSettings(headers=False, lossless=True, pause_bytes=20_000))


@some
@given(
    world=worlds(),
    make=st.sampled_from([marking, dropping, pausing]),
    seed=st.integers(0, 2**32),
    detection=st.integers(0, 10**6),
    data=st.data(),
)
def test_cuts_change_nothing_and_nothing_is_forgotten(
    world: World, make: Callable[[], CongestionNetwork], seed: int, detection: int, data: st.DataObject
) -> None:
    links = world.topology.num_links
    chosen = data.draw(st.lists(st.integers(0, links - 1), min_size=1, max_size=4, unique=True))
    rates = world.topology.link_rate_bps
    factor = data.draw(st.sampled_from([0.0, 0.25]))
    rows = [LinkChange(10**6, k, factor * float(rates[k])) for k in sorted(chosen)]
    rows += [LinkChange(5 * 10**6, k, float(rates[k])) for k in sorted(chosen)]
    object.__setattr__(world.topology, "changes", LinkChanges(rows, detection))
    try:
        whole = drive(make(), world)
    except NetworkError as error:
        assert "PFC deadlock" in str(error)  # noqa: PT017
        return
    assert whole.keys() == drive(FairShareNetwork(), world).keys()
    assert drive(make(), world, eager=False) == whole
    assert drive(make(), world, cuts=random.Random(seed)) == whole
