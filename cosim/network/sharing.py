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
at, nor are the flows that cross no other; nor is one with room to spare (:mod:`cosim.network.slack`). The
rates are those of filling all links from zero, bit by bit.

Order never matters: weights are whole numbers (billionths), so that their sums are exact; a link loses what
was frozen at a moment by one subtraction, moments in order. A link that would be full within 10^-12 of the
level at which flows on it were frozen is full there. What is left of a link that is full is zero, not dust.

Source: D. Bertsekas, R. Gallager, Data Networks, 2nd ed., section 6.5.2 (max-min flow control).
"""

from __future__ import annotations

import numpy as np

from cosim.network.core import Core, add_share
from cosim.network.drains import drain_time, set_drain
from cosim.network.filling import differ, fill
from cosim.network.fluid import LEFT, NONE, Fluid
from cosim.network.jit import inlined, once
from cosim.network.slack import is_sound, keep_in_mind, see_room, undo, used


@inlined
def _rate(fluid: Fluid, f: int) -> float:
    """What a flow gets; one that meets no other has just the rate of its slowest link."""
    flow = fluid.flows[f]
    rate = np.inf
    one = flow.member
    while one != NONE:
        member = fluid.members[one]
        if member.before != NONE or member.after != NONE:
            return float(flow.fresh * flow.weight)
        most = fluid.links[member.link].capacity
        if member.weight != flow.weight:  # a part of it
            most = most / member.weight * flow.weight
        rate = min(rate, most)
        one = member.sibling
    return float(rate)


@inlined
def _settle_use(core: Core, fluid: Fluid, number: int, now: int) -> None:
    """A link carries something else from now on, if it does."""
    link = fluid.links[number]
    rate = used(link)
    if rate != link.used:
        if link.used > 0.0:  # written when it ends: once for all the time that a share stays
            add_share(core, number, link.since, now, link.used / link.capacity)
        link.used = rate
        link.since = now


@once
def _apply(core: Core, fluid: Fluid, now: int) -> None:
    """Bring new rates into force, where they differ from those before."""
    counts = fluid.counts[0]
    for k in range(counts.num_reached):
        see_room(fluid.links[fluid.reached[k]])
        _settle_use(core, fluid, fluid.reached[k], now)
    for k in range(counts.num_kept):
        fluid.links[fluid.kept[k]].kept = 0
        _settle_use(core, fluid, fluid.kept[k], now)
    # Only now, with all levels known: a level that rose and fell again within the filling is no change, and
    # what is left of a flow is rounded once for each change of its rate, however many fillings there were.
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
def _fill_anew(fluid: Fluid) -> None:
    """Fill what was marked, and what differs for it."""
    counts = fluid.counts[0]
    counts.visit += 1
    counts.num_reached = 0
    counts.num_found = 0
    counts.num_rising = 0
    counts.num_ahead = 0
    for d in range(counts.num_dirty):
        number = fluid.dirty[d]
        link = fluid.links[number]
        left = link.dirty == LEFT
        link.dirty = 0
        if link.visit == counts.visit:
            continue
        # Where one flow is left, it may have no company any more: then its rate is that of a link (`_rate`).
        if left and link.room != 0 and (link.first == NONE or link.first != link.last):
            keep_in_mind(fluid, number)
        else:
            differ(fluid, number, NONE, 0.0)
    counts.num_dirty = 0
    fill(fluid)
    counts.num_looked += counts.num_found


@once
def share(core: Core, fluid: Fluid, now: int) -> None:
    """Give every flow its rate from ``now`` on, where a link was marked."""
    counts = fluid.counts[0]
    counts.num_kept = 0
    _fill_anew(fluid)
    while not is_sound(fluid):
        undo(fluid)
        _fill_anew(fluid)
    _apply(core, fluid, now)
