"""The order of flows that reach something at the same instant: by cause, endpoint they come from, key.

``cause`` is when it became certain that they would; so they are in the order in which an event list that
serves events of one time first come, first served would hold them, but independent of the order in which
they were given.
"""

from __future__ import annotations

from cosim.network.core import Core
from cosim.network.flows import I32
from cosim.network.jit import internal


@internal
def before(core: Core, a: int, b: int) -> bool:
    """Whether event a comes before event b."""
    first = core.calendar.events[a]
    second = core.calendar.events[b]
    if first.cause != second.cause:
        return bool(first.cause < second.cause)
    one = core.store.groups[first.handle]
    two = core.store.groups[second.handle]
    from_one = core.path_source[one.path + first.row]
    from_two = core.path_source[two.path + second.row]
    if from_one != from_two:
        return bool(from_one < from_two)
    of_one = core.store.reps[first.rep]
    of_two = core.store.reps[second.rep]
    if one.key_high != two.key_high:
        return bool(one.key_high < two.key_high)
    low_one = one.key_low + of_one.base + first.row - of_one.row
    low_two = two.key_low + of_two.base + second.row - of_two.row
    return bool(low_one < low_two)


@internal
def sort_instant(core: Core, instant: I32, source: I32, target: I32, count: int) -> None:
    """Sort ``instant[:count]`` by :func:`before`: bottom-up merges, stable, none where it is sorted."""
    in_order = True
    for k in range(1, count):
        if before(core, instant[k], instant[k - 1]):
            in_order = False
            break
    if in_order:
        return
    for k in range(count):
        source[k] = instant[k]
    width = 1
    while width < count:
        low = 0
        while low < count:
            middle = min(low + width, count)
            high = min(low + 2 * width, count)
            a = low
            b = middle
            for k in range(low, high):
                if a < middle and (b >= high or not before(core, source[b], source[a])):
                    target[k] = source[a]
                    a += 1
                else:
                    target[k] = source[b]
                    b += 1
            low = high
        source, target = target, source
        width *= 2
    for k in range(count):
        instant[k] = source[k]
