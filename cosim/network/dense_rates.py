"""New rates of all bundles at once, column by column: what is left of each, and when it drains.

Each loop is without a jump that depends on a value, reads what it needs before it chooses, and writes one
column: so it is compiled to instructions that take eight bundles at a time. What it computes is what
:func:`cosim.network.rates.change_rate` does for one flow, bit by bit.
"""

from __future__ import annotations

import math

import numpy as np

from cosim.network.dense import BLOCK
from cosim.network.dense_columns import see_soonest
from cosim.network.drains import DUST, DUST_PS, set_drain
from cosim.network.fluid import Fluid
from cosim.network.jit import inlined, internal
from cosim.units import NEVER


@inlined
def _due(now: int, remaining: float, rate: float) -> int:
    """:func:`cosim.network.drains.drain_time` without a jump."""
    ends = (rate > 0.0) & (remaining < rate * NEVER)
    exact = (remaining if ends else 0.0) / (rate if ends else 1.0)
    whole = int(np.int64(math.floor(exact)))
    whole += int(np.int64(exact - whole > DUST_PS + exact * DUST))
    due = min(now + max(whole, 1), NEVER)
    return due if ends else NEVER


@inlined
def _see_coming(fluid: Fluid, first: int, end: int) -> int:
    """Rates at the levels of the filling; of how many bundles the level or the rate is another one."""
    dense = fluid.dense
    for b in range(first, end):
        dense.coming[b] = dense.fresh[b] * dense.weight[b]
    for b in range(first, end):
        shared = dense.coming[b]
        alone = dense.alone[b]
        dense.coming[b] = alone if alone > 0.0 else shared
    differ = np.int64(0)
    for b in range(first, end):
        differ += (dense.coming[b] != dense.rate[b]) | (dense.fresh[b] != dense.level[b])
    return int(differ)


@inlined
def _follow(fluid: Fluid, now: int, first: int, end: int) -> None:
    """Flows that follow those that lead have new rates, too."""
    dense = fluid.dense
    for b in range(first, end):
        if dense.num[b] > 1 and dense.coming[b] != dense.rate[b]:
            bundle = dense.bundles[b]
            sent = dense.rate[b] * (now - dense.touched[b])
            for place in range(bundle.next + 1, bundle.end):
                dense.left[place] = max(dense.left[place] - sent, 0.0)


@inlined
def _advance(fluid: Fluid, now: int, first: int, end: int) -> int:
    """Bring new rates of a block into force, for flows that lead; of how many flows they are others."""
    dense = fluid.dense
    changed = np.int64(0)
    for b in range(first, end):
        changed += dense.num[b] * (dense.coming[b] != dense.rate[b])
    for b in range(first, end):
        remaining = dense.remaining[b]
        rate = dense.rate[b]
        left = max(remaining - rate * (now - dense.touched[b]), 0.0)
        dense.remaining[b] = left if dense.coming[b] != rate else remaining
    for b in range(first, end):
        rate = dense.coming[b]
        remaining = dense.remaining[b]
        due = dense.due[b]
        new = _due(now, remaining, rate)
        dense.due[b] = new if rate != dense.rate[b] else due
    for b in range(first, end):
        touched = dense.touched[b]
        dense.touched[b] = now if dense.coming[b] != dense.rate[b] else touched
    for b in range(first, end):
        dense.rate[b] = dense.coming[b]
    for b in range(first, end):
        dense.level[b] = dense.fresh[b]
    return int(changed)


@internal
def advance(fluid: Fluid, now: int) -> int:
    """Bring the levels of a filling into force, block by block; how many flows have another rate for it."""
    dense = fluid.dense
    state = dense.state[0]
    changed = 0
    for block in range((state.num_bundles + BLOCK - 1) // BLOCK):
        first = block * BLOCK
        end = min(first + BLOCK, int(np.int64(state.num_bundles)))
        if _see_coming(fluid, first, end) > 0:
            if state.num_several > 0:
                _follow(fluid, now, first, end)
            changed += _advance(fluid, now, first, end)
        elif dense.soonest[block] != 0:
            continue
        see_soonest(fluid, block)
    return changed


@internal
def list_next(fluid: Fluid) -> None:
    """Put the flows that drain next into the heap."""
    counts = fluid.counts[0]
    dense = fluid.dense
    state = dense.state[0]
    blocks = (state.num_bundles + BLOCK - 1) // BLOCK
    first = np.int64(NEVER)
    for block in range(blocks):
        first = min(first, dense.soonest[block])
    if first == NEVER:
        return
    for block in range(blocks):
        if dense.soonest[block] == first:
            for b in range(block * BLOCK, min(block * BLOCK + BLOCK, int(np.int64(state.num_bundles)))):
                if dense.due[b] == first:
                    f = int(np.int64(dense.flow[dense.bundles[b].next]))
                    counts.num_drains = set_drain(counts.num_drains, fluid.drains, f, int(first))
