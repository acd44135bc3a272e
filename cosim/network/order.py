"""The order of flows that reach something at the same instant: by cause, endpoint they come from, key.

``cause`` is when it became certain that they would; so they are in the order in which an event list that
serves events of one time first come, first served would hold them, but independent of the order in which
they were given.
"""

from __future__ import annotations

from cosim.network.calendar import Records
from cosim.network.flows import I32
from cosim.network.jit import compiled


@compiled
def before(events: Records, reps: Records, groups: Records, sources: I32, a: int, b: int) -> bool:
    """Whether event a comes before event b."""
    if events[a].cause != events[b].cause:
        return bool(events[a].cause < events[b].cause)
    one = groups[events[a].handle]
    two = groups[events[b].handle]
    from_one = sources[one.path + events[a].row]
    from_two = sources[two.path + events[b].row]
    if from_one != from_two:
        return bool(from_one < from_two)
    of_one = reps[events[a].rep]
    of_two = reps[events[b].rep]
    if one.key_high != two.key_high:
        return bool(one.key_high < two.key_high)
    first = one.key_low + of_one.base + events[a].row - of_one.row
    return bool(first < two.key_low + of_two.base + events[b].row - of_two.row)


@compiled
def sort_instant(
    events: Records,
    reps: Records,
    groups: Records,
    sources: I32,
    instant: I32,
    source: I32,
    target: I32,
    count: int,
) -> None:
    """Sort ``instant[:count]`` by :func:`before`: bottom-up merges, stable, none where it is sorted."""
    in_order = True
    for k in range(1, count):
        if before(events, reps, groups, sources, instant[k], instant[k - 1]):
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
                if a < middle and (
                    b >= high or not before(events, reps, groups, sources, source[b], source[a])
                ):
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
