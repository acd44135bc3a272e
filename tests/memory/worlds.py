"""Runs of ranks that compute and access remote memory in turns."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

import cosim
from tests.memory.astra_rules import Chain


def workload(chains: Sequence[Chain]) -> cosim.Workload:
    """A rank for each chain: it computes (ns), then loads (bytes), and so on."""
    programs = []
    for number, chain in enumerate(chains):
        ops: list[cosim.Operation] = []
        for compute_ns, size in chain:
            before = (len(ops) - 1,) if ops else ()
            ops.append(
                cosim.Operation("compute", cosim.OpKind.COMPUTE, deps=before, duration_ps=compute_ns * 1000)
            )
            after = (len(ops) - 1,)
            ops.append(
                cosim.Operation("load", cosim.OpKind.MEMORY, "memory", after, size_bytes=size, access="load")
            )
        programs.append(cosim.Program(f"rank {number}", tuple(ops)))
    mesh = cosim.DeviceMesh({"rank": len(chains)})
    return cosim.Workload("chains", mesh, tuple(programs), np.arange(len(chains), dtype=np.int32))


def scenario(chains: Sequence[Chain], memory: dict[str, Any], **more: Any) -> cosim.Scenario:
    """On a ring that carries nothing."""
    return cosim.Scenario.model_validate(
        {
            "topology": {
                "kind": "ring", "endpoints": max(2, len(chains)), "rate": "80Gbps", "latency": "0ns",
            },
            "network": "fair_share",
            "memory": memory,
            "jobs": [{"workload": workload(chains), **more}],
        }
    )  # fmt: skip


def run(chains: Sequence[Chain], memory: dict[str, Any], **more: Any) -> cosim.Run:
    """What comes of it."""
    found = cosim.run(scenario(chains, memory, **more))
    assert isinstance(found, cosim.Run)
    return found


def random_chains(draw: random.Random, tick_ns: int = 1) -> list[Chain]:
    """Seven ranks that compute for up to 10 ms, in whole ticks, and load up to 3 GB, up to eight times."""
    most = 10**7 // tick_ns
    return [
        [
            (draw.randrange(1, most) * tick_ns, draw.randrange(1, 3 * 10**9))
            for _ in range(draw.randrange(1, 9))
        ]
        for _ in range(7)
    ]


def load_ends_ns(found: cosim.Run, rank: int) -> list[int]:
    """When a rank's accesses ended."""
    ops = found.records.ops
    mine = (ops.rank == rank) & (ops.op % 2 == 1)
    return [int(end) // 1000 for end in np.sort(ops.end_ps[mine])]
