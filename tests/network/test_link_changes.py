"""Links that fail, slow down and come back under ``fair_share``, against closed forms."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.errors import NetworkError
from cosim.fabric.changes import LinkChange, LinkChanges, RouteChange
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.compiled import CompiledNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.testing.conformance.faulty_network import StillNetwork
from cosim.testing.strategies.traffic import Traffic as World
from cosim.testing.strategies.traffic import traffic as worlds
from cosim.topology.graph import Topology
from cosim.topology.routing import EcmpPaths
from cosim.units import NEVER, PS_PER_MS
from tests.network.test_fair_share import GB_PER_S, Message, finish, groups_of, one_link
from tests.network.worlds import batch, drive, drive_by_caller, graph

MB = 10**6
many = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
Rows = list[tuple[int, int, float]]


def changing(topology: Topology, rows: Rows, detection_ps: int = 0) -> Topology:
    """With rows (ms, link, bits/s)."""
    changes = [LinkChange(time * PS_PER_MS, link, rate) for time, link, rate in rows]
    return replace(topology, changes=LinkChanges(changes, detection_ps))


def two_ways() -> Topology:
    """From 0 to 1 by way of 2, or at half the rate by way of 3; the first is taken, being first."""
    fast, slow = GB_PER_S, GB_PER_S / 2
    return graph(2, 4, [(0, 2, fast, 0), (2, 1, fast, 0), (0, 3, slow, 0), (3, 1, slow, 0)])


def test_a_link_at_half_its_rate_for_a_millisecond_costs_half_a_millisecond() -> None:
    topology = changing(one_link(), [(3, 0, GB_PER_S / 2), (4, 0, GB_PER_S)])
    assert finish(topology, [Message(10 * MB)]) == [10 * PS_PER_MS + PS_PER_MS // 2]


def test_a_flow_without_another_path_waits_for_the_repair() -> None:
    topology = changing(one_link(), [(3, 0, 0.0), (8, 0, GB_PER_S)])
    assert finish(topology, [Message(10 * MB)]) == [15 * PS_PER_MS]


def test_a_message_of_no_bytes_waits_for_the_repair() -> None:
    topology = changing(one_link(), [(3, 0, 0.0), (8, 0, GB_PER_S)])
    assert finish(topology, [Message(0, start=PS_PER_MS), Message(0, start=4 * PS_PER_MS)]) == [
        PS_PER_MS,
        8 * PS_PER_MS + 1,
    ]


def test_a_link_that_fails_and_comes_back_under_several_flows() -> None:
    topology = changing(one_link(), [(3, 0, 0.0), (8, 0, GB_PER_S)])
    # Two flows, each at half the rate but for the 5 ms; the second is alone for the last 2 MB.
    assert finish(topology, [Message(4 * MB), Message(6 * MB)]) == [13 * PS_PER_MS, 15 * PS_PER_MS]


def test_what_has_arrived_counts_and_the_rest_takes_the_other_path_until_the_repair() -> None:
    topology = changing(two_ways(), [(3, 1, 0.0), (10, 1, GB_PER_S)], detection_ps=PS_PER_MS)
    network = FairShareNetwork()
    network.open(topology)
    done = network.advance(batch(groups_of([Message(10 * MB)]), [(0, 0, 0, 0)]), NEVER).completions
    # 3 MB by 3 ms, then a millisecond of nothing; from 4 to 11 ms 3.5 MB at half the rate; then the rest.
    assert done.time_ps.tolist() == [14 * PS_PER_MS + PS_PER_MS // 2]
    statistics = network.statistics()
    assert statistics.link_bytes.tolist() == [6_500_000, 6_500_000, 3_500_000, 3_500_000]
    # Busy for 3 and 3.5 ms, and for 7; the dead link's neighbour isn't busy while nothing comes through.
    assert statistics.link_busy_ps.tolist() == [6_500_000_000, 6_500_000_000, 7_000_000_000, 7_000_000_000]


def test_flows_that_start_while_a_link_is_known_to_be_dead_avoid_it() -> None:
    topology = changing(two_ways(), [(1, 1, 0.0), (20, 1, GB_PER_S)])
    assert finish(topology, [Message(MB, start=5 * PS_PER_MS)]) == [7 * PS_PER_MS]


def test_a_failure_shorter_than_its_detection_sends_flows_round_and_back() -> None:
    topology = changing(two_ways(), [(1, 1, 0.0), (2, 1, GB_PER_S)], detection_ps=2 * PS_PER_MS)
    # 1 MB; dead until 2; 1 MB until 3; 0.5 MB the other way until 4; then 7.5 MB.
    assert finish(topology, [Message(10 * MB)]) == [11 * PS_PER_MS + PS_PER_MS // 2]


def test_ecmp_hashes_over_what_is_left_and_moves_nobody_else() -> None:
    leaves, spines = 2, 4
    links = [(0, 2, GB_PER_S, 0), (3, 1, GB_PER_S, 0)]
    for spine in range(spines):
        links += [(2, 4 + spine, GB_PER_S, 0), (4 + spine, 3, GB_PER_S, 0)]
    topology = replace(graph(leaves, 4 + spines, links), routing=EcmpPaths())
    channel = np.arange(64, dtype=np.int32)
    zeros = np.zeros(64, np.int32)
    _, before = topology.paths(zeros, zeros + 1, channel)
    dead = np.zeros(len(links), np.bool_)
    dead[3] = True  # the first spine can't reach the other leaf
    ptr, after = topology.routing.around(topology, dead, zeros, zeros + 1, channel)
    assert np.diff(ptr).tolist() == [4] * 64
    taken = after.reshape(64, 4)[:, 1]
    assert 3 in before
    assert 3 not in after
    assert {*taken.tolist()} == {4, 6, 8}


def test_no_way_round_leaves_no_links() -> None:
    topology = two_ways()
    dead = np.array([True, False, True, False])
    src, dst = np.array([0, 1], np.int32), np.array([1, 1], np.int32)
    ptr, links = topology.routing.around(topology, dead, src, dst, src)
    assert (ptr.tolist(), links.tolist()) == ([0, 0, 0], [])


def test_routes_follow_after_the_detection_and_links_come_first() -> None:
    rows = [LinkChange(1, 0, 0.0), LinkChange(1, 1, 5.0), LinkChange(3, 0, 9.0), LinkChange(7, 1, 0.0)]
    assert list(LinkChanges(rows, 2)) == [
        rows[0],
        rows[1],
        rows[2],
        RouteChange(3, (0,)),
        RouteChange(5, ()),
        rows[3],
        RouteChange(9, (1,)),
    ]


def test_changes_that_never_end_do_not_keep_a_dead_flow_going() -> None:
    class Flapping:
        def __iter__(self) -> object:
            yield LinkChange(0, 0, 0.0)
            time = 1
            while True:
                yield LinkChange(time, 1, 1e9)
                time += 1

    topology = graph(3, 3, [(0, 1, 1e9, 0), (1, 2, 1e9, 0)])
    topology = replace(topology, changes=LinkChanges(Flapping()))  # type: ignore[arg-type]
    network = FairShareNetwork()
    network.open(topology)
    step = network.advance(batch(groups_of([Message(MB)]), [(0, 0, 0, 0)]), NEVER)
    assert (step.granted_ps, len(step.completions)) == (NEVER, 0)


def test_a_flow_that_goes_on_is_not_given_up_however_often_other_links_change() -> None:
    rows = [LinkChange(5_000 * k, 1, 1e9 * (1 + k % 2)) for k in range(1, 150_001)]
    topology = graph(3, 3, [(0, 1, 8 * 1e9, 0), (1, 2, 8 * 1e9, 0)])
    topology = replace(topology, changes=LinkChanges(rows))
    network = FairShareNetwork()
    network.open(topology)
    step = network.advance(batch(groups_of([Message(MB)]), [(0, 0, 0, 0)]), NEVER)
    assert step.completions.time_ps.tolist() == [PS_PER_MS]


def test_a_network_without_such_links_refuses_them() -> None:
    with pytest.raises(NetworkError, match="congestion_aware has no links that fail or slow down"):
        StillNetwork().open(changing(one_link(), [(1, 0, 0.0)]))


@st.composite
def rates_over_time(draw: st.DrawFn, links: int) -> Rows:
    """Microseconds, link, factor; every link is whole in the end."""
    times = sorted(draw(st.lists(st.integers(0, 3_000), max_size=8)))
    rows = [
        (time, draw(st.integers(0, links - 1)), draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])))
        for time in times
    ]
    return rows + [(4_000, link, 1.0) for link in range(links)]


def with_rates(topology: Topology, rows: Rows, detection_ps: int) -> Topology:
    """Of rows of :func:`rates_over_time`."""
    last = {(time, link): factor for time, link, factor in rows}
    changes = [
        LinkChange(time * 1_000_000, link, float(topology.link_rate_bps[link]) * factor)
        for (time, link), factor in sorted(last.items())
    ]
    return replace(topology, changes=LinkChanges(changes, detection_ps))


@many
@given(rows=rates_over_time(1), size=st.integers(1, 5 * MB))
def test_one_flow_takes_the_integral_of_its_links_rate(rows: Rows, size: int) -> None:
    left, at, rate = Fraction(size), 0, Fraction(1, 1000)
    for time, factor in sorted({time: factor for time, _, factor in rows}.items()):
        sent = rate * (time * 1_000_000 - at)
        if sent >= left:
            break
        left, at, rate = left - sent, time * 1_000_000, Fraction(factor) / 1000
    [found] = finish(with_rates(one_link(), rows, 0), [Message(size)])
    assert abs(found - (at + left / rate)) <= 1


@pytest.mark.parametrize(
    "model",
    [
        FairShareNetwork,
        CongestionAwareNetwork,
        pytest.param(CongestionUnawareNetwork, marks=pytest.mark.slow),
    ],
)
@many
@given(data=st.data(), world=worlds(), seed=st.integers(0, 2**32))
def test_cuts_and_who_releases_change_nothing(
    model: type[CompiledNetwork], data: st.DataObject, world: World, seed: int
) -> None:
    rows = data.draw(rates_over_time(world.topology.num_links))
    detection = data.draw(st.sampled_from([0, 1, 100_000_000]))
    world = replace(world, topology=with_rates(world.topology, rows, detection))
    whole = drive(model(), world)
    assert drive(model(), world, eager=False) == whole
    assert drive(model(), world, cuts=random.Random(seed)) == whole
    assert drive(model(), world.reacting(1_000), cuts=random.Random(seed + 1)) == whole
    assert drive_by_caller(model(), world) == whole
