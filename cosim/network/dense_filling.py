"""Fill links from zero in the order of the filling before, and see that it was the order of this one.

From one filling to the next few links change places, and by little. So the next link to be full is looked
for among a few that follow (``window``), not among all. That it is the next is seen as the filling goes on: a
link that would have been full before the level at which one of its flows is to be frozen, or before it comes
to its turn, is moved ahead to where it belongs, and it is done again from there.

Nor is it begun at zero: below the first level at which a flow that has left was frozen everything was the
same. The filling goes on at the last place saved that is not above.
"""

from __future__ import annotations

import numpy as np

from cosim.network.calendar import Records
from cosim.network.dense import GONE, RISING, SEVERAL, WORDS
from cosim.network.fluid import NO_CLASS, NONE, Fluid
from cosim.network.jit import inlined, internal, once
from cosim.network.levels import full_at, lose

_FEW = 6
"""Links among which the next one is looked for at first."""
_OFTEN = 8
"""Times that it is done again before the next link is looked for among all: then none can be late."""
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
    dense = fluid.dense
    order = dense.order
    first = k
    level = np.inf
    for other in range(k, min(k + window, dense.state[0].num_links)):
        link = dense.now[order[other]]
        if link.weight > 0 and _is_full_before(link, level):
            first = other
            level = full_at(link)
    local = order[first]
    for place in range(first, k, -1):
        order[place] = order[place - 1]
    order[k] = local
    return level


@inlined
def _take(fluid: Fluid, other: int, level: float, weight: float) -> bool:
    """A bundle on a link is frozen; False where that link was full before."""
    link = fluid.dense.now[other]
    if _is_full_before(link, level):
        return False
    lose(link, level, weight)
    link.weight -= weight
    return True


@inlined
def _freeze_all(fluid: Fluid, local: int, level: float) -> int:
    """A link is full: what rises on it is frozen. A link that was full before, or :data:`NONE`."""
    dense = fluid.dense
    state = dense.state[0]
    rising = dense.now[local].weight
    k = np.int64(dense.held[local].at)
    first = k
    while rising > 0:
        hold = dense.holds[k]
        b = np.int64(hold.bundle)
        if dense.fresh[b] >= 0.0:
            k += 1
            continue
        bundle = dense.bundles[b]
        weight = bundle.weight
        only = int(np.int64(hold.other))
        if only >= 0:
            if not _take(fluid, only, level, weight):
                return only
        elif only == SEVERAL:
            for hop in range(bundle.at, bundle.at + bundle.count):
                other = int(np.int64(dense.on[hop]))
                if other != local and not _take(fluid, other, level, weight):
                    return other
        dense.fresh[b] = level
        dense.frozen[state.num_frozen] = b
        state.num_frozen += 1
        rising -= weight
        # Those come first that this link has frozen, as it will the next time.
        ahead = dense.holds[first]
        hold.bundle = ahead.bundle
        hold.other = ahead.other
        ahead.bundle = b
        ahead.other = only
        first += 1
        k += 1
    dense.now[local].weight = 0.0
    return NONE


@once
def _empty_all(fluid: Fluid) -> None:
    """Nothing is frozen yet."""
    dense = fluid.dense
    state = dense.state[0]
    for b in range(state.num_bundles):
        if dense.fresh[b] != GONE:
            dense.fresh[b] = RISING
    for local in range(state.num_links):
        now = dense.now[local]
        now.left = now.capacity
        now.level = 0.0
        now.gone = 0.0
        now.weight = dense.held[local].weight
        dense.held[local].differs = 1
        fluid.links[dense.held[local].number].full_priority = NO_CLASS
    state.num_frozen = 0


@once
def _go_back(fluid: Fluid, save: int) -> None:
    """Have everything as it was at a place saved."""
    dense = fluid.dense
    state = dense.state[0]
    frozen = np.int64(dense.saved_frozen[save])
    for k in range(frozen, state.num_frozen):
        b = dense.frozen[k]
        if dense.fresh[b] != GONE:
            dense.fresh[b] = RISING
    state.num_frozen = frozen
    # By words, of which as many are copied at once as fit into a register.
    count = state.num_links * WORDS
    first = save * count
    for k in range(count):
        dense.words[k] = dense.saved[first + k]
    for local in range(state.num_links):
        dense.held[local].differs |= dense.now[local].weight > 0.0
    for k in range(save * state.step, state.num_links):
        fluid.links[dense.held[dense.order[k]].number].full_priority = NO_CLASS


@inlined
def _save(fluid: Fluid, save: int) -> None:
    """Keep everything as it is at a place."""
    dense = fluid.dense
    state = dense.state[0]
    count = state.num_links * WORDS
    first = save * count
    for k in range(count):
        dense.saved[first + k] = dense.words[k]
    dense.saved_frozen[save] = state.num_frozen
    state.num_saved = save + 1


@once
def _go_through(fluid: Fluid, first: int, window: int) -> int:
    """Fill links in their order, from a place on that was saved. One that comes too late in it, or
    :data:`NONE`.
    """
    dense = fluid.dense
    state = dense.state[0]
    reached = 0.0 if first == 0 else dense.reached[first - 1]
    k = first
    while state.num_frozen < state.num_left:
        if k % state.step == 0 and k > first:
            _save(fluid, k // state.step)
        level = _bring_next(fluid, k, window)
        local = int(np.int64(dense.order[k]))
        if level == np.inf:
            dense.reached[k] = reached
            k += 1
            continue
        if level < reached:
            return local
        reached = level
        dense.reached[k] = level
        k += 1
        link = fluid.links[dense.held[local].number]
        link.full_priority = state.priority
        link.full_level = level
        late = _freeze_all(fluid, local, level)
        if late != NONE:
            return late
    return NONE


@internal
def _move_ahead(fluid: Fluid, local: int) -> int:
    """Put a link before the first that was full above the level at which it is; its place."""
    dense = fluid.dense
    order = dense.order
    level = full_at(dense.now[local])
    first = 0
    while True:
        link = fluid.links[dense.held[order[first]].number]
        if order[first] == local or (link.full_priority != NO_CLASS and link.full_level > level):
            break
        first += 1
    place = first
    while order[place] != local:
        place += 1
    for k in range(place, first, -1):
        order[k] = order[k - 1]
    order[first] = local
    return first


@once
def _unchanged(fluid: Fluid) -> int:
    """The place up to which links are full below all levels of flows that have left."""
    dense = fluid.dense
    state = dense.state[0]
    k = 0
    last = state.num_saved * state.step
    while k < min(last, state.num_links) and dense.reached[k] < fluid.counts[0].first_level:
        k += 1
    return int(k)


@internal
def fill_all(fluid: Fluid) -> None:
    """Freeze every bundle at its level: ``fresh``."""
    dense = fluid.dense
    state = dense.state[0]
    window = _FEW
    again = 0
    place = _unchanged(fluid)
    state.num_same = state.num_frozen
    while True:
        save = min(place // state.step, state.num_saved - 1)
        if save < 0:
            _empty_all(fluid)
            _save(fluid, 0)
            save = 0
        else:
            _go_back(fluid, save)
        state.num_same = min(state.num_same, state.num_frozen)
        state.num_saved = save + 1
        late = _go_through(fluid, save * state.step, window)
        fluid.counts[0].num_looked += state.num_frozen - dense.saved_frozen[save]
        if late == NONE:
            return
        place = _move_ahead(fluid, late)
        again += 1
        fluid.counts[0].again += 1
        if again == _OFTEN:
            window = state.num_links
            place = 0
