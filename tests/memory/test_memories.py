"""Remote memory against ASTRA-sim's rules, and what runs say of it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import cosim
from tests.memory.astra_rules import ends_ns, runtime_ns
from tests.memory.worlds import load_ends_ns, random_chains, run

GB = 10**9
RULES: dict[str, tuple[dict[str, Any], Any]] = {
    "pool": ({"kind": "pool"}, lambda _: 0),
    "per_npu": ({"kind": "per_npu"}, lambda _: None),
    "per_node": ({"kind": "per_node", "npus": 3}, lambda rank: rank // 3),
}


@pytest.mark.parametrize(
    ("kind", "ends"),
    [
        ("pool", (10_001_000, 20_002_000, 30_003_000, 40_004_000)),
        ("per_npu", (10_001_000,) * 4),
        ("per_node", (10_001_000, 20_002_000, 30_003_000, 10_001_000)),
    ],
)
def test_four_accesses_of_a_gigabyte_at_once(kind: str, ends: tuple[int, ...]) -> None:
    memory = {**RULES[kind][0], "latency": "1us", "rate": "100GB/s"}
    found = run([[(0, GB)]] * 4, memory)
    assert tuple(end // 1000 for end in found.records.finish_ps[0].tolist()) == ends


@pytest.mark.parametrize("kind", RULES)
def test_chains_of_accesses_end_when_astra_sims_do(kind: str) -> None:
    draw = random.Random(7)
    memory, device_of = RULES[kind]
    for _ in range(8):
        latency, rate = draw.randrange(2000), draw.randrange(1, 500)
        chains = random_chains(draw)
        found = run(chains, {**memory, "latency": f"{latency}ns", "rate": f"{rate}GB/s"})
        assert [load_ends_ns(found, rank) for rank in range(7)] == ends_ns(chains, device_of, latency, rate)


def test_a_duration_is_astra_sims_in_doubles() -> None:
    from cosim.memory.pool import MemoryPool

    draw = random.Random(3)
    for _ in range(2000):
        size, latency, rate = (
            draw.randrange(10 ** draw.randrange(1, 15)),
            draw.randrange(5000),
            draw.randrange(1, 4000),
        )
        memory = MemoryPool.model_validate({"latency": f"{latency}ns", "rate": f"{rate}GB/s"})
        assert memory.duration_ps(size) == runtime_ns(size, latency, rate) * 1000


def test_what_ranks_wait_for_is_said() -> None:
    found = run([[(0, GB)]] * 4, {"kind": "pool", "latency": "1us", "rate": "100GB/s"})
    job = found.summary.jobs[0]
    assert job.memory is not None
    assert (job.memory.accesses, job.memory.size_bytes) == (4, 4 * GB)
    assert job.memory.alone.mean_ps == job.duration_ps * 10 // 16  # 1, 2, 3 and 4 of 4 quarters
    assert [job.memory.queued.min_ps, job.memory.queued.max_ps] == [0, 30_003_000_000]
    assert job.compute.max_ps == 0
    assert job.free_communication_ps == 10_001_000_000
    assert job.limit.startswith("remote memory, 100.0 % of its critical path, most of it load of 1 GB")
    assert "4 accesses to remote memory, 4 GB in all: nothing else goes on for 25 ms" in str(found)


def test_a_straggler_computes_slower_and_reads_as_fast() -> None:
    memory = {"kind": "per_npu", "rate": "100GB/s"}
    slow = run([[(1000, GB)]], memory, stragglers=[{"factor": 3.0, "ranks": [0]}])
    assert slow.records.end_ps == (3 * 1000 + 10**7) * 1000


def test_jobs_share_a_pool_wherever_they_are_put() -> None:
    work = {
        "kind": "operations",
        "world_size": 2,
        "programs": [{"operations": [{"name": "save", "kind": "memory", "size": "1GB", "access": "store"}]}],
    }
    scenario = {
        "topology": {"kind": "switch", "endpoints": 4, "rate": "80Gbps", "latency": "0ns"},
        "network": "fair_share",
        "memory": {"kind": "per_node", "npus": 2, "rate": "100GB/s"},
        "jobs": [{"name": "job", "workload": work, "count": 3}],
    }
    ends = {
        job.name: job.duration_ps for job in cosim.run({**scenario, "queue": {"order": "fifo"}}).summary.jobs
    }
    # Two at once, each on a node of its own; the third on the node that is free first.
    assert set(ends.values()) == {20 * 10**9}
    together = cosim.run({**scenario, "memory": {"kind": "pool", "rate": "100GB/s"}, "share_endpoints": True})
    assert together.records.end_ps == 60 * 10**9


def test_shared_memory_is_not_folded_and_memory_of_ones_own_is() -> None:
    text = """
