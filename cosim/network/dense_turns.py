"""When links are filled over columns (:mod:`cosim.network.dense`): how that begins, and ends."""

from __future__ import annotations

import numpy as np

from cosim.network.dense import BLOCK, GONE, HEAVIEST, WEIGHT, WORDS
from cosim.network.dense_columns import make_columns, put_back
from cosim.network.drains import drain_time, set_drain
from cosim.network.fluid import CAME, NO_CLASS, NONE, Fluid, mark, only_left
from cosim.network.jit import inlined, internal, once
from cosim.units import NEVER

NEED_COLUMNS = 29
"""What the loop stops for: room for the columns."""
IN_A_ROW = 8
"""Fillings that look, or don't look, at many flows before it begins, or ends."""
_LOOKED = 16
"""It is tried where a filling looks at one flow for so many that there have been, at least."""
_LEAST = 48
"""Fewer are looked at in less time than columns are made and gone through."""
_ROWS = 5
"""It begins where links of all bundles are so many, at most, for each that the last filling looked at."""
_SOON = 64
"""Where it ends after fewer fillings, it is put off twice as long as the last time."""
_LONGEST = 2**14
"""Fillings for which it is put off at most, and where flows are of several classes."""
ALWAYS = 2**40
"""So many in a row: it begins wherever it may, and is worth it ever after. For tests."""


@once
def weigh(fluid: Fluid) -> None:
    """Count fillings in a row that looked at many flows."""
    counts = fluid.counts[0]
    if counts.in_a_row >= ALWAYS:
        return
    rows = counts.flows_used + len(fluid.links) // 2
    many = counts.num_found >= _LEAST and counts.num_found * _LOOKED > rows
    if counts.in_a_row < 0 or many:
        counts.in_a_row += 1
    else:
        counts.in_a_row = 0


@inlined
def _put_off(fluid: Fluid) -> None:
    """It was not worth it: it is tried again later."""
    counts = fluid.counts[0]
    counts.put_off = min(2 * counts.put_off + IN_A_ROW, _LONGEST)
    counts.in_a_row = -counts.put_off


@once
def wants_columns(fluid: Fluid) -> bool:
    """Whether links are to be filled over columns next time, for which there is no room."""
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
    if not only_left(fluid):
        return False
    one = NO_CLASS
    for f in range(counts.flows_used):
        flow = fluid.flows[f]
        if flow.member == NONE:
            continue
        if one == NO_CLASS:
            one = flow.priority
            fluid.dense.state[0].priority = one
        elif one != flow.priority:
            if counts.in_a_row < ALWAYS:
                counts.in_a_row = -_LONGEST
            return False
    return one != NO_CLASS


@once
def _is_exact(fluid: Fluid) -> bool:
    """Whether all sums of weights are."""
    heaviest = 0.0
    for local in range(fluid.dense.state[0].num_links):
        heaviest = max(heaviest, fluid.dense.held[local].weight)
    return heaviest <= HEAVIEST


@internal
def begin(fluid: Fluid) -> None:
    """Make the columns of the network's records, and go on with them if they are short."""
    counts = fluid.counts[0]
    state = fluid.dense.state[0]
    make_columns(fluid)
    if (
        counts.in_a_row < ALWAYS
        and state.rows * state.num_flows > _ROWS * counts.num_found * counts.num_members
    ):
        _put_off(fluid)
        return
    counts.dense = 1
    counts.lasted = 0
    counts.num_columns = counts.flows_used
    _keep_few_drains(fluid)


@once
def _keep_few_drains(fluid: Fluid) -> None:
    """Take drains out of the heap, but for those of flows that are on no link."""
    counts = fluid.counts[0]
    count = np.int64(counts.num_drains)
    counts.num_drains = 0
    for k in range(count):
        f = int(np.int64(fluid.drains[k].flow))
        time = int(np.int64(fluid.drains[k].time))
        fluid.drains[f].place = 0
        if fluid.flows[f].member == NONE:
            counts.num_drains = set_drain(counts.num_drains, fluid.drains, f, time)


@internal
def take_out(fluid: Fluid, f: int) -> float:
    """A flow that drains leaves its links; the level that it had."""
    counts = fluid.counts[0]
    dense = fluid.dense
    if f >= counts.num_columns or dense.column[f] == NONE:
        return float(fluid.flows[f].level)
    state = dense.state[0]
    b = np.int64(dense.column[f])
    bundle = dense.bundles[b]
    weight = dense.weight[b]
    level = dense.level[b]
    dense.column[f] = NONE
    for k in range(bundle.at, bundle.at + bundle.count):
        dense.held[dense.on[k]].weight -= weight
        dense.held[dense.on[k]].differs = 1
        for save in range(state.num_saved):
            dense.saved[(save * state.num_links + dense.on[k]) * WORDS + WEIGHT] -= weight
    bundle.weight -= weight
    bundle.next += 1
    dense.num[b] -= 1
    dense.soonest[b // BLOCK] = 0
    if dense.num[b] == 0:
        dense.fresh[b] = GONE
        dense.level[b] = GONE
        dense.rate[b] = GONE
        dense.alone[b] = 0.0
        dense.due[b] = NEVER
        state.num_left -= 1
        return float(level)
    due = int(np.int64(dense.due[b]))
    dense.remaining[b] = dense.left[bundle.next]
    dense.due[b] = drain_time(dense.touched[b], dense.remaining[b], dense.rate[b])
    if dense.due[b] == due:  # at this very instant, too
        follows = int(np.int64(dense.flow[bundle.next]))
        counts.num_drains = set_drain(counts.num_drains, fluid.drains, follows, due)
    return float(level)


@once
def may_go_on(fluid: Fluid) -> bool:
    """Whether flows only left since the last filling, which changed enough rates."""
    return bool(only_left(fluid) and fluid.counts[0].in_a_row > 0)


@internal
def end(fluid: Fluid) -> None:
    """Give the columns up: the next filling looks at all links, as if all flows were new."""
    counts = fluid.counts[0]
    dense = fluid.dense
    state = dense.state[0]
    put_back(fluid)
    counts.dense = 0
    if counts.in_a_row < ALWAYS:
        # To begin and to end is to go through all: where it didn't last, that was not worth it.
        if counts.lasted < _SOON:
            _put_off(fluid)
        else:
            counts.put_off = 0
            counts.in_a_row = 0
    for place in range(state.num_flows):
        f = int(np.int64(dense.flow[place]))
        if f < counts.num_columns and dense.column[f] != NONE:
            flow = fluid.flows[f]
            flow.level = -1.0
            due = drain_time(flow.touched, flow.remaining, flow.rate)
            counts.num_drains = set_drain(counts.num_drains, fluid.drains, f, due)
    for local in range(state.num_links):
        _start_anew(fluid, int(np.int64(dense.held[local].number)))
    for k in range(state.num_aside):
        _start_anew(fluid, int(np.int64(dense.aside[k])))


@inlined
def _start_anew(fluid: Fluid, number: int) -> None:
    """A link is looked at next time, and carries nothing until then."""
    link = fluid.links[number]
    link.load = 0
    link.room = 0
    mark(fluid, number, CAME)
