"""Folding completions into counters, compiled: digest, flow completion times, traffic, who reacts.

The digest is a sum, modulo 2^64 and twice with different mixing, of a hash of each (key, time): equal
multisets of completions give equal digests however they were cut into batches or ordered. Hashes are
built with splitmix64's finalizer (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cosim.network.calendar import Records
from cosim.network.flows import I32, I64
from cosim.network.jit import compiled, inlined

U64 = NDArray[np.uint64]

DIGEST_A, DIGEST_B = 0, 1
MESSAGES, FCT_MIN, FCT_MAX, FCT_SUM, TRAFFIC_BIN = range(5)
"""Scalars in ``counts``."""

HANDLE = np.dtype(
    [
        ("key_high", "i8"),
        ("key_low", "i8"),
        ("left", "i8"),
        ("react_from", "i8"),
        ("info", "i8"),
        ("block", "i4"),
        ("num_blocks", "i4"),
    ]
)
"""A group in flight: flows from number ``react_from`` on are what the engine waits for."""
BLOCK = np.dtype([("base", "i8"), ("row", "i8"), ("rows", "i8")])
"""A table's block: first flow, first row, rows in one repetition."""
SIZE_BITS = 36
"""A bound row is one int64, bytes below and the number of its (source, destination) pair above, or -1 for a
mark: rows are met in no order, so what counts is how many of them a cache holds.
"""

FCT_BINS = 64 + 56 * 64
_C1 = np.uint64(0xBF58476D1CE4E5B9)
_C2 = np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@inlined
def mix(value: np.uint64) -> np.uint64:
    """splitmix64's finalizer."""
    value = (value ^ (value >> _S30)) * _C1
    value = (value ^ (value >> _S27)) * _C2
    return value ^ (value >> _S31)


def mix_columns(*columns: I64) -> tuple[int, int]:
    """The two digest sums of rows of int64 columns, as :func:`fold` makes them of (high, low, time)."""

    def step(value: U64) -> U64:
        value = (value ^ (value >> _S30)) * _C1
        value = (value ^ (value >> _S27)) * _C2
        return np.asarray(value ^ (value >> _S31), np.uint64)

    state = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        state = step(state + column.astype(np.uint64) + _GOLDEN)
    return int(state.sum(dtype=np.uint64)), int(step(state ^ _GOLDEN).sum(dtype=np.uint64))


def fct_edges() -> I64:
    """Edges of the flow completion time bins, ps: exact below 64, then 64 to each power of two."""
    fine = np.arange(64, dtype=np.int64)
    coarse = ((np.arange(64, dtype=np.int64) + 64)[None, :] << np.arange(56, dtype=np.int64)[:, None]).ravel()
    return np.append(np.concatenate([fine, coarse]), np.int64(2**62))


@inlined
def _fct_bin(value: int) -> int:
    if value < 64:
        return value
    shift = 0
    for step in (32, 16, 8, 4, 2, 1):
        if value >> (shift + step) >= 64:
            shift += step
    return 64 + shift * 64 + (value >> shift) - 64


@compiled
def fold(
    handle: I32,
    index: I64,
    start: I64,
    time: I64,
    digest: U64,
    counts: I64,
    handles: Records,
    blocks: Records,
    info: I64,
    fct: I64,
    traffic: I64,
    cause: I64,
    react: I64,
    since: I64,
    closed: I32,
) -> tuple[int, int]:
    """Count completions; (how many rows of ``react`` hold an engine's completion, how many groups ended).

    ``react`` receives the row numbers of completions that the engine waits for, ``since``
    from when on that was certain, ``closed`` handles.
    (k, -1): row k belongs to a group that has ended or never began, or has a negative number.
    """
    num_react = 0
    num_closed = 0
    last_fct = -1
    last_bin = 0
    at = 0
    sum_a = digest[DIGEST_A]
    sum_b = digest[DIGEST_B]
    for k in range(len(handle)):
        flow = index[k]
        if not 0 <= handle[k] < len(handles) or flow < 0 or handles[handle[k]].left <= 0:
            return k, -1
        h = handles[handle[k]]
        low = int(h.block)
        high = low + h.num_blocks
        if not low <= at < high or blocks[at].base > flow or (at + 1 < high and blocks[at + 1].base <= flow):
            at = low
            while high - at > 1:
                middle = (at + high) >> 1
                if blocks[middle].base <= flow:
                    at = middle
                else:
                    high = middle
        block = blocks[at]
        state = mix(np.uint64(h.key_high) + _GOLDEN)
        state = mix(state + np.uint64(h.key_low + flow) + _GOLDEN)
        state = mix(state + np.uint64(time[k]) + _GOLDEN)
        sum_a += state
        sum_b += mix(state ^ _GOLDEN)
        if flow >= h.react_from:
            react[num_react] = k
            since[num_react] = cause[k]
            num_react += 1
        h.left -= 1
        if h.left == 0:
            closed[num_closed] = handle[k]
            num_closed += 1
        row = block.row + (flow - block.base) % block.rows
        one = info[h.info + row]
        if one < 0:
            continue
        took = time[k] - start[k]
        if took != last_fct:
            last_fct = took
            last_bin = _fct_bin(took)
            counts[FCT_MIN] = min(counts[FCT_MIN], took)
            counts[FCT_MAX] = max(counts[FCT_MAX], took)
        fct[last_bin] += 1
        counts[FCT_SUM] += took
        counts[MESSAGES] += 1
        while time[k] >= len(traffic) * counts[TRAFFIC_BIN]:
            half = len(traffic) // 2
            for b in range(half):
                for pair in range(traffic.shape[1]):
                    traffic[b, pair] = traffic[2 * b, pair] + traffic[2 * b + 1, pair]
            traffic[half:, :] = 0
            counts[TRAFFIC_BIN] *= 2
        traffic[time[k] // counts[TRAFFIC_BIN], one >> SIZE_BITS] += one & ((1 << SIZE_BITS) - 1)
    digest[DIGEST_A] = sum_a
    digest[DIGEST_B] = sum_b
    return num_react, num_closed
