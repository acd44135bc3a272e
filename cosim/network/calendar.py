"""The calendar of a compiled network: events by instant, in constant time for instants that recur.

Symmetric traffic puts thousands of events on the same instant, irregular traffic one on each. So events
hang in *buckets*, one for each distinct time; a hash table finds the bucket of a time, and a binary heap
orders the buckets. Pushing to a known instant costs no heap operation.

The order of events within an instant is the model's affair (see ``aware``); the calendar keeps none.
All functions are compiled and never allocate: the caller checks :func:`room` first, and grows the arrays in
Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cosim.network.arrays import Arrays
from cosim.network.flows import I32
from cosim.network.jit import compiled, inlined, once

STATE = np.dtype(
    [
        ("num_instants", "i8"),
        ("num_events", "i8"),
        ("free_event", "i8"),
        ("events_used", "i8"),
        ("free_bucket", "i8"),
        ("buckets_used", "i8"),
        ("hash_shift", "i8"),
    ]
)
"""How many instants and events there are; where free lists begin, and what was never used."""
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


class Calendar(Arrays):
    """The arrays; ``state`` is one record.

    Free lists run through ``next`` and ``head``; what was never used lies from ``events_used`` and
    ``buckets_used`` on, untouched, so that a large calendar costs nothing before it is filled. ``hashes``
    holds bucket + 1.
    """

    state: Records
    events: Records
    buckets: Records
    hashes: I32
    heap: Records


def make_calendar(capacity: int) -> Calendar:
    """An empty calendar for ``capacity`` (a power of two) events."""
    state = np.zeros(1, STATE)
    state["hash_shift"] = 64 - (2 * capacity).bit_length() + 1
    state["free_event"] = state["free_bucket"] = _NONE
    return Calendar(
        state,
        np.empty(capacity, EVENT),  # these are written before they are read
        np.empty(capacity, BUCKET),
        np.zeros(2 * capacity, np.int32),
        np.empty(capacity, HEAP),
    )


def events_of(calendar: Calendar) -> Iterator[tuple[int, Any]]:
    """The time and the row of each event, in no order."""
    for instant in calendar.heap[: calendar.state["num_instants"][0]]:
        at = calendar.buckets["head"][instant["bucket"]]
        while at != _NONE:
            yield int(instant["time"]), calendar.events[at]
            at = calendar.events["next"][at]


def grown(old: Calendar, capacity: int) -> Calendar:
    """The same calendar with more room (a power of two); events and buckets keep their numbers."""
    new = make_calendar(capacity)
    # Where a time hashes to depends on the table's size: that is filled anew, below.
    shift = new.state["hash_shift"][0]
    new.state[:] = old.state
    new.state["hash_shift"] = shift
    for one, other, used in (
        (new.events, old.events, "events_used"),
        (new.buckets, old.buckets, "buckets_used"),
        (new.heap, old.heap, "num_instants"),
    ):
        count = old.state[used][0]
        one[:count] = other[:count]
    _fill_hashes(new)
    return new


@compiled
def _fill_hashes(calendar: Calendar) -> None:
    hashes = calendar.hashes
    heap = calendar.heap
    mask = len(hashes) - 1
    for place in range(calendar.state[0].num_instants):
        slot = _home(calendar, heap[place].time)
        while hashes[slot] != 0:
            slot = (slot + 1) & mask
        hashes[slot] = heap[place].bucket + 1


@inlined
def room(calendar: Calendar, count: int) -> bool:
    """Whether ``count`` more events fit."""
    return bool(calendar.state[0].num_events + count <= len(calendar.events))


@inlined
def _home(calendar: Calendar, time: int) -> np.int64:
    return np.int64((np.uint64(time) * _GOLDEN) >> np.uint64(calendar.state[0].hash_shift))


@once
def _new_event(
    calendar: Calendar, cause: int, origin: int, handle: int, rep: int, row: int, hop: int
) -> np.int64:
    state = calendar.state[0]
    events = calendar.events
    at = state.free_event
    if at == _NONE:
        at = state.events_used
        state.events_used = at + 1
    else:
        state.free_event = events[at].next
    state.num_events += 1
    event = events[at]
    event.cause = cause
    event.origin = origin
    event.handle = handle
    event.rep = rep
    event.row = row
    event.hop = hop
    event.next = _NONE
    return np.int64(at)


@once
def _open_instant(calendar: Calendar, slot: np.int64, time: int, at: np.int64) -> None:
    """A bucket for a time that no event had, ``at`` the first in it, and its place in the heap."""
    state = calendar.state[0]
    buckets = calendar.buckets
    heap = calendar.heap
    new = state.free_bucket
    if new == _NONE:
        new = state.buckets_used
        state.buckets_used = new + 1
    else:
        state.free_bucket = buckets[new].head
    calendar.hashes[slot] = new + 1
    bucket = buckets[new]
    bucket.time = time
    bucket.head = at
    bucket.tail = at
    place = state.num_instants
    state.num_instants = place + 1
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
def push(
    calendar: Calendar, time: int, cause: int, origin: int, handle: int, rep: int, row: int, hop: int
) -> None:
    """Add an event; the caller has checked :func:`room`.

    Most events fall on an instant that others fall on, too (equal messages of a collective end together): a
    hash table finds it, and the heap holds each instant once.
    """
    at = _new_event(calendar, cause, origin, handle, rep, row, hop)
    buckets = calendar.buckets
    hashes = calendar.hashes
    mask = len(hashes) - 1
    slot = _home(calendar, time)
    while hashes[slot] != 0:
        bucket = buckets[hashes[slot] - 1]
        if bucket.time == time:
            # Behind those that are there: events of an instant are taken in the order in which they came.
            calendar.events[bucket.tail].next = at
            bucket.tail = at
            return
        slot = (slot + 1) & mask
    _open_instant(calendar, slot, time, at)


@once
def take_instant(calendar: Calendar) -> int:
    """Remove the earliest instant; its first event, chained by ``next``. Free each with :func:`free`."""
    state = calendar.state[0]
    buckets = calendar.buckets
    heap = calendar.heap
    bucket = heap[0].bucket
    head = int(buckets[bucket].head)
    _forget(calendar, heap[0].time)
    buckets[bucket].head = state.free_bucket
    state.free_bucket = bucket
    last = state.num_instants - 1
    state.num_instants = last
    # The last of the heap fills the gap at its head, and sinks to where it belongs.
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


@once
def _forget(calendar: Calendar, time: int) -> None:
    """Take a time out of the hash table, closing the gap (linear probing without tombstones)."""
    buckets = calendar.buckets
    hashes = calendar.hashes
    mask = len(hashes) - 1
    gap = _home(calendar, time)
    while buckets[hashes[gap] - 1].time != time:
        gap = (gap + 1) & mask
    probe = gap
    while True:
        probe = (probe + 1) & mask
        if hashes[probe] == 0:
            break
        bucket = hashes[probe] - 1
        # What is nearer to its home than to the gap stays: a search for it does not pass the gap.
        if ((probe - _home(calendar, buckets[bucket].time)) & mask) >= ((probe - gap) & mask):
            hashes[gap] = bucket + 1
            gap = probe
    hashes[gap] = 0


@inlined
def free(calendar: Calendar, at: int) -> None:
    """Give an event back."""
    state = calendar.state[0]
    calendar.events[at].next = state.free_event
    state.free_event = at
    state.num_events -= 1
