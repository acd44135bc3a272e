"""New rates of all bundles at once, column by column: what is left of each, and when it drains.

Each loop is without a jump that depends on a value, and writes one column, so that it is compiled to
instructions that take eight bundles at a time. What it computes is what :func:`cosim.network.rates.change_rate`
does for one flow, bit by bit.
"""

from __future__ import annotations

import math

import numpy as np

from cosim.network.dense import GONE
from cosim.network.drains import DUST, DUST_PS
from cosim.network.fluid import Fluid
from cosim.network.jit import inlined, internal
from cosim.units import NEVER


@internal
def see_coming(fluid: Fluid) -> None:
    """Rates at the levels of the filling; of a flow that meets no other that of its slowest link."""
    dense = fluid.dense
    state = dense.state[0]
    for b in range(state.num_bundles):
        dense.coming[b] = dense.fresh[b] * dense.weight[b]
    for k in range(state.num_alone):
        if dense.fresh[dense.alone[k]] != GONE:
            dense.coming[dense.alone[k]] = dense.alone_rate[k]


@inlined
def _due(now: int, remaining: float, rate: float) -> int:
    """:func:`cosim.network.drains.drain_time` without a jump."""
    never = np.int64(NEVER)
    ends = (rate > 0.0) & (remaining < rate * NEVER)
    exact = (remaining if ends else 0.0) / (rate if ends else 1.0)
    whole = np.int64(math.floor(exact))
    more = np.int64(exact - whole > DUST_PS + exact * DUST)
    due = min(now + max(whole + more, 1), never)
    return int(due if ends else never)


@internal
def advance(fluid: Fluid, now: int) -> int:
    """Bring new rates into force, for the flows that lead; of how many flows they are others than before."""
    dense = fluid.dense
    count = np.int64(dense.state[0].num_bundles)
    changed = np.int64(0)
    for b in range(count):
        changed += dense.num[b] * (dense.coming[b] != dense.rate[b])
    for b in range(count):
        remaining = dense.remaining[b]
        rate = dense.rate[b]
        left = max(remaining - rate * (now - dense.touched[b]), 0.0)
        dense.remaining[b] = left if dense.coming[b] != rate else remaining
    for b in range(count):
        rate = dense.coming[b]
        remaining = dense.remaining[b]
        due = dense.due[b]
        new = _due(now, remaining, rate)
        dense.due[b] = new if rate != dense.rate[b] else due
    for b in range(count):
        touched = dense.touched[b]
        dense.touched[b] = now if dense.coming[b] != dense.rate[b] else touched
    for b in range(count):
        dense.rate[b] = dense.coming[b]
    for b in range(count):
        dense.level[b] = dense.fresh[b]
    return int(changed)


@internal
def soonest(fluid: Fluid) -> int:
    """When the next flow drains, in ps."""
    dense = fluid.dense
    first = int(np.int64(NEVER))
    for b in range(dense.state[0].num_bundles):
        first = min(first, int(np.int64(dense.due[b])))
    return first