topology: {kind: ring, endpoints: 8, rate: 80Gbps, latency: 0ns}
network: congestion_unaware
fold: always
memory: {kind: pool, rate: 100GB/s}
jobs:
  - workload:
      kind: operations
      mesh: {dp: 8}
      programs:
        - operations:
            - {name: load, kind: memory, size: 1GB}
            - {name: sum, kind: collective, collective: all_reduce, size: 1MB, deps: [load]}
"""
    with pytest.raises(cosim.ScenarioError, match="ranks wait for each other at shared memory"):
        cosim.run(cosim.loads(text))
    own = cosim.loads(text, {"memory.kind": "per_npu"})
    folded, whole = cosim.run(own), cosim.run(own.with_settings({"fold": "never"}))
    assert folded.records.end_ps == whole.records.end_ps
    assert len(folded.records.finish_ps[0]) < len(whole.records.finish_ps[0])


ONE = {"name": "load", "kind": "memory", "size": "1GB"}


@pytest.mark.parametrize(
    ("memory", "operation", "said"),
    [
        (None, ONE, "the operation 'load' is a load of 1000000000 B, but the scenario has no `memory:`"),
        ({"kind": "pol", "rate": "1GB/s"}, ONE, "there is no memory 'pol'; did you mean 'pool'?"),
        ({"kind": "pool", "rate": "0GB/s"}, ONE, "rate"),
        ({"kind": "pool"}, ONE, "rate"),
        ({"kind": "pool", "rate": "1GB/s", "latency": "-1us"}, ONE, "latency"),
        (
            {"kind": "per_node", "rate": "1GB/s"},
            ONE,
            "has no hosts, so that nobody says which endpoints share",
        ),
        ({"kind": "per_node", "rate": "1GB/s", "npus": 0}, ONE, "npus"),
        ({"kind": "pool", "rate": "1bps"}, ONE, "simulated time would pass"),
        ({"kind": "pool", "rate": "1GB/s"}, {**ONE, "size": "20000000TB"}, "size"),
        ({"kind": "pool", "rate": "1GB/s"}, {**ONE, "duration": "1us"}, "needs either 'size'"),
        ({"kind": "pool", "rate": "1GB/s"}, {"name": "x", "kind": "memory"}, "needs either 'size'"),
        ({"kind": "pool", "rate": "1GB/s"}, {**ONE, "access": "lode"}, "access"),
        (
            {"kind": "pool", "rate": "1GB/s"},
            {"name": "x", "kind": "memory", "duration": "1us", "access": "load"},
            "takes no 'access' without 'size'",
        ),
    ],
)
def test_what_can_not_be_is_refused_in_words(memory: Any, operation: Any, said: str) -> None:
    work = {"kind": "operations", "world_size": 2, "programs": [{"operations": [operation]}]}
    with pytest.raises(cosim.InputError) as caught:
        cosim.run(
            {
                "topology": {"kind": "ring", "endpoints": 2, "rate": "80Gbps", "latency": "0ns"},
                "network": "fair_share",
                "memory": memory,
                "jobs": [{"workload": work}],
            }
        )
    assert said in str(caught.value)


def test_a_memory_that_nobody_uses_is_named() -> None:
    found = run([[]], {"kind": "pool", "rate": "1GB/s"})
    assert any("memory: has no effect: no job loads" in warning for warning in found.warnings)


def test_time_can_not_run_over_while_accesses_queue() -> None:
    chain = [(0, 10**18)]
    with pytest.raises(cosim.SimulationError, match="simulated time would pass"):
        run([chain] * 4, {"kind": "pool", "rate": "230GB/s"})


def test_operations_say_what_they_are_wrong_about() -> None:
    for wrong in (
        cosim.Operation("x", cosim.OpKind.COMPUTE, access="load"),
        cosim.Operation("x", cosim.OpKind.MEMORY, access="read"),
        cosim.Operation("x", cosim.OpKind.MEMORY, access="load", size_bytes=2**63),
    ):
        work = cosim.Workload(
            "w", cosim.DeviceMesh({"r": 2}), (cosim.Program("p", (wrong,)),), np.zeros(2, np.int32)
        )
        with pytest.raises(cosim.InputError, match="access"):
            cosim.run(
                {
                    "topology": {"kind": "ring", "endpoints": 2, "rate": "80Gbps", "latency": "0ns"},
                    "network": "fair_share",
                    "memory": {"kind": "pool", "rate": "1GB/s"},
                    "jobs": [{"workload": work}],
                }
            )
