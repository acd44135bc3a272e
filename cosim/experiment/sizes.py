"""How large a scenario would be: what needs more memory than there is, or hours, is refused beforehand.

Estimates of a run on one core (``python -m tests.lab.benchmarks.unfolded``, ``scale``), right within a factor
of three or so: a mistake in a size is beyond the limits by more than that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from cosim.engine.records import JobInfo
from cosim.errors import InputError
from cosim.units import PS_PER_S, format_size, format_time

LONGEST_S = 4 * 3600.0
"""What would take longer is refused."""
_MOST = 10**18
"""What is beyond it counts as so many."""

PER_LINK = 300.0, 3e-6
PER_OPERATION_BUILT = 800.0, 20e-6
PER_OPERATION_RUN = 150.0, 2e-6
"""Bytes and seconds of one: a link, an operation of a program, an operation that a rank does."""

_allowed: ContextVar[bool] = ContextVar("allow_large", default=False)


@contextmanager
def allowing_large(allow: bool) -> Iterator[None]:
    """Let through what would be refused, if ``allow``."""
    before = _allowed.set(allow or _allowed.get())
    try:
        yield
    finally:
        _allowed.reset(before)


def is_large_allowed() -> bool:
    """Whether large ones are let through here."""
    return _allowed.get()


def memory_bytes() -> int:
    """Memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_size(count: int, what: str, per_one: tuple[float, float]) -> None:
    """Refuse ``count`` of ``what``, where that takes more than the machine's memory or :data:`LONGEST_S`.

    Raises
    ------
    InputError
        Says how many, how much, how long, and how to do it all the same.
    """
    if _allowed.get():
        return
    # A batch of 400 digits is refused as one of 18 is, and has no floating-point number.
    count = min(count, _MOST)
    memory, seconds = count * per_one[0], count * per_one[1]
    have = memory_bytes()
    if memory <= have and seconds <= LONGEST_S:
        return
    takes = f"about {format_size(memory)} of memory and {format_time(round(seconds * PS_PER_S))}"
    limits = f"this machine has {format_size(have)}, and {LONGEST_S / 3600:g} h are let pass"
    raise InputError(
        f"about {count:.3g} {what} would take {takes}: {limits}",
        hint="with --allow-large (in Python allow_large=True) it is tried all the same",
    )


def check_run(jobs: Sequence[JobInfo]) -> None:
    """Refuse more operations than a run can do: those of all simulated ranks and iterations.

    Raises
    ------
    InputError
        See :func:`check_size`.
    """
    total = 0
    for job in jobs:
        lengths = np.diff(job.workload.table.first).astype(np.float64)
        ranks = np.bincount(job.workload.program_of, minlength=len(lengths))
        total += int(lengths @ ranks) * job.iterations
    check_size(total, "operations", PER_OPERATION_RUN)
