"""fair_share against exact cases, exact arithmetic and conservation laws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from cosim.context import HERE
from cosim.errors import NetworkError
from cosim.kernel import kernel
from cosim.network.fair_share import FairShare, FairShareNetwork, Fluid
from cosim.network.flows import FlowGroup, flat_table, pack_key
from cosim.network.simulator import NetworkSimulator
from cosim.testing.strategies.traffic import RATES, table_of, topologies
from cosim.testing.strategies.traffic import Traffic as World
from cosim.testing.strategies.traffic import traffic as worlds
from cosim.topology.graph import I32, I64, Paths, Topology
from cosim.topology.leaf_spine import LeafSpine
from cosim.units import NEVER, PS_PER_MS, PS_PER_US
from tests.network.worlds import batch, drive, graph

many = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
GB_PER_S = 8e9
"""One byte takes 1,000 ps."""


def one_link(latency_ps: int = 0, rate: float = GB_PER_S) -> Topology:
    return graph(2, 2, [(0, 1, rate, latency_ps)])


@dataclass
class Message:
    size: int
    start: int = 0
    weight: float = 1.0
    priority: int = 0
    src: int = 0
    dst: int = 1
    channel: int | None = None


def groups_of(messages: Sequence[Message]) -> list[FlowGroup]:
    """A group of each; each has a channel of its own unless it says which."""
    return [
        FlowGroup(
            handle=k,
            table=flat_table([0], [1], [m.size]),
            endpoints=np.array([m.src, m.dst], np.int32),
            key=pack_key(0, 0, k, 0),
            channel=100 + k if m.channel is None else m.channel,
            weight=m.weight,
            priority=m.priority,
        )
        for k, m in enumerate(messages)
    ]


def finish(topology: Topology, messages: Sequence[Message]) -> list[int]:
    """When each completes."""
    network = FairShareNetwork()
    network.open(topology)
    times = [-1] * len(messages)
    flows = batch(groups_of(messages), [(k, 0, m.start, m.start) for k, m in enumerate(messages)])
    while -1 in times:
        done = network.advance(flows, NEVER).completions
        flows = batch()
        for handle, time in zip(done.handle.tolist(), done.time_ps.tolist(), strict=True):
            times[handle] = time
    return times


def test_one_flow_takes_size_over_rate_plus_latency() -> None:
    assert finish(one_link(latency_ps=700), [Message(1_000)]) == [1_000_700]


def test_two_flows_halve_a_link_and_the_second_speeds_up() -> None:
    assert finish(one_link(), [Message(1_000), Message(3_000)]) == [2_000_000, 4_000_000]


def test_weights_two_to_one() -> None:
    # 2/3 and 1/3 of the link: the heavy one is done at 1.5 units, the light one at 2.
    assert finish(one_link(), [Message(1_000, weight=2), Message(1_000)]) == [1_500_000, 2_000_000]


def test_weights_count_by_their_ratio() -> None:
    for scale in (0.1, 1.0, 7.0, 250.0):
        times = finish(one_link(), [Message(1_000, weight=2 * scale), Message(1_000, weight=scale)])
        assert times == [1_500_000, 2_000_000]


def test_a_higher_class_leaves_only_the_rest() -> None:
    times = finish(one_link(), [Message(1_000, priority=1), Message(1_000, start=250_000)])
    assert times == [2_000_000, 1_250_000]


def test_the_rest_goes_to_lower_classes_when_a_flow_is_held_back_elsewhere() -> None:
    topology = graph(3, 3, [(0, 1, GB_PER_S / 4, 0), (1, 2, GB_PER_S, 0)])
    high = Message(1_000, src=0, dst=2)
    low = Message(3_000, src=1, dst=2, priority=3)
    assert finish(topology, [high, low]) == [4_000_000, 4_000_000]


def test_max_min_on_two_links_in_a_row() -> None:
    # A long flow and a short one on each link; the narrow first link holds the long one to a half of it.
    topology = graph(3, 3, [(0, 1, GB_PER_S, 0), (1, 2, 2 * GB_PER_S, 0)])
    long, first, second = Message(1_000, dst=2), Message(1_000), Message(3_000, src=1, dst=2)
    assert finish(topology, [long, first, second]) == [2_000_000, 2_000_000, 2_000_000]


def test_flows_of_a_channel_go_one_after_another_but_latencies_overlap() -> None:
    same = [Message(1_000, channel=5), Message(1_000, channel=5), Message(0, channel=5), Message(0)]
    assert finish(one_link(latency_ps=300), same) == [1_000_300, 2_000_300, 2_000_300, 300]


def test_three_thirds_are_exact_to_the_picosecond() -> None:
    # 3 x 7,000,001 bytes at a third each take 21,000,003 x 1,000 ps, to the picosecond.
    assert finish(one_link(), [Message(7_000_001)] * 3) == [21_000_003_000] * 3


def test_a_drain_within_a_picosecond_is_rounded_up() -> None:
    assert finish(one_link(rate=3 * GB_PER_S), [Message(1), Message(1)]) == [667, 667]


def iterate(compute_ps: int, alone_ps: int, weights: Sequence[float], rounds: int) -> list[list[int]]:
    """Iteration times of jobs that compute, then send, on one link: one flow each, common start."""
    network: NetworkSimulator = FairShare().build(HERE)
    network.open(one_link())
    table = flat_table([0], [1], [alone_ps // 1_000])
    due = dict.fromkeys(range(len(weights)), compute_ps)
    begun = [[0] for _ in weights]
    open_ones: dict[int, int] = {}
    granted = 0
    while min(len(times) for times in begun) <= rounds:
        now = [job for job, start in due.items() if start == granted]
        groups, starts = [], []
        for job in now:
            del due[job]
            handle = 2 * job + len(begun[job]) % 2
            open_ones[handle] = job
            key = pack_key(job, len(begun[job]), 0, 0)
            nodes = np.array([0, 1], np.int32)
            groups.append(FlowGroup(handle, table, nodes, key, job=job, weight=weights[job]))
            starts.append((handle, 0, granted, granted))
        step = network.advance(batch(groups, starts), min(due.values(), default=NEVER))
        granted = step.granted_ps
        done = step.completions
        for handle, time in zip(done.handle.tolist(), done.time_ps.tolist(), strict=True):
            job = open_ones.pop(handle)
            begun[job].append(time)
            due[job] = time + compute_ps
    return [np.diff(times[: rounds + 1]).tolist() for times in begun]


def test_equal_jobs_with_equal_weights_never_part() -> None:
    one, two = iterate(141 * PS_PER_MS, 114 * PS_PER_MS, (1, 1), 20)
    assert one == two == [369 * PS_PER_MS] * 20


def test_unfair_weights_let_two_jobs_interleave() -> None:
    one, two = iterate(141 * PS_PER_MS, 114 * PS_PER_MS, (2, 1), 40)
    # One: 255 + 57 / 2^k; two: the same, one iteration later, after a first one like that of equal weights.
    exact_one = [Fraction(255) + Fraction(57) / 2**k for k in range(40)]
    exact_two = [Fraction(369), *exact_one[:-1]]
    for got, exact in ((one, exact_one), (two, exact_two)):
        assert got[:9] == [int(x * PS_PER_MS) for x in exact[:9]]
        for time, expected in zip(got, exact, strict=True):
            assert abs(time - expected * PS_PER_MS) <= 2
    assert abs(one[-1] - 255 * PS_PER_MS) <= 1


def test_where_computing_is_short_unfair_weights_alternate() -> None:
    fair = iterate(50 * PS_PER_MS, 100 * PS_PER_MS, (1, 1), 8)
    assert fair == [[250 * PS_PER_MS] * 8] * 2
    one, two = iterate(50 * PS_PER_MS, 100 * PS_PER_MS, (2, 1), 8)
    assert one == [x * PS_PER_MS for x in (200, 175, 175, 200, 200, 175, 175, 200)]
    assert two == [250 * PS_PER_MS] * 8


def max_min(
    capacity: Sequence[Fraction], paths: Sequence[Sequence[int]], weights: Sequence[Fraction]
) -> list[Fraction]:
    """Weighted max-min rates by progressive filling in exact arithmetic, one class."""
    left, rate = list(capacity), [Fraction(-1)] * len(paths)
    while -1 in rate:
        levels = {}
        for link in range(len(capacity)):
            weight = sum(weights[f] for f, path in enumerate(paths) if link in path and rate[f] < 0)
            if weight:
                levels[link] = left[link] / weight
        level = min(levels.values())
        for f, path in enumerate(paths):
            if rate[f] < 0 and any(levels.get(link) == level for link in path):
                rate[f] = level * weights[f]
                for link in path:
                    left[link] -= rate[f]
    return rate


def fluid_times(topology: Topology, messages: Sequence[Message]) -> list[float]:
    """Completion times of flows on channels of their own, in exact arithmetic, without rounding."""
    capacity = [Fraction(r) / 8 / 10**12 for r in topology.link_rate_bps.tolist()]
    paths = []
    for group in groups_of(messages):
        channel = group.table.channel + np.int32(group.channel)
        paths.append(topology.paths(group.endpoints[:1], group.endpoints[1:], channel)[1].tolist())
    remaining = [Fraction(m.size) for m in messages]
    now = Fraction(0)
    done: dict[int, Fraction] = {}
    while len(done) < len(messages):
        active = [k for k, m in enumerate(messages) if k not in done and m.start <= now]
        left, rates = list(capacity), {}
        for priority in sorted({messages[k].priority for k in active}):
            these = [k for k in active if messages[k].priority == priority]
            weights = [Fraction(str(messages[k].weight)) for k in these]
            for k, rate in zip(these, max_min(left, [paths[k] for k in these], weights), strict=True):
                rates[k] = rate
                for link in paths[k]:
                    left[link] -= rate
        steps = [remaining[k] / rate for k, rate in rates.items() if rate]
        steps += [m.start - now for k, m in enumerate(messages) if m.start > now]
        step = min(steps)
        now += step
        for k, rate in rates.items():
            remaining[k] -= rate * step
            if remaining[k] == 0:
                done[k] = now
    latency = [int(topology.link_latency_ps[path].sum()) for path in paths]
    return [float(done[k] + latency[k]) for k in range(len(messages))]


@st.composite
def crowds(draw: st.DrawFn, most: int = 8) -> tuple[Topology, list[Message]]:
    topology = draw(topologies())
    messages = []
    for _ in range(draw(st.integers(1, most))):
        src = draw(st.integers(0, topology.num_endpoints - 1))
        hop = draw(st.integers(1, topology.num_endpoints - 1))
        messages.append(
            Message(
                size=draw(st.sampled_from((1, 1_000, 65_536, 999_983))),
                start=draw(st.sampled_from((0, 0, 1_000, 131_000, 5_242_880))),
                weight=draw(st.sampled_from((1.0, 2.0, 0.1, 3.7))),
                priority=draw(st.integers(0, 2)),
                src=src,
                dst=(src + hop) % topology.num_endpoints,
            )
        )
    return topology, messages


@many
@given(crowd=crowds())
def test_rates_are_those_of_exact_progressive_filling(crowd: tuple[Topology, list[Message]]) -> None:
    topology, messages = crowd
    got, exact = finish(topology, messages), fluid_times(topology, messages)
    for time, expected in zip(got, exact, strict=True):
        # Each drain is rounded up, and moves those after it: by a picosecond each at most, times a ratio of
        # rates (37 at most here) where a slow flow waits for a fast link.
        assert -1e-6 * expected - 1 <= time - expected <= 1e-6 * expected + 40 * len(messages)


def rates(network: FairShareNetwork, *, anew: bool) -> NDArray[np.float64]:
    """Rates of what is under way; ``anew``: worked out from zero on a copy, as if no rate had been before."""
    core, fluid = network.core, network.columns
    under_way = fluid.flows["member"] != -1
    under_way &= np.isin(np.arange(len(under_way)), fluid.members["flow"][_used(fluid)])
    if not anew:
        return np.asarray(fluid.flows["rate"][under_way])
    copy = fluid.copy(drains=fluid.drains.copy())
    copy.flows["level"] = -1.0
    copy.put(dirty=np.arange(len(copy.links), dtype=np.int32))
    copy.links["dirty"], copy.links["load"] = kernel.CAME, 0
    copy.counts["num_dirty"] = len(copy.links)
    busy = core.copy(link_busy=core.link_busy.copy())
    kernel.share_links(busy, copy, int(core.state["instant"][0]))
    return np.array(copy.flows["rate"][under_way])


def loads(network: FairShareNetwork) -> NDArray[np.int64]:
    """What each link's flows take of it, in parts of 2^42: see ``kernel/src/fluid.c``."""
    fluid = network.columns
    found = np.zeros(len(fluid.links), np.int64)
    for one in fluid.members[_used(fluid)]:
        capacity, level = fluid.links["capacity"][one["link"]], fluid.flows["level"][one["flow"]]
        weight = fluid.classes["weight"][fluid.flows["traits"][one["flow"]]]
        found[one["link"]] += int(min(level * weight / capacity, 1.0) * 2**42 + 0.5)
    return found


