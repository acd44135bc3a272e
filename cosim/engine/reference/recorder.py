"""What is written down while a replay goes on, and the columns that results are made of."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from cosim.engine.records import (
    I64,
    CollectiveRecord,
    FctHistogram,
    MessageRecords,
    OpRecords,
    TrafficRecord,
)
from cosim.engine.reference.digest import RunDigest

if TYPE_CHECKING:
    from cosim.engine.reference.collectives import Meeting
    from cosim.engine.reference.ranks import RankStep

_BINS, _FIRST_BITS = 64, 16  # of traffic: 65 ns each, or twice as wide until all of a run is in them


class RunRecorder:
    """Takes operations, messages and collectives as they end. ``kept[job]``: ranks whose operations are
    kept.
    """

    def __init__(self, kept: list[I64]) -> None:
        self._kept = [{*ranks.tolist()} for ranks in kept]
        self._flows, self._steps = RunDigest(), RunDigest()
        self._operations: list[tuple[int, int, int, int, int, int]] = []
        self._messages = [array("q") for _ in range(7)]  # keys (high, low), source, destination, bytes, times
        self._collectives: list[CollectiveRecord] = []
        self.num_operations = 0
        self.end_ps = 0

    def keep(self, ranks: I64) -> None:
        """Keep operations of these ranks of one more job."""
        self._kept.append({*ranks.tolist()})

    # -- what happens --------------------------------------------------------------------------------

    def operation(self, job: int, rank: int, step: RankStep, start_ps: int, end_ps: int) -> None:
        """An operation ended."""
        self._steps.add(job, step.iteration, rank, step.op, start_ps, end_ps)
        self.num_operations += 1
        self.end_ps = end_ps
        if rank in self._kept[job]:
            self._operations.append((end_ps, job, rank, step.op, step.iteration, start_ps))

    def message(
        self, key: tuple[int, int], src: int, dst: int, size_bytes: int, start_ps: int, end_ps: int
    ) -> None:
        """A flow completed. A mark carries no bytes between endpoints: it is in the digest, and nowhere
        else.
        """
        self._flows.add(*key, end_ps)
        if src != dst:
            for column, value in zip(
                self._messages, (*key, src, dst, size_bytes, start_ps, end_ps), strict=True
            ):
                column.append(value)

    def collective(self, meeting: Meeting, end_ps: int) -> None:
        """The last rank of a collective is done."""
        one, group = meeting.operation, meeting.group
        self._collectives.append(
            CollectiveRecord(
                job=meeting.job.number,
                iteration=meeting.first[1].iteration,
                op=meeting.number,
                name=one.name,
                collective=one.collective,
                algorithm=meeting.plan.algorithm,
                ranks=group.ranks,
                size_bytes=one.size_bytes,
                messages=meeting.num_messages,
                start_ps=meeting.start_ps,
                ready_ps=meeting.ready_ps,
                end_ps=end_ps,
            )
        )

    # -- what comes of it ----------------------------------------------------------------------------

    @property
    def num_messages(self) -> int:
        """Messages completed so far; marks are none."""
        return len(self._messages[0])

    def digest(self) -> str:
        """What the run is known by."""
        return self._flows + self._steps

    def operations(self) -> OpRecords:
        """In the order in which they ended, then by job, rank and operation."""
        rows = sorted(self._operations, key=lambda row: row[:4])
        end, job, rank, op, iteration, start = np.array(rows, np.int64).reshape(-1, 6).T
        narrow = [column.astype(np.int32) for column in (job, iteration, rank, op)]
        return OpRecords(narrow[0], narrow[1], narrow[2], narrow[3], start.copy(), end.copy())

    def collectives(self) -> tuple[CollectiveRecord, ...]:
        """In the order in which they ended, then by job, iteration, operation and ranks."""
        return tuple(
            sorted(self._collectives, key=lambda one: (one.end_ps, one.job, one.iteration, one.op, one.ranks))
        )

    def _columns(self) -> list[I64]:
        return [np.array(column, np.int64) for column in self._messages]

    def fct(self) -> FctHistogram:
        """Flow completion times, in bins of each picosecond below 64, then 64 to each power of two."""
        fine = np.arange(64, dtype=np.int64)
        coarse = ((fine + 64)[None, :] << np.arange(56, dtype=np.int64)[:, None]).ravel()
        edges = np.concatenate([fine, coarse, [2**62]])
        *_, start, end = self._columns()
        took = end - start
        counts = np.bincount(np.searchsorted(edges, took, "right") - 1, minlength=len(edges) - 1)
        least, most = int(took.min(initial=2**62)), int(took.max(initial=0))
        return FctHistogram(edges, counts, least if len(took) else 0, most, sum(took.tolist()))

    def traffic(self) -> TrafficRecord:
        """Bytes between endpoints over time."""
        _, _, src, dst, size, _, end = self._columns()
        pairs, pair = np.unique(np.stack([src, dst]), axis=1, return_inverse=True)
        bits = _FIRST_BITS
        while int(end.max(initial=0)) >= _BINS << bits:
            bits += 1
        in_bins = np.zeros((_BINS if len(end) else 0, pairs.shape[1]), np.int64)
        np.add.at(in_bins, (end >> bits, pair.reshape(-1)), size)
        of = pairs.astype(np.int32)
        return TrafficRecord(1 << bits, of[0], of[1], in_bins)

    def messages(self) -> MessageRecords:
        """Every message, sorted by (end, key)."""
        high, low, src, dst, size, start, end = self._columns()
        order = np.lexsort((low, high, end))
        high = high[order]
        return MessageRecords(
            job=(high >> 51).astype(np.int32),
            iteration=((high >> 31) & ((1 << 20) - 1)).astype(np.int32),
            op=(high & ((1 << 31) - 1)).astype(np.int32),
            src=src[order].astype(np.int32),
            dst=dst[order].astype(np.int32),
            size_bytes=size[order],
            start_ps=start[order],
            end_ps=end[order],
        )
