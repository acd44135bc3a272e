"""Launches that can't delay anything, taken out of a program.

The host issues operator after operator; the GPU runs what was issued. The host is ahead of the GPU at
computation k whatever else the GPU waits for, if the launches after the first, up to k's, take no longer than
the computations before k. Where that holds for every k, only the first launch can be waited for, and the
others are left out: every time stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cosim.workload.program import COMPUTE_STREAM, CPU_STREAM, Operation


def without_idle_launches(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """The operations, without launches after the first where none of them can be waited for."""
    launches = [number for number, op in enumerate(operations) if op.stream == CPU_STREAM]
    if not launches or _waits(operations):
        return tuple(operations)
    dropped = set(launches[1:])
    place: dict[int, int] = {}
    kept: list[Operation] = []
    for number, operation in enumerate(operations):
        if number in dropped:
            continue
        place[number] = len(kept)
        deps = tuple(place[dep] for dep in operation.deps if dep not in dropped)
        kept.append(replace(operation, deps=deps))
    return tuple(kept)


def _waits(operations: Sequence[Operation]) -> bool:
    """Whether the GPU may ever wait for a launch after the first."""
    issued = computed = 0
    first = True
    for operation in operations:  # a launch stands right before the computation that it is of
        if operation.stream == CPU_STREAM:
            if not first:
                issued += operation.duration_ps
            first = False
        elif operation.stream == COMPUTE_STREAM:
            if issued > computed:
                return True
            computed += operation.duration_ps
    return False
