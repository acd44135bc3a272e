"""The prover's inner loop: a template's messages moved on chunk values, in one of two extreme orders.

Every dependency points back, so flow numbers are an order in which everything can run. ``EAGER``: each
message is written at its receiver as soon as it is read. ``LAZY``: it is read at its start and written only
when a flow that waits for its completion starts; one that nobody waits for is not written at all. What reads
data before it must have arrived, finds it in the eager order and misses it in the lazy one. Dependencies are
looked at in the lazy order only; the eager one is that of the numbers, whatever they say.

Compiling the loop takes a second or two, once on a machine; small templates are replayed interpreted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from cosim.pattern.template import I8, I32, I64

U64 = NDArray[np.uint64]

FINE, NEVER_RELEASED, BEFORE_FIRST, NOT_LOCAL = 0, 1, 2, 3
"""What :func:`replay` found: nothing; a flow that waits for nothing, so that nothing starts it; a dependency
that reaches before flow 0; one on what the sender can't see."""


@register_jitable
def _get(state: U64, tag: I32 | None, per_rank: int, stride: int, rank: int, chunk: int) -> Any:
    if tag is None:
        return state[rank * stride + chunk]
    if chunk // per_rank == rank:
        return state[chunk]
    # Numba compiles the form with ``tag`` and the one without apart.
    return state[stride + chunk] if tag[chunk] == rank else state[2 * stride]


@register_jitable
def _put(
    state: U64,
    tag: I32 | None,
    per_rank: int,
    stride: int,
    rank: int,
    chunk: int,
    value: Any,
    reduce: bool,
    bits: bool,
) -> None:
    had = _get(state, tag, per_rank, stride, rank, chunk)
    if reduce:
        if bits:
            # The top bit marks what is counted twice, or holds what was never written.
            doubled = np.uint64(1 << 63) if had & value else np.uint64(0)
            value = had | value | doubled
        else:
            value = had + value
    if tag is None:
        state[rank * stride + chunk] = value
    elif chunk // per_rank == rank:
        state[chunk] = value
    else:
        tag[chunk] = rank
        state[stride + chunk] = value


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
    stride: int,
    tag: I32 | None,
    per_rank: int,
    bits: bool,
    lazy: bool,
    window: int,
    payload_size: int,
    watch_rank: int,
    watch_chunk: int,
) -> tuple[int, int, int, int]:
    """Move the messages; ``state`` changes in place.

    ``src`` to ``action`` are the template's columns, ``chunk`` and ``chunk_step`` as int64 reduced to
    0..num_chunks-1 (``chunk`` is used up). With ``tag`` None, ``state`` is uint64[N * stride], by rank. Else
    positions s * per_rank .. (s + 1) * per_rank - 1 start at rank s, and ``state`` is what is there (stride
    words), then one more copy of each, at rank ``tag``, then garbage. ``bits``: reduce contributor sets
    instead of adding fingerprints. ``lazy``: the order, as the module's text says. ``window`` is a power of
    two above every distance, ``payload_size`` as many words as can be under way. The cell
    (``watch_rank``, ``watch_chunk``) is the one whose last writer is asked for.

    Returns
    -------
    (code, flow, dependency, writer)
        What is wrong and where, and the flow that wrote the watched cell last, or -1.
    """
    mask = window - 1
    # Flows of the last ``window`` numbers: their rows, unless each is its own, and what is under way.
    flat = block_base[-1] == block_row[-1]
    rows_of = np.empty(1 if flat else window, np.int32)
    pending = np.zeros(window if lazy else 1, np.uint8)
    carried = np.empty(window if lazy else 1, np.int32)
    payload_at = np.empty(window if lazy else 1, np.int32)
    payload = np.zeros(payload_size, np.uint64)
    free = 0
    writer = -1
    flow = 0
    for block in range(len(block_repeat)):
        first, last = block_row[block], block_row[block + 1]
        for _ in range(block_repeat[block]):
            for row in range(first, last):
                rank = src[row]
                if lazy and block > 0 and dep_ptr[row] == dep_ptr[row + 1]:
                    return NEVER_RELEASED, flow, -1, writer
                for d in range(dep_ptr[row], dep_ptr[row + 1] if lazy else dep_ptr[row]):
                    before = flow - dep_distance[d]
                    if before < 0:
                        return BEFORE_FIRST, flow, before, writer
                    slot = before & mask
                    other = before if flat else rows_of[slot]
                    if src[other] != rank and (dep_kind[d] != 0 or dst[other] != rank):
                        return NOT_LOCAL, flow, before, writer
                    if dep_kind[d] == 0 and pending[slot]:
                        pending[slot] = 0
                        at, to, at_chunk = payload_at[slot], dst[other], carried[slot]
                        reduce = action[other] == 2
                        for _ in range(chunk_count[other]):
                            _put(state, tag, per_rank, stride, to, at_chunk, payload[at], reduce, bits)
                            if to == watch_rank and at_chunk == watch_chunk:
                                writer = before
                            at = at + 1 if at + 1 < payload_size else 0
                            at_chunk = at_chunk + 1 if at_chunk + 1 < num_chunks else 0
                slot = flow & mask
                if lazy:
                    pending[slot] = 0
                    if not flat:
                        rows_of[slot] = row
                if action[row] != 0:
                    at_chunk = chunk[row]
                    to = dst[row]
                    if lazy:
                        pending[slot] = 1
                        payload_at[slot] = free
                        carried[slot] = at_chunk
                        for _ in range(chunk_count[row]):
                            payload[free] = _get(state, tag, per_rank, stride, rank, at_chunk)
                            free = free + 1 if free + 1 < payload_size else 0
                            at_chunk = at_chunk + 1 if at_chunk + 1 < num_chunks else 0
                    else:
                        reduce = action[row] == 2
                        for _ in range(chunk_count[row]):
                            value = _get(state, tag, per_rank, stride, rank, at_chunk)
                            _put(state, tag, per_rank, stride, to, at_chunk, value, reduce, bits)
                            if to == watch_rank and at_chunk == watch_chunk:
                                writer = flow
                            at_chunk = at_chunk + 1 if at_chunk + 1 < num_chunks else 0
                    moved = chunk[row] + chunk_step[row]
                    chunk[row] = moved - num_chunks if moved >= num_chunks else moved
                flow += 1
    return FINE, -1, -1, writer
