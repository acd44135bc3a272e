"""Workloads that are said rank by rank, as traces, schedules and flow lists say them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.files.import_report import ReportBuilder
from cosim.workload.program import NO_STREAM, DeviceMesh, Operation, OpKind, Peer, Program, Workload

NOTHING = Operation("nothing", OpKind.COMPUTE, NO_STREAM)
"""What a rank without operations has."""
NOTHING_IS_ASSUMED = "a computation of 0 for a rank without operations"


def rank_workload(
    name: str,
    operations: Sequence[tuple[Operation, ...]],
    report: ReportBuilder,
    *,
    rendezvous: bool = False,
    mesh: DeviceMesh | None = None,
) -> Workload:
    """A workload of each rank's operations; without a mesh, ranks are one axis ``rank``.

    Ranks with the same operations share a program; one without any computes for 0 ps.
    """
    report.assumed(NOTHING_IS_ASSUMED, sum(not own for own in operations))
    programs, program_of = share_programs([own or (NOTHING,) for own in operations])
    mesh = mesh if mesh is not None else DeviceMesh({"rank": len(operations)})
    return Workload(name, mesh, programs, program_of, report.build(), rendezvous)


def share_programs(
    operations: Sequence[tuple[Operation, ...]],
) -> tuple[tuple[Program, ...], NDArray[np.int32]]:
    """Programs without repetition, named after their first rank, and the number of each rank's."""
    number: dict[tuple[Operation, ...], int] = {}
    by_identity: dict[int, int] = {}  # many ranks hold the very same tuple: hash it once
    program_of = np.empty(len(operations), np.int32)
    first: list[int] = []
    for rank, own in enumerate(operations):
        if id(own) not in by_identity:
            by_identity[id(own)] = number.setdefault(own, len(number))
            if by_identity[id(own)] == len(first):
                first.append(rank)
        program_of[rank] = by_identity[id(own)]
    programs = tuple(Program(name, own) for name, own in zip(program_names(first), number, strict=True))
    return programs, program_of


def program_names(first: Sequence[int]) -> list[str]:
    """Names of programs by the first rank of each."""
    return [f"rank {rank}" for rank in first] if len(first) > 1 else ["every rank"]


class FlowOperations:
    """Flows as operations of their two ranks: a SEND and a RECV, the n-th of a pair with tag n."""

    def __init__(self, num_ranks: int) -> None:
        self.operations: list[list[Operation]] = [[] for _ in range(num_ranks)]
        self._tags: Counter[tuple[int, int]] = Counter()

    def add(self, rank: int, operation: Operation) -> int:
        """The operation's number in the rank's program."""
        self.operations[rank].append(operation)
        return len(self.operations[rank]) - 1

    def wait(self, rank: int, flow: int, start_ps: int) -> list[int]:
        """What a flow waits for that starts at a time: nothing at 0."""
        if not start_ps:
            return []
        operation = Operation(f"wait {flow}", OpKind.COMPUTE, NO_STREAM, duration_ps=start_ps)
        return [self.add(rank, operation)]

    def message(
        self, name: str, src: int, dst: int, size_bytes: int, waits: Sequence[int]
    ) -> tuple[int, int]:
        """Numbers of the SEND, which waits for operations of its rank, and of the RECV."""
        tag = self._tags[src, dst]
        self._tags[src, dst] += 1
        deps = tuple(sorted(set(waits)))
        send = Operation(name, OpKind.SEND, NO_STREAM, deps, size_bytes=size_bytes, peer=Peer(dst), tag=tag)
        receive = Operation(name, OpKind.RECV, NO_STREAM, size_bytes=size_bytes, peer=Peer(src), tag=tag)
        return self.add(src, send), self.add(dst, receive)

    def workload(self, name: str, report: ReportBuilder) -> Workload:
        """All of them."""
        return rank_workload(name, [tuple(own) for own in self.operations], report)
