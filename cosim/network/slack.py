"""Links with room to spare, which a filling need not look at.

A link that is never full holds nobody back, and has no part in anybody's level: rates that other links allow,
and that fit on it with room to spare, are max-min fair with it, too. So where levels change it is not looked
at, but only counts what its flows take of it: parts of :data:`WHOLE`, rounded once for each flow and level,
so that their sum is exact, and the same in whatever order they come and go. When all levels are known, each
link that was left alone has to have room still. Where one has none, it is filled next, as if all its flows
had just come, and what differs for that.

Nor is a link with room looked at where a flow comes that another link of its path will hold back before it
takes that room, as far as can be said beforehand.

A link's flows are in the order in which they were frozen, but for those of a link that has room: it may only
differ from the beginning of a filling, which orders them anew, and never within one.
"""

from __future__ import annotations

import numpy as np

from cosim.network.calendar import Records
from cosim.network.fluid import CAME, NO_CLASS, NONE, Fluid, mark
from cosim.network.jit import inlined, once

WHOLE = 1 << 42
"""A link's capacity: so fine that a million roundings are below what :data:`NEARLY` leaves, and so coarse
that two million flows that take all of it each are less than 2^63.
"""
NEARLY = WHOLE - (1 << 22)
"""A millionth is left: a link is full at a level that is so much higher than any on it, where links that are
full at the same level, but for rounding, are within 10^-12.
"""
WARY = 1
"""So often a link is looked at after it was full, before it is taken to have room."""
_WARIER = 2
"""The same of one that had none after all: filling twice costs more than looking a few times."""


@inlined
def part_of(capacity: float, level: float, weight: int) -> int:
    """What a flow takes of a link of that capacity, of :data:`WHOLE`."""
    if level <= 0.0 or capacity == 0.0:
        return 0
    # More than all is only met before a link that has no room after all is filled, or after one slowed down.
    return int(min(level * weight / capacity, 1.0) * WHOLE + 0.5)


@inlined
def most_rate(link: Records, priority: int, weight: int) -> float:
    """About what a flow that comes to a link gets there at most, bytes per ps.

    Where the link was full, it was so at a level that is hardly higher with one flow more. Else it is full
    with what it has left, or where two flows at least are frozen, which then have half of it each.
    """
    if link.full_priority == priority:
        return float(link.full_level * weight)
    if link.full_priority != NO_CLASS:
        return float(np.inf)
    return float(link.capacity * max(1.0 - float(link.load) / WHOLE, 0.5))


@inlined
def has_room_for(link: Records, rate: float) -> bool:
    """Whether a link that has room seems to have some for another flow, at such a rate, too."""
    return bool(link.room != 0 and float(NEARLY - link.load) * link.capacity >= rate * WHOLE)


@inlined
def is_alone(fluid: Fluid, number: int) -> bool:
    """Whether a link has one flow only, which meets no other on its other links either."""
    m = fluid.links[number].first
    if m == NONE or fluid.members[m].after != NONE:
        return False
    one = fluid.flows[fluid.members[m].flow].member
    while one != NONE:
        member = fluid.members[one]
        if member.before != NONE or member.after != NONE:
            return False
        one = member.sibling
    return True


@inlined
def used(link: Records) -> float:
    """Bytes per ps that a link carries."""
    if link.full_priority != NO_CLASS:
        return float(link.capacity)
    return float(min(float(link.load) / WHOLE, 1.0) * link.capacity)


@inlined
def see_room(link: Records) -> None:
    """Whether a link has room from now on: all its flows have their levels.

    To say that it was not full is not enough: where flows cross two links that are full at the same level,
    one freezes them, and the other is found with nothing that rises. A dead one is full with no load.
    """
    some = link.capacity > 0.0 and link.load <= NEARLY
    link.room = 1 if some and link.full_priority == NO_CLASS and link.wary == 0 else 0


@inlined
def keep_in_mind(fluid: Fluid, number: int) -> None:
    """What a link carries may be another part of it when all levels are known."""
    link = fluid.links[number]
    if link.kept == 0:
        link.kept = 1
        fluid.kept[fluid.counts[0].num_kept] = number
        fluid.counts[0].num_kept += 1


@inlined
def recount(fluid: Fluid, number: int) -> None:
    """What flows take of a link is another part of it, for its capacity has changed."""
    link = fluid.links[number]
    link.load = 0
    m = link.first
    while m != NONE:
        member = fluid.members[m]
        link.load += part_of(link.capacity, fluid.flows[member.flow].level, member.weight)
        m = member.after


@once
def is_sound(fluid: Fluid) -> bool:
    """Whether all links that a filling left alone have room still; those that have none are to be filled."""
    counts = fluid.counts[0]
    for k in range(counts.num_kept):
        link = fluid.links[fluid.kept[k]]
        if link.room != 0 and link.load > NEARLY:
            link.room = 0
            link.wary = max(link.wary, _WARIER)
            mark(fluid, fluid.kept[k], CAME)
    return bool(counts.num_dirty == 0)
