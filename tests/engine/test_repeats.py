"""What repeats is not computed again, and comes out as if it were: records, links, digests."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cosim
from cosim.cluster.contract import Queue
from cosim.cluster.sharing import Cluster, Submitted
from cosim.context import Context
from cosim.engine.records import MemoryNodes, Records
from cosim.engine.replay import Replay
from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.network.flows import I32
from cosim.topology.leaf_spine import LeafSpine
from cosim.units import PS_PER_US
from tests.engine.reference import worlds
from tests.engine.reference.test_same_digest import assert_same_records
from tests.engine.reference.worlds import World, by_kernel, by_reference, said, tried, world
from tests.inputs import ROOT

QUICKSTART = ROOT / "scenarios" / "quickstart.yaml"


def long_world(seed: int) -> World:
    """A random world of many iterations, in which ranks take the same time in each."""
    one, draw = world(seed), random.Random(seed)
    common = draw.choice((0, draw.randint(4, 30)))
    jobs = [
        replace(job, iterations=common or draw.randint(1, 30), pace=None, slowdowns=()) for job in one.jobs
    ]
    topology = one.topology if draw.random() < 0.4 else replace(one.topology, changes=None)
    return replace(one, jobs=tuple(jobs), topology=topology, release="network")


def crowd(seed: int) -> World:
    """Up to six jobs on 16 endpoints, most of which have theirs alone; links fail and come back meanwhile."""
    draw = random.Random(seed)
    tree: dict[str, Any] = {"leaves": 4, "spines": 2, "endpoints_per_leaf": 4}
    tree |= {"rate": f"{draw.choice(worlds.RATES)} bps", "latency": f"{draw.choice(worlds.LATENCIES)}ps"}
    tree |= {"oversubscription": draw.choice((1, 2)), "routing": draw.choice(("ecmp", "shortest"))}
    topology = LeafSpine.model_validate(tree).build(Context(seed=seed))
    rate = topology.link_rate_bps[0]
    times = sorted(draw.sample(range(200 * PS_PER_US), 2 * draw.choice((0, 0, 2, 3))))
    links = [draw.randrange(topology.num_links) for _ in times[::2]]
    slower = [LinkChange(time, link, rate / 2) for time, link in zip(times[::2], links, strict=True)]
    again = [LinkChange(time, link, rate) for time, link in zip(times[1::2], links, strict=True)]
    free, jobs = draw.sample(range(16), 16) if draw.random() < 0.5 else [*range(16)], []
    for number in range(draw.randint(2, 6)):
        job = worlds.job(draw, topology, number)
        size = len(job.endpoints)
        mine, free = (free[:size], free[size:]) if size <= len(free) else (draw.sample(range(16), size), free)
        job = replace(job, endpoints=np.array(mine, np.int32), start_ps=draw.choice((0, 20 * PS_PER_US)))
        nodes = MemoryNodes(np.roll(np.arange(16, dtype=np.int32), 1), 0, 64)
        job = replace(job, iterations=draw.randint(5, 60), pace=None, slowdowns=())
        jobs.append(replace(job, devices=None, memory_nodes=nodes))
    topology = replace(topology, changes=LinkChanges(sorted(slower + again), 0) if times else None)
    network, collectives = draw.choice(worlds.NETWORKS), worlds.collectives(draw)
    return World(topology, tuple(jobs), collectives, network, "network")


def in_a_queue(one: World) -> Records:
    """Jobs of a world get what is free when it is their turn."""

    def candidates(job: int, free: I32, _: int) -> list[I32]:
        size = len(one.jobs[job].endpoints)
        return [np.ascontiguousarray(free[:size])] if size <= len(free) else []

    submitted = [Submitted(job.name, job.endpoints) for job in one.jobs]
    return by_kernel(one, Cluster(submitted, one.topology, Queue(backfill=True), None, candidates))


def everything(one: World, monkeypatch: pytest.MonkeyPatch, how: Any = by_kernel) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(Replay, "_why_simulated", lambda _: "a test says so")
        return tried(how, one)


def assert_same_statistics(one: Records, other: Records) -> None:
    assert one.info["advances"] <= other.info["advances"]  # while a job repeats, its network is not asked
    assert one.links.bin_ps == other.links.bin_ps
    assert np.array_equal(one.links.link_bytes, other.links.link_bytes)
    assert np.array_equal(one.links.busy_ps, other.links.busy_ps)
    assert np.array_equal(one.fct.counts, other.fct.counts)
    assert one.fct.sum_ps == other.fct.sum_ps
    assert one.traffic.bin_ps == other.traffic.bin_ps
    assert np.array_equal(one.traffic.size_bytes, other.traffic.size_bytes)
    for mine, theirs in zip(one.finish_ps, other.finish_ps, strict=True):
        assert np.array_equal(mine, theirs)


def assert_repeats(
    worlds: Iterable[World], monkeypatch: pytest.MonkeyPatch, how: Any = by_kernel
) -> list[int]:
    """How many jobs of each world had something to repeat, where one had."""
    found = []
    for seed, one in enumerate(worlds):
        repeated, simulated = tried(how, one), everything(one, monkeypatch, how)
        assert said(repeated) == said(simulated), seed
        if isinstance(repeated, Records) and isinstance(simulated, Records):
            assert_same_records(repeated, simulated)
            assert_same_statistics(repeated, simulated)
            found.append(int(np.count_nonzero(repeated.info["repeated"])))
    return [jobs for jobs in found if jobs > 0]


def test_random_worlds_come_out_as_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(assert_repeats(map(long_world, range(20)), monkeypatch)) > 2


@pytest.mark.slow
def test_many_random_worlds_come_out_as_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(assert_repeats(map(long_world, range(1000, 1300)), monkeypatch)) > 40


@pytest.mark.parametrize("how", [by_kernel, in_a_queue])
def test_jobs_that_share_nothing_repeat_on_their_own(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = assert_repeats(map(crowd, range(10)), monkeypatch, how)
    assert max(found) > (how is by_kernel)


@pytest.mark.slow
@pytest.mark.parametrize("how", [by_kernel, in_a_queue])
def test_many_jobs_come_out_as_simulated(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(assert_repeats(map(crowd, range(1000, 1100)), monkeypatch, how)) > 10


def test_what_repeats_goes_on_as_before_after_a_link_was_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """After it, iterations begin in the state of before, and later than those that were kept."""
    one = replace(long_world(35), topology=replace(long_world(35).topology, changes=None))
    repeated = by_kernel(one)
    middle, rate = repeated.end_ps // 2, one.topology.link_rate_bps[0]
    changes = [LinkChange(middle, 0, rate / 2), LinkChange(middle + repeated.end_ps // 20, 0, rate)]
    one = replace(one, topology=replace(one.topology, changes=LinkChanges(changes, 0)))
    assert assert_repeats([one], monkeypatch) == [1]


def test_a_queue_repeats_and_nobody_asks_its_director(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cluster, "starts", None)
    settings = {"jobs[0].iterations": 200, "jobs[1].iterations": 100}
    repeated = cosim.run(ROOT / "scenarios" / "cluster-queue.yaml", settings)
    monkeypatch.setattr(Replay, "_why_simulated", lambda _: "a test says so")
    simulated = cosim.run(ROOT / "scenarios" / "cluster-queue.yaml", settings)
    assert sum(job.repeated for job in repeated.summary.jobs) > 2000
    assert repeated.digest == simulated.digest
    assert_same_records(repeated.records, simulated.records)


def test_the_reference_simulates_what_was_repeated() -> None:
    for seed in (11, 19, 24, 26, 35, 52, 55):
        one = long_world(seed)
        repeated = by_kernel(one)
        assert sum(repeated.info["repeated"]) > 0
        assert repeated.digest == by_reference(one).digest, seed


def test_messages_come_out_as_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"jobs[0].iterations": 12, "record.messages": True}
    repeated = cosim.run(QUICKSTART, settings)
    monkeypatch.setattr(Replay, "_why_simulated", lambda _: "a test says so")
    simulated = cosim.run(QUICKSTART, settings)
    assert repeated.summary.jobs[0].repeated > 3
    assert simulated.summary.jobs[0].repeated == 0
    assert repeated.digest == simulated.digest
    mine, theirs = repeated.records.messages, simulated.records.messages
    assert mine is not None
    assert theirs is not None
    for name in ("job", "iteration", "op", "src", "dst", "size_bytes", "start_ps", "end_ps"):
        assert np.array_equal(getattr(mine, name), getattr(theirs, name)), name


def test_a_job_that_comes_and_goes_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = """
    topology: {kind: switch, endpoints: 4, rate: 80Gbps, latency: 1us}
    network: fair_share
    share_endpoints: true
    jobs:
      - workload: {kind: periodic, compute: 3ms, size: 4MB, ranks: 4}
        iterations: 60
      - workload: {kind: periodic, compute: 1ms, size: 8MB, ranks: 4}
        iterations: 5
        start: 100ms
    """
    repeated = cosim.run(scenario)
    monkeypatch.setattr(Replay, "_why_simulated", lambda _: "a test says so")
    simulated = cosim.run(scenario)
    assert 30 < repeated.summary.jobs[0].repeated < 55
    assert repeated.digest == simulated.digest
    assert_same_records(repeated.records, simulated.records)


def test_what_can_not_be_compared_is_simulated_and_said() -> None:
    drawn = cosim.run(QUICKSTART, {"jobs[0].iterations": 60, "jobs[0].jitter": 0.01})
    assert drawn.summary.jobs[0].repeated == 0
    assert "every iteration is simulated: ranks take their own times for it" in str(drawn)
    rounds = cosim.run(
        QUICKSTART, {"jobs[0].iterations": 2, "network": {"model": "congestion", "control": "dctcp"}}
    )
    assert rounds.summary.jobs[0].simulated_because == "states of its network are not compared"
    same = str(cosim.run(QUICKSTART, {"jobs[0].iterations": 60}))
    assert "iterations begin in the state of an earlier one, and are taken from it" in same
