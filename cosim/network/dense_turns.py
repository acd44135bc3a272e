"""When all links are filled from zero (:mod:`cosim.network.dense`): how that begins, and ends."""

from __future__ import annotations

import numpy as np

from cosim.network.dense import GONE
from cosim.network.drains import set_drain
from cosim.network.fluid import CAME, LEFT, NO_CLASS, NONE, Fluid, mark
from cosim.network.jit import internal, once
from cosim.units import NEVER

NEED_COLUMNS = 29
"""What the loop stops for: room for the columns."""
IN_A_ROW = 8
"""Fillings that look, or don't look, at nearly all before it begins, or ends."""
_LOOKED = 8
"""It begins where a filling looks at one flow for so many rows, at least, that filling all goes through."""
_SOON = 64
"""Where it ends after fewer fillings, it is put off twice as long as the last time."""
_LONGEST = 2**14
"""Fillings for which it is put off at most, and where flows are of several classes."""
ALWAYS = 2**40
"""So many in a row: it begins wherever it may, and is worth it ever after. For tests."""


@once
def weigh(fluid: Fluid) -> None:
    """Count fillings in a row that looked at nearly all flows."""
    counts = fluid.counts[0]
    if counts.in_a_row >= ALWAYS:
        return
    rows = counts.num_members + counts.flows_used // 2 + len(fluid.links) // 2
    if counts.in_a_row < 0 or counts.num_found * _LOOKED > rows:
        counts.in_a_row += 1
    else:
        counts.in_a_row = 0


@once
def wants_columns(fluid: Fluid) -> bool:
    """Whether all links are to be filled from zero next time, for which there is no room."""
    counts = fluid.counts[0]
    if counts.dense != 0 or counts.in_a_row < IN_A_ROW or fluid.balance.counts[0].on != 0:
        return False
    dense = fluid.dense
    return (
        len(dense.fresh) < counts.flows_used
        or len(dense.on) < counts.num_members
        or len(dense.held) < len(fluid.links)
    )


@internal
def may_begin(fluid: Fluid) -> bool:
    """Whether all flows are of one class, and whole, and only left since the last filling."""
    counts = fluid.counts[0]
    if counts.in_a_row < IN_A_ROW or fluid.balance.counts[0].on != 0:
        return False
    for d in range(counts.num_dirty):
        if fluid.links[fluid.dirty[d]].dirty != LEFT:
            return False
    one = NO_CLASS
    for f in range(counts.flows_used):
        flow = fluid.flows[f]
        if flow.member == NONE:
            continue
        if one == NO_CLASS:
            one = flow.priority
            counts.dense_class = one
        elif one != flow.priority:
            if counts.in_a_row < ALWAYS:
                counts.in_a_row = -_LONGEST
            return False
    return one != NO_CLASS


@internal
def begin(fluid: Fluid) -> None:
    """Make the columns of the network's records."""
    counts = fluid.counts[0]
    dense = fluid.dense
    counts.dense = 1
    counts.lasted = 0
    counts.num_columns = counts.flows_used
    counts.num_dense = 0
    counts.num_order = 0
    for number in range(len(fluid.links)):
        dense.held[number].num = 0
        dense.held[number].weight = 0
    on = 0
    for f in range(counts.num_columns):
        flow = fluid.flows[f]
        path = dense.paths[f]
        dense.due[f] = NEVER
        dense.fresh[f] = GONE
        dense.level[f] = GONE
        one = flow.member
        if one == NONE:
            continue
        counts.num_dense += 1
        dense.fresh[f] = flow.level
        dense.level[f] = flow.level
        path.weight = flow.weight
        path.at = on
        while one != NONE:
            number = fluid.members[one].link
            one = fluid.members[one].sibling
            dense.on[on] = number
            on += 1
            dense.held[number].num += 1
            dense.held[number].weight += flow.weight
        path.count = on - path.at
    at = 0
    for number in range(len(fluid.links)):
        held = dense.held[number]
        held.at = at
        held.count = 0
        at += held.num
        if held.num > 0 or fluid.links[number].dirty != 0:
            _put_in_order(fluid, number)
    for f in range(counts.num_columns):
        if dense.fresh[f] != GONE:
            path = dense.paths[f]
            for k in range(path.at, path.at + path.count):
                held = dense.held[dense.on[k]]
                dense.flows[held.at + held.count] = f
                held.count += 1
    _keep_few_drains(fluid)


@once
def _put_in_order(fluid: Fluid, number: int) -> None:
    """Put a link where it was full in the last filling; at the end where it was not."""
    counts = fluid.counts[0]
    order = fluid.dense.order
    link = fluid.links[number]
    place = np.int64(counts.num_order)
    counts.num_order += 1
    if link.full_priority != NO_CLASS:
        while place > 0:
            before = fluid.links[order[place - 1]]
            if before.full_priority != NO_CLASS and before.full_level <= link.full_level:
                break
            order[place] = order[place - 1]
            place -= 1
    order[place] = number


@once
def _keep_few_drains(fluid: Fluid) -> None:
    """Take drains out of the heap into the column, but for those of flows that are on no link."""
    counts = fluid.counts[0]
    count = np.int64(counts.num_drains)
    counts.num_drains = 0
    for k in range(count):
        f = int(np.int64(fluid.drains[k].flow))
        time = int(np.int64(fluid.drains[k].time))
        fluid.drains[f].place = 0
        if fluid.flows[f].member != NONE:
            fluid.dense.due[f] = time
        else:
            counts.num_drains = set_drain(counts.num_drains, fluid.drains, f, time)


@internal
def take_out(fluid: Fluid, f: int) -> None:
    """A flow leaves its links."""
    counts = fluid.counts[0]
    dense = fluid.dense
    if f >= counts.num_columns or dense.fresh[f] == GONE:
        return
    dense.fresh[f] = GONE
    dense.level[f] = GONE
    dense.due[f] = NEVER
    counts.num_dense -= 1
    path = dense.paths[f]
    for k in range(path.at, path.at + path.count):
        held = dense.held[dense.on[k]]
        held.num -= 1
        held.weight -= path.weight


@once
def may_go_on(fluid: Fluid) -> bool:
    """Whether flows only left since the last filling, which changed enough rates."""
    counts = fluid.counts[0]
    for d in range(counts.num_dirty):
        if fluid.links[fluid.dirty[d]].dirty != LEFT:
            return False
    return bool(counts.in_a_row > 0)


@internal
def end(fluid: Fluid) -> None:
    """Give the columns up: the next filling looks at all links, as if all flows were new."""
    counts = fluid.counts[0]
    dense = fluid.dense
    counts.dense = 0
    if counts.in_a_row < ALWAYS:
        # To begin and to end is to go through all: where it didn't last, that was not worth it.
        counts.put_off = min(2 * counts.put_off + IN_A_ROW, _LONGEST) if counts.lasted < _SOON else 0
        counts.in_a_row = -counts.put_off
    for f in range(counts.num_columns):
        if dense.fresh[f] != GONE:
            fluid.flows[f].level = -1.0
            due = int(np.int64(dense.due[f]))
            counts.num_drains = set_drain(counts.num_drains, fluid.drains, f, due)
    for k in range(counts.num_order):
        number = dense.order[k]
        link = fluid.links[number]
        link.load = 0
        link.room = 0
        mark(fluid, number, CAME)
