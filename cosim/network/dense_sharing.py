"""Rates by filling all links from zero (:mod:`cosim.network.dense`), brought into force."""

from __future__ import annotations

import numpy as np

from cosim.network.core import Core
from cosim.network.dense import GONE
from cosim.network.dense_filling import fill_all
from cosim.network.dense_turns import ALWAYS, IN_A_ROW
from cosim.network.drains import set_drain
from cosim.network.fluid import NO_CLASS, NONE, Fluid
from cosim.network.jit import internal, once
from cosim.network.rates import change_rate, rate_of, settle_use
from cosim.network.slack import part_of
from cosim.units import NEVER

_CHANGED = 32
"""It ends where one rate changes for so many rows that a filling goes through, at most."""


@once
def _see_company(fluid: Fluid) -> None:
    """Links that flows have left: where one is left, it may meet no other now, and be as fast as its link."""
    counts = fluid.counts[0]
    dense = fluid.dense
    for d in range(counts.num_dirty):
        number = fluid.dirty[d]
        fluid.links[number].dirty = 0
        held = dense.held[number]
        if held.num == 1:
            for k in range(held.at, held.at + held.count):
                if dense.fresh[dense.flows[k]] != GONE:
                    dense.level[dense.flows[k]] = -1.0
    counts.num_dirty = 0


@once
def _see_links(core: Core, fluid: Fluid, now: int) -> None:
    """What links carry: all, where they are full; else what their flows take."""
    dense = fluid.dense
    for place in range(fluid.counts[0].num_order):
        number = int(np.int64(dense.order[place]))
        link = fluid.links[number]
        if link.full_priority == NO_CLASS:
            held = dense.held[number]
            link.load = 0
            for k in range(held.at, held.at + held.count):
                f = dense.flows[k]
                if dense.fresh[f] != GONE:
                    link.load += part_of(link.capacity, dense.fresh[f], dense.paths[f].weight)
        settle_use(core, fluid, number, now)


@once
def _see_flows(fluid: Fluid, now: int) -> None:
    """Bring new rates into force."""
    counts = fluid.counts[0]
    dense = fluid.dense
    changed = np.int64(counts.num_changed)
    # Found first, and without asking, as which ones differ is not to be foreseen.
    differ = np.int64(0)
    for f in range(counts.num_columns):
        fluid.found[differ] = f
        differ += dense.fresh[f] != dense.level[f]
    for k in range(differ):
        f = int(np.int64(fluid.found[k]))
        level = dense.fresh[f]
        dense.level[f] = level
        path = dense.paths[f]
        rate = level * path.weight
        if dense.held[dense.on[path.at]].num == 1:
            rate = rate_of(fluid, f, level)
        if rate != fluid.flows[f].rate:
            dense.due[f] = change_rate(fluid, f, rate, now)
    counts.lasted += 1
    counts.num_looked += counts.num_dense
    if counts.in_a_row < ALWAYS:
        rows = counts.num_members + counts.num_columns // 2
        worth = (counts.num_changed - changed) * _CHANGED > rows
        counts.in_a_row = IN_A_ROW if worth else counts.in_a_row - 1


@once
def _see_drains(fluid: Fluid) -> None:
    """Have those in the heap that come next."""
    counts = fluid.counts[0]
    dense = fluid.dense
    k = 0
    while k < counts.num_drains:
        held = int(np.int64(fluid.drains[k].flow))
        k += 1
        if fluid.flows[held].member != NONE:
            never = int(np.int64(NEVER))
            counts.num_drains = set_drain(counts.num_drains, fluid.drains, held, never)
            k = 0
    soonest = int(np.int64(NEVER))
    for f in range(counts.num_columns):
        soonest = min(soonest, int(np.int64(dense.due[f])))
    if soonest == NEVER:
        return
    for f in range(counts.num_columns):
        if dense.due[f] == soonest:
            counts.num_drains = set_drain(counts.num_drains, fluid.drains, f, soonest)


@internal
def share_all(core: Core, fluid: Fluid, now: int) -> None:
    """Give every flow its rate from ``now`` on, by filling all links from zero."""
    _see_company(fluid)
    fill_all(fluid)
    _see_links(core, fluid, now)
    _see_flows(fluid, now)
    _see_drains(fluid)
