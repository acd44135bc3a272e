"""Flows that start at given times as a workload: a SEND and a RECV each, and a wait where that isn't 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from cosim.files.import_report import ReportBuilder
from cosim.network.flows import I64, before_in_pair
from cosim.workload.by_rank import NOTHING, NOTHING_IS_ASSUMED, program_names
from cosim.workload.program import NO_STREAM, DeviceMesh, Operation, OpKind, Workload
from cosim.workload.table import OperationTable, TablePrograms

_WAIT, _SEND, _RECV, _NOTHING = range(4)
_PROTOTYPES = (
    Operation("wait", OpKind.COMPUTE, NO_STREAM),
    Operation("flow", OpKind.SEND, NO_STREAM),
    Operation("flow", OpKind.RECV, NO_STREAM),
    NOTHING,
)


@dataclass(frozen=True, eq=False, slots=True)
class TimedFlows:
    """Columns, int64[flows]: ranks, bytes, picoseconds."""

    src: I64
    dst: I64
    size_bytes: I64
    start_ps: I64

    def __len__(self) -> int:
        return len(self.src)

    def workload(self, name: str, num_ranks: int, report: ReportBuilder) -> Workload:
        """A program for each rank that sends or receives, in the order of flows, and one for all others.

        The n-th flow of a pair of ranks has tag n. Operations are named ``flow k`` and ``wait k``.
        """
        busy = np.zeros(num_ranks, np.bool_)
        busy[self.src] = busy[self.dst] = True
        idle = np.flatnonzero(~busy)
        report.assumed(NOTHING_IS_ASSUMED, len(idle))
        begins = np.union1d(np.flatnonzero(busy), idle[:1])  # the first rank of each program
        program_of = np.full(num_ranks, np.searchsorted(begins, idle[0]) if len(idle) else 0, np.int32)
        program_of[busy] = np.searchsorted(begins, np.flatnonzero(busy))
        programs = TablePrograms(self._table(program_of, idle[:1]), program_names(begins.tolist()))
        return Workload(name, DeviceMesh({"rank": num_ranks}), programs, program_of, report.build())

    def _table(self, program_of: np.ndarray, idle: I64) -> OperationTable:
        """All operations as columns; ``idle``: the rank, if any, whose program does nothing."""
        count = len(self)
        # Each flow has a wait, a SEND and a RECV, in this order. Waits of 0 are left out.
        rank = np.append(np.stack([self.src, self.src, self.dst], axis=1).ravel(), idle)
        like = np.append(np.tile([_WAIT, _SEND, _RECV], count), np.full(len(idle), _NOTHING))
        flow = np.append(np.repeat(np.arange(count), 3), np.full(len(idle), count))
        kept = np.ones(len(rank), np.bool_)
        kept[: 3 * count : 3] = self.start_ps > 0
        program = program_of[rank[kept]]
        order = np.flatnonzero(kept)[np.argsort(program, kind="stable")]
        like, flow = like[order], flow[order]
        rows = np.bincount(program, minlength=int(program_of.max(initial=-1)) + 1)
        first = np.append(0, np.cumsum(rows))

        def of_flow(column: I64, *kinds: int, other: int = 0) -> I64:
            return np.where(np.isin(like, kinds), np.append(column, other)[flow], other)

        # A SEND right behind its wait depends on it.
        waits = np.append(False, like[:-1] == _WAIT) & (like == _SEND)
        number = np.arange(len(like)) - np.repeat(first[:-1], rows)
        which = np.where(like == _NOTHING, 2 * count, np.where(like == _WAIT, flow + count, flow))
        peer = np.where(like == _SEND, of_flow(self.dst, _SEND, other=-1), of_flow(self.src, _RECV, other=-1))
        return OperationTable(
            _PROTOTYPES,
            like,
            first=first,
            names=_Names(count),
            name=which,
            duration_ps=of_flow(self.start_ps, _WAIT),
            size_bytes=of_flow(self.size_bytes, _SEND, _RECV),
            peer=peer,
            tag=of_flow(before_in_pair(self.src, self.dst, np.ones(len(self.src), np.int64)), _SEND, _RECV),
            deps=(np.append(0, np.cumsum(waits)), number[waits] - 1),
        )


@dataclass(frozen=True, slots=True)
class _Names(Sequence[str]):
    """Names of so many flows, then of their waits, then of nothing. Each is made when it is asked for."""

    flows: int

    def __len__(self) -> int:
        return 2 * self.flows + 1

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[str, ...]: ...
    def __getitem__(self, number: int | slice) -> str | tuple[str, ...]:
        if isinstance(number, slice):
            return tuple(self[k] for k in range(*number.indices(len(self))))
        number = range(len(self))[number]
        if number == 2 * self.flows:
            return NOTHING.name
        return f"flow {number}" if number < self.flows else f"wait {number - self.flows}"
