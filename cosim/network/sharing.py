"""Weighted max-min rates with strict priorities, for what changed only.

Flows and links form a graph: a flow touches the links on its path. A start or a drain marks those links;
when time leaves the instant, :func:`share` takes the connected components that marked links lie in, and
works out the rates of each by itself. So a component's rates are a function of its flows alone, and no
other flow is looked at.

Within a component, class by class of priority (0 first; a class gets what those before it left), the
level (rate per unit of weight) of all flows rises until a link is full; its flows are frozen there, and
the others go on (progressive filling). Links that are full at the same level, but for 10^-12 of it, are full
together. Levels live in a heap of lower bounds, for they only rise.

Order never matters: weights are whole numbers (billionths), so that their sums are exact; a link
loses what was frozen in a round by one subtraction; rounds go by level. What is left of a link that is full
is zero, not dust.

Source: D. Bertsekas, R. Gallager, Data Networks, 2nd ed., section 6.5.2 (max-min flow control).
"""

from __future__ import annotations

import numpy as np

from cosim.network.arrays import Arrays
from cosim.network.calendar import Records
from cosim.network.core import Core, add_share
from cosim.network.drains import drain_time, set_drain
from cosim.network.flows import I32
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
    ]
)
"""``begin``: the flow that transfers next in its channel, plus one; 0: none. Flows and memberships are taken
from free lists, then from the untouched rest that starts at ``_used``."""
FLOW = np.dtype(
    [
        ("touched", "i8"),
        ("origin", "i8"),
        ("weight", "i8"),
        ("visit", "i8"),
        ("remaining", "f8"),
        ("rate", "f8"),
        ("fresh", "f8"),
        ("handle", "i4"),
        ("rep", "i4"),
        ("row", "i4"),
        ("channel", "i4"),
        ("priority", "i4"),
        ("member", "i4"),
        ("place", "i4"),
        ("next", "i4"),
    ]
)
"""A flow that has started and not drained. ``remaining`` bytes at ``touched``, at ``rate`` (bytes per ps)
since; ``fresh``: the rate being worked out; ``member``: its first membership; ``place`` in the heap of
drains; ``next`` in its channel."""
MEMBER = np.dtype([("flow", "i4"), ("link", "i4"), ("before", "i4"), ("after", "i4"), ("sibling", "i4")])
"""A flow on a link: ``before`` and ``after`` among the link's flows, ``sibling`` on the flow's next link."""
LINK = np.dtype(
    [
        ("capacity", "f8"),
        ("used", "f8"),
        ("left", "f8"),
        ("level", "f8"),
        ("latency", "i8"),
        ("since", "i8"),
        ("weight", "i8"),
        ("gone", "i8"),
        ("visit", "i8"),
        ("first", "i4"),
        ("dirty", "i4"),
    ]
)
"""``capacity`` in bytes per ps, of which ``used`` since ``since``. For the class at hand: ``left`` to share,
``weight`` not yet frozen, ``gone`` of it in this round, and its ``level``."""
CLASS = np.dtype([("weight", "i8"), ("priority", "i8")])
"""What a group's flows weigh, in billionths, and their class."""
LEVEL = np.dtype([("level", "f8"), ("link", "i8")])

_NONE = -1
_TOGETHER = 1.0 + 1e-12
_EMPTY = 1e-12


class Fluid(Arrays):
    """The model's state; ``counts`` is one record. ``channel_of`` runs beside ``path_ptr``, ``classes``
    beside the groups.
    """

    counts: Records
    flows: Records
    members: Records
    links: Records
    drains: Records
    levels: Records
    channels: Records
    classes: Records
    channel_of: I32
    dirty: I32
    full: I32
    touched: I32
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


@once
def _raise_level(count: int, levels: Records, level: float, link: int) -> None:
    """Put a link into the heap of levels, which has ``count`` entries and room for one more."""
    at = count
    while at > 0:
        parent = (at - 1) >> 1
        if levels[parent].level <= level:
            break
        levels[at].level = levels[parent].level
        levels[at].link = levels[parent].link
        at = parent
    levels[at].level = level
    levels[at].link = link


@internal
def _next_level(count: int, levels: Records, links: Records) -> int:
    """Bring the lowest level to the top of the heap, dropping links without weight; entries left."""
    while count > 0:
        link = levels[0].link
        if links[link].weight > 0 and levels[0].level == links[link].level:
            return count
        if links[link].weight > 0:  # it has risen: put it where it belongs now
            level = links[link].level
        else:
            count -= 1
            level = levels[count].level
            link = levels[count].link
        at = 0
        while True:
            child = 2 * at + 1
            if child >= count:
                break
            if child + 1 < count and levels[child + 1].level < levels[child].level:
                child += 1
            if levels[child].level >= level:
                break
            levels[at].level = levels[child].level
            levels[at].link = levels[child].link
            at = child
        levels[at].level = level
        levels[at].link = link
    return 0


