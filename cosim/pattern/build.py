"""Putting a template together from blocks of rows, without a Python object for each message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

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


def entries(num_ranks: int) -> Block:
    """Block 0: every rank's arrival."""
    ranks = np.arange(num_ranks)
    return Block(num_ranks, ranks, ranks, np.empty((num_ranks, 0), np.int64), ())


def exits(num_ranks: int, distance: I64, kind: Sequence[int], delay_ps: ArrayLike = 0) -> Block:
    """The last block: every rank's end, after the dependencies given."""
    ranks = np.arange(num_ranks)
    return Block(num_ranks, ranks, ranks, distance, kind, delay_ps=delay_ps)


def assemble(
    name: str,
    collective: Collective,
    num_ranks: int,
    size_bytes: int,
    blocks: Sequence[Block],
    *,
    num_chunks: int,
    owner: ArrayLike,
) -> Template:
    """One template of ``blocks``, entries first and exits last; blocks of no repetition are left out."""
    blocks = [block for block in blocks if block.repeat > 0 and block.rows > 0]
    rows = sum(block.rows for block in blocks)
    src, dst, channel, chunk, chunk_step, chunk_count = (np.empty(rows, np.int32) for _ in range(6))
    size, delay = np.empty(rows, np.int64), np.empty(rows, np.int64)
    action = np.empty(rows, np.int8)
    degree = np.zeros(rows + 1, np.int64)
    distances: list[I64] = []
    kinds: list[I8] = []
    row = 0
    for block in blocks:
        at = slice(row, row + block.rows)
        src[at], dst[at], channel[at] = block.src, block.dst, block.channel
        size[at], delay[at], action[at] = block.size_bytes, block.delay_ps, block.action
        chunk[at], chunk_step[at], chunk_count[at] = block.chunk, block.chunk_step, block.chunk_count
        shape = (block.rows, len(block.kind))
        distance = np.broadcast_to(block.distance, shape)
        kind = np.broadcast_to(np.asarray(block.kind, np.int8), shape)
        if distance.size and distance.min() < 1:
            given = distance > 0
            degree[row + 1 : row + 1 + block.rows] = given.sum(axis=1)
            distance, kind = distance[given], kind[given]
        else:
            degree[row + 1 : row + 1 + block.rows] = shape[1]
        distances.append(distance.reshape(-1))
        kinds.append(kind.reshape(-1))
        row += block.rows
    return Template(
        name=name,
        collective=collective,
        num_ranks=num_ranks,
        size_bytes=size_bytes,
        num_chunks=num_chunks,
        owner=np.asarray(owner, np.int32),
        src=src,
        dst=dst,
        bytes=size,
        channel=channel,
        delay_ps=delay,
        dep_ptr=np.cumsum(degree),
        dep_distance=np.concatenate(distances),
        dep_kind=np.concatenate(kinds),
        block_row=np.concatenate([[0], np.cumsum([block.rows for block in blocks])]).astype(np.int64),
        block_repeat=np.array([block.repeat for block in blocks], np.int64),
        chunk=chunk,
        chunk_step=chunk_step,
        chunk_count=chunk_count,
        action=action,
    )


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
