"""The prover's inner loop: a template's messages moved on chunk values, in one of two extreme orders.

Every dependency points back, so flow numbers are an order in which everything can run. ``EAGER``: each
message is written at its receiver as soon as it is read. ``LAZY``: it is read at its start and written only when
a flow that waits for its completion starts; one that nobody waits for is not written at all. What reads
data before it must have arrived, finds it in the eager order and misses it in the lazy one.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cosim.pattern.template import I8, I32, I64

U64 = NDArray[np.uint64]

FINE, NEVER_RELEASED, BEFORE_FIRST, NOT_LOCAL = 0, 1, 2, 3
"""What :func:`replay` found: nothing; a flow that waits for nothing, so that nothing starts it; a dependency
that reaches before flow 0; one on what the sender can't see."""


@njit(cache=True, inline="always")
def _get(state: U64, tag: I32, per_rank: int, num_chunks: int, rank: int, chunk: int) -> int:
    if per_rank == 0:
        return state[rank * num_chunks + chunk]
    if chunk // per_rank == rank:
        return state[chunk]
    return state[num_chunks + chunk] if tag[chunk] == rank else state[2 * num_chunks]


@njit(cache=True, inline="always")
def _put(
    state: U64, tag: I32, per_rank: int, num_chunks: int, rank: int, chunk: int, value: int, reduce: bool, bits: bool
) -> None:
    had = _get(state, tag, per_rank, num_chunks, rank, chunk)
    if reduce:
        if bits:
            # The top bit marks what is counted twice, or holds what was never written.
            doubled = np.uint64(1 << 63) if had & value else np.uint64(0)
            value = had | value | doubled
        else:
            value = had + value
    if per_rank == 0:
        state[rank * num_chunks + chunk] = value
    elif chunk // per_rank == rank:
        state[chunk] = value
    else:
        tag[chunk] = rank
        state[num_chunks + chunk] = value


@njit(cache=True)
def replay(
    src: I32,
    dst: I32,
    dep_ptr: I64,
    dep_distance: I64,
    dep_kind: I8,
    block_row: I64,
    block_repeat: I64,
    block_base: I64,
    chunk: I64,
    chunk_step: I64,
    chunk_count: I32,
    action: I8,
    num_chunks: int,
    state: U64,
    tag: I32,
    per_rank: int,
    bits: bool,
    lazy: bool,
    window: int,
    payload_size: int,
    watch_rank: int,
    watch_chunk: int,
) -> tuple[int, int, int, int]:
    """Move the messages; ``state`` changes in place.

    Parameters
    ----------
    src ... action
        The template's columns; ``chunk`` and ``chunk_step`` int64, reduced to 0..num_chunks-1 (``chunk`` is
        used up).
    state, tag, per_rank
        ``per_rank`` 0: ``state`` is uint64[N * num_chunks], by rank. Else positions ``s * per_rank ...`` start
        at rank s, and ``state`` is what is there, then one more copy of each, at rank ``tag``, then garbage.
    bits
        Reduce contributor sets instead of adding fingerprints.
    lazy
        The order, as the module's text says.
    window, payload_size
        A power of two above every distance; words for the messages that can be under way.
    watch_rank, watch_chunk
        The cell whose last writer is asked for.

    Returns
    -------
    (code, flow, dependency, writer)
        What is wrong and where, and the flow that wrote the watched cell last, or -1.
    """
    mask = window - 1
    pending = np.zeros(window, np.uint8)
    payload_at = np.zeros(window, np.int64)
    carried = np.zeros(window, np.int64)
    rows_of = np.zeros(window, np.int32)
    payload = np.zeros(payload_size, np.uint64)
    free = 0
    writer = -1
    flow = 0
    for block in range(len(block_repeat)):
        first, last = block_row[block], block_row[block + 1]
        for repetition in range(block_repeat[block]):
            for row in range(first, last):
                rank = src[row]
                if block > 0 and dep_ptr[row] == dep_ptr[row + 1]:
                    return NEVER_RELEASED, flow, -1, writer
                for d in range(dep_ptr[row], dep_ptr[row + 1]):
                    before = flow - dep_distance[d]
                    if before < 0:
                        return BEFORE_FIRST, flow, before, writer
                    slot = before & mask
                    other = rows_of[slot]
                    if src[other] != rank and (dep_kind[d] != 0 or dst[other] != rank):
                        return NOT_LOCAL, flow, before, writer
                    if pending[slot] and dep_kind[d] == 0:
                        pending[slot] = 0
                        at, to, at_chunk = payload_at[slot], dst[other], carried[slot]
                        reduce = action[other] == 2
                        for _ in range(chunk_count[other]):
                            _put(state, tag, per_rank, num_chunks, to, at_chunk, payload[at], reduce, bits)
                            if to == watch_rank and at_chunk == watch_chunk:
                                writer = before
                            at = at + 1 if at + 1 < payload_size else 0
                            at_chunk = at_chunk + 1 if at_chunk + 1 < num_chunks else 0
                slot = flow & mask
                rows_of[slot] = row
                pending[slot] = 0
                if action[row] != 0:
                    at_chunk = chunk[row]
                    to = dst[row]
                    if lazy:
                        pending[slot] = 1
                        payload_at[slot] = free
                        carried[slot] = at_chunk
                        for _ in range(chunk_count[row]):
                            payload[free] = _get(state, tag, per_rank, num_chunks, rank, at_chunk)
                            free = free + 1 if free + 1 < payload_size else 0
                            at_chunk = at_chunk + 1 if at_chunk + 1 < num_chunks else 0
                    else:
                        reduce = action[row] == 2
                        for _ in range(chunk_count[row]):
                            value = _get(state, tag, per_rank, num_chunks, rank, at_chunk)
                            _put(state, tag, per_rank, num_chunks, to, at_chunk, value, reduce, bits)
                            if to == watch_rank and at_chunk == watch_chunk:
                                writer = flow
                            at_chunk = at_chunk + 1 if at_chunk + 1 < num_chunks else 0
                    moved = chunk[row] + chunk_step[row]
                    chunk[row] = moved - num_chunks if moved >= num_chunks else moved
                flow += 1
    return FINE, -1, -1, writer