@once
def _fill(fluid: Fluid, num_flows: int, num_links: int, priority: int) -> int:
    """Share what is left among one class; the next class's priority, or -1 if there is none."""
    flows = fluid.flows
    members = fluid.members
    links = fluid.links
    levels = fluid.levels
    full = fluid.full
    touched = fluid.touched
    found = fluid.found
    reached = fluid.reached
    later = _NONE
    for k in range(num_links):
        links[reached[k]].weight = 0
    for k in range(num_flows):
        flow = flows[found[k]]
        if flow.priority == priority:
            flow.fresh = -1.0
            m = flow.member
            while m != _NONE:
                member = members[m]
                links[member.link].weight += flow.weight
                m = member.sibling
        elif flow.priority > priority and (later == _NONE or flow.priority < later):
            later = flow.priority
    count = int(np.int64(0))  # as a literal it would have the heap compiled twice, by its type
    for k in range(num_links):
        link = links[reached[k]]
        if link.weight > 0:
            link.level = link.left / link.weight
            _raise_level(count, levels, link.level, reached[k])
            count += 1
    while True:
        count = _next_level(count, levels, links)
        if count == 0:
            return int(later)
        level = levels[0].level
        num_full = 0
        while count > 0 and levels[0].level <= level * _TOGETHER:
            full[num_full] = levels[0].link
            num_full += 1
            link = links[levels[0].link]
            link.weight = -link.weight  # so that _next_level drops it
            count = _next_level(count, levels, links)
        num_touched = 0
        for k in range(num_full):
            link = links[full[k]]
            link.weight = -link.weight
        for k in range(num_full):
            m = links[full[k]].first
            while m != _NONE:
                flow = flows[members[m].flow]
                m = members[m].after
                if flow.priority == priority and flow.fresh < 0.0:
                    flow.fresh = level * flow.weight
                    one = flow.member
                    while one != _NONE:
                        member = members[one]
                        link = links[member.link]
                        if link.gone == 0:
                            touched[num_touched] = member.link
                            num_touched += 1
                        link.gone += flow.weight
                        one = member.sibling
        for k in range(num_touched):
            link = links[touched[k]]
            link.weight -= link.gone
            left = link.left - level * link.gone
            link.left = left if left > link.capacity * _EMPTY else 0.0
            link.gone = 0
            if link.weight > 0:
                link.level = max(link.level, link.left / link.weight)
        for k in range(num_full):
            links[full[k]].left = 0.0


@once
def share(core: Core, fluid: Fluid, now: int) -> None:
    """Give every flow in the components of the marked links its rate from ``now`` on."""
    counts = fluid.counts[0]
    flows = fluid.flows
    members = fluid.members
    links = fluid.links
    dirty = fluid.dirty
    found = fluid.found
    reached = fluid.reached
    counts.visit += 1
    visit = counts.visit
    for d in range(counts.num_dirty):
        seed = dirty[d]
        links[seed].dirty = 0
        if links[seed].visit == visit:
            continue
        links[seed].visit = visit
        reached[0] = seed
        num_links = 1
        num_flows = 0
        lowest = _NONE
        at = 0
        while at < num_links:
            m = links[reached[at]].first
            links[reached[at]].left = links[reached[at]].capacity
            at += 1
            while m != _NONE:
                f = members[m].flow
                m = members[m].after
                flow = flows[f]
                if flow.visit == visit:
                    continue
                flow.visit = visit
                found[num_flows] = f
                num_flows += 1
                if lowest == _NONE or flow.priority < lowest:
                    lowest = flow.priority
                one = flow.member
                while one != _NONE:
                    member = members[one]
                    if links[member.link].visit != visit:
                        links[member.link].visit = visit
                        reached[num_links] = member.link
                        num_links += 1
                    one = member.sibling
        if num_flows == 1:
            rate = np.inf
            for k in range(num_links):
                rate = min(rate, links[reached[k]].capacity)
            one = flows[found[0]].member
            while one != _NONE:
                links[members[one].link].left -= rate
                one = members[one].sibling
            flows[found[0]].fresh = rate
        else:
            while lowest != _NONE:
                lowest = _fill(fluid, num_flows, num_links, lowest)
        for k in range(num_links):
            link = links[reached[k]]
            used = link.capacity - link.left
            if used != link.used:
                if link.used > 0.0:
                    add_share(core, reached[k], link.since, now, link.used / link.capacity)
                link.used = used
                link.since = now
        for k in range(num_flows):
            flow = flows[found[k]]
            if flow.fresh != flow.rate:
                sent = flow.rate * (now - flow.touched)
                flow.remaining = max(flow.remaining - sent, 0.0)
                flow.touched = now
                flow.rate = flow.fresh
                when = drain_time(now, flow.remaining, flow.rate)
                counts.num_drains = set_drain(counts.num_drains, fluid.drains, flows, int(found[k]), when)
    counts.num_dirty = 0
