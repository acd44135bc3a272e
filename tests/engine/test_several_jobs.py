"""Several jobs on one fabric: starts, iterations that roll on rank by rank, weights and priorities."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.engine.records import JobInfo, Records
from cosim.network.fair_share import FairShareNetwork
from cosim.topology.graph import Topology
from cosim.topology.routing import ShortestPaths
from cosim.units import PS_PER_MS, PS_PER_NS, PS_PER_US
from tests.engine.worlds import (
    NETWORKS,
    collective,
    compute,
    config,
    job,
    never_hangs,  # noqa: F401 - runs by itself
    one_dimension,
    recv,
    run,
    send,
    times,
    workload,
)

either_release = pytest.mark.parametrize("release", ["network", "engine"])
LINK_BPS = 100e9


def one_link() -> Topology:
    """0 -> left -> right -> 1 and 2 -> left -> right -> 3; the link between is as fast as the others."""
    names = ("a0", "a1", "b0", "b1", "left", "right")
    ends = [(0, 4), (2, 4), (4, 5), (5, 1), (5, 3)]
    return Topology(
        name="one link",
        num_endpoints=4,
        node_names=names,
        link_src=np.array([a for a, _ in ends], np.int32),
        link_dst=np.array([b for _, b in ends], np.int32),
        link_rate_bps=np.full(len(ends), LINK_BPS),
        link_latency_ps=np.zeros(len(ends), np.int64),
        routing=ShortestPaths(),
    )


def talker(compute_ms: int, communicate_ms: int, endpoints: list[int], **settings: object) -> JobInfo:
    """Computes, then sends one flow that would take ``communicate_ms`` alone."""
    size = round(LINK_BPS * communicate_ms / 8e3)
    work = workload([compute(compute_ms * PS_PER_MS), send(1, size, 0)], [recv(0, size)])
    return job(work, endpoints, **settings)


def two_talkers(c: int, d: int, weights: tuple[float, float], iterations: int, release: str) -> Records:
    jobs = (
        talker(c, d, [0, 1], name="one", weight=weights[0], iterations=iterations),
        talker(c, d, [2, 3], name="two", weight=weights[1], iterations=iterations),
    )
    return run(one_link(), *jobs, network=FairShareNetwork(), release=release)


def iteration_times(records: Records, which: int) -> list[float]:
    """Milliseconds from one iteration's end to the next one's, of all ranks of a job."""
    ends = np.insert(records.iteration_end_ps[which].max(axis=1), 0, records.jobs[which].start_ps)
    return [float(ps) / PS_PER_MS for ps in np.diff(ends)]


@either_release
def test_equal_weights_stay_in_step_for_ever(release: str) -> None:
    records = two_talkers(141, 114, (1, 1), 20, release)
    assert iteration_times(records, 0) == iteration_times(records, 1) == [369.0] * 20


@either_release
def test_unequal_weights_slide_the_jobs_apart_to_c_plus_d(release: str) -> None:
    records = two_talkers(141, 114, (2, 1), 30, release)
    one, two = iteration_times(records, 0), iteration_times(records, 1)
    assert one[:3] == [312.0, 283.5, 269.25]
    assert two[:3] == [369.0, 312.0, 283.5]
    # Each time the overlap halves; a picosecond of rounding is what remains.
    halves = [255 + 114 / 2 ** (k + 1) for k in range(30)]
    assert one == pytest.approx(halves, abs=2e-9)
    assert two == pytest.approx([369, *halves[:-1]], abs=2e-9)
    assert one[-1] == pytest.approx(255, abs=1e-6)


@either_release
def test_a_link_wanted_for_longer_than_there_is_time(release: str) -> None:
    equal = two_talkers(50, 100, (1, 1), 12, release)
    assert iteration_times(equal, 0) == iteration_times(equal, 1) == [250.0] * 12
    records = two_talkers(50, 100, (2, 1), 13, release)
    one, two = iteration_times(records, 0), iteration_times(records, 1)
    assert one == [200, *[175, 175, 200, 200] * 3]  # mean 187.5
    # Job one is done after 2450 ms; from then on job two has the link for itself.
    assert two == [250.0] * 10 + [150.0] * 3


@either_release
def test_strict_priority_lets_the_first_class_through_untouched(release: str) -> None:
    jobs = (
        talker(10, 20, [0, 1], name="first", priority=0, iterations=4),
        talker(10, 20, [2, 3], name="second", priority=1, iterations=2),
    )
    records = run(one_link(), *jobs, network=FairShareNetwork(), release=release)
    assert iteration_times(records, 0) == [30.0] * 4
    # Bytes go in the 10 ms in which the first job computes: 20 ms of them need two such gaps.
    assert iteration_times(records, 1)[0] == 30 + 10 + 20 + 10


@pytest.mark.parametrize("model", NETWORKS.values(), ids=NETWORKS)
@either_release
def test_a_job_starts_when_it_is_told_and_only_then(model: type, release: str) -> None:
    work = workload([compute(PS_PER_US), collective(4096, 0)], mesh={"dp": 2})
    ring = one_dimension("Ring", 4)
    alone = times(run(ring, job(work), network=model(), release=release))
    late = 123_456_789_000
    both = run(ring, job(work), job(work, [2, 3], start_ps=late), network=model(), release=release)
    for rank in range(2):
        for op in range(2):
            start, end = alone[0, 0, rank, op]
            assert times(both)[0, 0, rank, op] == (start, end)
            assert times(both)[1, 0, rank, op] == (start + late, end + late)
    assert both.end_ps == late + alone[0, 0, 0, 1][1]


@either_release
def test_iterations_roll_on_rank_by_rank(release: str) -> None:
    """A sender needs no word from the receiver, and runs ahead; no barrier is assumed."""
    work = workload([compute(PS_PER_US), send(1, 50, 0)], [recv(0, 50), compute(10 * PS_PER_US, 0)])
    records = run(
        one_dimension("Ring", 2, latency_ps=0), job(work, iterations=4), release=release,
    )  # fmt: skip
    arrival = PS_PER_NS  # int(50 / 50) ns
    sender, receiver = records.iteration_end_ps[0].T.tolist()
    assert sender == [k * (PS_PER_US + arrival) for k in range(1, 5)]
    assert receiver == [sender[0] + k * 10 * PS_PER_US for k in range(1, 5)]
    assert records.finish_ps[0].tolist() == [sender[-1], receiver[-1]]
    found = times(records)
    assert found[0, 3, 0, 0][0] < found[0, 0, 1, 1][1]  # iteration 3 there begins while 0 goes on here


@either_release
def test_collectives_of_successive_iterations_meet_by_iteration(release: str) -> None:
    """A fast rank is at its next iteration's collective before a slow one left the last."""
    programs = [[collective(4096), compute(duration, 0)] for duration in (0, 5 * PS_PER_US)]
    records = run(one_dimension("Ring", 2), job(workload(*programs), iterations=5), release=release)
    assert [one.iteration for one in records.collectives] == [0, 1, 2, 3, 4]
    for before, after in zip(records.collectives[:-1], records.collectives[1:], strict=True):
        assert after.start_ps < after.ready_ps == before.end_ps + 5 * PS_PER_US


