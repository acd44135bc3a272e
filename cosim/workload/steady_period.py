"""How long an iteration of one rank's program takes, if its operations take the times given."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.workload.program import NO_STREAM, Program

_SETTLED, _LOOKED_AT = 12, 24
"""Iterations after which a period is taken, and up to where."""


def steady_period_ps(program: Program, duration_ps: Sequence[int]) -> float:
    """Picoseconds between iterations in the steady state; ``duration_ps`` is of each operation.

    An operation waits for those before it on its stream, for what it depends on, and for what it depends on
    in earlier iterations.
    """
    operations = program.operations
    ends: list[list[int]] = []
    free: dict[str, int] = {}
    done = []
    for iteration in range(_LOOKED_AT):
        mine: list[int] = []
        for one, duration in zip(operations, duration_ps, strict=True):
            start = max((mine[dep] for dep in one.deps), default=0)
            for dep, lag in one.lagged:
                if lag <= iteration:
                    start = max(start, ends[iteration - lag][dep])
            if one.stream != NO_STREAM:
                start = max(start, free.get(one.stream, 0))
                free[one.stream] = start + duration
            mine.append(start + duration)
        ends.append(mine)
        done.append(max(mine, default=0))
    return (done[-1] - done[_SETTLED - 1]) / (_LOOKED_AT - _SETTLED)
