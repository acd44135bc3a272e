"""CASSINI: scores and shifts against closed forms, a brute-force circle, and what jobs then take."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cosim
from cosim.cluster.schedulers.affinity import LoopError, Vertex, joined
from cosim.cluster.schedulers.cassini import Cassini
from cosim.cluster.schedulers.circle import Shared, best_shifts
from cosim.cluster.schedulers.demand import Demand, rolled
from cosim.cluster.schedulers.periods import MOST_PERIODS, fitting
from cosim.cluster.schedulers.profile import JobProfile, Placed
from cosim.context import HERE
from cosim.topology.explicit import Graph
from cosim.topology.graph import Topology

MS = 10**9
GBPS = 1e9
LINE = 100 * GBPS


def dumbbell(jobs: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Jobs of two endpoints each whose messages all go from left to right over one link of 100 Gbps."""
    ends = [f"{side}{k}" for k in range(len(jobs)) for side in "ab"]
    links = [{"from": f"a{k}", "to": "left"} for k in range(len(jobs))]
    links += [{"from": "right", "to": f"b{k}"} for k in range(len(jobs))]
    links = [
        {"rate": "100Gbps", "latency": "0ns", **link} for link in [*links, {"from": "left", "to": "right"}]
    ]
    topology = {"kind": "graph", "endpoints": ends, "switches": ["left", "right"], "links": links}
    return {"topology": topology, "network": "fair_share", "jobs": jobs, **more}


def job(name: str, compute_ms: float, link_ms: float, iterations: int = 8, **more: Any) -> dict[str, Any]:
    """Computes, then has the link to itself for so long where nobody else does."""
    workload = {"kind": "periodic", "compute": f"{compute_ms}ms", "size": round(link_ms * 12.5e6)}
    return {"name": name, "iterations": iterations, "workload": workload, **more}


def scheduled(jobs: list[dict[str, Any]], **more: Any) -> cosim.Run:
    return cosim.run(dumbbell(jobs, scheduler={"kind": "cassini", **more}))


def on(period_ms: float, begin_ms: float, link_ms: float, rate: float = LINE) -> Demand:
    start = np.array([round(begin_ms * MS)])
    return rolled(start, start + round(link_ms * MS), np.array([rate]), round(period_ms * MS))


def one_link(*demands: Demand, capacity: float = LINE) -> Shared:
    return Shared([demands], [capacity], [one.period_ps for one in demands])


# -- the cases of issue 17 ---------------------------------------------------------------------------


def test_two_jobs_that_fit_no_longer_meet() -> None:
    run = scheduled([job("one", 141, 114), job("two", 141, 114)])
    found = run.summary.scheduling
    assert found is not None
    (link,) = found.links
    assert link.name == "left -> right"
    assert link.score == 1
    shift = (found.jobs[1].shift_ps or 0) - (found.jobs[0].shift_ps or 0)
    assert 114 * MS <= shift <= 141 * MS
    for one in run.summary.jobs:
        assert one.iteration_ps[1:] == (255 * MS,) * 7
    assert found.unscheduled_ps == {"one": 369 * MS, "two": 369 * MS}
    assert "score 1, nobody waits" in str(run)


def test_three_jobs_of_a_third_each() -> None:
    run = scheduled([job(name, 200, 100) for name in ("one", "two", "three")])
    found = run.summary.scheduling
    assert found is not None
    assert found.links[0].score == 1
    assert sorted(one.shift_ps or 0 for one in found.jobs) == [0, 100 * MS, 200 * MS]
    assert {time for one in run.summary.jobs for time in one.iteration_ps[1:]} == {300 * MS}


def test_two_jobs_that_do_not_fit() -> None:
    run = scheduled([job("one", 50, 100), job("two", 50, 100)])
    found = run.summary.scheduling
    assert found is not None
    assert found.links[0].score == pytest.approx(2 / 3)
    assert "score 0.6667" in str(run)
    # Nobody is held to a turn that can't be kept: an iteration is no longer than without a scheduler.
    assert "no shift helps one, two: they want 33% more than left -> right has at best" in str(run)
    assert [one.iteration_mean_ps for one in run.summary.jobs] == [*found.unscheduled_ps.values()]


def test_jobs_that_would_lose_turn_after_turn_are_not_held() -> None:
    """Their score is 0.951 to 0.979: it is over the circle, and an iteration is late over its own period."""
    for one, two in (((73, 27), (90, 20)), ((30, 10), (45, 15)), ((45, 15), (70, 10))):
        run = scheduled([job("one", *one, 40), job("two", *two, 40)])
        found = run.summary.scheduling
        assert found is not None
        assert 0.95 < found.links[0].score < 1
        assert [one.iteration_mean_ps for one in run.summary.jobs] == [*found.unscheduled_ps.values()]


