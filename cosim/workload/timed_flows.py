"""Flows that start at given times as a workload: a SEND and a RECV each, and a wait where that isn't 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from cosim.files.import_report import ReportBuilder
from cosim.workload.by_rank import NOTHING, NOTHING_IS_INVENTED, program_names
from cosim.workload.program import NO_STREAM, DeviceMesh, Operation, OpKind, Workload
from cosim.workload.table import I32, I64, OperationTable

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
        count, waits = len(self), self.start_ps > 0
        busy = np.bincount(np.concatenate([self.src, self.dst]), minlength=num_ranks) > 0
        program_of = _numbers(busy)
        report.invented(NOTHING_IS_INVENTED, int((~busy).sum()))
        # Three rows a flow: wait, SEND, RECV. Those of a rank stay in this order.
        like = np.tile(np.array([_WAIT, _SEND, _RECV], np.int32), count)
        flow = np.repeat(np.arange(count), 3)
        program = program_of[np.stack([self.src, self.src, self.dst], axis=1).ravel()]
        kept = (like != _WAIT) | np.repeat(waits, 3)
        if not busy.all():  # a rank that does nothing has a computation of 0
            like, flow = np.append(like, np.int32(_NOTHING)), np.append(flow, 0)
            program, kept = np.append(program, program_of[(~busy).argmax()]), np.append(kept, True)
        rows = np.flatnonzero(kept)
        rows = rows[np.argsort(program[rows], kind="stable")]
        like, flow = like[rows], flow[rows]
        lengths = np.bincount(program[rows], minlength=int(program_of.max(initial=-1)) + 1)
        table = OperationTable(
            _PROTOTYPES,
            like,
            first=np.concatenate([[0], np.cumsum(lengths)]),
            names=_Names(count),
            name=np.choose(like, [flow + count, flow, flow, np.full_like(flow, 2 * count)]),
            duration_ps=np.where(like == _WAIT, _at(self.start_ps, flow), 0),
            size_bytes=np.where((like == _SEND) | (like == _RECV), _at(self.size_bytes, flow), 0),
            peer=np.choose(like, [_NONE, _at(self.dst, flow), _at(self.src, flow), _NONE]),
            tag=np.where((like == _SEND) | (like == _RECV), _at(self._tags(num_ranks), flow), 0),
            deps=_deps(like, lengths),
        )
        names = program_names(np.unique(program_of, return_index=True)[1].tolist())
        mesh = DeviceMesh({"rank": num_ranks})
        return Workload(name, mesh, table.programs(names), program_of, report.build())

    def _tags(self, num_ranks: int) -> I64:
        """How many flows of the same pair stand before each."""
        pair = self.src * num_ranks + self.dst
        order = np.argsort(pair, kind="stable")
        place = np.arange(len(pair))
        fresh = np.diff(pair[order], prepend=_NONE) != 0
        tags = np.empty(len(pair), np.int64)
        tags[order] = place - np.maximum.accumulate(np.where(fresh, place, 0))
        return tags


_NONE = np.int64(-1)


@dataclass(frozen=True, slots=True)
class _Names(Sequence[str]):
    """Of so many flows, then of their waits, then of nothing; made when they are asked for."""

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


def _at(column: I64, flow: I64) -> I64:
    """The column's value for each row; the row of no flow, where there are none at all, has 0."""
    return column[flow] if len(column) else np.zeros(len(flow), np.int64)


def _numbers(busy: NDArray[np.bool_]) -> I32:
    """int32[ranks]: the number of each rank's program, in order of first ranks; idle ranks share one."""
    fresh = busy.copy()
    if not busy.all():
        fresh[(~busy).argmax()] = True
    numbers = (np.cumsum(fresh) - 1).astype(np.int32)
    numbers[~busy] = numbers[(~busy).argmax()]
    return numbers


def _deps(like: I32, lengths: I64) -> tuple[I64, I64]:
    """A SEND right behind its wait depends on it."""
    waits = np.zeros(len(like), np.bool_)
    waits[1:] = like[:-1] == _WAIT
    own = np.arange(len(like)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.concatenate([[0], np.cumsum(waits)]), own[waits] - 1
