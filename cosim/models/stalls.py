"""What hosts that stand still now and then cost an iteration: what their GPUs' queues don't hide.

A host stops for a while (Python's garbage collector, the operating system), and its GPU goes on with what it
has been given. Stops come at random and last exponentially long: where what is issued keeps the GPU busy for
another ``queued``, a stop of ``length`` on average keeps it waiting for ``length * exp(-queued / length)``.
All other ranks wait for the one that stands still, each for all others in turn, as rarely as they do.

What is queued follows from a rank's operations, with collectives and messages taking no time: the host stops
where it waits for the GPU (for counts that it reads, or until it may gather parameters), and at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import exp

from cosim.workload.program import COMPUTE_STREAM, CPU_STREAM, Program

_DIGITS = 9
"""Digits kept of the fraction: exponentials differ in their last digits between machines."""


def seen(programs: Iterable[Program], length_ps: int) -> float:
    """The fraction of hosts' stops for which GPUs wait, 0 to 1.

    ``length_ps``: of a stop, on average; 0: as if nothing hid it.
    """
    if not length_ps:
        return 1.0
    waited, whole = 0.0, 0
    for program in programs:
        now = until = 0  # what is issued by now lasts until then
        for issued, ended in _issued(program):
            waited += _behind(now, min(issued, until), until, length_ps)
            waited += max(issued - max(now, until), 0)  # with nothing to do
            now, until = max(now, issued), ended
        waited += _behind(now, until, until, length_ps)
        whole += until
    return round(waited / whole, _DIGITS) if whole else 1.0


def _behind(now: int, then: int, until: int, length_ps: int) -> float:
    """What isn't hidden of stops that begin between now and then, summed over that time, in picoseconds."""
    if then <= now:
        return 0.0
    return length_ps * (exp((then - until) / length_ps) - exp((now - until) / length_ps))


def _issued(program: Program) -> Iterator[tuple[int, int]]:
    """When the host has issued each computation, and when the GPU ends it; both in their order."""
    free = dict.fromkeys((CPU_STREAM, COMPUTE_STREAM), 0)
    ends: list[int] = []
    for one in program.operations:
        start = max((ends[dep] for dep in one.deps), default=0)
        if one.stream not in free:
            ends.append(start)
            continue
        free[one.stream] = max(start, free[one.stream]) + one.duration_ps
        ends.append(free[one.stream])
        if one.stream == COMPUTE_STREAM:
            yield free[CPU_STREAM], free[COMPUTE_STREAM]
