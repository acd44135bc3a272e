"""Flows on the links of ``fair_share``: they join those of their path, and leave them."""

from __future__ import annotations

import numpy as np

from cosim.network.core import Core
from cosim.network.dense_turns import take_out
from cosim.network.fluid import CAME, FITS, LEFT, NONE, Fluid, mark
from cosim.network.jit import inlined, once
from cosim.network.moments import is_before
from cosim.network.slack import has_room_for, is_alone, most_rate, part_of


@inlined
def join(fluid: Fluid, f: int, link: int, sibling: int, weight: int, what: int) -> int:
    """Put a flow, or a part of it, on a link, to which this happens by it; its membership, before ``sibling``
    among the flow's.
    """
    counts = fluid.counts[0]
    m = counts.free_member
    if m == NONE:
        m = counts.members_used
        counts.members_used = m + 1
    else:
        counts.free_member = fluid.members[m].after
    first = fluid.links[link].first
    member = fluid.members[m]
    member.weight = weight
    member.flow = f
    member.link = link
    member.before = NONE
    member.after = first
    member.sibling = sibling
    if first != NONE:
        fluid.members[first].before = m
    else:
        fluid.links[link].last = m
    fluid.links[link].first = m
    mark(fluid, link, what)
    return int(m)


@inlined
def _leave(fluid: Fluid, m: int, part: int) -> None:
    """Take a flow off a link, by its membership, of which it took a part."""
    counts = fluid.counts[0]
    member = fluid.members[m]
    ahead = member.before
    behind = member.after
    if ahead != NONE:
        fluid.members[ahead].after = behind
    else:
        fluid.links[member.link].first = behind
    if behind != NONE:
        fluid.members[behind].before = ahead
    else:
        fluid.links[member.link].last = ahead
    member.after = counts.free_member
    counts.free_member = m
    fluid.links[member.link].load -= part
    mark(fluid, member.link, LEFT)


@once
def is_alive(core: Core, fluid: Fluid, path: int) -> bool:
    """Whether no link of a path is dead."""
    for k in range(core.path_ptr[path], core.path_ptr[path + 1]):
        if fluid.links[core.path_link[k]].capacity == 0.0:
            return False
    return True


@once
def join_path(core: Core, fluid: Fluid, f: int, path: int) -> None:
    """Put a flow on the links of a path, for which there is room in the arrays."""
    flow = fluid.flows[f]
    rate = np.inf
    for k in range(core.path_ptr[path], core.path_ptr[path + 1]):
        rate = min(rate, most_rate(fluid.links[core.path_link[k]], flow.priority, flow.weight))
    last = NONE
    for k in range(core.path_ptr[path], core.path_ptr[path + 1]):
        number = core.path_link[k]
        fluid.counts[0].num_members += 1
        # Who has had no company had just the rate of a link (`rate_of`): that is looked at.
        fits = has_room_for(fluid.links[number], rate) and not is_alone(fluid, number)
        last = join(fluid, f, number, last, flow.weight, FITS if fits else CAME)
    flow.member = last


@once
def leave_path(fluid: Fluid, f: int) -> None:
    """Take a flow off the links that it is on."""
    flow = fluid.flows[f]
    counts = fluid.counts[0]
    level = take_out(fluid, f) if counts.dense != 0 else flow.level
    if is_before(flow.priority, level, counts.first_priority, counts.first_level):
        counts.first_priority = flow.priority
        counts.first_level = level
    m = flow.member
    flow.member = NONE
    part = 0
    capacity = -1.0
    weight = np.int64(0)
    while m != NONE:
        counts.num_members -= 1
        # Links of a path are mostly alike: what it takes of one is worked out once for all of them.
        member = fluid.members[m]
        if fluid.links[member.link].capacity != capacity or member.weight != weight:
            capacity = fluid.links[member.link].capacity
            weight = member.weight
            part = part_of(capacity, level, weight)
        _leave(fluid, m, part)
        m = fluid.members[m].sibling
