"""Moments of a filling, (class, level), in a heap: the next one at which something may be full."""

from __future__ import annotations

from cosim.network.calendar import Records
from cosim.network.jit import inlined, internal


@inlined
def is_before(priority: int, level: float, other_priority: int, other_level: float) -> bool:
    """Whether a moment comes before another one."""
    return bool(priority < other_priority or (priority == other_priority and level < other_level))


@inlined
def _put(moment: Records, priority: int, level: float, what: int) -> None:
    """Field by field: a record as a whole would be copied byte by byte."""
    moment.priority = priority
    moment.level = level
    moment.what = what


@internal
def push_moment(heap: Records, count: int, priority: int, level: float, what: int) -> int:
    """Put a moment into a heap of ``count``, which has room; the new count."""
    at = count
    while at > 0:
        parent = (at - 1) >> 1
        one = heap[parent]
        if not is_before(priority, level, one.priority, one.level):
            break
        _put(heap[at], one.priority, one.level, one.what)
        at = parent
    _put(heap[at], priority, level, what)
    return count + 1


@internal
def replace_moment(heap: Records, count: int, priority: int, level: float, what: int) -> None:
    """Put a moment where the first one of a heap of ``count`` is, which it follows."""
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
        if not is_before(one.priority, one.level, priority, level):
            break
        _put(heap[at], one.priority, one.level, one.what)
        at = child
    _put(heap[at], priority, level, what)


@inlined
def pop_moment(heap: Records, count: int) -> int:
    """Remove the first moment of a heap of ``count``; the new count."""
    count -= 1
    last = heap[count]
    replace_moment(heap, count, last.priority, last.level, last.what)
    return count
