"""Links of ``fair_share`` that fail, slow down and come back, and flows that go on by another path."""

from __future__ import annotations

import math

from cosim.network.changes import NEED_ROUTES, ROUTES, begin_change, end_change
from cosim.network.core import Core
from cosim.network.dense_turns import end
from cosim.network.flows import I64
from cosim.network.fluid import BPS_PER_BYTE_PS, CAME, NONE, Fluid, mark
from cosim.network.jit import compiled, once
from cosim.network.membership import join_path, leave_path
from cosim.network.slack import recount
from cosim.network.uses import list_use


@once
def take_change(core: Core, fluid: Fluid) -> int:
    """The next change: a link's rate, at once; or the routes, which are found outside of the loop."""
    one = fluid.changes[begin_change(core, fluid)]
    if one.link == ROUTES:
        return NEED_ROUTES
    link = fluid.links[one.link]
    if link.used > 0.0:
        list_use(core, fluid, int(one.link), int(one.time))
        link.used = 0.0
    link.since = one.time
    link.capacity = one.rate / BPS_PER_BYTE_PS
    recount(fluid, one.link)
    mark(fluid, one.link, CAME)
    return end_change(fluid)


@compiled
def move_flows(core: Core, fluid: Fluid, before: I64) -> None:
    """Flows under way whose path is another one than ``before`` go on there; there is room for that.

    What was sent has arrived, and counts where it went. All of a flow's bytes count on its last links when it
    drains: there, what was sent elsewhere is taken off in advance.
    """
    now = core.state[0].instant
    if fluid.counts[0].dense != 0:
        end(fluid)
    for f in range(fluid.counts[0].flows_used):
        flow = fluid.flows[f]
        if flow.member == NONE:
            continue
        row = core.store.groups[flow.handle].path + flow.row
        old = before[row]
        path = fluid.path_now[row]
        if path == old:
            continue
        flow.remaining = max(flow.remaining - flow.rate * (now - flow.touched), 0.0)
        flow.touched = now
        sent = core.store.rows[flow.row].size - math.ceil(flow.remaining)
        for k in range(core.path_ptr[old], core.path_ptr[old + 1]):
            core.link_bytes[core.path_link[k]] += sent
        for k in range(core.path_ptr[path], core.path_ptr[path + 1]):
            core.link_bytes[core.path_link[k]] -= sent
        leave_path(fluid, f)
        flow.level = -1.0
        join_path(core, fluid, f, path)
