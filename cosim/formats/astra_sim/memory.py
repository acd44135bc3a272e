"""ASTRA-sim's remote memory file: what times MEM_LOAD and MEM_STORE nodes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from cosim.translation.loss_report import LossReport
from cosim.translation.source import Source
from cosim.units import PS_PER_NS
from cosim.workload.program import OpKind

NONE = {"memory-type": "NO_MEMORY_EXPANSION"}


def memory_of(source: Source, report: LossReport) -> dict[str, Any]:
    """A latency and a bandwidth that give every access its duration, to a nanosecond, if there are such."""
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
        bandwidth = float(Fraction(PS_PER_NS) / per_byte)  # bytes a nanosecond are GB/s
    else:
        latency, bandwidth = round(long / PS_PER_NS), 1e9
    wrong = [1 for size, ps in accesses if abs(latency + size / bandwidth - ps / PS_PER_NS) > 1]
    report.approximated("sizes of memory accesses", len(wrong), "timed by one latency and one bandwidth")
    return {
        "memory-type": "PER_NPU_MEMORY_EXPANSION",
        "remote-mem-latency": max(latency, 0),
        "remote-mem-bw": bandwidth,
    }
