"""Moments of a filling, (class, level), in a heap: the next one at which something may be full."""

from __future__ import annotations

from cosim.network.calendar import Records
from cosim.network.jit import inlined, internal


@inlined
def is_before(priority: int, level: float, other_priority: int, other_level: float) -> bool:
    """Whether a moment comes before another one."""
    return bool(priority < other_priority or (priority == other_priority and level < other_level))


@internal
def push_moment(heap: Records, count: int, priority: int, level: float, what: int) -> int:
    """Put a moment into a heap of ``count``, which has room; the new count."""
    at = count
    while at > 0:
        parent = (at - 1) >> 1
        one = heap[parent]
        if not is_before(priority, level, one.priority, one.level):
            break
        heap[at] = one
        at = parent
    put = heap[at]
    put.priority = priority
    put.level = level
    put.what = what
    return count + 1


@internal
def pop_moment(heap: Records, count: int) -> int:
    """Remove the first moment of a heap of ``count``; the new count."""
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
            if is_before(other.priority, other.level, one.priority, one.level):
                one = other
                child += 1
        if not is_before(one.priority, one.level, last.priority, last.level):
            break
        heap[at] = one
        at = child
    heap[at] = last
    return count
