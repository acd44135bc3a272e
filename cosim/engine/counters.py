"""Counting completions, compiled: digest, flow completion times, traffic, who reacts.

The digest is a sum, modulo 2^64 and twice with different mixing, of a hash of each (key, time): equal
multisets of completions give equal digests however they were cut into batches or ordered. Hashes are
built with splitmix64's finalizer (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195).
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np

from cosim.engine.flows import let_go
from cosim.engine.heap import push
from cosim.engine.state import ARRIVALS_N, LOG_N, NONE, REACTIONS_N, U64, State
from cosim.network.calendar import Records
from cosim.network.flows import I32, I64
from cosim.network.jit import compiled, inlined, internal, once

DIGEST_A, DIGEST_B = 0, 1
MESSAGES, FCT_MIN, FCT_MAX, FCT_SUM, FCT_CARRIES = range(5)
"""Scalars in ``counts``; the sum of completion times is ``FCT_SUM + FCT_CARRIES * FCT_CARRY``."""

FCT_CARRY = 1 << 62
"""More than any time (``cosim.units.NEVER``): a sum below it takes one more without leaving int64."""

SIZE_BITS = 36
"""A bound row is one int64, bytes below and the number of its (source, destination) pair above, or -1 for a
mark: rows are met in no order, so what counts is how many of them a cache holds.
"""

FCT_BINS = 64 + 56 * 64  # each picosecond below 64, then 64 for each power of two: 1.6 % wide at most
_C1 = np.uint64(0xBF58476D1CE4E5B9)
_C2 = np.uint64(0x94D049BB133111EB)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@inlined
def mix(value: np.uint64) -> np.uint64:
    """splitmix64's finalizer."""
    value = (value ^ (value >> _S30)) * _C1
    value = (value ^ (value >> _S27)) * _C2
    return value ^ (value >> _S31)


def mix_columns(*columns: I64) -> tuple[int, int]:
    """The two digest sums of rows of int64 columns, as :func:`count` makes them of (high, low, time)."""
    step = cast("Any", mix).py_func  # the same in numpy, where columns wrap as registers do
    state = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        state = step(state + column.astype(np.uint64) + GOLDEN)
    return int(state.sum(dtype=np.uint64)), int(step(state ^ GOLDEN).sum(dtype=np.uint64))


@internal
def _block_of(state: State, handle: int, flow: int, near: int) -> int:
    """The block that a flow lies in; ``near``: where the flow before it was found."""
    blocks = state.blocks
    one = state.handles[handle]
    low = int(one.block)
    high = low + one.blocks
    # Neighbours mostly complete together: look where the last one was before searching.
    if (
        low <= near < high
        and blocks[near].base <= flow
        and (near + 1 == high or blocks[near + 1].base > flow)
    ):
        return near
    while high - low > 1:
        middle = (low + high) >> 1
        if blocks[middle].base <= flow:
            low = middle
        else:
            high = middle
    return low


@once
def _list_arrival(state: State, one: int, time: int) -> None:
    """The bytes of a bound row arrived; there is room for that."""
    meta = state.meta
    arrival = state.arrivals[meta[ARRIVALS_N]]
    meta[ARRIVALS_N] += 1
    arrival.time = time
    arrival.row = one


@compiled
def add_to_bins(arrivals: Records, bins: I64, bits: int) -> None:
    """Add the bytes of arrivals to bins of 2^``bits`` ps, [bins, pairs], which reach so far."""
    for k in range(len(arrivals)):
        one = arrivals[k].row
        bins[arrivals[k].time >> bits, one >> SIZE_BITS] += one & ((1 << SIZE_BITS) - 1)


@cache
def fct_edges() -> I64:
    """Edges of the flow completion time bins, ps: exact below 64, then 64 to each power of two."""
    fine = np.arange(64, dtype=np.int64)
    coarse = ((np.arange(64, dtype=np.int64) + 64)[None, :] << np.arange(56, dtype=np.int64)[:, None]).ravel()
    edges = np.append(np.concatenate([fine, coarse]), np.int64(2**62))
    edges.flags.writeable = False
    return edges


@inlined
def hash_completion(key_high: int, key_low: int, time: int) -> np.uint64:
    """What a flow's completion adds to the first sum of the digest."""
    hashed = mix(np.uint64(key_high) + GOLDEN)
    hashed = mix(hashed + np.uint64(key_low) + GOLDEN)
    return mix(hashed + np.uint64(time) + GOLDEN)


