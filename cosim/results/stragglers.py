"""Stragglers: ranks that arrive last at collectives while others already wait."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import Records
from cosim.engine.rows import rows_of_kinds
from cosim.results.collective_columns import CollectiveColumns
from cosim.results.optable import OpTable
from cosim.workload.program import OpKind

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Straggler:
    """``times_last``: collectives that it was (among) the last to reach, of those whose ranks didn't all
    arrive together; ``waited_ps``: how long their first ranks waited, summed.
    """

    rank: int
    endpoint: int
    times_last: int
    waited_ps: int


def find_stragglers(
    records: Records, table: OpTable, collectives: CollectiveColumns, count: int = 3
) -> list[tuple[Straggler, ...]]:
    """The ``count`` ranks of each job that others waited longest for.

    The last to arrive is found by time: a rank of the group that began a collective at the instant at
    which the group was complete. Operation numbers can't say, since programs number differently.
    """
    if records.recorded is not None:
        return [()] * len(records.jobs)
    late = np.flatnonzero(collectives.ready_ps > collectives.start_ps)
    begun = np.flatnonzero(table.is_kind(OpKind.COLLECTIVE)[table.rows(records.ops)])
    jobs = len(records.jobs)
    waited = rows_of_kinds(collectives.job[late], jobs)
    known = rows_of_kinds(records.ops.job[begun], jobs)
    return [
        _of_job(records, collectives, job, late[waited[job]], begun[known[job]], count) for job in range(jobs)
    ]


def _of_job(
    records: Records, collectives: CollectiveColumns, job: int, late: I64, begun: I64, count: int
) -> tuple[Straggler, ...]:
    """Stragglers of one job: ``late`` are its collectives that ranks waited for, ``begun`` its ranks' own."""
    if not len(late):
        return ()
    ranks, sizes = collectives.ranks(late)
    ready = collectives.ready_ps[late]
    wait = np.repeat(ready - collectives.start_ps[late], sizes)

    ops = records.ops
    instants, moment = np.unique(ready, return_inverse=True)
    start = ops.start_ps[begun]
    place = np.minimum(np.searchsorted(instants, start), len(instants) - 1)
    on_time = instants[place] == start
    world = len(records.jobs[job].endpoints)
    arrivals = place[on_time] * world + ops.rank[begun[on_time]]
    last = np.isin(np.repeat(moment, sizes) * world + ranks, arrivals)

    times = np.bincount(ranks[last], minlength=world)
    waited = np.zeros(world, np.int64)
    np.add.at(waited, ranks[last], wait[last])
    order = np.lexsort((np.arange(world), -times, -waited))[:count]
    endpoints, names = records.jobs[job].endpoints, records.jobs[job].rank_numbers
    return tuple(
        Straggler(int(names[r]), int(endpoints[r]), int(times[r]), int(waited[r])) for r in order if times[r]
    )
