"""Arrivals, stragglers, jitter, locality, background traffic: against closed forms and statistics."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import cosim
from cosim.cluster.arrivals import At, Offsets, Poisson, Regular
from cosim.cluster.contract import Wanted
from cosim.cluster.locality import Local, domains
from cosim.cluster.pace import JobPace, SlowRanks, Stragglers, pace
from cosim.context import HERE, Context
from cosim.errors import ScenarioError, WorkloadError
from cosim.experiment.scenario import loads
from cosim.topology.fat_tree import FatTree
from cosim.topology.leaf_spine import LeafSpine
from cosim.workload.background import Background, mean_bytes, size_bytes
from cosim.workload.draws import UNIT, draw, exponential, normals
from cosim.workload.program import OpKind, Workload

MS = 10**9


def test_exponential_draws_are_exponential() -> None:
    drawn = [exponential(7, k) / UNIT for k in range(4000)]
    assert stats.kstest(drawn, "expon").pvalue > 0.01


def test_normal_draws_are_about_normal() -> None:
    drawn = normals(7, (), np.arange(4000)) / UNIT
    assert stats.kstest(drawn, "norm").pvalue > 0.01


def test_draws_are_the_same_on_every_machine() -> None:
    # Pinned: a change here changes every seeded scenario.
    assert [draw(1, 2), exponential(1, 2), *normals(1, (), np.array([2]))] == PINNED


PINNED = [834844254806117752, 6448514112, -6311045665]


def test_arrivals() -> None:
    assert Regular(every="5ms").times(3, HERE) == [0, 5 * MS, 10 * MS]
    assert At(starts=["1ms", "0ms"]).times(2, HERE) == [MS, 0]
    gaps = np.diff([0, *Poisson(mean="10ms").times(2000, Context(seed=3))]) / (10 * MS)
    assert stats.kstest(gaps, "expon").pvalue > 0.01
    offsets = np.array(Offsets(within="10ms", seed=4).times(2000, Context(seed=3))) / (10 * MS)
    assert stats.kstest(offsets, "uniform").pvalue > 0.01
    with pytest.raises(WorkloadError, match="1 starts are listed for 2 jobs"):
        At(starts=["1ms"]).times(2, HERE)


def took(pace: JobPace, rank: int, iteration: int, operation: int, duration_ps: int) -> int:
    return int(pace.durations_ps(rank, iteration, np.array([operation]), np.array([duration_ps]))[0])


def test_a_straggler_takes_its_factor_longer_for_its_iterations() -> None:
    slow = Stragglers(factor=1.5, ranks=(2,), first_iteration=1, iterations=2)
    one = pace((slow,), 0.0, 4, 0, 0)
    assert one is not None
    assert [took(one, 2, k, 0, 1000) for k in range(4)] == [1000, 1500, 1500, 1000]
    assert took(one, 1, 1, 0, 1000) == 1000


def test_jitter_has_its_deviation_and_depends_on_nothing_but_its_place() -> None:
    one, two = pace((), 0.05, 4, 9, 0), pace((), 0.05, 8, 9, 0)
    assert one is not None
    assert two is not None
    drawn = np.array([took(one, rank, it, 3, MS) for rank in range(4) for it in range(500)]) / MS
    assert abs(drawn.mean() - 1) < 4 * 0.05 / math.sqrt(len(drawn))
    assert abs(drawn.std() - 0.05) < 0.004
    assert took(one, 3, 7, 1, MS) == took(two, 3, 7, 1, MS)


TIMES = st.one_of(st.integers(0, 10**7), st.integers(0, 1 << 61))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1 << 20), TIMES), max_size=5),
    st.integers(0, 3 * 10**8),
    st.one_of(st.just(0), st.integers(1, 10**6)),
    st.integers(0, 1 << 64),
)
def test_paces_of_many_are_those_of_each(
    operations: list[tuple[int, int]], slow: int, jitter: int, seed: int
) -> None:
    """By columns as by the formula, in Python's integers, whose products have no limit."""
    numbers, durations = (np.array([one[k] for one in operations], np.int64) for k in (0, 1))
    wanted = []
    for number, duration in operations:
        own = duration * slow // 10**6
        if jitter:
            halves = [
                draw(seed, 3, 7, number, k) >> shift & 0xFFFFFFFF for k in range(6) for shift in (32, 0)
            ]
            whole = 10**6 << 32
            own = max(0, own * (whole + jitter * (sum(halves) - (6 << 32))) // whole)
        wanted.append(own)
    one = JobPace(seed, jitter, (SlowRanks(frozenset([3]), slow, 0, None),))
    if max(wanted, default=0) < 1 << 63 and all(duration * slow < 10**6 << 63 for _, duration in operations):
        assert one.durations_ps(3, 7, numbers, durations).tolist() == wanted


SCENARIO = """
topology: {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 4, rate: 100Gbps, latency: 1us}
network: fair_share
jobs:
  - name: a
    workload: {kind: periodic, compute: 10ms, size: 1MB, communication: all_reduce, ranks: 2}
    iterations: 4
    count: 2
    arrival: {kind: regular, every: 3ms}
    stragglers: [{factor: 2, ranks: [1]}]
"""


def test_jobs_of_a_count_arrive_one_after_another_and_wait_for_their_stragglers() -> None:
    run = cosim.run(loads(SCENARIO))
    assert [job.name for job in run.summary.jobs] == ["a.0", "a.1"]
    assert [job.start_ps for job in run.summary.jobs] == [0, 3 * MS]
    for job in run.summary.jobs:
        assert job.iteration_min_ps is not None
        assert 20 * MS < job.iteration_min_ps < 20.5 * MS
        assert job.stragglers[0].rank % 2 == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"jobs[0].stragglers": [{"factor": 2, "ranks": [2]}]},
            "a straggler is rank 2; the job has ranks 0 to 1",
        ),
        ({"jobs[0].stragglers": [{"factor": 2}]}, "give ranks"),
        ({"jobs[0].arrival": {"kind": "at", "starts": ["1ms"]}}, "1 starts are listed for 2 jobs"),
        ({"jobs[0].arrival": {"kind": "poisson"}}, "mean"),
    ],
)
def test_mistakes_are_told_with_their_place(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ScenarioError, WorkloadError), match=rf"jobs\[0\][\s\S]*{message}"):
        cosim.run(loads(SCENARIO).with_settings(changes))


