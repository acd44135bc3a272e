"""Flows that start at given times as a workload: a SEND and a RECV each, and a wait where that isn't 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from cosim.files.import_report import ReportBuilder
from cosim.network.channels import pair_hash
from cosim.network.flows import I32, I64
from cosim.network.jit import compiled
from cosim.workload.by_rank import NOTHING, NOTHING_IS_INVENTED, program_names
from cosim.workload.program import NO_STREAM, DeviceMesh, Operation, OpKind, Workload
from cosim.workload.table import OperationTable, TablePrograms

_WAIT, _SEND, _RECV, _NOTHING = range(4)
_NUM_COUNTS = 5
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
        programs = TimedPrograms(self, num_ranks)
        report.invented(NOTHING_IS_INVENTED, programs.num_idle)
        mesh = DeviceMesh({"rank": num_ranks})
        return Workload(name, mesh, programs, programs.program_of, report.build())


class TimedPrograms(TablePrograms):
    """The programs of ranks that do nothing but send and receive such flows; their table is made when it is
    asked for.

    Attributes
    ----------
    program_of
        int32[ranks]: the number of each one's program.
    num_waits, num_idle
        How many flows don't start at 0, and ranks that do nothing.
    most_bytes, last_start_ps
        Of the flows; -1 without any.
    """

    def __init__(self, flows: TimedFlows, num_ranks: int) -> None:
        self.flows = flows
        self.program_of, self._begins = np.zeros((2, num_ranks), np.int32)
        first, counts = np.zeros(num_ranks + 1, np.int64), np.empty(_NUM_COUNTS, np.int64)
        columns = flows.src, flows.dst, flows.size_bytes, flows.start_ps
        _number(*columns, self.program_of, self._begins, first, counts)
        self._count, self.num_waits, self.num_idle, self.most_bytes, self.last_start_ps = counts.tolist()
        self._first = first[: self._count + 1]

    def __len__(self) -> int:
        return self._count

    @cached_property
    def names(self) -> Sequence[str]:  # type: ignore[override]
        """Of each program."""
        return program_names(self._begins[: self._count].tolist())

    @cached_property
    def table(self) -> OperationTable:  # type: ignore[override]
        """All operations as columns."""
        flows, first = self.flows, self._first
        count, rows = len(flows), int(first[-1])
        like, which = np.empty((2, rows), np.int32)
        duration, size, peer, tag = np.empty((4, rows), np.int64)
        dep_first, dep = np.empty(rows + 1, np.int64), np.empty(self.num_waits, np.int32)
        hashes, latest = np.empty(2 << count.bit_length(), np.int32), np.empty(count, np.int32)
        _write(
            flows.src,
            flows.dst,
            flows.size_bytes,
            flows.start_ps,
            self.program_of,
            first,
            first[:-1].copy(),
            hashes,
            latest,
            like,
            which,
            duration,
            size,
            peer,
            tag,
            dep_first,
            dep,
        )
        return OperationTable(
            _PROTOTYPES,
            like,
            first=first,
            names=_Names(count),
            name=which,
            duration_ps=duration,
            size_bytes=size,
            peer=peer,
            tag=tag,
            deps=(dep_first, dep),
        )


@compiled
def _number(
    src: I64,
    dst: I64,
    size_bytes: I64,
    start: I64,
    program_of: I32,
    begins: I32,
    first: I64,
    counts: I64,
) -> None:
    """Number the programs of ranks in order of their first ranks, which begin them; idle ones share one.
    ``counts``: programs, whose rows are from ``first`` on; waits; ranks that are idle; the most bytes and the
    last start of a flow.
    """
    waits = 0
    most = -1
    last = -1
    for flow in range(len(src)):
        program_of[src[flow]] += 1
        program_of[dst[flow]] += 1
        most = max(most, size_bytes[flow])
        last = max(last, start[flow])
        if start[flow] > 0:
            program_of[src[flow]] += 1
            waits += 1
    programs = 0
    idle = 0
    shared = 0
    for rank in range(len(program_of)):
        rows = program_of[rank]
        if rows == 0:
            idle += 1
            if idle > 1:
                program_of[rank] = shared
                continue
            shared = programs
        program_of[rank] = programs
        begins[programs] = rank
        first[programs + 1] = first[programs] + max(rows, 1)  # who does nothing has a computation of 0
        programs += 1
    for k, count in enumerate((programs, waits, idle, most, last)):
        counts[k] = count


@compiled
def _write(
    src: I64,
    dst: I64,
    size_bytes: I64,
    start: I64,
    program_of: I32,
    first: I64,
    place: I64,
    hashes: I32,
    latest: I32,
    like: I32,
    which: I32,
    duration: I64,
    size: I64,
    peer: I64,
    tag: I64,
    dep_first: I64,
    dep: I32,
) -> None:
    """Write the rows of flows, those of each program from its ``place`` on: a wait, a SEND and a RECV."""
    mask = len(hashes) - 1
    for slot in range(len(hashes)):
        hashes[slot] = -1
    for row in range(len(like)):
        like[row] = _NOTHING
        which[row] = 2 * len(src)
        duration[row] = 0
        size[row] = 0
        peer[row] = -1
        tag[row] = 0
    for flow in range(len(src)):
        # How many flows of the same pair came before: the latest of them is found by its ranks.
        at = pair_hash(src[flow], dst[flow]) & mask
        other = hashes[at]
        while other != -1 and (src[other] != src[flow] or dst[other] != dst[flow]):
            at = (at + 1) & mask
            other = hashes[at]
        number = 0 if other == -1 else latest[other] + 1
        hashes[at] = flow
        latest[flow] = number
        one = program_of[src[flow]]
        if start[flow] > 0:
            row = place[one]
            place[one] = row + 1
            like[row] = _WAIT
            which[row] = flow + len(src)
            duration[row] = start[flow]
        row = place[one]
        place[one] = row + 1
        like[row] = _SEND
        which[row] = flow
        size[row] = size_bytes[flow]
        peer[row] = dst[flow]
        tag[row] = number
        one = program_of[dst[flow]]
        row = place[one]
        place[one] = row + 1
        like[row] = _RECV
        which[row] = flow
        size[row] = size_bytes[flow]
        peer[row] = src[flow]
        tag[row] = number
    count = 0
    dep_first[0] = 0
    for program in range(len(first) - 1):
        for row in range(first[program], first[program + 1]):
            # A SEND right behind its wait depends on it.
            if row > first[program] and like[row - 1] == _WAIT:
                dep[count] = row - 1 - first[program]
                count += 1
            dep_first[row + 1] = count


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
