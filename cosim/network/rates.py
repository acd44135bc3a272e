"""New rates in force: what is left of a flow and when it drains, what a link carries."""

from __future__ import annotations

import numpy as np

from cosim.network.core import Core
from cosim.network.drains import drain_time
from cosim.network.fluid import NONE, Fluid
from cosim.network.jit import inlined, internal
from cosim.network.slack import used
from cosim.network.uses import list_use


@internal
def rate_of(fluid: Fluid, f: int, level: float) -> float:
    """What a flow gets; one that meets no other has just the rate of its slowest link."""
    flow = fluid.flows[f]
    rate = np.inf
    one = flow.member
    while one != NONE:
        member = fluid.members[one]
        if member.before != NONE or member.after != NONE:
            return float(level * flow.weight)
        most = fluid.links[member.link].capacity
        if member.weight != flow.weight:  # a part of it
            most = most / member.weight * flow.weight
        rate = min(rate, most)
        one = member.sibling
    return float(rate)


@inlined
def change_rate(fluid: Fluid, f: int, rate: float, now: int) -> int:
    """A flow has another rate from now on; when it drains."""
    flow = fluid.flows[f]
    sent = flow.rate * (now - flow.touched)
    flow.remaining = max(flow.remaining - sent, 0.0)
    flow.touched = now
    flow.rate = rate
    fluid.counts[0].num_changed += 1
    return int(drain_time(now, flow.remaining, rate))


@inlined
def settle_use(core: Core, fluid: Fluid, number: int, now: int) -> None:
    """A link carries something else from now on, if it does."""
    link = fluid.links[number]
    rate = used(link)
    if rate != link.used:
        _change_use(core, fluid, number, rate, now)


@internal
def _change_use(core: Core, fluid: Fluid, number: int, rate: float, now: int) -> None:
    link = fluid.links[number]
    if link.used > 0.0:  # written when it ends: once for all the time that a share stays
        list_use(core, fluid, number, now)
    link.used = rate
    link.since = now