def test_domains_are_hosts_then_groups_of_rails_then_all() -> None:
    hosts = {"gpus": 4, "nvlink_rate": "1Tbps", "nics": 4, "nic_rate": "100Gbps", "rails": True}
    topology = LeafSpine(leaves=8, spines=2, endpoints_per_leaf=4, latency="1us", hosts=hosts).build(HERE)
    width = [int(d.max()) + 1 for d in domains(topology)]
    assert width == [8, 2, 1]
    tree = FatTree(k=4, rate="100Gbps", latency="1us").build(HERE)
    assert [int(d.max()) + 1 for d in domains(tree)] == [8, 4, 1]


def test_local_takes_the_tightest_domain_with_room() -> None:
    topology = LeafSpine(leaves=4, spines=2, endpoints_per_leaf=4, rate="1Gbps", latency="1us").build(HERE)
    near = domains(topology)
    free = np.array([0, 1, 2, 3, 4, 5, 8, 9, 10, 12], np.int32)
    chosen = Local().choose(Wanted(3, free, 16, HERE, near))
    assert chosen.tolist() == [8, 9, 10]
    # None has room for five: the fullest leaf whole, then the next.
    assert Local().choose(Wanted(5, free, 16, HERE, near)).tolist() == [0, 1, 2, 3, 8]


