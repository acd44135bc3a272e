"""Collectives: how long they took, and the bandwidths that nccl-tests would print for them.

algbw is size over time, and busbw scales it so that it can be held against the hardware's bandwidth
whatever the number of ranks (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md):
all-reduce 2(n-1)/n, all-gather, reduce-scatter and all-to-all (n-1)/n, broadcast and send/recv 1. The size
is nccl-tests': for all-gather the gathered whole, which is n times the ``size_bytes`` of
:class:`~cosim.pattern.template.Collective`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.engine.collective_records import kinds
from cosim.engine.records import JobInfo
from cosim.engine.rows import rows_of_kinds
from cosim.pattern.template import Collective
from cosim.results.collective_columns import CollectiveColumns
from cosim.results.sums import exact_sum
from cosim.units import PS_PER_S

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class CollectiveSummary:
    """All collectives of one job with one kind, algorithm, size and group size.

    Times run from the last rank's arrival until the last rank was done; ``wait`` is what lies before, from
    the first arrival to the last. Bandwidths are those of the mean time; None where nothing is carried or
    no time passes.
    """

    job: str
    collective: str
    algorithm: str
    size_bytes: int
    group_size: int
    count: int
    messages: int
    mean_ps: int
    min_ps: int
    max_ps: int
    wait_mean_ps: int
    wait_max_ps: int
    total_ps: int
    algbw_bps: float | None
    busbw_bps: float | None


def bus_factor(collective: str, num_ranks: int) -> float:
    """What to multiply algbw by to get busbw; 0 for a barrier, which carries no data."""
    n = num_ranks
    factor = {
        Collective.ALL_REDUCE: 2 * (n - 1) / n,
        Collective.ALL_GATHER: (n - 1) / n,
        Collective.REDUCE_SCATTER: (n - 1) / n,
        Collective.ALL_TO_ALL: (n - 1) / n,
        Collective.BROADCAST: 1.0,
        Collective.SEND_RECV: 1.0,
        Collective.BARRIER: 0.0,
    }
    return factor[Collective(collective)]


def nccl_size_bytes(collective: str, size_bytes: int, num_ranks: int) -> int:
    """The size that nccl-tests would call this collective's."""
    kind = Collective(collective)
    if kind is Collective.BARRIER:
        return 0
    return size_bytes * num_ranks if kind is Collective.ALL_GATHER else size_bytes


def summarize_collectives(
    columns: CollectiveColumns, jobs: tuple[JobInfo, ...]
) -> tuple[CollectiveSummary, ...]:
    """Group and sum; the kind that took most time in all comes first."""
    if not len(columns):
        return ()
    first, which = kinds(
        columns.job,
        columns.collective.codes,
        columns.algorithm.codes,
        columns.size_bytes,
        columns.group_size,
    )
    parts = zip(columns.job[first].tolist(), rows_of_kinds(which, len(first)), strict=True)
    rows = [(job, _one(columns, part, jobs[job].name)) for job, part in parts]
    rows.sort(key=lambda row: (-row[1].total_ps, row[0], *_kind(row[1])))
    return tuple(row for _, row in rows)


def _kind(one: CollectiveSummary) -> tuple[str, str, int, int]:
    return one.collective, one.algorithm, one.size_bytes, one.group_size


def _one(columns: CollectiveColumns, rows: I64, job: str) -> CollectiveSummary:
    """The summary of one kind, of at least one collective."""
    first = rows[0]
    collective = columns.collective.names[columns.collective.codes[first]]
    algorithm = columns.algorithm.names[columns.algorithm.codes[first]]
    ranks, size_bytes = int(columns.group_size[first]), int(columns.size_bytes[first])
    copies = columns.copies[rows]
    times = columns.end_ps[rows] - columns.ready_ps[rows]
    waits = columns.ready_ps[rows] - columns.start_ps[rows]
    count, total, waited = int(copies.sum()), _total(times, copies), _total(waits, copies)
    size = nccl_size_bytes(collective, size_bytes, ranks)
    algbw = size * 8 * PS_PER_S * count / total if size and total else None
    factor = bus_factor(collective, ranks)
    return CollectiveSummary(
        job=job,
        collective=collective,
        algorithm=algorithm,
        size_bytes=size_bytes,
        group_size=ranks,
        count=count,
        messages=_total(columns.messages[rows], copies),
        mean_ps=_rounded(total, count),
        min_ps=int(times.min()),
        max_ps=int(times.max()),
        wait_mean_ps=_rounded(waited, count),
        wait_max_ps=int(waits.max()),
        total_ps=total,
        algbw_bps=algbw,
        busbw_bps=None if algbw is None else algbw * factor,
    )


def _total(values: I64, copies: I64) -> int:
    """The sum of values, each ``copies`` times, which may leave 64 bits; values are not below 0."""
    return sum(each * exact_sum(values[copies == each]) for each in np.unique(copies).tolist())


def _rounded(total: int, count: int) -> int:
    return (2 * total + count) // (2 * count)
