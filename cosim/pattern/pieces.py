"""Pieces that follow each other: the messages of one piece of the data, repeated for each piece."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.pattern.assemble import COMPLETION, START, Block, entries, exits
from cosim.pattern.template import NO_DATA


class Pieces:
    """Rows of one piece, which may wait for earlier rows of the same piece.

    A row of the next piece goes once the row before it has begun, or, ``in_order``, once it has arrived, as
    what goes over one connection does. ``had`` are rows by which a rank has its data, ``sends`` rows that it
    must have issued before it ends.
    """

    def __init__(self, num_ranks: int, *, in_order: bool = False) -> None:
        self.num_ranks, self.in_order = num_ranks, in_order
        self.rows: list[tuple[int, int, int, int, int]] = []
        """Source, destination, first chunk, how many, action."""
        self.waits: list[list[int]] = []
        self.delay_ps: list[int] = []
        self.had: list[list[int]] = [[] for _ in range(num_ranks)]
        self.sends: list[list[int]] = [[] for _ in range(num_ranks)]

    def add(
        self, src: int, dst: int, chunk: int, action: int, waits: list[int], *, count: int = 1, delay_ps: int
    ) -> int:
        """A message, ``delay_ps`` after what it waits for; its row."""
        self.rows.append((src, dst, chunk, count, action))
        self.waits.append(waits)
        self.delay_ps.append(delay_ps)
        return len(self.rows) - 1

    def pause(self, rank: int, waits: list[int], delay_ps: int) -> int:
        """A row that takes time and carries nothing."""
        return self.add(rank, rank, 0, NO_DATA, waits, count=0, delay_ps=delay_ps)

    def blocks(self, chunk_bytes: int, chunks: int, pieces: int) -> Sequence[Block]:
        """All blocks of a template of ``pieces`` pieces, each of ``chunks`` chunks."""
        rows = len(self.rows)
        src = np.array([row[0] for row in self.rows], np.int64)
        arrival = self.num_ranks + np.arange(rows) - src
        again = COMPLETION if self.in_order else START
        return [
            entries(self.num_ranks),
            self._block(chunk_bytes, chunks, 1, 0, arrival, COMPLETION),
            self._block(chunk_bytes, chunks, pieces - 1, chunks, np.full(rows, rows), again),
            self._exits(pieces),
        ]

    def _block(
        self, chunk_bytes: int, chunks: int, repeat: int, first: int, own: np.ndarray, kind: int
    ) -> Block:
        src, dst, chunk, count, action = np.array(self.rows, np.int32).T
        width = max(len(each) for each in self.waits)
        # A distance of 0 is no dependency: rows that wait for fewer are filled up.
        inner = np.zeros((len(self.rows), width), np.int64)
        for row, each in enumerate(self.waits):
            inner[row, : len(each)] = [row - other for other in each]
        return Block(
            len(self.rows),
            src,
            dst,
            np.concatenate([inner, own[:, None]], axis=1),
            (COMPLETION,) * width + (kind,),
            size_bytes=chunk_bytes * count,
            delay_ps=self.delay_ps,
            repeat=repeat,
            channel=chunk,
            chunk=chunk + first,
            chunk_step=chunks,
            chunk_count=count,
            action=action,
        )

    def _exits(self, pieces: int) -> Block:
        """A rank ends when it has all pieces, and has issued its last messages.

        In order, the last piece's are there when all are.
        """
        n, rows = self.num_ranks, len(self.rows)
        end = n + pieces * rows
        last = range(pieces - 1, pieces) if self.in_order else range(pieces)
        had = np.zeros((n, max(map(len, self.had)) * len(last)), np.int64)
        begun = np.zeros((n, max(1, *map(len, self.sends))), np.int64)
        for rank in range(n):
            for index, row in enumerate(self.had[rank]):
                for at, number in enumerate(last):
                    had[rank, index * len(last) + at] = end + rank - (n + number * rows + row)
            for index, row in enumerate(self.sends[rank]):
                begun[rank, index] = end + rank - (end - rows + row)
        kinds = (COMPLETION,) * had.shape[1] + (START,) * begun.shape[1]
        return exits(n, np.concatenate([had, begun], axis=1), kinds)
