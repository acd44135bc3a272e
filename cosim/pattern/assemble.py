"""Putting a template together from blocks of rows, without a Python object for each message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosim.pattern.template import I8, I32, I64, NO_DATA, Collective, Template

COMPLETION = 0
START = 1
"""Dependency kinds, as the flow table has them."""


@dataclass(frozen=True, eq=False)
class Block:
    """One step, ``repeat`` times. Columns broadcast to ``rows``; see the template for what they mean.

    ``distance`` broadcasts to [rows, E]: how far back each row's E dependencies lie; where it isn't above
    zero that row has no such dependency. ``kind`` is their kind, [E].
    """

    rows: int
    src: ArrayLike
    dst: ArrayLike
    distance: I64
    kind: Sequence[int]
    size_bytes: ArrayLike = 0
    delay_ps: ArrayLike = 0
    repeat: int = 1
    channel: ArrayLike = 0
    chunk: ArrayLike = 0
    chunk_step: ArrayLike = 0
    chunk_count: ArrayLike = 0
    action: ArrayLike = NO_DATA
    shift: ArrayLike = 0


def entries(num_ranks: int, channel: ArrayLike = 0) -> Block:
    """Block 0: every rank's arrival."""
    ranks = np.arange(num_ranks)
    return Block(num_ranks, ranks, ranks, np.empty((num_ranks, 0), np.int64), (), channel=channel)


def exits(
    num_ranks: int, distance: I64, kind: Sequence[int], delay_ps: ArrayLike = 0, channel: ArrayLike = 0
) -> Block:
    """The last block: every rank's end, after its dependencies.

    Parameters
    ----------
    num_ranks
        Ranks; one row each.
    distance, kind
        As of :class:`Block`: how far back each rank's dependencies lie, and their kind.
    delay_ps
        Picoseconds from the last of them to the end.
    channel
        The channel of the rows.
    """
    ranks = np.arange(num_ranks)
    return Block(num_ranks, ranks, ranks, distance, kind, delay_ps=delay_ps, channel=channel)


def assemble(
    name: str,
    collective: Collective,
    num_ranks: int,
    size_bytes: int,
    blocks: Sequence[Block],
    *,
    num_chunks: int,
    owner: ArrayLike,
    num_scratch: int = 0,
) -> Template:
    """One template of blocks, entries first and exits last; blocks of no repetition are left out.

    Parameters
    ----------
    name, collective, num_ranks, size_bytes
        What carries which collective, on how many ranks, of how many bytes.
    blocks
        Rows of messages, in order.
    num_chunks
        Chunks that each rank's data is cut into.
    owner
        int[num_chunks]: as of :class:`Template`.
    num_scratch
        Further places for a chunk that each rank has, for what it receives.
    """
    blocks = [block for block in blocks if block.repeat > 0 and block.rows > 0]
    rows = np.array([block.rows for block in blocks], np.int64)

    def column(of: str, dtype: type[np.integer[Any]]) -> NDArray[Any]:
        values = [getattr(block, of) for block in blocks]
        if all(isinstance(value, int) for value in values) and len({*values}) == 1:
            return np.broadcast_to(np.array(values[0], dtype), int(rows.sum()))  # takes no memory
        return np.concatenate(
            [np.full(block.rows, value, dtype) for block, value in zip(blocks, values, strict=True)]
        )

    degree, distances, kinds = zip(*(_dependencies(block) for block in blocks), strict=True)
    return Template(
        name=name,
        collective=collective,
        num_ranks=num_ranks,
        size_bytes=size_bytes,
        num_chunks=num_chunks,
        owner=np.asarray(owner, np.int32),
        src=column("src", np.int32),
        dst=column("dst", np.int32),
        bytes=column("size_bytes", np.int64),
        channel=column("channel", np.int32),
        delay_ps=column("delay_ps", np.int64),
        dep_ptr=np.concatenate([[0], np.cumsum(np.concatenate(degree))]).astype(np.int64),
        dep_distance=np.concatenate(distances),
        dep_kind=np.concatenate(kinds),
        block_row=np.concatenate([[0], np.cumsum(rows)]).astype(np.int64),
        block_repeat=np.array([block.repeat for block in blocks], np.int64),
        chunk=column("chunk", np.int32),
        chunk_step=column("chunk_step", np.int32),
        chunk_count=column("chunk_count", np.int32),
        action=column("action", np.int8),
        shift=column("shift", np.int32),
        num_scratch=num_scratch,
    )


def _dependencies(block: Block) -> tuple[I64, I64, I8]:
    """How many each row has, then the distances and kinds of all: those above zero."""
    shape = (block.rows, len(block.kind))
    distance = np.broadcast_to(block.distance, shape)
    kind = np.broadcast_to(np.asarray(block.kind, np.int8), shape)
    if distance.size == 0 or distance.min() >= 1:
        return np.full(block.rows, shape[1], np.int64), distance.reshape(-1), kind.reshape(-1)
    given = distance > 0
    return given.sum(axis=1, dtype=np.int64), distance[given], kind[given]


def alone(collective: Collective, size_bytes: int) -> Template:
    """What a group of one does: nothing, at once."""
    rank = np.zeros(1, np.int32)
    return assemble(
        "alone",
        collective,
        1,
        size_bytes,
        [entries(1), exits(1, np.ones((1, 1), np.int64), (COMPLETION,))],
        num_chunks=1,
        owner=rank,
    )


def rank_column(num_ranks: int, per_rank: int) -> I32:
    """int32[num_ranks * per_rank]: each rank ``per_rank`` times, in rank order."""
    return np.repeat(np.arange(num_ranks, dtype=np.int32), per_rank)