@pytest.mark.parametrize("sizes", ["web_search", "data_mining"])
def test_flow_sizes_have_the_mean_of_their_distribution(sizes: str) -> None:
    even = [size_bytes(sizes, (2 * k + 1) * UNIT // 200_000) for k in range(100_000)]
    assert np.mean(even) == pytest.approx(mean_bytes(sizes), rel=0.01)


def sent(workload: Workload) -> int:
    return sum(o.size_bytes for p in workload.programs for o in p.operations if o.kind is OpKind.SEND)


@pytest.mark.parametrize("pattern", ["poisson", "on_off"])
def test_background_traffic_offers_its_load(pattern: str) -> None:
    more = {"on": "100us"} if pattern == "on_off" else {}
    spec = Background(
        ranks=8, duration="100ms", load=0.4, rate="10Gbps", size="20kB", pattern=pattern, **more
    )
    offered = sent(spec.build(HERE)) * 8 / (8 * 10e9 * 0.1)
    assert offered == pytest.approx(0.4, rel=0.08)


def test_incast_bursts_have_their_fan_in() -> None:
    spec = Background(ranks=9, pattern="incast", duration="10ms", every="1ms", size="10kB", fan_in=5)
    workload = spec.build(HERE)
    received = [o for p in workload.programs for o in p.operations if o.kind is OpKind.RECV]
    assert len(received) % 5 == 0
    assert 2 <= len(received) // 5 <= 25


def test_background_messages_do_not_wait_for_the_network() -> None:
    spec = {
        "kind": "background",
        "ranks": 4,
        "duration": "1ms",
        "load": 0.5,
        "rate": "10Gbps",
        "size": "50kB",
    }
    text = f"""
topology: {{kind: switch, endpoints: 4, rate: RATE, latency: 1us}}
network: fair_share
jobs: [{{workload: {spec}}}]
record: {{messages: true}}
"""
    fast, slow = (
        cosim.run(loads(text.replace("RATE", rate))).records.messages for rate in ("100Gbps", "2Gbps")
    )
    assert fast is not None
    assert slow is not None
    assert sorted(fast.start_ps.tolist()) == sorted(slow.start_ps.tolist())
    assert slow.end_ps.max() > fast.end_ps.max()


NOISE = """
topology: {kind: switch, endpoints: 8, rate: 100Gbps, latency: 1us}
network: fair_share
jobs:
  - name: noise
    workload: {kind: background, ranks: 4, duration: 1ms, load: 0.2, rate: 100Gbps, size: 20kB}
    count: 2
record: {messages: true}
"""


def starts(changes: dict[str, Any]) -> list[list[int]]:
    messages = cosim.run(loads(NOISE).with_settings(changes)).records.messages
    assert messages is not None
    return [sorted(messages.start_ps[messages.job == j].tolist()) for j in (0, 1)]


def test_background_traffic_follows_the_scenarios_seed_and_each_job_of_a_count_draws_its_own() -> None:
    one, two = starts({})
    assert one != two
    assert starts({}) == [one, two]
    assert starts({"seed": 1})[0] != one
    own = starts({"jobs[0].workload.seed": 3})
    assert starts({"jobs[0].workload.seed": 3, "seed": 1}) == own


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"jobs[0].count": 1}, r"jobs\[0\].arrival: has no effect: there is one such job"),
        (
            {"jobs[0].workload.compute": "0ps"},
            r"jobs\[0\].stragglers: has no effect: the job computes nothing",
        ),
        (
            {"jobs[0].workload.compute": "0ps", "jobs[0].jitter": 0.1},
            r"jitter=0.1: has no effect: the job computes",
        ),
        ({"jobs[0].stragglers[0].first_iteration": 4}, r"first_iteration=4: has no effect: the job has 4"),
        (
            {
                "jobs[0].workload": {"kind": "periodic", "compute": "1ms", "size": "1MB"},
            },
            r"stragglers\[0\].ranks: has no effect: they compute nothing",
        ),
    ],
)
def test_settings_that_change_nothing_are_told(changes: dict[str, Any], message: str) -> None:
    warnings = cosim.run(loads(SCENARIO).with_settings(changes)).warnings
    assert [w for w in warnings if re.search(message, w)], warnings


def test_synthetic_patterns_take_the_time_of_their_busiest_link() -> None:
    text = """
topology: {kind: switch, endpoints: 8, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: periodic, compute: 1ms, size: 10MB, communication: PATTERN, ranks: 8, steps: 2}}]
"""
    # 10 MB take a millisecond; seven senders share the receiver's link.
    for pattern, milliseconds, pairs in (("incast", 16, 7), ("permutation", 4, 8)):
        summary = cosim.run(loads(text.replace("PATTERN", pattern))).summary
        assert summary.jobs[0].iteration_ps == (milliseconds * MS,)
        assert summary.traffic.pairs == pairs
