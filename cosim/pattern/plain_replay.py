"""The prover's two orders in plain Python, where the kernel can't be loaded: those of its ``prover.c``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.kernel import kernel

_REDUCES = 2
_TWICE = np.uint64(1 << 63)


class PlainReplay:
    """A template's messages, and the chunk values that a replay moves: ``struct chunk_replay``."""

    def __init__(self, replay: Any, tag: NDArray[np.int32] | None) -> None:
        self._r, self._tag = replay, tag
        self._chunk = replay.chunk.copy()
        self.writer = -1
        self.flow = self.dependency = 0

    def _range(self, first: int, row: int) -> NDArray[np.int64]:
        return (first + np.arange(int(self._r.chunk_count[row]))) % int(self._r.places)

    def _cells(self, rank: int, chunks: NDArray[np.int64]) -> NDArray[np.int64]:
        r, tag = self._r, self._tag
        if tag is None:
            return rank * int(r.stride) + chunks
        stride = int(r.stride)
        there = np.where(tag[chunks] == rank, stride + chunks, 2 * stride)
        return np.where(chunks // int(r.per_rank) == rank, chunks, there)

    def _write(self, row: int, chunks: NDArray[np.int64], values: NDArray[np.uint64], flow: int) -> None:
        r, rank = self._r, int(self._r.dst[row])
        if r.action[row] == _REDUCES:
            had = r.values[self._cells(rank, chunks)]
            twice = np.where(had & values, _TWICE, np.uint64(0))
            values = had | values | twice if r.bits else had + values
        if self._tag is not None:
            away = chunks[chunks // int(r.per_rank) != rank]
            self._tag[away] = rank
        r.values[self._cells(rank, chunks)] = values
        if rank == r.watch_rank and (chunks == r.watch_chunk).any():
            self.writer = flow

    def _read(self, row: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Where a message's chunks go, and their values; its next repetition is as many further round."""
        r, places = self._r, int(self._r.places)
        first = int(self._chunk[row])
        chunks = self._range(first, row)
        self._chunk[row] = (first + int(r.chunk_step[row])) % places
        values = r.values[self._cells(int(r.src[row]), chunks)]
        return self._range((first + int(r.shift[row])) % places, row), values

    def _flows(self) -> Any:
        """(Flow, block, row) of each."""
        r, flow = self._r, 0
        for block in range(len(r.block_repeat)):
            for _ in range(int(r.block_repeat[block])):
                for row in range(int(r.block_row[block]), int(r.block_row[block + 1])):
                    yield flow, block, row
                    flow += 1

    def early(self) -> None:
        """Each message is written as soon as it is read."""
        for flow, _, row in self._flows():
            if self._r.action[row]:
                self._write(row, *self._read(row), flow)

    def late(self) -> int:
        """Each is read at its start, and written when a flow that waits for its completion starts.

        What is wrong with a flow's dependency, as the kernel calls it; DONE: nothing.
        """
        r = self._r
        rows: list[int] = []
        carried: dict[int, tuple[NDArray[np.int64], NDArray[np.uint64]]] = {}
        for flow, block, row in self._flows():
            self.flow = flow
            first, last = int(r.dep_ptr[row]), int(r.dep_ptr[row + 1])
            if block > 0 and first == last:
                return int(kernel.NEVER_RELEASED)
            for d in range(first, last):
                before = self.dependency = flow - int(r.dep_distance[d])
                if before < 0:
                    return int(kernel.BEFORE_FIRST)
                other, completes = rows[before], r.dep_kind[d] == kernel.COMPLETED
                rank = r.src[row]
                if r.src[other] != rank and not (completes and r.dst[other] == rank):
                    return int(kernel.NOT_LOCAL)
                if completes and before in carried:
                    self._write(other, *carried.pop(before), before)
            rows.append(row)
            if r.action[row]:
                carried[flow] = self._read(row)
        return int(kernel.DONE)
