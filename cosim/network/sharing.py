"""Weighted max-min rates with strict priorities, for what changed only.

Class by class of priority (0 first; a class gets what those before it left), the level (rate per unit of
weight) of all flows rises until a link is full; its flows are frozen there, and the others go on (progressive
filling). So a *moment* of the filling is (class, level), moments are in order, and what happens at one
depends only on those before it.

A start or a drain marks the links of its path. When time leaves the instant, :func:`share` fills anew, but
only links where something differs from the filling before: marked ones at first. On those, a flow comes to
the moment at which it was frozen before. Where a link of its path was full by then that has not become one of
them, it is frozen there again, and nothing else of it need be known. Otherwise it rises on, or it is frozen
sooner: from that moment on the other links of its path differ too. A link that never differs is not looked
at, nor are the flows that cross no other. The rates are those of filling all links from zero, bit by bit.

Order never matters: weights are whole numbers (billionths), so that their sums are exact; a link loses what
was frozen at a moment by one subtraction, moments in order. A link that would be full within 10^-12 of the
level at which flows on it were frozen is full there. What is left of a link that is full is zero, not dust.

Source: D. Bertsekas, R. Gallager, Data Networks, 2nd ed., section 6.5.2 (max-min flow control).
"""

from __future__ import annotations

import numpy as np

from cosim.network.arrays import Arrays
from cosim.network.balancing.state import Balance
from cosim.network.calendar import Records
from cosim.network.core import Core, add_share
from cosim.network.drains import drain_time, set_drain
from cosim.network.flows import I32, I64
from cosim.network.jit import inlined, internal, once

COUNTS = np.dtype(
    [
        ("num_dirty", "i8"),
        ("num_drains", "i8"),
        ("visit", "i8"),
        ("begin", "i8"),
        ("free_flow", "i8"),
        ("flows_used", "i8"),
        ("free_member", "i8"),
        ("members_used", "i8"),
        ("num_members", "i8"),
        ("num_reached", "i8"),
        ("num_found", "i8"),
        ("num_rising", "i8"),
        ("num_ahead", "i8"),
        ("num_shares", "i8"),
        ("num_looked", "i8"),
        ("num_changed", "i8"),
        ("change", "i8"),
        ("num_changes", "i8"),
        ("more_changes", "i8"),
        ("in_vain", "i8"),
        ("progress", "i8"),
    ]
)
"""``begin``: the flow that transfers next in its channel, plus one; 0: none. Flows and memberships are taken
from free lists, then from the untouched rest that starts at ``_used``. Of the filling number ``visit``: links
``reached``, flows ``found`` on them, how many of those are ``rising``, and moments ``ahead``. In all so far:
fillings (``num_shares``), and flows found in them (``num_looked``). Of the table of changes ``num_changes``
are here, the next is number ``change``; ``more_changes``: there are others. ``in_vain``: changes since the
events numbered ``progress``, the last."""
FLOW = np.dtype(
    [
        ("touched", "i8"),
        ("origin", "i8"),
        ("weight", "i8"),
        ("visit", "i8"),
        ("remaining", "f8"),
        ("rate", "f8"),
        ("level", "f8"),
        ("fresh", "f8"),
        ("handle", "i4"),
        ("rep", "i4"),
        ("row", "i4"),
        ("channel", "i4"),
        ("priority", "i4"),
        ("member", "i4"),
        ("place", "i4"),
        ("next", "i4"),
        ("by", "i4"),
        ("chain", "i4"),
    ]
)
"""A flow that has started and not drained. ``remaining`` bytes at ``touched``, at ``rate`` (bytes per ps)
since; ``level`` at which it was frozen (below 0: never yet) ``by`` a link, ``fresh`` in this filling (below
0: it rises); ``chain``: the next flow found that this link froze; ``member``: its first membership; ``place``
in the heap of drains; ``next`` in its channel."""
MEMBER = np.dtype(
    [
        ("weight", "i8"),
        ("flow", "i4"),
        ("link", "i4"),
        ("before", "i4"),
        ("after", "i4"),
        ("sibling", "i4"),
        ("pad", "i4"),
    ]
)
"""A flow on a link: ``before`` and ``after`` among the link's flows, ``sibling`` on the flow's next link.
``weight`` is the flow's, or the part of it that goes this way. Between fillings, a link's flows are in the
order in which they were frozen.
"""
LINK = np.dtype(
    [
        ("capacity", "f8"),
        ("used", "f8"),
        ("left", "f8"),
        ("level", "f8"),
        ("full_level", "f8"),
        ("latency", "i8"),
        ("since", "i8"),
        ("weight", "i8"),
        ("gone", "i8"),
        ("visit", "i8"),
        ("chained", "i8"),
        ("rising", "i8"),
        ("first", "i4"),
        ("last", "i4"),
        ("chain", "i4"),
        ("dirty", "i4"),
        ("priority", "i4"),
        ("full_priority", "i4"),
    ]
)
"""``capacity`` in bytes per ps, of which ``used`` since ``since``; when it was first full: at ``full_level``
of ``full_priority`` (:data:`_NO_CLASS`: it was not). In a filling: flows that are ``rising``, the lowest
class among them (``priority``) and what that weighs (``weight``); what is ``left`` of it but for ``gone``,
the weight frozen at ``level``, the last moment of its class so far; and the ``chain`` of flows found that it
froze before (if it is ``chained`` in that filling)."""
CLASS = np.dtype([("weight", "i8"), ("priority", "i8")])
"""What a group's flows weigh, in billionths, and their class."""
MOMENT = np.dtype([("level", "f8"), ("priority", "i8"), ("what", "i8")])
"""``what``: a link that froze flows there before, or -1 - a link that is full there at the earliest."""