def test_jobs_share_endpoints_and_links() -> None:
    """Two equal jobs on the same two endpoints: first come, first served, the second waits for the link."""
    work = workload([send(1, 5000)], [recv(0, 5000)])
    ring = one_dimension("Ring", 2)
    found = times(run(ring, job(work), job(work)))
    assert found[0, 0, 1, 0] == (0, 600 * PS_PER_NS)
    assert found[1, 0, 1, 0] == (0, 700 * PS_PER_NS)
    fair = times(run(ring, job(work, weight=1), job(work, weight=3), network=FairShareNetwork()))
    # 3/4 of 50 B/ns until the second is done at 133.3 ns, then all of it for what is left.
    assert fair[1, 0, 1, 0][1] == pytest.approx((5000 / 37.5 + 500) * PS_PER_NS, abs=1)
    assert fair[0, 0, 1, 0][1] == pytest.approx(700 * PS_PER_NS, abs=1)


def test_equal_jobs_with_other_names_do_not_change_each_others_keys() -> None:
    """A job's operations are its own: two jobs that never meet have the times of each alone."""
    work = workload([collective(1 << 16), compute(PS_PER_US, 0)], mesh={"dp": 4})
    fabric = one_dimension("Switch", 8)
    costs = config(splits=2)
    alone = times(run(fabric, job(work, iterations=3), collectives=costs))
    records = run(fabric, job(work, iterations=3), job(work, [4, 5, 6, 7], iterations=3), collectives=costs)
    both = times(records)
    assert {key: both[key] for key in alone} == alone
    assert {(0, *key[1:]): at for key, at in both.items() if key[0] == 1} == alone