def random_sets(seeds: range) -> None:
    for seed in seeds:
        draw = random.Random(seed)
        count = draw.choice((2, 2, 3))
        jobs = [job(f"j{k}", draw.randrange(10, 120), draw.randrange(5, 60), 40) for k in range(count)]
        if draw.random() < 0.5:  # periods that go together
            period = draw.choice((60, 100, 150))
            links = [draw.randrange(5, period // 2) for _ in jobs]
            jobs = [job(f"j{k}", period - link, link, 40) for k, link in enumerate(links)]
        run = scheduled(jobs)
        found = run.summary.scheduling
        assert found is not None
        for one in run.summary.jobs:
            assert (one.iteration_mean_ps or 0) <= 1.01 * found.unscheduled_ps[one.name], (seed, one.name)


def test_nobody_is_slower_than_without() -> None:
    random_sets(range(20))


@pytest.mark.slow
def test_nobody_of_200_sets_is_slower_than_without() -> None:
    random_sets(range(20, 220))


def test_unequal_periods() -> None:
    run = scheduled([job("one", 30, 10), job("two", 45, 15)])
    found = run.summary.scheduling
    assert found is not None
    assert found.links[0].perimeter_ps == 120 * MS
    assert round(found.links[0].score, 4) == 0.9583
    assert found.links[0].score == pytest.approx(1 - 5 / 120)


CHAIN = (("a", "b"), ("b", "c"))


def graph(*links: tuple[str, ...]) -> tuple[list[Vertex], dict[int, str], Topology]:
    """Vertices of which each is a link that the named jobs share, from l0 to m0, from l1 to m1 ..."""
    names = sorted({name for link in links for name in link})
    one_way = {"rate": "1Gbps", "latency": "0ns", "bidirectional": False}
    ends = [{"from": f"l{k}", "to": f"m{k}", **one_way} for k in range(len(links))]
    nodes = [one[key] for one in ends for key in ("from", "to")]
    topology = Graph.model_validate({"endpoints": nodes, "links": ends}).build(HERE)
    vertices = [
        Vertex(tuple(names.index(name) for name in link), (k,), ({},)) for k, link in enumerate(links)
    ]
    return vertices, dict(enumerate(names)), topology


def test_shifts_add_up_along_a_chain() -> None:
    # By hand: b is 70 after a on the first link, c 50 after b on the second, so 120 after a; modulo 100, 20.
    vertices, names, topology = graph(*CHAIN)
    found = joined(vertices, [{0: 10, 1: 80}, {1: 30, 2: 80}], dict.fromkeys(range(3), 100), names, topology)
    assert found == {0: 0, 1: 70, 2: 20}


def test_a_loop_is_refused_by_name() -> None:
    vertices, names, topology = graph(*CHAIN, ("a", "c"))
    shifts = [dict.fromkeys(vertex.jobs, 0) for vertex in vertices]
    with pytest.raises(LoopError) as refused:
        joined(vertices, shifts, dict.fromkeys(range(3), 100), names, topology)
    said = refused.value.message.removeprefix("a loop: ").split(", ")
    assert said[0] == said[-1]
    assert {*said} == {"a", "b", "c", "l0 -> m0", "l1 -> m1", "l2 -> m2"}


# -- against a circle of its own ---------------------------------------------------------------------


def by_steps(demands: list[tuple[int, int, int, float]], shifts: tuple[int, ...], capacity: float) -> float:
    """The score, step by step: (period, begin, length, rate) of each, whole numbers of steps."""
    length = math.lcm(*(period for period, *_ in demands))
    over = 0.0
    for step in range(length):
        wanted = sum(
            rate
            for (period, begin, size, rate), shift in zip(demands, shifts, strict=True)
            if (step - shift - begin) % period < size
        )
        over += max(0.0, wanted - capacity)
    return 1 - over / (length * capacity)


@st.composite
def circles(draw: st.DrawFn) -> list[tuple[int, int, int, float]]:
    found = []
    for _ in range(draw(st.integers(2, 3))):
        period = draw(st.sampled_from([4, 6, 8, 12]))
        found.append(
            (
                period,
                draw(st.integers(0, period - 1)),
                draw(st.integers(1, period - 1)),
                draw(st.sampled_from([0.5, 0.75, 1.0])) * LINE,
            )
        )
    return found


@settings(deadline=None, max_examples=60)
@given(circles())
def test_no_shift_of_a_grid_is_better(demands: list[tuple[int, int, int, float]]) -> None:
    shared = one_link(*(on(period, begin, size, rate) for period, begin, size, rate in demands))
    shifts = best_shifts(shared)
    mine = shared.scores(shifts)[0]
    looked_at = shared.excess_at(1, range(0, round(demands[1][0] * MS), MS // 4), [0], [0] * len(demands))
    apart = [shared.excess([0, 1], [0, quarter * MS // 4]) for quarter in range(4 * demands[1][0])]
    assert looked_at == pytest.approx(apart, abs=1e-9)
    steps = [range(1), *(range(period) for period, *_ in demands[1:])]
    best = max(by_steps(demands, tuple(at), LINE) for at in np.ndindex(*map(len, steps)))
    assert mine == pytest.approx(best, abs=1e-6)  # all edges are whole steps: no point between does better
    # and the score of shifts is what it is step by step, in steps of half a millisecond
    halves = [(2 * period, 2 * begin, 2 * size, rate) for period, begin, size, rate in demands]
    assert mine == pytest.approx(by_steps(halves, tuple(round(2 * s / MS) for s in shifts), LINE), abs=1e-6)


def test_a_grid_is_coarser() -> None:
    shared = one_link(on(255, 141, 114), on(255, 141, 114))
    assert shared.scores(best_shifts(shared, grid=3))[0] < 1
    assert shared.scores(best_shifts(shared, grid=360))[0] == 1


def test_the_middle_of_what_is_good() -> None:
    assert best_shifts(one_link(on(255, 141, 114), on(255, 141, 114))) == [0, round(127.5 * MS)]


# -- periods that don't go together ------------------------------------------------------------------


def test_periods_are_rounded_up_as_little_as_helps() -> None:
    periods = {0: 100 * MS + 1, 1: 130 * MS + 7}
    found = fitting(periods, [[0, 1]], 0.05)
    assert found is not None
    assert all(periods[k] <= found[k] <= periods[k] * 1.05 for k in periods)
    assert math.lcm(*found.values()) <= MOST_PERIODS * min(found.values())
    assert fitting(periods, [[0, 1]], 0.0) is None
    assert fitting({0: 40, 1: 60}, [[0, 1]], 0.0) == {0: 40, 1: 60}


def test_rounded_periods_are_said_and_kept() -> None:
    run = scheduled([job("one", 60.000001, 40), job("two", 90.000013, 40.000029)])
    assert "periods rounded up so that they meet again" in str(run)


# -- where jobs are put -------------------------------------------------------------------------------


def test_candidates_choose_the_placement_without_contention() -> None:
    # Two leaves of two: beside a job that is spread over both, the second fits best where it stays on a leaf.
    leaf = {"kind": "leaf_spine", "leaves": 2, "spines": 1, "endpoints_per_leaf": 4, "rate": "100Gbps"}
    leaf |= {"latency": "0ns", "oversubscription": 4}  # one such flow fills what goes up from a leaf
    jobs = [job("one", 50, 100, placement={"kind": "explicit", "endpoints": [0, 4]})]
    jobs.append(job("two", 50, 100, placement="spread"))
    text = {"topology": leaf, "network": "fair_share", "jobs": jobs, "queue": {}}
    apart = cosim.run({**text, "scheduler": {"kind": "cassini", "candidates": 10}})
    assert [one.iteration_mean_ps for one in apart.summary.jobs] == [150 * MS, 150 * MS]
    own = cosim.run({**text, "scheduler": "cassini"})
    assert min(one.iteration_mean_ps or 0 for one in own.summary.jobs) > 150 * MS


def one_way_ring() -> Topology:
    """Switches s0 -> s1 -> s2 -> s0, of links that go round one way only; a0 and a1 at s0, and so on."""
    ends = {"a0": "s0", "a1": "s0", "b0": "s1", "b1": "s1", "c0": "s2", "c1": "s2"}
    links = [
        {"from": one, "to": two, "rate": "100Gbps", "latency": "0ns", "bidirectional": False}
        for end, switch in ends.items()
        for one, two in ((end, switch), (switch, end))
    ]
    links += [
        {
            "from": f"s{k}",
            "to": f"s{(k + 1) % 3}",
            "rate": "100Gbps",
            "latency": "0ns",
            "bidirectional": False,
        }
        for k in range(3)
    ]
    return Graph.model_validate({"endpoints": [*ends], "switches": ["s0", "s1", "s2"], "links": links}).build(
        HERE
    )


def test_a_placement_that_makes_a_loop_is_not_chosen() -> None:
    topology = one_way_ring()
    half = np.array([50 * MS]), np.array([100 * MS])
    size = np.array([625 * 10**6])
    profile = JobProfile(2, 100 * MS, 0, np.array([0], np.int32), np.array([1], np.int32), size, *half)
    a, b, c = ("a0", "c0"), ("b0", "a1"), ("c1", "b1")  # each over two of the three links: round and round
    names = topology.node_names
    seats = [np.array([names.index(end) for end in ends], np.int32) for ends in (a, b, c, ("c1", "a1"))]
    placed = [Placed(k, name, profile, seats[k]) for k, name in enumerate("ab")]
    three = [*placed, Placed(2, "c", profile, seats[2])]
    assert "a loop: " in Cassini().decide(three, topology).notes[0]
    assert Cassini(candidates=2).choose(seats[2:], "c", profile, placed, topology) == 1


def test_the_same_seed_decides_the_same() -> None:
    jobs = [job("one", 50, 60, jitter=0.01), job("two", 70, 60)]
    assert scheduled(jobs).digest == scheduled(jobs).digest