BPS_PER_BYTE_PS = 8e12
"""Bits per second of a byte in a picosecond."""

_NONE = -1
_NO_CLASS = 2**31 - 1
_TOGETHER = 1.0 + 1e-12
_EMPTY = 1e-12


class Fluid(Arrays):
    """The model's state; ``counts`` is one record. ``channel_of`` runs beside ``path_ptr``, and so does
    ``path_now``: where the links of a path are now; ``classes`` beside the groups. ``ahead`` is a heap of
    moments.
    """

    balance: Balance
    counts: Records
    flows: Records
    members: Records
    links: Records
    drains: Records
    ahead: Records
    channels: Records
    classes: Records
    changes: Records
    path_now: I64
    channel_of: I32
    dirty: I32
    found: I32
    reached: I32
    instant: I32
    spare: I32
    other: I32


@inlined
def mark(fluid: Fluid, link: int) -> None:
    """A flow came to this link, or left it."""
    counts = fluid.counts[0]
    if fluid.links[link].dirty == 0:
        fluid.links[link].dirty = 1
        fluid.dirty[counts.num_dirty] = link
        counts.num_dirty += 1


@inlined
def _is_before(priority: int, level: float, other_priority: int, other_level: float) -> bool:
    """Whether a moment comes before another one."""
    return bool(priority < other_priority or (priority == other_priority and level < other_level))


@internal
def _push(heap: Records, count: int, priority: int, level: float, what: int) -> int:
    """Put a moment into a heap of ``count``, which has room; the new count."""
    at = count
    while at > 0:
        parent = (at - 1) >> 1
        one = heap[parent]
        if not _is_before(priority, level, one.priority, one.level):
            break
        heap[at] = one
        at = parent
    put = heap[at]
    put.priority = priority
    put.level = level
    put.what = what
    return count + 1


@internal
def _pop(heap: Records, count: int) -> int:
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
            if _is_before(other.priority, other.level, one.priority, one.level):
                one = other
                child += 1
        if not _is_before(one.priority, one.level, last.priority, last.level):
            break
        heap[at] = one
        at = child
    heap[at] = last
    return count


@inlined
def _settle(link: Records) -> None:
    """Take what was frozen at the last moment from what is left."""
    left = link.left - link.level * link.gone
    link.left = left if left > link.capacity * _EMPTY else 0.0
    link.gone = 0


@inlined
def _lose(link: Records, level: float, weight: int) -> None:
    """A flow on a link was frozen."""
    if level != link.level:
        _settle(link)
        link.level = level
    link.gone += weight


@inlined
def _full_at(link: Records) -> float:
    """The level at which a link is full if all that rise on it go on."""
    left = link.left - link.level * link.gone
    level = left / link.weight if left > link.capacity * _EMPTY else 0.0
    return float(link.level if level <= link.level * _TOGETHER else level)


@inlined
def _expect(fluid: Fluid, number: int) -> None:
    """A link is full, at the earliest, when what rises there now has filled it."""
    link = fluid.links[number]
    fluid.counts[0].num_ahead = _push(
        fluid.ahead, fluid.counts[0].num_ahead, link.priority, _full_at(link), -1 - number
    )


