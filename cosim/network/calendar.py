"""The calendar of a compiled network: events by instant, in constant time for instants that recur.

Symmetric traffic puts thousands of events on the same instant, irregular traffic one on each. So events
hang in *buckets*, one for each distinct time; a hash table finds the bucket of a time, and a binary heap
orders the buckets. Pushing to a known instant costs no heap operation.

The order of events within an instant is the model's affair (see ``aware``); the calendar keeps none.
All functions are compiled, work on plain arrays, and never allocate: the caller checks :func:`room`
first, and grows the arrays in Python.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cosim.network.flows import I32, I64
from cosim.network.jit import compiled, inlined

HEAP_N, EVENT_N, EVENT_FREE, EVENT_TOP, BUCKET_FREE, BUCKET_TOP, HASH_SHIFT = range(7)
"""Scalars in ``Calendar.meta``."""

EVENT = np.dtype(
    [
        ("cause", "i8"),
        ("origin", "i8"),
        ("handle", "i4"),
        ("rep", "i4"),
        ("row", "i4"),
        ("hop", "i4"),
        ("next", "i4"),
        ("pad", "i4"),
    ]
)
"""``cause``: when it became certain; ``origin``: when its flow started; ``hop``: what it is about."""
BUCKET = np.dtype([("time", "i8"), ("head", "i4"), ("tail", "i4")])
HEAP = np.dtype([("time", "i8"), ("bucket", "i8")])

Records = Any
"""A structured array; numba reads its fields as attributes."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_NONE = -1


class Calendar(NamedTuple):
    """The arrays, in the order in which every function here takes them.

    Free lists run through ``next`` and ``head``; what was never used lies from EVENT_TOP and BUCKET_TOP
    on, untouched, so that a large calendar costs nothing before it is filled. ``hashes`` holds bucket + 1.
    """

    meta: I64
    events: Records
    buckets: Records
    hashes: I32
    heap: Records


def make_calendar(capacity: int) -> Calendar:
    """An empty calendar for ``capacity`` (a power of two) events."""
    meta = np.zeros(8, np.int64)
    meta[HASH_SHIFT] = 64 - (2 * capacity).bit_length() + 1
    meta[EVENT_FREE] = meta[BUCKET_FREE] = _NONE
    return Calendar(
        meta,
        np.zeros(capacity, EVENT),
        np.zeros(capacity, BUCKET),
        np.zeros(2 * capacity, np.int32),
        np.zeros(capacity, HEAP),
    )


def grown(old: Calendar, capacity: int) -> Calendar:
    """The same calendar with more room (a power of two); events and buckets keep their numbers."""
    new = make_calendar(capacity)
    new.meta[:HASH_SHIFT] = old.meta[:HASH_SHIFT]
    for one, other, used in (
        (new.events, old.events, EVENT_TOP),
        (new.buckets, old.buckets, BUCKET_TOP),
        (new.heap, old.heap, HEAP_N),
    ):
        one[: old.meta[used]] = other[: old.meta[used]]
    _fill_hashes(new.meta, new.hashes, new.heap)
    return new


@compiled
def _fill_hashes(meta: I64, hashes: I32, heap: Records) -> None:
    mask = len(hashes) - 1
    for place in range(meta[HEAP_N]):
        slot = _home(meta, heap[place].time)
        while hashes[slot] != 0:
            slot = (slot + 1) & mask
        hashes[slot] = heap[place].bucket + 1


@inlined
def room(meta: I64, events: Records, count: int) -> bool:
    """Whether ``count`` more events fit."""
    return bool(meta[EVENT_N] + count <= len(events))


@inlined
def _home(meta: I64, time: int) -> np.int64:
    return np.int64((np.uint64(time) * _GOLDEN) >> np.uint64(meta[HASH_SHIFT]))


@inlined
def push(
    meta: I64,
    events: Records,
    buckets: Records,
    hashes: I32,
    heap: Records,
    time: int,
    cause: int,
    origin: int,
    handle: int,
    rep: int,
    row: int,
    hop: int,
) -> None:
    """Add an event; the caller has checked :func:`room`."""
    at = meta[EVENT_FREE]
    if at == _NONE:
        at = meta[EVENT_TOP]
        meta[EVENT_TOP] = at + 1
    else:
        meta[EVENT_FREE] = events[at].next
    meta[EVENT_N] += 1
    event = events[at]
    event.cause = cause
    event.origin = origin
    event.handle = handle
    event.rep = rep
    event.row = row
    event.hop = hop
    event.next = _NONE
    mask = len(hashes) - 1
    slot = _home(meta, time)
    while hashes[slot] != 0:
        bucket = buckets[hashes[slot] - 1]
        if bucket.time == time:
            events[bucket.tail].next = at
            bucket.tail = at
            return
        slot = (slot + 1) & mask
    new = meta[BUCKET_FREE]
    if new == _NONE:
        new = meta[BUCKET_TOP]
        meta[BUCKET_TOP] = new + 1
    else:
        meta[BUCKET_FREE] = buckets[new].head
    hashes[slot] = new + 1
    bucket = buckets[new]
    bucket.time = time
    bucket.head = at
    bucket.tail = at
    place = meta[HEAP_N]
    meta[HEAP_N] = place + 1
    while place > 0:
        parent = (place - 1) >> 1
        if heap[parent].time <= time:
            break
        heap[place].time = heap[parent].time
        heap[place].bucket = heap[parent].bucket
        place = parent
    heap[place].time = time
    heap[place].bucket = new


@inlined
def take_instant(meta: I64, buckets: Records, hashes: I32, heap: Records) -> int:
    """Remove the earliest instant; its first event, chained by ``next``. Free each with :func:`free`."""
    bucket = heap[0].bucket
    head = int(buckets[bucket].head)
    _forget(meta, buckets, hashes, heap[0].time)
    buckets[bucket].head = meta[BUCKET_FREE]
    meta[BUCKET_FREE] = bucket
    last = meta[HEAP_N] - 1
    meta[HEAP_N] = last
    time = heap[last].time
    moved = heap[last].bucket
    place = 0
    while True:
        child = 2 * place + 1
        if child >= last:
            break
        if child + 1 < last and heap[child + 1].time < heap[child].time:
            child += 1
        if heap[child].time >= time:
            break
        heap[place].time = heap[child].time
        heap[place].bucket = heap[child].bucket
        place = child
    heap[place].time = time
    heap[place].bucket = moved
    return head


@inlined
def _forget(meta: I64, buckets: Records, hashes: I32, time: int) -> None:
    """Take a time out of the hash table, closing the gap (linear probing without tombstones)."""
    mask = len(hashes) - 1
    gap = _home(meta, time)
    while buckets[hashes[gap] - 1].time != time:
        gap = (gap + 1) & mask
    probe = gap
    while True:
        probe = (probe + 1) & mask
        if hashes[probe] == 0:
            break
        bucket = hashes[probe] - 1
        if ((probe - _home(meta, buckets[bucket].time)) & mask) >= ((probe - gap) & mask):
            hashes[gap] = bucket + 1
            gap = probe
    hashes[gap] = 0


@inlined
def free(meta: I64, events: Records, at: int) -> None:
    """Give an event back."""
    events[at].next = meta[EVENT_FREE]
    meta[EVENT_FREE] = at
    meta[EVENT_N] -= 1
