"""Flows on the links of ``fair_share``: they join those of their path, and leave them."""

from __future__ import annotations

from cosim.network.core import Core
from cosim.network.dense_turns import take_out
from cosim.network.fluid import CAME, LEFT, NONE, Fluid, mark
from cosim.network.jit import inlined, once
from cosim.network.slack import part_of


@inlined
def join(fluid: Fluid, f: int, link: int, sibling: int, weight: int) -> int:
    """Put a flow, or a part of it, on a link; its membership, before ``sibling`` among the flow's."""
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
    mark(fluid, link, CAME)
    return int(m)


@inlined
def _leave(fluid: Fluid, m: int) -> None:
    """Take a flow off a link, by its membership."""
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
    link = fluid.links[member.link]
    link.load -= part_of(link, fluid.flows[member.flow].level, member.weight)
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
    """Put a flow on the links of a path, for which there is room."""
    last = NONE
    for k in range(core.path_ptr[path], core.path_ptr[path + 1]):
        fluid.counts[0].num_members += 1
        last = join(fluid, f, core.path_link[k], last, fluid.flows[f].weight)
    fluid.flows[f].member = last


@once
def leave_path(fluid: Fluid, f: int) -> None:
    """Take a flow off the links that it is on."""
    if fluid.counts[0].dense != 0:
        take_out(fluid, f)
    m = fluid.flows[f].member
    fluid.flows[f].member = NONE
    while m != NONE:
        fluid.counts[0].num_members -= 1
        _leave(fluid, m)
        m = fluid.members[m].sibling