@internal
def _go_on(fluid: Fluid, number: int) -> None:
    """The next class of flows rises on a link, if there is one."""
    link = fluid.links[number]
    if link.rising == 0:
        return
    link.priority = _NO_CLASS
    m = link.first
    while m != _NONE:
        member = fluid.members[m]
        flow = fluid.flows[member.flow]
        m = member.after
        if flow.fresh < 0.0:
            if flow.priority < link.priority:
                link.priority = flow.priority
                link.weight = 0
            if flow.priority == link.priority:
                link.weight += member.weight
    _settle(link)
    link.level = 0.0
    _expect(fluid, number)


@internal
def _find(fluid: Fluid, f: int) -> None:
    """A flow is on a link that differs: it rises, to the moment where it was frozen before."""
    counts = fluid.counts[0]
    flow = fluid.flows[f]
    flow.visit = counts.visit
    flow.fresh = -1.0
    fluid.found[counts.num_found] = f
    counts.num_found += 1
    counts.num_rising += 1
    if flow.level < 0.0:
        return
    # One moment is enough for all that a link froze there: a heap of links is smaller than one of flows.
    link = fluid.links[flow.by]
    if link.chained != counts.visit:
        link.chained = counts.visit
        link.chain = _NONE
    first = link.chain
    if (
        first == _NONE
        or fluid.flows[first].level != flow.level
        or fluid.flows[first].priority != flow.priority
    ):
        counts.num_ahead = _push(
            fluid.ahead, counts.num_ahead, flow.priority, flow.level, int(np.int64(flow.by))
        )
    flow.chain = first
    link.chain = f


@internal
def _differ(fluid: Fluid, number: int, priority: int, level: float) -> None:
    """A link differs from the filling before, from a moment on: look at its flows.

    Those that were frozen before that moment are so again, for it did not differ then. They come first, and
    in order: so it loses what it did when it was looked at last, by the same subtractions.
    """
    counts = fluid.counts[0]
    link = fluid.links[number]
    link.visit = counts.visit
    fluid.reached[counts.num_reached] = number
    counts.num_reached += 1
    link.left = link.capacity
    link.level = 0.0
    link.gone = 0
    link.rising = 0
    link.weight = 0
    link.full_priority = _NO_CLASS
    past = np.int64(_NONE)
    lowest = np.int64(_NO_CLASS)
    m = link.first
    while m != _NONE:
        member = fluid.members[m]
        f = member.flow
        m = member.after
        flow = fluid.flows[f]
        frozen = flow.fresh
        if flow.visit != counts.visit:
            if flow.level >= 0.0 and _is_before(flow.priority, flow.level, priority, level):
                frozen = flow.level
            else:
                _find(fluid, f)
                frozen = -1.0
        if frozen >= 0.0:
            if flow.priority != past:
                _settle(link)
                link.level = 0.0
                past = flow.priority
            _lose(link, frozen, member.weight)
            continue
        link.rising += 1
        if flow.priority < lowest:
            lowest = flow.priority
            link.weight = 0
        if flow.priority == lowest:
            link.weight += member.weight
    link.priority = lowest
    if link.rising > 0:
        if lowest != past:
            _settle(link)
            link.level = 0.0
        _expect(fluid, number)


@inlined
def _put_last(fluid: Fluid, m: int, link: Records) -> None:
    """Put a flow at the end of a link's."""
    member = fluid.members[m]
    ahead = member.before
    behind = member.after
    if behind == _NONE:
        return
    if ahead != _NONE:
        fluid.members[ahead].after = behind
    else:
        link.first = behind
    fluid.members[behind].before = ahead
    fluid.members[link.last].after = m
    member.before = link.last
    member.after = _NONE
    link.last = m


@internal
def _freeze(fluid: Fluid, f: int, level: float, by: int) -> None:
    """A link has a flow rise no further. Where that is another level than before, all its links differ."""
    counts = fluid.counts[0]
    flow = fluid.flows[f]
    flow.fresh = level
    flow.by = by
    counts.num_rising -= 1
    one = flow.member
    while one != _NONE:
        member = fluid.members[one]
        number = member.link
        link = fluid.links[number]
        if link.visit == counts.visit:
            _lose(link, level, member.weight)
            link.weight -= member.weight
            link.rising -= 1
            _put_last(fluid, one, link)
        elif level != flow.level:
            _differ(fluid, number, flow.priority, level)
        one = fluid.members[one].sibling


