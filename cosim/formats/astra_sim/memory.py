"""ASTRA-sim's remote memory file: what times MEM_LOAD and MEM_STORE nodes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from cosim.memory.contract import MemorySpec
from cosim.memory.per_node import PerNodeMemory
from cosim.memory.per_npu import PerNpuMemory
from cosim.memory.pool import MemoryPool
from cosim.translation.loss_report import LossReport
from cosim.translation.says import count_operations
from cosim.translation.source import Source
from cosim.units import PS_PER_NS
from cosim.workload.program import OpKind

NONE = {"memory-type": "NO_MEMORY_EXPANSION"}

_GB_PER_S = 8e9
_LARGEST = 2**64 // 10**9
"""GB/s that fit ASTRA-sim's 64 bits once it has made bytes a second of them."""


def memory_of(source: Source, report: LossReport) -> dict[str, Any]:
    """The scenario's memory; without one, a latency and a bandwidth that give every access its duration, to a
    nanosecond, if there are such.
    """
    accesses = count_operations(source, lambda op: op.access != "")
    return _timed(source, report) if not accesses else _named(source, accesses, report)


def _named(source: Source, accesses: int, report: LossReport) -> dict[str, Any]:
    """The scenario's memory by ASTRA-sim's name."""
    memory = source.memory
    assert memory is not None, "what accesses it was timed by it"
    found: dict[str, Any] = {"memory-type": _type(memory)}
    if isinstance(memory, PerNodeMemory):
        npus = memory.npus_of(source.topology)
        found |= {"num-nodes": -(-source.topology.num_endpoints // npus), "num-npus-per-node": npus}
    elif not isinstance(memory, PerNpuMemory | MemoryPool):
        report.approximated("memory", accesses, "as if each endpoint had its own")
    report.approximated("latency of memory", int(memory.latency % PS_PER_NS > 0), "whole nanoseconds")
    known = count_operations(source, lambda op: op.kind is OpKind.MEMORY and not op.access)
    report.approximated("memory accesses of a known duration", known, "timed by the scenario's memory")
    found |= {"remote-mem-latency": round(memory.latency / PS_PER_NS)}
    return found | {"remote-mem-bw": _whole(memory.rate / _GB_PER_S, accesses, report)}


def _type(memory: MemorySpec) -> str:
    if isinstance(memory, MemoryPool):
        return "MEMORY_POOL"
    return "PER_NODE_MEMORY_EXPANSION" if isinstance(memory, PerNodeMemory) else "PER_NPU_MEMORY_EXPANSION"


def _whole(rate: float, accesses: int, report: LossReport) -> int:
    """ASTRA-sim reads its bandwidth into a whole number of GB/s, and divides by it."""
    whole = min(max(round(rate), 1), _LARGEST)
    if whole != rate:
        report.approximated(
            "rate of memory", accesses, f"{whole} GB/s for {rate:g}: ASTRA-sim takes whole ones"
        )
    return whole


def _timed(source: Source, report: LossReport) -> dict[str, Any]:
    """What accesses of known durations are timed by."""
    accesses = sorted(
        {
            (int(op.bytes_moved), op.duration_ps)
            for job in source.jobs
            for program in job.workload.programs
            for op in program.operations
            if op.kind is OpKind.MEMORY
        }
    )
    if not accesses:
        return dict(NONE)
    (small, short), (large, long) = accesses[0], accesses[-1]
    if large > small and long > short:
        per_byte = Fraction(long - short, large - small)
        latency = round((short - small * per_byte) / PS_PER_NS)
        exact = float(Fraction(PS_PER_NS) / per_byte)  # bytes a nanosecond are GB/s
    else:
        latency, exact = round(long / PS_PER_NS), float(_LARGEST)
    bandwidth = _whole(exact, len(accesses), report)
    wrong = [1 for size, ps in accesses if abs(latency + size / bandwidth - ps / PS_PER_NS) > 1]
    report.approximated("sizes of memory accesses", len(wrong), "timed by one latency and one bandwidth")
    return {
        "memory-type": "PER_NPU_MEMORY_EXPANSION",
        "remote-mem-latency": max(latency, 0),
        "remote-mem-bw": bandwidth,
    }
