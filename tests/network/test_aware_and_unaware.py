"""ASTRA-sim's two models against a plain event list, closed forms and ASTRA-sim's own numbers."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cosim.context import HERE
from cosim.network.aware import CongestionAware, CongestionAwareNetwork
from cosim.network.flows import FlowGroup, flat_table, pack_key
from cosim.network.simulator import NetworkSimulator, NetworkStatistics
from cosim.network.unaware import CongestionUnaware, CongestionUnawareNetwork
from cosim.testing.strategies.traffic import SIZES, TIMES, topologies
from cosim.topology.graph import Topology
from cosim.units import NEVER, PS_PER_NS
from tests.network.worlds import batch, graph

many = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
ASTRA_50 = 50 * 2.0**33
"""50 "GB/s" in ASTRA-sim's notation."""

Sends = list[tuple[int, int, int, int]]
"""(source, destination, bytes, start in ns), in the order of their keys."""


def simulate(
    network: NetworkSimulator, topology: Topology, sends: Sends
) -> tuple[list[int], NetworkStatistics]:
    """Completion times in ps."""
    network.open(topology)
    src, dst, size, start = (list(c) for c in zip(*sends, strict=True))
    table = flat_table(src, dst, size, num_participants=topology.num_endpoints)
    group = FlowGroup(0, table, np.arange(topology.num_endpoints, dtype=np.int32), pack_key(0, 0, 0, 0))
    times = [-1] * len(sends)
    starts = [(0, k, t * PS_PER_NS, t * PS_PER_NS) for k, t in enumerate(start)]
    flows = batch([group], starts[::-1])  # against the order of keys, which must not matter
    while -1 in times:
        done = network.advance(flows, NEVER).completions
        flows = batch()
        for index, time in zip(done.index.tolist(), done.time_ps.tolist(), strict=True):
            times[index] = time
    return times, network.statistics()


class Link:
    """One of ASTRA-sim's links: busy or free, with a queue in front."""

    def __init__(self, rate_bps: float, latency_ps: int) -> None:
        self.rate, self.latency = rate_bps / 8 / 1e9, latency_ps / 1000
        self.busy, self.waiting = False, deque[int]()


def event_list(topology: Topology, sends: Sends, *, ties_by_key: bool) -> list[int]:
    """ASTRA-sim's event list, replayed in plain Python; times in ps.

    Events of one time go first come, first served. Or, with ``ties_by_key``, as ``congestion_aware`` defines
    it: a link that has sent all is free before anything reaches it; what reaches a link goes by (when it was
    scheduled, source, key), turn by turn: what a reach sends on in no time (no bytes, no latency) reaches its
    next link a turn later.
    """
    links = [
        Link(r, t)
        for r, t in zip(topology.link_rate_bps.tolist(), topology.link_latency_ps.tolist(), strict=True)
    ]
    ends = [np.array([s[k] for s in sends], np.int32) for k in (0, 1)]
    ptr, path = topology.paths(ends[0], ends[1], np.zeros(len(sends), np.int32))
    events: list[Any] = []
    counter = itertools.count()
    done = [-1] * len(sends)

    def schedule(time: int, cause: int, key: int, hop: int, link: int = -1) -> None:
        pass_ = turn + 1 if time == now else 0
        tie = (link < 0, pass_, cause, sends[key][0], key) if ties_by_key else (pass_,)
        heapq.heappush(events, (time, *tie, next(counter), key, hop, link))

    def transmit(link: Link, now: int, key: int, number: int) -> None:
        link.busy = True
        hop = hops[key]
        schedule(now + int(link.latency + sends[key][2] / link.rate), now, key, hop + 1)
        schedule(now + int(sends[key][2] / link.rate), now, key, hop, number)

    hops = [0] * len(sends)
    now, turn = -1, 0
    for key, send in enumerate(sends):
        schedule(send[3], send[3], key, 0)
    while events:
        event = heapq.heappop(events)
        (now, *tie), (key, hop, number) = event[:-4], event[-3:]
        turn = (-1 if number >= 0 else tie[1]) if ties_by_key else tie[0]
        if number >= 0:
            links[number].busy = False
            if links[number].waiting:
                transmit(links[number], now, links[number].waiting.popleft(), number)
            continue
        if hop == ptr[key + 1] - ptr[key]:
            done[key] = now * PS_PER_NS
            continue
        hops[key] = hop
        number = int(path[ptr[key] + hop])
        if links[number].busy:
            links[number].waiting.append(key)
        else:
            transmit(links[number], now, key, number)
    return done


