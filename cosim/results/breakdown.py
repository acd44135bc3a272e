"""Where each rank's time went: compute, communication, exposed communication, memory, host, idle.

``compute``, ``exposed``, ``memory_alone``, ``host_alone`` and ``idle`` add up to the rank's span (its
job's start until its last operation ended). A collective, send or receive counts as communication from the
rank's arrival until the rank is done, so waiting for a late peer is communication, as a profiler on a GPU
shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import OpRecords, Records
from cosim.results.intervals import time_in_states
from cosim.results.optable import COMMUNICATION, COMPUTE, HOST, REMOTE, OpTable
from cosim.results.sums import ExactSums
from cosim.workload.program import NO_STREAM, OpKind

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
_MOST_AT_ONCE = 1 << 17
"""Operations: columns of as many stay in the cache, where larger ones would be new pages each time."""


@dataclass(frozen=True, eq=False)
class Breakdown:
    """int64 columns, one value for each rank of the run (job after job), in picoseconds. Of a rank whose
    operations were not recorded, only the span says something.

    Attributes
    ----------
    span
        From the job's start until the rank's last operation ended.
    compute
        An accelerator's computation or memory access under way.
    communication
        A collective, send or receive under way, whatever else runs.
    exposed
        Communication under way and no computation of the accelerator.
    exposed_astra
        As ASTRA-sim reports it (``Workload::report``): span less the durations of accelerator
        computations; memory accesses and idle time count as exposed.
    memory_alone
        A load from or store to remote memory under way, no computation of the accelerator and no
        communication: the rank waits for it.
    memory_queued
        How long its accesses waited for others at a shared memory before they were served, all together.
    host_alone
        Only a computation on the CPU stream under way.
    idle
        Nothing under way.
    busiest_stream
        The durations of all computations and memory accesses of the stream that has most of them: the
        rank can't be faster than this, however fast its communication.
    """

    span: I64
    compute: I64
    communication: I64
    exposed: I64
    exposed_astra: I64
    memory_alone: I64
    memory_queued: I64
    host_alone: I64
    idle: I64
    busiest_stream: I64


def break_down(records: Records, table: OpTable) -> Breakdown:
    """Sweep over every operation of every rank."""
    n = table.num_ranks
    bits = table.num_layers
    state = np.zeros((n, 1 << bits), np.int64)
    busiest, astra, queued = np.zeros(n, np.int64), ExactSums(n), ExactSums(n)
    for first, last, ops in _portions(records.ops, table):
        ranks, rows = table.ranks(ops) - first, table.rows(ops)
        layer, duration = table.layer[rows], ops.end_ps - ops.start_ps
        mine = slice(first, last)
        state[mine] = time_in_states(ranks, layer, ops.start_ps, ops.end_ps, last - first, bits)
        counted = table.is_kind(OpKind.COMPUTE)[rows] & (layer == COMPUTE)
        astra.add(ranks[counted] + first, duration[counted])
        remote = layer == REMOTE
        served = remote & (table.duration_ps[rows] > 0)  # how long messages would take alone nobody says
        queued.add(ranks[served] + first, (duration - table.duration_ps[rows])[served])
        duration[remote] = table.duration_ps[rows][remote]  # nobody else need be there
        not_sent = layer != COMMUNICATION
        busiest[mine] = _busiest_stream(table, last - first, table.stream[rows], ranks, duration, not_sent)
    has = [(np.arange(1 << bits) >> bit & 1).astype(bool) for bit in range(REMOTE + 1)]
    compute = state[:, has[COMPUTE]].sum(axis=1)
    exposed = state[:, has[COMMUNICATION] & ~has[COMPUTE]].sum(axis=1)
    memory_alone = state[:, has[REMOTE] & ~has[COMMUNICATION] & ~has[COMPUTE]].sum(axis=1)
    others = has[COMPUTE] | has[COMMUNICATION] | has[REMOTE]
    host_alone = state[:, has[HOST] & ~others].sum(axis=1)
    start = np.repeat([job.start_ps for job in records.jobs], np.diff(table.rank_base)).astype(np.int64)
    finish = np.concatenate(records.finish_ps) if records.finish_ps else np.zeros(0, np.int64)
    # A rank that ended nothing (an empty program, an early interruption) has a span of zero.
    span = np.maximum(finish - start, 0)
    return Breakdown(
        span=span,
        compute=compute,
        communication=state[:, has[COMMUNICATION]].sum(axis=1),
        exposed=exposed,
        exposed_astra=span - astra.total(),
        memory_alone=memory_alone,
        memory_queued=queued.total(),
        host_alone=host_alone,
        idle=span - compute - exposed - memory_alone - host_alone,
        busiest_stream=busiest,
    )


def _portions(ops: OpRecords, table: OpTable) -> Iterator[tuple[int, int, OpRecords]]:
    """(First rank, last rank + 1, their operations), so that a sweep takes little memory beside them."""
    n = table.num_ranks
    if len(ops) <= _MOST_AT_ONCE:
        yield 0, n, ops
        return
    ranks = table.ranks(ops)
    end = np.cumsum(np.bincount(ranks, minlength=n))
    order = np.argsort(
        ranks.astype(np.uint16 if n <= 1 << 16 else np.int64), kind="stable"
    )  # 16 bits: by radix
    del ranks
    first = done = 0
    while first < n:
        last = max(int(np.searchsorted(end, done + _MOST_AT_ONCE, side="right")), first + 1)
        chosen = order[done : int(end[last - 1])]
        yield first, last, OpRecords(*(getattr(ops, each.name)[chosen] for each in fields(ops)))
        first, done = last, int(end[last - 1])


def _busiest_stream(
    table: OpTable, num_ranks: int, stream: I32, ranks: I64, duration: I64, chosen: NDArray[np.bool_]
) -> I64:
    """The largest sum of durations over the streams of each rank.

    Operations without a stream may all run at once, so only the longest of them bounds a rank.
    """
    busy = np.zeros((num_ranks, max(len(table.streams), 1)), np.int64)
    unlimited = stream == (table.streams.index(NO_STREAM) if NO_STREAM in table.streams else -1)
    one = chosen & ~unlimited
    np.add.at(busy, (ranks[one], stream[one]), duration[one])
    many = chosen & unlimited
    np.maximum.at(busy, (ranks[many], stream[many]), duration[many])
    return np.asarray(busy.max(axis=1), np.int64)
