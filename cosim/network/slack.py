"""Links with room to spare, which a filling need not look at.

A link that isn't full holds nobody back: what its flows get, other links say. So where their levels change
it is not looked at, but only counts what they take of it: parts of :data:`WHOLE`, rounded once for each flow
and level, so that their sum is exact, and the same in whatever order they come and go. Where it comes near
the whole, the link may have been full before: all is undone, and filled again with that link, and all that
were looked at, from the beginning. Levels are the same, bit by bit, for what is never full has no part in
them.
"""

from __future__ import annotations

from cosim.network.calendar import Records
from cosim.network.fluid import CAME, NO_CLASS, NONE, Fluid, mark
from cosim.network.jit import inlined, once

WHOLE = 1 << 44
"""A link's capacity: so fine that ten thousand roundings are far below what :data:`_NEARLY` leaves."""
_NEARLY = WHOLE - (1 << 24)
WARY = 4
"""So often a link is looked at after it was full, before it is taken to have room: doing a filling again
costs more than looking a few times.
"""


@inlined
def part_of(link: Records, level: float, weight: int) -> int:
    """What a flow takes of a link, of :data:`WHOLE`."""
    if level <= 0.0 or link.capacity == 0.0:
        return 0
    # More than all is only met while a filling that will be undone goes on, or when a link has slowed down.
    return int(min(level * weight / link.capacity, 1.0) * WHOLE + 0.5)


@inlined
def used(link: Records) -> float:
    """Bytes per ps that a link carries."""
    if link.full_priority != NO_CLASS:
        return float(link.capacity)
    return float(min(float(link.load) / WHOLE, 1.0) * link.capacity)


@inlined
def has_room(link: Records) -> bool:
    """Whether a link was not full before, nor lately."""
    return bool(link.full_priority == NO_CLASS and link.wary == 0)


@inlined
def keep_in_mind(fluid: Fluid, number: int) -> None:
    """What a link with room carries has changed."""
    link = fluid.links[number]
    if link.kept == 0:
        link.kept = 1
        fluid.kept[fluid.counts[0].num_kept] = number
        fluid.counts[0].num_kept += 1


@inlined
def take_part(fluid: Fluid, number: int, more: int) -> None:
    """A flow takes ``more`` of a link with room than before."""
    link = fluid.links[number]
    keep_in_mind(fluid, number)
    if more > 0 and link.load > _NEARLY:
        link.wary = WARY
        fluid.counts[0].num_wrong += 1
        mark(fluid, number, CAME)


@inlined
def recount(fluid: Fluid, number: int) -> None:
    """What flows take of a link is another part of it, for its capacity has changed."""
    link = fluid.links[number]
    link.load = 0
    m = link.first
    while m != NONE:
        member = fluid.members[m]
        link.load += part_of(link, fluid.flows[member.flow].level, member.weight)
        m = member.after


@once
def undo(fluid: Fluid) -> None:
    """Links count what flows had before this filling; those that it looked at come first next time."""
    counts = fluid.counts[0]
    counts.num_wrong = 0
    for k in range(counts.num_found):
        flow = fluid.flows[fluid.found[k]]
        if flow.fresh == flow.level:
            continue
        one = flow.member
        while one != NONE:
            member = fluid.members[one]
            link = fluid.links[member.link]
            link.load -= part_of(link, flow.fresh, member.weight) - part_of(link, flow.level, member.weight)
            one = member.sibling
    for k in range(counts.num_reached):
        mark(fluid, fluid.reached[k], CAME)
