"""Fill all links from zero in the order of the filling before, and see that it was the order of this one.

From one filling to the next few links change places, and by little. So the next link to be full is looked
for among a few that follow (``window``), not among all. That it is the next is seen as the filling goes on: a
link that would have been full before the level at which one of its flows is to be frozen, or before it comes
to its turn, is moved ahead to where it belongs, and all is done again.
"""

from __future__ import annotations

import numpy as np

from cosim.network.calendar import Records
from cosim.network.dense import GONE, RISING
from cosim.network.fluid import NO_CLASS, NONE, Fluid
from cosim.network.jit import inlined, internal, once
from cosim.network.levels import full_at, lose

_FEW = 6
"""Links among which the next one is looked for at first."""
_OFTEN = 8
"""Times that all is done again before the next link is looked for among all: then none can be late."""
_SURELY = 1.0 + 1e-9
"""A link with so much more left than a level asks for is full above it, whatever was rounded."""


@inlined
def _is_full_before(link: Records, level: float) -> bool:
    """Whether a link on which something rises is full before a level."""
    # Seldom, so without a division first.
    return link.left - link.level * link.gone < level * link.weight * _SURELY and full_at(link) < level


@inlined
def _bring_next(fluid: Fluid, k: int, window: int) -> float:
    """Put the link of a few that is full first in place ``k`` of the order, before the others; its level."""
    order = fluid.dense.order
    first = k
    level = np.inf
    for other in range(k, min(k + window, fluid.counts[0].num_order)):
        link = fluid.links[order[other]]
        if link.weight > 0 and _is_full_before(link, level):
            first = other
            level = full_at(link)
    number = order[first]
    for place in range(first, k, -1):
        order[place] = order[place - 1]
    order[k] = number
    return level


@inlined
def _freeze_all(fluid: Fluid, number: int, level: float) -> int:
    """A link is full: what rises on it is frozen. A link that was full before, or :data:`NONE`."""
    dense = fluid.dense
    held = dense.held[number]
    rising = np.int64(fluid.links[number].weight)
    k = np.int64(held.at)
    first = k
    while rising > 0:
        f = dense.flows[k]
        fresh = dense.fresh[f]
        if fresh >= 0.0:
            k += 1
            continue
        path = dense.paths[f]
        weight = path.weight
        for hop in range(path.at, path.at + path.count):
            other = dense.on[hop]
            if other == number:
                continue
            link = fluid.links[other]
            if _is_full_before(link, level):
                return int(other)
            lose(link, level, weight)
            link.weight -= weight
        dense.fresh[f] = level
        fluid.counts[0].num_rising -= 1
        rising -= weight
        # Those come first that this link has frozen, as it will the next time.
        dense.flows[k] = dense.flows[first]
        dense.flows[first] = f
        first += 1
        k += 1
    fluid.links[number].weight = 0
    return NONE


@once
def _empty_all(fluid: Fluid) -> None:
    """Nothing is frozen yet."""
    dense = fluid.dense
    counts = fluid.counts[0]
    for f in range(counts.num_columns):
        if dense.fresh[f] != GONE:
            dense.fresh[f] = RISING
    for k in range(counts.num_order):
        link = fluid.links[dense.order[k]]
        link.left = link.capacity
        link.level = 0.0
        link.gone = 0
        link.weight = dense.held[dense.order[k]].weight
        link.full_priority = NO_CLASS
    counts.num_rising = counts.num_dense


@once
def _go_through(fluid: Fluid, window: int) -> int:
    """Fill links in their order. One that comes too late in it, or :data:`NONE`."""
    counts = fluid.counts[0]
    reached = 0.0
    k = 0
    while counts.num_rising > 0:
        level = _bring_next(fluid, k, window)
        number = fluid.dense.order[k]
        k += 1
        if level == np.inf:
            continue
        if level < reached:
            return int(number)
        reached = level
        fluid.links[number].full_priority = counts.dense_class
        fluid.links[number].full_level = level
        late = _freeze_all(fluid, number, level)
        if late != NONE:
            return late
    return NONE


@internal
def _move_ahead(fluid: Fluid, number: int) -> None:
    """Put a link before the first that was full above the level at which it is."""
    order = fluid.dense.order
    level = full_at(fluid.links[number])
    first = 0
    while True:
        link = fluid.links[order[first]]
        if order[first] == number or (link.full_priority != NO_CLASS and link.full_level > level):
            break
        first += 1
    place = first
    while order[place] != number:
        place += 1
    for k in range(place, first, -1):
        order[k] = order[k - 1]
    order[first] = number


@once
def fill_all(fluid: Fluid) -> None:
    """Freeze every flow at its level: ``fresh``."""
    window = _FEW
    again = 0
    while True:
        _empty_all(fluid)
        late = _go_through(fluid, window)
        if late == NONE:
            return
        _move_ahead(fluid, late)
        again += 1
        fluid.counts[0].again += 1
        if again == _OFTEN:
            window = fluid.counts[0].num_order
