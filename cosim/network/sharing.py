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
rates are those of filling all links from zero, bit by bit; but where links are full at the same level within
rounding, which one's level it is may depend on the fillings before. Where many flows differ each time, all
links are filled from zero (:mod:`cosim.network.dense`).

Order never matters: weights are whole numbers (billionths), so that their sums are exact; a link loses what
was frozen at a moment by one subtraction, moments in order. A link that would be full within 10^-12 of the
level at which flows on it were frozen is full there. What is left of a link that is full is zero, not dust.

Source: D. Bertsekas, R. Gallager, Data Networks, 2nd ed., section 6.5.2 (max-min flow control).
"""

from __future__ import annotations

import numpy as np

from cosim.network.core import Core
from cosim.network.dense_sharing import share_all
from cosim.network.dense_turns import begin, end, may_begin, may_go_on, wants_columns, weigh
from cosim.network.drains import set_drain
from cosim.network.filling import differ, fill
from cosim.network.fluid import CAME, NONE, Fluid, forget_who_left, only_left
from cosim.network.jit import once
from cosim.network.moments import is_before
from cosim.network.rates import change_rate, rate_of, settle_use
from cosim.network.slack import is_alone, is_sound, keep_in_mind, see_room


@once
def _apply(core: Core, fluid: Fluid, now: int) -> None:
    """Bring new rates into force, where they differ from those before."""
    counts = fluid.counts[0]
    for k in range(counts.num_kept):
        link = fluid.links[fluid.kept[k]]
        link.kept = 0
        if link.room == 0:
            see_room(link)
        settle_use(core, fluid, fluid.kept[k], now)
    # Only now, with all levels known: a level that rose and fell again is no change, and what is left of a
    # flow is rounded once for each change of its rate, however many fillings there were.
    for k in range(counts.num_found):
        flow = fluid.flows[fluid.found[k]]
        rate = rate_of(fluid, fluid.found[k], flow.level)
        if rate != flow.rate:
            when = change_rate(fluid, fluid.found[k], rate, now)
            counts.num_drains = set_drain(counts.num_drains, fluid.drains, int(fluid.found[k]), when)


@once
def _fill_anew(fluid: Fluid) -> None:
    """Fill what was marked, and what differs for it."""
    counts = fluid.counts[0]
    counts.visit += 1
    counts.num_rising = 0
    counts.num_ahead = 0
    # Where flows only left, nothing differs before the first moment at which one of them was frozen.
    priority = int(np.int64(counts.first_priority))
    level = counts.first_level
    if not only_left(fluid):
        priority = NONE
        level = 0.0
    for d in range(counts.num_dirty):
        number = fluid.dirty[d]
        link = fluid.links[number]
        fits = link.dirty != CAME
        link.dirty = 0
        if link.visit == counts.visit:
            continue
        # One flow that is left may have no company any more: then its rate is a link's (`rate_of`). And a
        # link that was full before that moment had nothing left for the classes that come later.
        if is_alone(fluid, number):
            differ(fluid, number, NONE, 0.0)
        elif fits and link.room != 0:
            keep_in_mind(fluid, number)
        elif not is_before(link.full_priority, link.full_level, priority, level):
            differ(fluid, number, priority, level)
    counts.num_dirty = 0
    forget_who_left(fluid)
    fill(fluid)
    for k in range(counts.num_found):
        fluid.flows[fluid.found[k]].level = fluid.flows[fluid.found[k]].fresh


@once
def share(core: Core, fluid: Fluid, now: int) -> None:
    """Give every flow its rate from ``now`` on, where a link was marked."""
    counts = fluid.counts[0]
    if counts.dense != 0 and not may_go_on(fluid):
        end(fluid)
    elif counts.dense == 0 and not wants_columns(fluid) and may_begin(fluid):
        begin(fluid)
    if counts.dense != 0:
        share_all(core, fluid, now)
        return
    counts.num_kept = 0
    counts.num_found = 0
    counts.sharing = counts.visit + 1
    _fill_anew(fluid)
    while not is_sound(fluid):
        _fill_anew(fluid)
    _apply(core, fluid, now)
    weigh(fluid)
