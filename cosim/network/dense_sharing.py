"""Rates by filling links over columns (:mod:`cosim.network.dense`), brought into force."""

from __future__ import annotations

import numpy as np

from cosim.network.core import Core
from cosim.network.dense_columns import make_columns, note_alone, put_back
from cosim.network.dense_filling import fill_all
from cosim.network.dense_rates import advance, list_next
from cosim.network.dense_turns import ALWAYS, IN_A_ROW
from cosim.network.drains import set_drain
from cosim.network.fluid import NO_CLASS, NONE, Fluid, forget_who_left
from cosim.network.jit import internal, once
from cosim.network.rates import settle_use
from cosim.network.slack import NEARLY, WHOLE, part_of
from cosim.units import NEVER

_SELDOM = 32
"""Fillings after which links that are far from full are set aside."""
_CHANGED = 64
"""It goes on where a filling changes one rate, at least, for so many rows that it goes through."""


@once
def _see_company(fluid: Fluid) -> None:
    """Links that flows have left: where one is left, it may meet no other now, and be as fast as its link."""
    counts = fluid.counts[0]
    for d in range(counts.num_dirty):
        number = int(np.int64(fluid.dirty[d]))
        fluid.links[number].dirty = 0
        note_alone(fluid, number)
    counts.num_dirty = 0


@once
def _load_aside(fluid: Fluid) -> int:
    """Links aside count what flows take at their new levels. How many have no room for it."""
    dense = fluid.dense
    state = dense.state[0]
    for k in range(state.num_same, state.num_frozen):
        b = dense.frozen[k]
        if dense.fresh[b] == dense.level[b]:
            continue
        bundle = dense.bundles[b]
        weight = int(dense.weight[b])
        capacity = -1.0
        more = 0
        for at in range(dense.off_at[bundle.next], dense.off_at[bundle.end]):
            link = fluid.links[dense.off[at]]
            if link.capacity != capacity:
                capacity = link.capacity
                more = part_of(capacity, dense.fresh[b], weight) - part_of(capacity, dense.level[b], weight)
            link.load += more
    full = 0
    for k in range(state.num_aside):
        full += fluid.links[dense.aside[k]].load > NEARLY
    return full


@once
def _let_in(fluid: Fluid) -> None:
    """Links aside that have no room may be full: columns are made anew, with them."""
    dense = fluid.dense
    for k in range(dense.state[0].num_aside):
        link = fluid.links[dense.aside[k]]
        if link.load > NEARLY:
            link.room = 0
    put_back(fluid)
    make_columns(fluid)


@once
def _set_aside(fluid: Fluid) -> None:
    """Links that are far from full are set aside: columns are made anew, without them."""
    dense = fluid.dense
    for local in range(dense.state[0].num_links):
        link = fluid.links[dense.held[local].number]
        if link.full_priority == NO_CLASS and link.load < WHOLE // 2 and link.capacity > 0.0:
            link.room = 1
    put_back(fluid)
    make_columns(fluid)


@once
def _see_links(core: Core, fluid: Fluid, now: int) -> None:
    """What links carry: all, where they are full; else what their flows take."""
    dense = fluid.dense
    for local in range(dense.state[0].num_links):
        held = dense.held[local]
        if held.differs == 0:
            continue
        held.differs = 0
        number = int(np.int64(held.number))
        link = fluid.links[number]
        if link.full_priority == NO_CLASS:
            load = 0
            for k in range(held.at, held.at + held.count):
                b = dense.holds[k].bundle
                if dense.num[b] > 0:
                    load += part_of(link.capacity, dense.fresh[b], int(dense.weight[b])) * dense.num[b]
            link.load = load
        settle_use(core, fluid, number, now)
    for k in range(dense.state[0].num_aside):
        settle_use(core, fluid, int(np.int64(dense.aside[k])), now)


@once
def _is_idle(fluid: Fluid) -> bool:
    """Whether most rows are of links that are far from full."""
    dense = fluid.dense
    rows = 0
    for local in range(dense.state[0].num_links):
        link = fluid.links[dense.held[local].number]
        if link.full_priority == NO_CLASS and link.load < WHOLE // 2:
            rows += dense.held[local].count
    return bool(rows * 2 > dense.state[0].rows)


@once
def _see_drains(fluid: Fluid) -> None:
    """Have those in the heap that come next."""
    counts = fluid.counts[0]
    k = 0
    while k < counts.num_drains:
        held = int(np.int64(fluid.drains[k].flow))
        k += 1
        if fluid.flows[held].member != NONE:
            never = int(np.int64(NEVER))
            counts.num_drains = set_drain(counts.num_drains, fluid.drains, held, never)
            k = 0
    list_next(fluid)


@once
def _weigh(fluid: Fluid, changed: int) -> None:
    """Whether it is worth it still."""
    counts = fluid.counts[0]
    state = fluid.dense.state[0]
    counts.num_changed += changed
    counts.lasted += 1
    if counts.in_a_row < ALWAYS:
        frozen = (state.num_frozen - state.num_same) * state.rows // max(state.num_bundles, 1)
        worth = changed * _CHANGED > frozen + state.num_bundles // 8
        counts.in_a_row = IN_A_ROW if worth else counts.in_a_row - 1


@internal
def share_all(core: Core, fluid: Fluid, now: int) -> None:
    """Give every flow its rate from ``now`` on, by filling links from zero."""
    dense = fluid.dense
    state = dense.state[0]
    if state.num_left * 4 < state.num_bundles * 3:
        put_back(fluid)
        make_columns(fluid)
    _see_company(fluid)
    fill_all(fluid)
    if dense.off_at[state.num_flows] > 0:
        while _load_aside(fluid) > 0:
            _let_in(fluid)
            fill_all(fluid)
    _see_links(core, fluid, now)
    _weigh(fluid, advance(fluid, now))
    if fluid.counts[0].lasted % _SELDOM == 0 and _is_idle(fluid):
        _set_aside(fluid)
    forget_who_left(fluid)
    _see_drains(fluid)  # at last: of flows that drain together, another may lead in columns made anew
