"""Processes have ranks access the scenario's memory, as programs do; and give collectives a priority."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
import simpy

import cosim
from cosim.plugins import DeviceMesh, Operation, OpKind

Proc = Generator[simpy.Event, Any, Any]
RING = {"kind": "ring", "endpoints": 6, "rate": "80Gbps", "latency": "1us"}
MEMORIES = [
    {"kind": "per_npu", "latency": "1us", "rate": "100GB/s"},
    {"kind": "pool", "latency": "1us", "rate": "100GB/s"},
    {"kind": "fabric", "endpoints": [4, 5], "latency": "2us"},
]


@pytest.mark.parametrize("memory", MEMORIES, ids=lambda one: one["kind"])
@pytest.mark.parametrize(
    "network", ["congestion_unaware", "fair_share", {"model": "congestion", "control": "dctcp"}]
)
def test_accesses_are_those_of_a_program(memory: dict[str, Any], network: Any) -> None:
    """Loads, a computation, stores: the digest of a workload whose programs say the same."""
    load, store = (
        Operation(name, OpKind.MEMORY, stream="memory", access=name, size_bytes=size, deps=deps)
        for name, size, deps in (("load", 100_000, ()), ("store", 3_000_000, (1,)))
    )
    compute = Operation("compute", OpKind.COMPUTE, duration_ps=5_000_000, deps=(0,))
    again = Operation("load", OpKind.MEMORY, stream="memory", access="load", size_bytes=100_000, deps=(2,))
    program = cosim.Program("all", (load, compute, store, again))
    programs = cosim.Workload("w", DeviceMesh({"rank": 3}), (program,), np.zeros(3, np.int32))
    scenario = {"topology": RING, "network": network, "memory": memory}
    written = cosim.run({**scenario, "jobs": [{"workload": programs}]})

    def lives(sim: Any, rank: int) -> Proc:
        yield sim.memory(rank, "load", "100kB")
        yield sim.compute(rank, "5us")
        yield sim.memory(rank, "store", "3MB")
        yield sim.memory(rank, "load", "100kB")

    with cosim.open(scenario) as sim:
        for rank in range(3):
            sim.process(lives(sim, rank))
        run = sim.run()
    assert run.digest == written.digest
    assert run.records.end_ps == written.records.end_ps


def test_who_comes_first_to_a_pool_is_served_first() -> None:
    ends: list[int] = []

    def loads(sim: Any, rank: int) -> Proc:
        yield sim.timeout(3 - rank)
        done = yield sim.memory(rank, "load", "100MB")
        ends.append(done.ended_ps)

    with cosim.open({"topology": RING, "network": "fair_share", "memory": MEMORIES[1]}) as sim:
        for rank in range(3):
            sim.process(loads(sim, rank))
        sim.run()
        together: Any = sim.memory([2, 0, 1], "store", "100MB")
        sim.run()
    one = 1_001_000_000  # 1 us, and 100 MB at 100 GB/s
    assert ends == [1 + one, 1 + 2 * one, 1 + 3 * one]
    assert together.value.times == (1 + 6 * one, 1 + 4 * one, 1 + 5 * one)


@pytest.mark.parametrize(
    ("memory", "access", "size", "says"),
    [
        (None, "load", 5, "the scenario has no `memory:`"),
        (MEMORIES[0], "fetch", 5, "no access 'fetch'"),
        (MEMORIES[0], "load", -5, "below zero"),
        (MEMORIES[0], "load", 1 << 61, "would pass the 53 days"),
    ],
)
def test_accesses_that_are_none(memory: Any, access: str, size: int, says: str) -> None:
    scenario = {"topology": RING, "network": "fair_share"}
    made = cosim.open({**scenario, **({"memory": memory} if memory else {})})
    with made as sim, pytest.raises(cosim.CosimError, match=says):
        sim.memory(0, access, size)


def both(sim: Any, priorities: tuple[int | None, int | None], ends: list[int]) -> Proc:
    """Two broadcasts over the link from 1 to 2, begun together."""
    events = [sim.broadcast((src, 2), "10MB", priority=one) for src, one in enumerate(priorities)]
    for event in events:
        done = yield event
        ends.append(done.ended_ps)


def test_a_collective_of_a_higher_priority_goes_first() -> None:
    us, ms = 1_000_000, 1_000_000_000  # 10 MB take a millisecond at 80 Gbps, and each link 1 us more
    found = {}
    for priorities in ((None, None), (0, 1), (1, 0)):
        ends: list[int] = []
        with cosim.open({"topology": RING, "network": "fair_share"}) as sim:
            sim.process(both(sim, priorities, ends))
            sim.run()
        found[priorities] = ends
    assert found == {
        (None, None): [2 * ms + 2 * us, 2 * ms + us],
        (0, 1): [ms + 2 * us, 2 * ms + us],
        (1, 0): [2 * ms + 2 * us, ms + us],
    }


def test_ranks_that_disagree_on_a_priority() -> None:
    with cosim.open({"topology": RING, "network": "fair_share"}) as sim:
        sim.all_reduce(range(2), "1MB", rank=0)
        sim.all_reduce(range(2), "1MB", rank=1, priority=3)
        with pytest.raises(cosim.MismatchError, match="of another priority"):
            sim.run()
        with pytest.raises(cosim.WorkloadError, match="priority -1 is 0 or more"):
            sim.barrier(range(2), priority=-1)
