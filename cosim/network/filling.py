"""Progressive filling of the links that differ from the filling before: see :mod:`cosim.network.sharing`."""

from __future__ import annotations

import numpy as np

from cosim.network.calendar import Records
from cosim.network.fluid import NO_CLASS, NONE, Fluid
from cosim.network.jit import inlined, internal, once
from cosim.network.levels import expect, full_at, lose, settle_link
from cosim.network.moments import is_before, pop_moment, push_moment, replace_moment
from cosim.network.slack import WARY, keep_in_mind, part_of


@internal
def _go_on(fluid: Fluid, number: int) -> None:
    """The next class of flows rises on a link, if there is one."""
    link = fluid.links[number]
    if link.rising == 0:
        return
    link.priority = NO_CLASS
    m = link.first
    while m != NONE:
        member = fluid.members[m]
        flow = fluid.flows[member.flow]
        m = member.after
        if flow.fresh < 0.0:
            if flow.priority < link.priority:
                link.priority = flow.priority
                link.weight = 0
            if flow.priority == link.priority:
                link.weight += member.weight
    settle_link(link)
    link.level = 0.0
    expect(fluid, number)


@once
def _find(fluid: Fluid, f: int) -> None:
    """A flow is on a link that differs: it rises, to the moment where it was frozen before."""
    counts = fluid.counts[0]
    flow = fluid.flows[f]
    if flow.visit < counts.sharing:  # else an earlier filling of this sharing found it
        fluid.found[counts.num_found] = f
        counts.num_found += 1
    flow.visit = counts.visit
    flow.fresh = -1.0
    counts.num_looked += 1
    counts.num_rising += 1
    if flow.level < 0.0:
        return
    # One moment is enough for all that a link froze there: a heap of links is smaller than one of flows.
    link = fluid.links[flow.by]
    if link.chained != counts.visit:
        link.chained = counts.visit
        link.chain = NONE
    first = link.chain
    if (
        first == NONE
        or fluid.flows[first].level != flow.level
        or fluid.flows[first].priority != flow.priority
    ):
        counts.num_ahead = push_moment(
            fluid.ahead, counts.num_ahead, flow.priority, flow.level, int(np.int64(flow.by))
        )
    flow.chain = first
    link.chain = f


@inlined
def _empty(link: Records) -> None:
    """Nothing rises on a link yet, and nothing was frozen there."""
    link.left = link.capacity
    link.level = 0.0
    link.gone = 0
    link.rising = 0
    link.weight = 0
    link.full_priority = NO_CLASS


@internal
def differ(fluid: Fluid, number: int, priority: int, level: float) -> None:
    """A link differs from the filling before, from a moment on: look at its flows.

    Those that were frozen before that moment are so again, for it did not differ then. They come first, and
    in order: so it loses what it did when it was looked at last, by the same subtractions.
    """
    counts = fluid.counts[0]
    link = fluid.links[number]
    link.visit = counts.visit
    link.room = 0
    keep_in_mind(fluid, number)
    _empty(link)
    if link.wary > 0:
        link.wary -= 1
    past = np.int64(NONE)
    lowest = np.int64(NO_CLASS)
    m = link.first
    while m != NONE:
        member = fluid.members[m]
        f = member.flow
        m = member.after
        flow = fluid.flows[f]
        frozen = flow.fresh
        # Another link that differs may have found it, and have frozen it since: then its level is known. Else
        # it has the level of before, if that was reached before anything here was different.
        if flow.visit != counts.visit:
            if flow.level >= 0.0 and is_before(flow.priority, flow.level, priority, level):
                frozen = flow.level
            else:
                _find(fluid, f)
                frozen = -1.0
        if frozen >= 0.0:
            # Levels of each class begin at 0, on what the classes before have left.
            if flow.priority != past:
                settle_link(link)
                link.level = 0.0
                past = flow.priority
            lose(link, frozen, member.weight)
            continue
        link.rising += 1
        # Lower classes wait, so they weigh nothing yet: _go_on weighs them when their turn comes.
        if flow.priority < lowest:
            lowest = flow.priority
            link.weight = 0
        if flow.priority == lowest:
            link.weight += member.weight
    link.priority = lowest
    if link.rising > 0:
        if lowest != past:
            settle_link(link)
            link.level = 0.0
        expect(fluid, number)


@inlined
def _put_last(fluid: Fluid, m: int, link: Records) -> None:
    """Put a flow at the end of a link's."""
    member = fluid.members[m]
    ahead = member.before
    behind = member.after
    if behind == NONE:
        return
    if ahead != NONE:
        fluid.members[ahead].after = behind
    else:
        link.first = behind
    fluid.members[behind].before = ahead
    fluid.members[link.last].after = m
    member.before = link.last
    member.after = NONE
    link.last = m


