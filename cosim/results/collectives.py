"""Collectives: how long they took, and the bandwidths that nccl-tests would print for them.

algbw is size over time, and busbw scales it so that it can be held against the hardware's bandwidth
whatever the number of ranks (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md):
all-reduce 2(n-1)/n, all-gather, reduce-scatter and all-to-all (n-1)/n, broadcast and send/recv 1. The size
is nccl-tests': for all-gather the gathered whole, which is n times the ``size_bytes`` of
:class:`~cosim.pattern.template.Collective`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cosim.engine.records import CollectiveRecord, JobInfo
from cosim.pattern.template import Collective
from cosim.units import PS_PER_S


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
    records: Iterable[CollectiveRecord], jobs: tuple[JobInfo, ...]
) -> tuple[CollectiveSummary, ...]:
    """Group and sum; the kind that took most time in all comes first."""
    groups: dict[tuple[int, str, str, int, int], list[CollectiveRecord]] = {}
    for record in records:
        key = (record.job, record.collective, record.algorithm, record.size_bytes, record.group_size)
        groups.setdefault(key, []).append(record)
    rows = [(key, _one(jobs[key[0]].name, group)) for key, group in groups.items()]
    rows.sort(key=lambda row: (-row[1].total_ps, row[0]))
    return tuple(row for _, row in rows)


def _one(job: str, group: list[CollectiveRecord]) -> CollectiveSummary:
    like, count = group[0], sum(record.copies for record in group)
    times = [record.end_ps - record.ready_ps for record in group]
    waits = [record.ready_ps - record.start_ps for record in group]
    total = sum(time * record.copies for time, record in zip(times, group, strict=True))
    waited = sum(wait * record.copies for wait, record in zip(waits, group, strict=True))
    ranks = like.group_size
    size = nccl_size_bytes(like.collective, like.size_bytes, ranks)
    algbw = size * 8 * PS_PER_S * count / total if size and total else None
    factor = bus_factor(like.collective, ranks)
    return CollectiveSummary(
        job=job,
        collective=like.collective,
        algorithm=like.algorithm,
        size_bytes=like.size_bytes,
        group_size=ranks,
        count=count,
        messages=sum(record.messages * record.copies for record in group),
        mean_ps=_rounded(total, count),
        min_ps=min(times),
        max_ps=max(times),
        wait_mean_ps=_rounded(waited, count),
        wait_max_ps=max(waits),
        total_ps=total,
        algbw_bps=algbw,
        busbw_bps=None if algbw is None else algbw * factor,
    )


def _rounded(total: int, count: int) -> int:
    return (2 * total + count) // (2 * count)
