"""Runs of ranks that compute and access remote memory in turns."""

from __future__ import annotations

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


def run(chains: Sequence[Chain], memory: dict[str, Any], **more: Any) -> cosim.Run:
    """On a ring that carries nothing."""
    scenario = {
        "topology": {"kind": "ring", "endpoints": max(2, len(chains)), "rate": "80Gbps", "latency": "0ns"},
        "network": "fair_share",
        "memory": memory,
        "jobs": [{"workload": workload(chains), **more}],
    }
    found = cosim.run(scenario)
    assert isinstance(found, cosim.Run)
    return found


def load_ends_ns(found: cosim.Run, rank: int) -> list[int]:
    """When a rank's accesses ended."""
    ops = found.records.ops
    mine = (ops.rank == rank) & (ops.op % 2 == 1)
    return [int(end) // 1000 for end in np.sort(ops.end_ps[mine])]