@st.composite
def traffic(draw: st.DrawFn) -> tuple[Topology, Sends]:
    topology = draw(topologies())
    node = st.integers(0, topology.num_endpoints - 1)
    start = st.sampled_from([t // PS_PER_NS for t in TIMES])
    sends = draw(st.lists(st.tuples(node, node, st.sampled_from(SIZES), start), min_size=1, max_size=12))
    return topology, sends


def _in_no_time(*sends: tuple[int, int, int, int]) -> tuple[Topology, Sends]:
    """Links without latency 0 -> 3 -> 4 -> 2 -> 1 and 5 -> 3: a byte takes 1 ns, from 4 and 5 on 0 ns."""
    rates = {(0, 3): 8e9, (3, 4): 8e9, (4, 2): 16e9, (2, 1): 8e9, (5, 3): 16e9}
    return graph(6, 6, [(a, b, rate, 0) for (a, b), rate in rates.items()]), list(sends)


@many
@given(traffic())
@example(_in_no_time((0, 1, 0, 1), (0, 1, 1, 0)))  # no bytes behind one byte, then both over a link in 0 ns
@example(_in_no_time((0, 1, 1, 0), (0, 1, 0, 0), (0, 1, 0, 0), (5, 1, 1, 1)))  # two go on as a link is free
@example(_in_no_time((0, 1, 0, 0), (0, 1, 0, 0), (5, 1, 1, 0)))  # or at once, as they start
def test_aware_equals_a_plain_event_list(case: tuple[Topology, Sends]) -> None:
    topology, sends = case
    times, _ = simulate(CongestionAwareNetwork(), topology, sends)
    assert times == event_list(topology, sends, ties_by_key=True)


@pytest.mark.parametrize("seed", range(20))
def test_aware_equals_first_come_first_served_where_nothing_ties(seed: int) -> None:
    chance = random.Random(seed)
    ring = [(k, (k + s) % 6, chance.uniform(1e9, 9e9), 500_000) for k in range(6) for s in (1, 5)]
    topology = graph(5, 6, [*ring, (0, 3, chance.uniform(1e9, 9e9), 1_000)])
    sends = []
    for _ in range(40):
        src, dst = chance.sample(range(5), 2)
        sends.append((src, dst, chance.randrange(10**6, 10**8), chance.randrange(4) * 10**6))
    times, _ = simulate(CongestionAwareNetwork(), topology, sends)
    assert times == event_list(topology, sends, ties_by_key=False)


@many
@given(traffic())
def test_unaware_is_latency_plus_size_over_the_slowest_link(case: tuple[Topology, Sends]) -> None:
    topology, sends = case
    times, seen = simulate(CongestionUnawareNetwork(), topology, sends)
    carried = np.zeros(topology.num_links, np.int64)
    for (src, dst, size, start), time in zip(sends, times, strict=True):
        path = topology.paths(*(np.array([x], np.int32) for x in (src, dst, 0)))[1]
        carried[path] += size
        expected = 0
        if src != dst:
            latency = int(topology.link_latency_ps[path].sum()) / 1000
            expected = int(latency + size / (topology.link_rate_bps[path].min() / 8 / 1e9))
        assert time == (start + expected) * PS_PER_NS
    np.testing.assert_array_equal(seen.link_bytes, carried)


def star(endpoints: int, latency_ps: int = 500_000, rate: float = ASTRA_50) -> Topology:
    """ASTRA-sim's Switch(endpoints)."""
    up = [(k, endpoints, rate, latency_ps) for k in range(endpoints)]
    return graph(endpoints, endpoints + 1, [*up, *((b, a, r, t) for a, b, r, t in up)])


def test_many_under_way_are_reported_one_by_one_at_their_times() -> None:
    """Each completion may be reacted to: the network stops at it, however many are under way."""
    topology, draws = (
        graph(4, 4, [(a, b, 8e9, 1000) for a in range(4) for b in range(4) if a != b]),
        random.Random(3),
    )
    sends = [(draws.randrange(4), draws.randrange(4), draws.randrange(1, 5000)) for _ in range(500)]
    network = CongestionUnawareNetwork()
    network.open(topology)
    table = flat_table(*(list(c) for c in zip(*sends, strict=True)), num_participants=4)
    group = FlowGroup(0, table, np.arange(4, dtype=np.int32), pack_key(0, 0, 0, 0))
    flows, found = batch([group], [(0, k, 0, 0) for k in range(len(sends))]), dict[int, int]()
    while len(found) < len(sends):
        before = max(found.values(), default=-1)
        granted, done = network.advance(flows, NEVER)
        assert {*done.time_ps.tolist()} == {granted}
        assert granted > before
        found |= dict(zip(done.index.tolist(), done.time_ps.tolist(), strict=True))
        flows = batch()
    for k, (src, dst, size) in enumerate(sends):
        assert found[k] == (0 if src == dst else int(1 + size) * PS_PER_NS)


def test_aware_incast_on_a_switch_is_astra_sims() -> None:
    # Hand check 5 of ASTRA_SIM.md: the k-th completion is at 2 * 20031 + (k - 1) * 19531 ns.
    times, seen = simulate(CongestionAwareNetwork(), star(9), [(k, 8, 1 << 20, 0) for k in range(8)])
    assert times == [(2 * 20031 + k * 19531) * PS_PER_NS for k in range(8)]
    assert seen.link_busy_ps.tolist() == [19531 * PS_PER_NS] * 8 + [0] * 9 + [8 * 19531 * PS_PER_NS]


def test_unaware_ring_message_is_astra_sims() -> None:
    # The network part of hand check 1: 65,536 bytes over one hop of 500 ns take int(500 + 1220.70) ns.
    ring = graph(4, 4, [(k, (k + s) % 4, ASTRA_50, 500_000) for k in range(4) for s in (1, 3)])
    sends = [(k, (k + 1) % 4, 65_536, 0) for k in range(4)]
    assert simulate(CongestionUnawareNetwork(), ring, sends)[0] == [1720 * PS_PER_NS] * 4


def test_aware_ring_all_gather_message_is_astra_sims() -> None:
    # Hand check 2: 262,144 bytes take 5,382 ns on a free link.
    ring = graph(16, 16, [(k, (k + 1) % 16, ASTRA_50, 500_000) for k in range(16)])
    sends = [(k, (k + 1) % 16, 262_144, 0) for k in range(16)]
    assert simulate(CongestionAwareNetwork(), ring, sends)[0] == [5382 * PS_PER_NS] * 16


def test_specs_build_fresh_networks_that_do_not_weigh() -> None:
    for spec, name in ((CongestionAware(), "congestion_aware"), (CongestionUnaware(), "congestion_unaware")):
        assert spec.build(HERE).describe().name == name
        assert spec.build(HERE) is not spec.build(HERE)
        assert not spec.shares_by_weight()
