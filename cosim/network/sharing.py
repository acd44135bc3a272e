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
def _weigh(fluid: Fluid, num_flows: int, num_links: int, priority: int) -> int:
    """Say what flows of one class weigh on each link; the next class's priority, or -1 if there is none."""
    links = fluid.links
    later = _NONE
    for k in range(num_links):
        links[fluid.reached[k]].weight = 0
    for k in range(num_flows):
        flow = fluid.flows[fluid.found[k]]
        if flow.priority == priority:
            m = flow.member
            while m != _NONE:
                member = fluid.members[m]
                links[member.link].weight += flow.weight
                m = member.sibling
        elif flow.priority > priority and (later == _NONE or flow.priority < later):
            later = flow.priority
    return int(later)


@once
def _take_full(fluid: Fluid, count: int) -> tuple[int, int]:
    """Take the links that are full at the lowest level out of the heap: (entries left, full links)."""
    links = fluid.links
    levels = fluid.levels
    most = levels[0].level * _TOGETHER
    num_full = 0
    while count > 0 and levels[0].level <= most:
        fluid.full[num_full] = levels[0].link
        num_full += 1
        link = links[levels[0].link]
        link.weight = -link.weight  # so that _next_level drops it
        count = _next_level(count, levels, links)
    for k in range(num_full):
        link = links[fluid.full[k]]
        link.weight = -link.weight
    return count, num_full


@once
def _freeze(fluid: Fluid, num_full: int, level: float, priority: int) -> int:
    """Freeze flows of one class on full links; how many links they leave, all at once."""
    links = fluid.links
    num_touched = 0
    for k in range(num_full):
        m = links[fluid.full[k]].first
        while m != _NONE:
            flow = fluid.flows[fluid.members[m].flow]
            m = fluid.members[m].after
            if flow.priority == priority and flow.fresh < 0.0:
                flow.fresh = level * flow.weight
                one = flow.member
                while one != _NONE:
                    member = fluid.members[one]
                    link = links[member.link]
                    if link.gone == 0:
                        fluid.touched[num_touched] = member.link
                        num_touched += 1
                    link.gone += flow.weight
                    one = member.sibling
    return num_touched


@once
def _fill(fluid: Fluid, num_links: int, priority: int) -> None:
    """Share what is left of links among one class, which weighs on them what they say."""
    links = fluid.links
    levels = fluid.levels
    count = int(np.int64(0))  # as a literal it would have the heap compiled twice, by its type
    for k in range(num_links):
        link = links[fluid.reached[k]]
        if link.weight > 0:
            link.level = link.left / link.weight
            _raise_level(count, levels, link.level, fluid.reached[k])
            count += 1
    count = _next_level(count, levels, links)
    while count > 0:
        level = levels[0].level
        count, num_full = _take_full(fluid, count)
        num_touched = _freeze(fluid, num_full, level, priority)
        # Each link loses what was frozen in this round by one subtraction, so that no order matters.
        for k in range(num_touched):
            link = links[fluid.touched[k]]
            link.weight -= link.gone
            left = link.left - level * link.gone
            link.left = left if left > link.capacity * _EMPTY else 0.0
            link.gone = 0
            if link.weight > 0:
                link.level = max(link.level, link.left / link.weight)
        for k in range(num_full):
            links[fluid.full[k]].left = 0.0
        count = _next_level(count, levels, links)


@once
def _reach(fluid: Fluid, seed: int, visit: int) -> tuple[int, int, int, bool]:
    """Find the component of a link: (flows, links, lowest priority, whether there are others).

    What flows weigh on links is summed up on the way: where there is one class, that is what :func:`_fill`
    wants.
    """
    links = fluid.links
    fluid.reached[0] = seed
    num_links = 1
    num_flows = 0
    lowest = _NONE
    several = False
    links[seed].visit = visit
    links[seed].weight = 0
    at = 0
    while at < num_links:
        link = links[fluid.reached[at]]
        link.left = link.capacity
        m = link.first
        at += 1
        while m != _NONE:
            f = fluid.members[m].flow
            m = fluid.members[m].after
            flow = fluid.flows[f]
            if flow.visit == visit:
                continue
            flow.visit = visit
            flow.fresh = -1.0
            fluid.found[num_flows] = f
            num_flows += 1
            if lowest != _NONE and flow.priority != lowest:
                several = True
            if lowest == _NONE or flow.priority < lowest:
                lowest = flow.priority
            one = flow.member
            while one != _NONE:
                member = fluid.members[one]
                link = links[member.link]
                if link.visit != visit:
                    link.visit = visit
                    link.weight = 0
                    fluid.reached[num_links] = member.link
                    num_links += 1
                link.weight += flow.weight
                one = member.sibling
    return num_flows, num_links, lowest, several


@once
def _share_one(fluid: Fluid, num_links: int) -> None:
    """The only flow of a component takes the rate of its slowest link."""
    links = fluid.links
    rate = np.inf
    for k in range(num_links):
        rate = min(rate, links[fluid.reached[k]].capacity)
    flow = fluid.flows[fluid.found[0]]
    one = flow.member
    while one != _NONE:
        links[fluid.members[one].link].left -= rate
        one = fluid.members[one].sibling
    flow.fresh = rate


@once
def _apply(core: Core, fluid: Fluid, num_flows: int, num_links: int, now: int) -> None:
    """Bring new rates of a component into force, where they differ from those before."""
    counts = fluid.counts[0]
    for k in range(num_links):
        link = fluid.links[fluid.reached[k]]
        used = link.capacity - link.left
        if used != link.used:
            if link.used > 0.0:
                add_share(core, fluid.reached[k], link.since, now, link.used / link.capacity)
            link.used = used
            link.since = now
    for k in range(num_flows):
        flow = fluid.flows[fluid.found[k]]
        if flow.fresh != flow.rate:
            sent = flow.rate * (now - flow.touched)
            flow.remaining = max(flow.remaining - sent, 0.0)
            flow.touched = now
            flow.rate = flow.fresh
            when = drain_time(now, flow.remaining, flow.rate)
            counts.num_drains = set_drain(
                counts.num_drains, fluid.drains, fluid.flows, int(fluid.found[k]), when
            )


@once
def share(core: Core, fluid: Fluid, now: int) -> None:
    """Give every flow in the components of the marked links its rate from ``now`` on."""
    counts = fluid.counts[0]
    counts.visit += 1
    for d in range(counts.num_dirty):
        seed = fluid.dirty[d]
        fluid.links[seed].dirty = 0
        if fluid.links[seed].visit == counts.visit:
            continue
        num_flows, num_links, priority, several = _reach(fluid, seed, counts.visit)
        if num_flows == 1:
            _share_one(fluid, num_links)
        elif num_flows > 1:
            while priority != _NONE:
                later = _weigh(fluid, num_flows, num_links, priority) if several else _NONE
                _fill(fluid, num_links, priority)
                priority = later
        _apply(core, fluid, num_flows, num_links, now)
    counts.num_dirty = 0