@inlined
def count_time(counts: I64, took: int) -> None:
    """Count a message that took so long, but for its bin."""
    counts[FCT_MIN] = min(counts[FCT_MIN], took)
    counts[FCT_MAX] = max(counts[FCT_MAX], took)
    counts[FCT_SUM] += took
    if counts[FCT_SUM] >= FCT_CARRY:
        counts[FCT_SUM] -= FCT_CARRY
        counts[FCT_CARRIES] += 1
    counts[MESSAGES] += 1


@inlined
def fct_bin(value: int) -> int:
    """The bin of a flow completion time; see :func:`fct_edges`."""
    if value < 64:
        return value
    shift = 0
    # By bisection: how far to shift until seven bits are left, the first of them set.
    for step in (32, 16, 8, 4, 2, 1):
        if value >> (shift + step) >= 64:
            shift += step
    return 64 + shift * 64 + (value >> shift) - 64


@once
def _react_later(state: State, handle: int, flow: int, time: int, cause: int) -> None:
    """The engine waits for this flow: it is looked at when its time comes."""
    meta = state.meta
    h = state.handles[handle]
    # A network reports in no particular order, but queues are first come: so by key.
    meta[REACTIONS_N] = push(
        state.reactions,
        meta[REACTIONS_N],
        time,
        h.key_high,
        h.key_low + flow,
        cause,
        handle,
        int(flow - h.react_from),
    )


@compiled
def count(state: State, handle: I32, index: I64, start: I64, time: I64, cause: I64, number: int) -> int:
    """Count completions; those that the engine waits for go to the reactions, which have room, as
    the list of arrivals has.

    Returns NONE, or the number of a row whose group has ended or never began, whose index is negative, or
    which ends before it starts, or starts before 0.
    """
    counts = state.counts
    handles = state.handles
    last_fct = -1
    last_bin = 0
    near = 0
    # Of the completion before: its group, the first flow of its repetition, how many rows that has, and where
    # they are. Neighbours are mostly of one.
    group = -1
    first = np.int64(0)
    rows = np.int64(0)
    info = np.int64(0)
    sum_a = state.digest[DIGEST_A]
    sum_b = state.digest[DIGEST_B]
    for k in range(number):
        flow = index[k]
        # A network elsewhere may report anything: nothing is indexed by it before it is looked at.
        if not 0 <= handle[k] < len(handles) or flow < 0 or handles[handle[k]].left <= 0:
            return k
        if not 0 <= start[k] <= time[k]:
            return k
        h = handles[handle[k]]
        hashed = hash_completion(h.key_high, h.key_low + flow, time[k])
        sum_a += hashed
        sum_b += mix(hashed ^ GOLDEN)
        if flow >= h.react_from:
            _react_later(state, handle[k], flow, time[k], cause[k])
        if handle[k] != group or not first <= flow < first + rows:
            near = _block_of(state, handle[k], flow, near)
            block = state.blocks[near]
            group = handle[k]
            rows = np.int64(block.rows)
            first = flow - (flow - block.base) % rows
            info = np.int64(h.info + block.row)
        one = state.info[info + flow - first]
        h.left -= 1
        if h.left == 0:
            let_go(state, handle[k])
        # A mark carries no bytes between endpoints: it is in the digest, and in no statistics.
        if one < 0:
            continue
        took = time[k] - start[k]
        # Equal messages of a collective take equally long: their bin is searched for once.
        if took != last_fct:
            last_fct = took
            last_bin = fct_bin(took)
        state.fct[last_bin] += 1
        count_time(counts, took)
        _list_arrival(state, one, time[k])
    state.digest[DIGEST_A] = sum_a
    state.digest[DIGEST_B] = sum_b
    return NONE


@inlined
def add_operation(digest: U64, job: int, rank: int, record: Records) -> None:
    """Fold an operation of a job's rank, as it is logged, into a digest."""
    value = mix(np.uint64(job) + GOLDEN)
    value = mix(value + np.uint64(record.iteration) + GOLDEN)
    value = mix(value + np.uint64(rank) + GOLDEN)
    value = mix(value + np.uint64(record.op) + GOLDEN)
    value = mix(value + np.uint64(record.start) + GOLDEN)
    value = mix(value + np.uint64(record.end) + GOLDEN)
    digest[DIGEST_A] += value
    digest[DIGEST_B] += mix(value ^ GOLDEN)


@internal
def count_operation(state: State) -> None:
    """Fold the last logged operation into the digest of operations."""
    record = state.log[state.meta[LOG_N] - 1]
    rank = state.ranks[record.rank]
    add_operation(state.op_digest, rank.job, rank.number, record)