@once
def _come_by(fluid: Fluid, f: int, priority: int, level: float) -> None:
    """A flow comes to the moment where it was frozen before: again, or on.

    A link that is full here has never become one that differs: a flow on it would have had to be frozen at
    another level before, or to rise past this one. So the order of flows within a moment doesn't matter.
    """
    visit = fluid.counts[0].visit
    one = fluid.flows[f].member
    while one != _NONE:
        number = fluid.members[one].link
        one = fluid.members[one].sibling
        link = fluid.links[number]
        if link.visit != visit and not _is_before(priority, level, link.full_priority, link.full_level):
            _freeze(fluid, f, level, number)
            return
    one = fluid.flows[f].member
    while one != _NONE:
        number = fluid.members[one].link
        one = fluid.members[one].sibling
        if fluid.links[number].visit != visit:
            _differ(fluid, number, priority, level)


@once
def _come(fluid: Fluid, number: int, priority: int, level: float) -> None:
    """The flows found that a link froze at a moment before come to it again."""
    link = fluid.links[number]
    f = link.chain
    link.chain = _NONE
    while f != _NONE:
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
    if link.full_priority == _NO_CLASS:
        link.full_priority = priority
        link.full_level = level
    m = link.first
    while link.weight > 0:  # those frozen go to the end
        f = fluid.members[m].flow
        m = fluid.members[m].after
        if fluid.flows[f].priority == priority and fluid.flows[f].fresh < 0.0:
            _freeze(fluid, f, level, number)
    link.left = 0.0
    link.gone = 0
    _go_on(fluid, number)


@once
def _fill(fluid: Fluid) -> None:
    """Go from moment to moment until nothing rises."""
    counts = fluid.counts[0]
    ahead = fluid.ahead
    while counts.num_rising > 0:
        priority = ahead[0].priority
        level = ahead[0].level
        what = ahead[0].what
        counts.num_ahead = _pop(ahead, counts.num_ahead)
        if what >= 0:
            _come(fluid, what, priority, level)
            continue
        number = -1 - what
        link = fluid.links[number]
        if link.weight == 0:
            _go_on(fluid, number)
            continue
        full_at = _full_at(link)
        if full_at > level:  # flows on it were frozen since: it comes later
            counts.num_ahead = _push(ahead, counts.num_ahead, priority, full_at, what)
        else:
            _fill_up(fluid, number, level)


@inlined
def _rate(fluid: Fluid, f: int) -> float:
    """What a flow gets; one that meets no other has just the rate of its slowest link."""
    flow = fluid.flows[f]
    rate = np.inf
    one = flow.member
    while one != _NONE:
        member = fluid.members[one]
        if member.before != _NONE or member.after != _NONE:
            return float(flow.fresh * flow.weight)
        most = fluid.links[member.link].capacity
        if member.weight != flow.weight:  # a part of it
            most = most / member.weight * flow.weight
        rate = min(rate, most)
        one = member.sibling
    return float(rate)


@once
def _apply(core: Core, fluid: Fluid, now: int) -> None:
    """Bring new rates into force, where they differ from those before."""
    counts = fluid.counts[0]
    for k in range(counts.num_reached):
        link = fluid.links[fluid.reached[k]]
        used = link.capacity - max(link.left - link.level * link.gone, 0.0)
        if used != link.used:
            if link.used > 0.0:
                add_share(core, fluid.reached[k], link.since, now, link.used / link.capacity)
            link.used = used
            link.since = now
    for k in range(counts.num_found):
        flow = fluid.flows[fluid.found[k]]
        flow.level = flow.fresh
        rate = _rate(fluid, fluid.found[k])
        if rate != flow.rate:
            counts.num_changed += 1
            sent = flow.rate * (now - flow.touched)
            flow.remaining = max(flow.remaining - sent, 0.0)
            flow.touched = now
            flow.rate = rate
            when = drain_time(now, flow.remaining, flow.rate)
            counts.num_drains = set_drain(
                counts.num_drains, fluid.drains, fluid.flows, int(fluid.found[k]), when
            )


@once
def share(core: Core, fluid: Fluid, now: int) -> None:
    """Give every flow its rate from ``now`` on, where a link was marked."""
    counts = fluid.counts[0]
    counts.visit += 1
    counts.num_reached = 0
    counts.num_found = 0
    counts.num_rising = 0
    counts.num_ahead = 0
    for d in range(counts.num_dirty):
        number = fluid.dirty[d]
        fluid.links[number].dirty = 0
        if fluid.links[number].visit != counts.visit:
            _differ(fluid, number, _NONE, 0.0)
    counts.num_dirty = 0
    _fill(fluid)
    _apply(core, fluid, now)
    counts.num_shares += 1
    counts.num_looked += counts.num_found