def _used(fluid: Fluid) -> list[int]:
    found = []
    for first in fluid.links["first"].tolist():
        while first != -1:
            found.append(first)
            first = int(fluid.members["after"][first])
    return found


@many
@given(crowd=crowds(40), times=st.lists(st.integers(1, 10**8), min_size=1, max_size=20))
def test_rates_of_what_changed_are_bit_by_bit_those_of_filling_all_links(
    crowd: tuple[Topology, list[Message]], times: list[int]
) -> None:
    topology, messages = crowd
    network = FairShareNetwork()
    network.open(topology)
    flows = batch(groups_of(messages), [(k, 0, m.start, m.start) for k, m in enumerate(messages)])
    for time in sorted(times):
        while network.advance(flows, time).granted_ps < time:
            flows = batch()
        flows = batch()
        if network.columns.counts["num_dirty"][0] == 0:  # else the last instant isn't over yet
            assert_array_equal(rates(network, anew=False), rates(network, anew=True))
            assert_array_equal(network.columns.links["load"], loads(network))
            # Links that aren't full are taken to have room when looked at next, however lately they were.
            network.columns.links["rechecks"] = 0


def looked_at(hosts: int) -> tuple[float, float]:
    """Flows looked at and changed for each arrival or departure: pairs of hosts under a fabric with ECMP."""
    fabric = {"leaves": hosts // 8, "spines": 4, "endpoints_per_leaf": 8, "rate": "100Gbps", "latency": "0ns"}
    topology = LeafSpine.model_validate({**fabric, "routing": {"kind": "ecmp", "seed": 1}}).build(HERE)
    rng = np.random.default_rng(hosts)
    count = 4 * hosts
    src = rng.integers(0, hosts, count)
    dst = (src + rng.integers(1, hosts, count)) % hosts
    start = np.cumsum(rng.exponential(4e8 / hosts, count)).astype(np.int64)
    network = FairShareNetwork()
    network.open(topology)
    table = flat_table(
        src.tolist(), dst.tolist(), rng.integers(10**5, 10**7, count).tolist(), num_participants=hosts
    )
    flows = batch(
        [FlowGroup(0, table, np.arange(hosts, dtype=np.int32), (0, 0))],
        [(0, k, t, t) for k, t in enumerate(start.tolist())],
    )
    while network.advance(flows, NEVER).granted_ps < NEVER:
        flows = batch()
    counts = network.columns.counts
    return float(counts["num_looked"][0]) / (2 * count), float(counts["num_changed"][0]) / (2 * count)


def test_a_change_looks_at_its_own_surroundings_whatever_the_size_of_the_fabric() -> None:
    (looked, changed), (more_looked, more_changed) = looked_at(64), looked_at(1024)
    assert 0.5 < changed <= looked <= 4 * changed
    assert more_looked <= 4 * more_changed
    assert more_looked <= 3 * looked


def test_a_departure_looks_at_no_flow_that_was_frozen_before_the_one_that_left() -> None:
    # Six flows that their own links hold back, 21 of 41 GB/s in all, and two that share what is left: one of
    # them ends after 0.1 ms.
    own = [6, 5, 4, 3, 2, 1, 100, 100]
    links = [(k, 8, rate * GB_PER_S, 0) for k, rate in enumerate(own)]
    network = FairShareNetwork()
    network.open(graph(10, 10, [*links, (8, 9, 41 * GB_PER_S, 0)]))
    messages = [Message(10**6 if k == 7 else 10**9, src=k, dst=9) for k in range(8)]
    flows = batch(groups_of(messages), [(k, 0, 0, 0) for k in range(8)])
    looked = []
    for until in (PS_PER_MS // 20, PS_PER_MS):
        while network.advance(flows, until).granted_ps < until:
            flows = batch()
        flows = batch()
        looked.append(int(network.columns.counts["num_looked"][0]))
    assert looked == [8, 9]
    assert network.statistics().flows_completed == 1


@many
@given(world=worlds())
def test_bytes_are_conserved_and_no_link_exceeds_its_rate(world: World) -> None:
    network = FairShareNetwork()
    drive(network, world)
    seen = network.statistics()
    expected = np.zeros(world.topology.num_links, np.int64)
    for group in world.groups:
        table = group.table
        rows = table.row_of(np.arange(table.num_flows, dtype=np.int64))
        src, dst = group.endpoints[table.src[rows]], group.endpoints[table.dst[rows]]
        ptr, links = world.topology.paths(src, dst, group.channel + table.channel[rows])
        np.add.at(expected, links, np.repeat(table.size_bytes[rows], np.diff(ptr)))
    assert_array_equal(seen.link_bytes, expected)
    assert seen.busy_ps.max(initial=0) <= seen.bin_ps
    # Busy time is bytes over the rate; each change of a rate rounds by half a picosecond, each drain by one.
    busy = expected * 8e12 / world.topology.link_rate_bps
    assert np.abs(seen.link_busy_ps - busy).max(initial=0) <= 2 + 2 * seen.events
    assert seen.flows_started == seen.flows_completed == sum(g.table.num_flows for g in world.groups)


@many
@given(
    flows=st.lists(
        st.tuples(st.integers(1, 10**6), st.sampled_from((0.5, 1.0, 3.0)), st.integers(0, 2)), min_size=1
    )
)
def test_a_link_is_never_idle_while_anything_waits_for_it(flows: list[tuple[int, float, int]]) -> None:
    times = finish(one_link(), [Message(size, weight=w, priority=p) for size, w, p in flows])
    total = sum(size for size, _, _ in flows) * 1_000
    assert total <= max(times) <= total + len(flows)
    first = [(size, time) for (size, _, p), time in zip(flows, times, strict=True) if p == 0]
    if first:  # the first class does not feel the others
        busy = sum(size for size, _ in first) * 1_000
        assert busy <= max(time for _, time in first) <= busy + len(first)


def test_statistics_count_what_is_under_way() -> None:
    network = FairShareNetwork()
    network.open(one_link())
    table = flat_table([0, 0], [1, 1], [10_000, 10_000], channel=[0, 1])
    nodes = np.array([0, 1], np.int32)
    network.advance(
        batch([FlowGroup(0, table, nodes, (0, 0))], [(0, 0, 0, 0), (0, 1, 10**6, 0)]), 4 * PS_PER_US
    )
    before = network.statistics()
    assert before.link_busy_ps.tolist() == [4 * PS_PER_US]
    assert network.statistics().link_busy_ps.tolist() == [4 * PS_PER_US]
    while network.advance(batch(), NEVER).granted_ps < NEVER:
        pass
    assert network.statistics().link_busy_ps.tolist() == [20 * PS_PER_US]
    assert network.statistics().link_bytes.tolist() == [20_000]


@pytest.mark.parametrize(("field", "value"), [("weight", 0.0), ("weight", 1e9), ("priority", -1)])
def test_refuses_weights_and_priorities_that_it_cannot_serve(field: str, value: float) -> None:
    network = FairShareNetwork()
    network.open(one_link())
    shares = {"weight": 1.0, "priority": 0} | {field: value}
    group = FlowGroup(
        0,
        flat_table([0], [1], [1]),
        np.array([0, 1], np.int32),
        (0, 0),
        weight=shares["weight"],
        priority=int(shares["priority"]),
    )
    with pytest.raises(NetworkError, match=field):
        network.advance(batch([group]), NEVER)


class Neighbours(Paths):
    """On a ring of directed links, link k leaves node k; every flow goes one node on."""

    name = "neighbours"

    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        assert_array_equal(dst, (src + 1) % topology.num_endpoints)
        assert len(channel) == len(src)
        return np.arange(len(src) + 1, dtype=np.int64), src


def test_thousand_disjoint_flows_start_and_drain_at_one_instant() -> None:
    count = 1_000
    links = [(k, (k + 1) % count, RATES[0], 5_000) for k in range(count)]

    topology = replace(graph(count, count, links), routing=Neighbours())
    rows = [(k, (k + 1) % count, 1_000, 0, 0, list[tuple[int, int]]()) for k in range(count)]
    network = FairShareNetwork()
    network.open(topology)
    group = FlowGroup(0, table_of(rows, count, [(count, 1)], NEVER), np.arange(count, dtype=np.int32), (0, 0))
    step = network.advance(batch([group], [(0, k, 0, 0) for k in range(count)]), NEVER)
    assert set(step.completions.time_ps.tolist()) == {1_005_000}
    assert math.isclose(network.statistics().link_busy_ps.sum(), count * 1e6)
