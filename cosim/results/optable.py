"""Operations of all programs of all jobs, as columns that operation records index."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import OpRecords, Records
from cosim.workload.program import COMMUNICATION as PHASE
from cosim.workload.program import CPU_STREAM, OpKind
from cosim.workload.table import OperationTable

I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

COMPUTE = 0
"""Layer: a computation or memory access of the accelerator."""
COMMUNICATION = 1
"""Layer: a collective, send or receive, from the rank's arrival until the rank is done."""
HOST = 2
"""Layer: a computation on the CPU stream, which neither computes for the model nor hides communication."""
REMOTE = 3
"""Layer: a load from or store to remote memory, from when it is asked for until it is done."""

_CODE = {kind.value: code for code, kind in enumerate(OpKind)}
_IS_COMMUNICATION = np.array(
    [kind in (OpKind.COLLECTIVE, OpKind.SEND, OpKind.RECV) for kind in OpKind], np.bool_
)


@dataclass(frozen=True, eq=False)
class OpTable:
    """One row for each operation of each program; ``rank_base[j]`` is where job j's ranks start, jobs after
    each other, so that ``rank_base[job] + rank`` numbers all ranks of the run.

    Attributes
    ----------
    layer, kind
        int8 per row: ``COMPUTE``, ``COMMUNICATION``, ``HOST`` or ``REMOTE``; position in ``OpKind``.
    num_layers
        One more than the last layer that any row is in.
    duration_ps
        int64 per row: how long its computation takes, or its access holds a memory, where nobody slows it.
    stream
        int32 per row: position in ``streams``.
    first
        int64 per rank of the run: the row of its program's operation 0.
    """

    layer: I8
    kind: I8
    stream: I32
    streams: tuple[str, ...]
    rank_base: I64
    first: I64
    duration_ps: I64

    @property
    def num_layers(self) -> int:
        """See above."""
        return 1 + max(HOST, int(self.layer.max(initial=0)))

    @property
    def num_ranks(self) -> int:
        """Ranks of the run, all jobs together."""
        return int(self.rank_base[-1])

    def ranks(self, ops: OpRecords) -> I64:
        """Rank of the run of each record."""
        return np.asarray(self.rank_base[ops.job] + ops.rank, np.int64)

    def rows(self, ops: OpRecords) -> I64:
        """Row of this table of each record."""
        return np.asarray(self.first[self.ranks(ops)] + ops.op, np.int64)

    def is_kind(self, kind: OpKind) -> NDArray[np.bool_]:
        """Rows of one kind."""
        return np.asarray(self.kind == _CODE[kind.value], np.bool_)


def _stands_for_some(table: OperationTable) -> NDArray[np.bool_]:
    """Computations that stand for communication of a known time, bool[rows]."""
    found = [one.kind is OpKind.COMPUTE and one.phase == PHASE for one in table.prototypes]
    return np.array(found, np.bool_)[table.like]


def op_table(records: Records) -> OpTable:
    """The table of a run's jobs."""
    tables = [job.workload.table for job in records.jobs]
    streams: dict[str, int] = {}
    numbers = [
        np.array([streams.setdefault(name, len(streams)) for name in table.streams], np.int32)[table.stream]
        for table in tables
    ]
    base = np.cumsum([0, *map(len, tables)])
    firsts = [
        at + table.first[job.workload.program_of]
        for at, table, job in zip(base, tables, records.jobs, strict=False)
    ]
    kind = np.concatenate([np.zeros(0, np.int8), *(table.kind for table in tables)])
    stream = np.concatenate([np.zeros(0, np.int32), *numbers])
    layer = np.where(_IS_COMMUNICATION[kind], COMMUNICATION, COMPUTE).astype(np.int8)
    host = [number for name, number in streams.items() if name.split(" ")[0] == CPU_STREAM]  # "cpu thread 1"
    on_host = (kind == _CODE[OpKind.COMPUTE.value]) & np.isin(stream, host)
    layer[on_host] = HOST
    layer[np.concatenate([np.zeros(0, np.bool_), *(_stands_for_some(table) for table in tables)])] = (
        COMMUNICATION
    )
    layer[np.concatenate([np.zeros(0, np.bool_), *(table.is_access for table in tables)])] = REMOTE
    sizes = [job.workload.world_size for job in records.jobs]
    return OpTable(
        layer=layer,
        kind=kind,
        stream=stream,
        streams=tuple(streams),
        rank_base=np.concatenate([np.zeros(1, np.int64), np.cumsum(np.array(sizes, np.int64))]),
        first=np.concatenate(firsts) if firsts else np.zeros(0, np.int64),
        duration_ps=np.concatenate([np.zeros(0, np.int64), *(table.duration_ps for table in tables)]),
    )