@internal
def _freeze(fluid: Fluid, f: int, level: float, by: int) -> None:
    """A link has a flow rise no further. Where that is another level than before, all its links differ but
    those that have room.
    """
    counts = fluid.counts[0]
    flow = fluid.flows[f]
    flow.fresh = level
    flow.by = by
    counts.num_rising -= 1
    more = 0
    capacity = -1.0
    weight = np.int64(0)
    one = flow.member
    while one != NONE:
        member = fluid.members[one]
        number = member.link
        link = fluid.links[number]
        if level != flow.level:
            # Links of a path are mostly alike: what it takes of one is worked out once for all of them.
            if link.capacity != capacity or member.weight != weight:
                capacity = link.capacity
                weight = member.weight
                more = part_of(capacity, level, weight) - part_of(capacity, flow.level, weight)
            link.load += more
        if link.visit == counts.visit:
            lose(link, level, member.weight)
            link.weight -= member.weight
            link.rising -= 1
            # In the order of freezing, so that the next filling that looks at the link takes its flows off it
            # in the same order: floats are subtracted alike, whatever else differed meanwhile.
            _put_last(fluid, one, link)
        elif level != flow.level and link.room != 0:
            keep_in_mind(fluid, number)
        elif level != flow.level:
            differ(fluid, number, flow.priority, level)
        one = fluid.members[one].sibling


@once
def _come_by(fluid: Fluid, f: int, priority: int, level: float) -> None:
    """A flow comes to the moment where it was frozen before: again, or on.

    A link that is full here has never become one that differs: a flow on it would have had to be frozen at
    another level before, or to rise past this one. So the order of flows within a moment doesn't matter.
    """
    visit = fluid.counts[0].visit
    # All links are asked whether they still hold it before any is said to differ: to differ has a price, and
    # one that holds it spares the others. It is mostly the one that did before.
    by = fluid.flows[f].by
    link = fluid.links[by]
    if link.visit != visit and not is_before(priority, level, link.full_priority, link.full_level):
        _freeze(fluid, f, level, by)
        return
    later = 0
    one = fluid.flows[f].member
    while one != NONE:
        number = fluid.members[one].link
        one = fluid.members[one].sibling
        link = fluid.links[number]
        if link.visit != visit:
            if not is_before(priority, level, link.full_priority, link.full_level):
                _freeze(fluid, f, level, number)
                return
            later += link.room == 0
    one = fluid.flows[f].member
    while later > 0:
        number = fluid.members[one].link
        one = fluid.members[one].sibling
        if fluid.links[number].visit != visit and fluid.links[number].room == 0:
            differ(fluid, number, priority, level)
            later -= 1


@once
def _come(fluid: Fluid, number: int, priority: int, level: float) -> None:
    """The flows found that a link froze at a moment before come to it again."""
    link = fluid.links[number]
    f = link.chain
    link.chain = NONE
    while f != NONE:
        flow = fluid.flows[f]
        after = flow.chain
        if flow.fresh < 0.0:
            if flow.priority == priority and flow.level == level:
                _come_by(fluid, f, priority, level)
            else:  # of another class: at a moment of its own
                flow.chain = link.chain
                link.chain = f
        f = after


@once
def _fill_up(fluid: Fluid, number: int, level: float) -> None:
    """A link is full: what rises on it of the class at hand is frozen."""
    link = fluid.links[number]
    priority = link.priority
    if link.full_priority == NO_CLASS:
        link.full_priority = priority
        link.full_level = level
        link.wary = max(link.wary, WARY)
    m = link.first
    # What is frozen goes to the end, behind all that the walk has yet to meet, and it ends where nothing of
    # the class rises: it never meets what it froze itself.
    while link.weight > 0:
        f = fluid.members[m].flow
        m = fluid.members[m].after
        if fluid.flows[f].priority == priority and fluid.flows[f].fresh < 0.0:
            _freeze(fluid, f, level, number)
    link.left = 0.0
    link.gone = 0
    _go_on(fluid, number)


@once
def fill(fluid: Fluid) -> None:
    """Go from moment to moment until nothing rises."""
    counts = fluid.counts[0]
    ahead = fluid.ahead
    while counts.num_rising > 0:
        priority = ahead[0].priority
        level = ahead[0].level
        what = ahead[0].what
        # A link's moment only moves on while flows are frozen elsewhere, so it is not moved in the heap then,
        # but looked at when it comes up: once for many flows.
        if what < 0:
            link = fluid.links[-1 - what]
            at = full_at(link) if link.weight != 0 else 0.0
            if at > level:  # flows on it were frozen since: it comes later
                replace_moment(ahead, counts.num_ahead, priority, at, what)
                continue
        counts.num_ahead = pop_moment(ahead, counts.num_ahead)
        if what >= 0:
            _come(fluid, what, priority, level)
        elif fluid.links[-1 - what].weight == 0:
            # Other links have frozen all of the class that rose here: the link is not full, a class follows.
            _go_on(fluid, -1 - what)
        else:
            _fill_up(fluid, -1 - what, level)
