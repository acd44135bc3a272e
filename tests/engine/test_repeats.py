"""What repeats is not computed again, and comes out as if it were: records, links, digests."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cosim
from cosim.engine.records import Records
from cosim.engine.replay import Replay
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


def everything(one: World, monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(Replay, "_why_simulated", lambda _: "a test says so")
        return tried(by_kernel, one)


def assert_same_statistics(one: Records, other: Records) -> None:
    assert one.info["advances"] == other.info["advances"]
    assert one.links.bin_ps == other.links.bin_ps
    assert np.array_equal(one.links.link_bytes, other.links.link_bytes)
    assert np.array_equal(one.links.busy_ps, other.links.busy_ps)
    assert np.array_equal(one.fct.counts, other.fct.counts)
    assert one.fct.sum_ps == other.fct.sum_ps
    assert one.traffic.bin_ps == other.traffic.bin_ps
    assert np.array_equal(one.traffic.size_bytes, other.traffic.size_bytes)
    for mine, theirs in zip(one.finish_ps, other.finish_ps, strict=True):
        assert np.array_equal(mine, theirs)


def assert_repeats(seeds: range, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many worlds had something to repeat."""
    found = 0
    for seed in seeds:
        one = long_world(seed)
        repeated, simulated = tried(by_kernel, one), everything(one, monkeypatch)
        assert said(repeated) == said(simulated), seed
        if isinstance(repeated, Records) and isinstance(simulated, Records):
            assert_same_records(repeated, simulated)
            assert_same_statistics(repeated, simulated)
            found += sum(repeated.info["repeated"]) > 0
    return found


def test_random_worlds_come_out_as_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert assert_repeats(range(20), monkeypatch) > 2


@pytest.mark.slow
def test_many_random_worlds_come_out_as_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert assert_repeats(range(1000, 1300), monkeypatch) > 40


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
