"""A binary heap of events by (time, high, low), in a structured array: what comes next in the engine."""

from __future__ import annotations

from cosim.network.calendar import Records
from cosim.network.jit import inlined, internal


@inlined
def is_before(one: Records, other: Records) -> bool:
    """Whether an event comes before another one."""
    return bool(
        one.time < other.time
        or (
            one.time == other.time
            and (one.high < other.high or (one.high == other.high and one.low < other.low))
        )
    )


@internal
def push(heap: Records, count: int, time: int, high: int, low: int, cause: int, a: int, b: int) -> int:
    """Add an event to a heap of ``count``, which has room; the new count."""
    # Those above slide down into the gap, one copy a level where swapping takes three.
    at = count
    while at > 0:
        parent = (at - 1) >> 1
        one = heap[parent]
        if one.time < time or (
            one.time == time and (one.high < high or (one.high == high and one.low <= low))
        ):
            break
        heap[at] = one
        at = parent
    put = heap[at]
    put.time = time
    put.high = high
    put.low = low
    put.cause = cause
    put.a = a
    put.b = b
    return count + 1


@internal
def pop(heap: Records, count: int) -> int:
    """Remove the first event of a heap of ``count``; the new count."""
    # The last one fills the gap at the head, and sinks from there to where it belongs.
    count -= 1
    last = heap[count]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        one = heap[child]
        if child + 1 < count:
            other = heap[child + 1]
            if is_before(other, one):
                one = other
                child += 1
        if not is_before(one, last):
            break
        heap[at] = one
        at = child
    heap[at] = last
    return count
