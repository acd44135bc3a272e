"""Flows that start at given times as a workload: a SEND and a RECV each, and a wait where that isn't 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from cosim.files.import_report import ReportBuilder
from cosim.network.channels import pair_hash
from cosim.network.flows import I32, I64
from cosim.network.jit import compiled
from cosim.workload.by_rank import NOTHING, NOTHING_IS_INVENTED, program_names
from cosim.workload.program import NO_STREAM, DeviceMesh, Operation, OpKind, Workload
from cosim.workload.table import OperationTable

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
        ends = np.bincount(np.concatenate([self.src, self.src[waits], self.dst]), minlength=num_ranks)
        busy = ends > 0
        program_of = _numbers(busy)
        report.invented(NOTHING_IS_INVENTED, int(np.count_nonzero(~busy)))
        first = np.zeros(int(program_of.max(initial=-1)) + 2, np.int64)
        first[1 + program_of] = np.where(busy, ends, 1)  # a rank that does nothing has a computation of 0
        first = np.cumsum(first)
        rows, num_waits = int(first[-1]), int(np.count_nonzero(waits))
        like, which = np.full(rows, _NOTHING, np.int32), np.full(rows, 2 * count, np.int32)
        duration, size, tag = np.zeros((3, rows), np.int64)
        peer, dep_first, dep = np.full(rows, -1), np.zeros(rows + 1, np.int64), np.empty(num_waits, np.int32)
        hashes = np.full(2 << count.bit_length(), -1, np.int32)
        _write(
            self.src,
            self.dst,
            self.size_bytes,
            self.start_ps,
            program_of,
            first,
            first[:-1].copy(),
            hashes,
            np.empty(count, np.int32),
            like,
            which,
            duration,
            size,
            peer,
            tag,
            dep_first,
            dep,
        )
        table = OperationTable(
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
        names = program_names(np.unique(program_of, return_index=True)[1].tolist())
        mesh = DeviceMesh({"rank": num_ranks})
        return Workload(name, mesh, table.programs(names), program_of, report.build())


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


def _numbers(busy: NDArray[np.bool_]) -> I32:
    """int32[ranks]: the number of each rank's program, in order of first ranks; idle ranks share one."""
    fresh = busy.copy()
    if not busy.all():
        fresh[(~busy).argmax()] = True
    numbers = (np.cumsum(fresh) - 1).astype(np.int32)
    numbers[~busy] = numbers[(~busy).argmax()]
    return numbers
