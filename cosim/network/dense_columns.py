"""Columns of :mod:`cosim.network.dense`, made of the network's records, and what those say made of them."""

from __future__ import annotations

import numpy as np

from cosim.network.dense import BLOCK, MOST_SAVED, SEVERAL
from cosim.network.drains import drain_time
from cosim.network.fluid import NO_CLASS, NONE, Fluid
from cosim.network.jit import inlined, internal, once
from cosim.network.rates import rate_of
from cosim.network.slack import is_alone, recount
from cosim.units import NEVER

_FEWEST_LINKS = 8
"""Between two places that a filling saves."""
_MASK = (1 << 31) - 1
_MANY, _GOLDEN = 1_000_003, 2_654_435_761  # products of 31 and 32 bits at most: of less than 64 bits


@once
def _sort_links(fluid: Fluid) -> None:
    """Tell links that may be full from those aside, and what those carry."""
    dense = fluid.dense
    state = dense.state[0]
    state.num_links = 0
    state.num_aside = 0
    for number in range(len(fluid.links)):
        link = fluid.links[number]
        dense.local[number] = NONE
        empty = link.first == NONE
        if empty and link.dirty == 0 and link.used == 0.0:
            continue
        if empty:
            link.full_priority = NO_CLASS
        if empty or (link.room != 0 and link.full_priority == NO_CLASS):
            dense.aside[state.num_aside] = number
            state.num_aside += 1
            recount(fluid, number)
            continue
        dense.local[number] = state.num_links
        held = dense.held[state.num_links]
        held.number = number
        held.weight = 0.0
        held.count = 0
        held.differs = 1
        dense.now[state.num_links].capacity = link.capacity
        _put_in_order(fluid, int(np.int64(state.num_links)), number)
        state.num_links += 1
    state.step = max(_FEWEST_LINKS, (state.num_links + MOST_SAVED - 1) // MOST_SAVED)


@inlined
def _put_in_order(fluid: Fluid, local: int, number: int) -> None:
    """Put a link where it was full in the last filling; at the end where it was not."""
    dense = fluid.dense
    order = dense.order
    link = fluid.links[number]
    place = local
    if link.full_priority != NO_CLASS:
        while place > 0:
            before = fluid.links[dense.held[order[place - 1]].number]
            if before.full_priority != NO_CLASS and before.full_level <= link.full_level:
                break
            order[place] = order[place - 1]
            place -= 1
    order[place] = local


@inlined
def _find_bundle(fluid: Fluid, f: int) -> int:
    """The bundle of a flow, a new one where there is none yet."""
    dense = fluid.dense
    state = dense.state[0]
    flow = fluid.flows[f]
    # Its path goes where a new bundle's would be, and stays there if it is one.
    at = np.int64(state.rows)
    count = 0
    hashed = np.int64(flow.weight) & _MASK
    one = flow.member
    while one != NONE:
        member = fluid.members[one]
        one = member.sibling
        local = np.int64(dense.local[member.link])
        if local != NONE:
            dense.on[at + count] = local
            count += 1
            hashed = (hashed * _MANY + local + 1) & _MASK
    mask = np.int64(state.mask)
    slot = (hashed * _GOLDEN >> 20) & mask
    while dense.hashed[slot] != 0:
        b = np.int64(dense.hashed[slot]) - 1
        bundle = dense.bundles[b]
        same = (
            bundle.count == count
            and dense.weight[b] == flow.weight
            and dense.level[b] == flow.level
            and dense.rate[b] == flow.rate
            and dense.touched[b] == flow.touched
        )
        k = 0
        while same and k < count:
            same = dense.on[bundle.at + k] == dense.on[at + k]
            k += 1
        if same:
            return int(b)
        slot = (slot + 1) & mask
    b = np.int64(state.num_bundles)
    state.num_bundles = b + 1
    dense.hashed[slot] = b + 1
    bundle = dense.bundles[b]
    bundle.weight = 0.0
    bundle.at = at
    bundle.count = count
    state.rows += count
    dense.num[b] = 0
    dense.alone[b] = 0.0
    dense.weight[b] = flow.weight
    dense.level[b] = flow.level
    dense.fresh[b] = flow.level
    dense.rate[b] = flow.rate
    dense.touched[b] = flow.touched
    return int(b)


@once
def _sort_flows(fluid: Fluid) -> None:
    """Put each flow into a bundle, and those of a bundle together."""
    dense = fluid.dense
    state = dense.state[0]
    state.num_bundles = 0
    state.num_flows = 0
    state.rows = 0
    state.mask = 1
    while state.mask < 2 * fluid.counts[0].flows_used:
        state.mask = 2 * state.mask + 1
    for slot in range(state.mask + 1):
        dense.hashed[slot] = 0
    for f in range(fluid.counts[0].flows_used):
        dense.column[f] = NONE
    # In the order of their levels, about: where rates change, those of neighbours do.
    for place in range(state.num_links):
        m = fluid.links[dense.held[dense.order[place]].number].first
        while m != NONE:
            f = int(np.int64(fluid.members[m].flow))
            m = fluid.members[m].after
            if dense.column[f] == NONE:
                b = _find_bundle(fluid, f)
                dense.column[f] = b
                dense.num[b] += 1
                dense.bundles[b].weight += fluid.flows[f].weight
                state.num_flows += 1
    state.num_left = state.num_bundles
    at = np.int64(0)
    for b in range(state.num_bundles):
        dense.bundles[b].next = at
        dense.bundles[b].end = at
        at += dense.num[b]
    for f in range(fluid.counts[0].flows_used):
        if dense.column[f] != NONE:
            bundle = dense.bundles[dense.column[f]]
            dense.flow[bundle.end] = f
            dense.left[bundle.end] = fluid.flows[f].remaining
            bundle.end += 1


@inlined
def _sort_by_left(fluid: Fluid, first: int, end: int) -> None:
    """Put flows in the order of what is left of them: Shell's way, with Knuth's gaps."""
    dense = fluid.dense
    gap = 1
    while 3 * gap + 1 < end - first:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(first + gap, end):
            left = dense.left[k]
            f = dense.flow[k]
            at = k
            while at >= first + gap and dense.left[at - gap] > left:
                dense.left[at] = dense.left[at - gap]
                dense.flow[at] = dense.flow[at - gap]
                at -= gap
            dense.left[at] = left
            dense.flow[at] = f
        gap //= 3


@once
def _sort_bundles(fluid: Fluid) -> None:
    """Have the flow that drains next lead each bundle; list links aside of each flow."""
    dense = fluid.dense
    state = dense.state[0]
    off = 0
    state.num_several = 0
    for b in range(state.num_bundles):
        bundle = dense.bundles[b]
        _sort_by_left(fluid, int(np.int64(bundle.next)), int(np.int64(bundle.end)))
        dense.remaining[b] = dense.left[bundle.next]
        dense.due[b] = drain_time(dense.touched[b], dense.remaining[b], dense.rate[b])
        for place in range(bundle.next, bundle.end):
            dense.off_at[place] = off
            one = fluid.flows[dense.flow[place]].member
            while one != NONE:
                number = fluid.members[one].link
                one = fluid.members[one].sibling
                if dense.local[number] == NONE:
                    dense.off[off] = number
                    off += 1
        state.num_several += dense.num[b] > 1
    dense.off_at[state.num_flows] = off


@once
def _list_bundles(fluid: Fluid) -> None:
    """List the bundles of each link that may be full."""
    dense = fluid.dense
    state = dense.state[0]
    for b in range(state.num_bundles):
        bundle = dense.bundles[b]
        for k in range(bundle.at, bundle.at + bundle.count):
            held = dense.held[dense.on[k]]
            held.count += 1
            held.weight += bundle.weight
    at = np.int64(0)
    for local in range(state.num_links):
        held = dense.held[local]
        held.at = at
        at += held.count
        held.count = 0
    for b in range(state.num_bundles):
        bundle = dense.bundles[b]
        for k in range(bundle.at, bundle.at + bundle.count):
            held = dense.held[dense.on[k]]
            hold = dense.holds[held.at + held.count]
            hold.bundle = b
            hold.other = SEVERAL
            if bundle.count == 1:
                hold.other = NONE
            elif bundle.count == 2:  # the one of both that ``k`` is not
                hold.other = dense.on[2 * bundle.at + 1 - k]
            held.count += 1


@inlined
def see_soonest(fluid: Fluid, block: int) -> None:
    """When the next flow of a block drains."""
    dense = fluid.dense
    first = block * BLOCK
    soonest = np.int64(NEVER)
    for b in range(first, min(first + BLOCK, int(np.int64(dense.state[0].num_bundles)))):
        soonest = min(soonest, dense.due[b])
    dense.soonest[block] = soonest


@internal
def make_columns(fluid: Fluid) -> None:
    """Make columns of the network's records."""
    dense = fluid.dense
    state = dense.state[0]
    _sort_links(fluid)
    _sort_flows(fluid)
    _sort_bundles(fluid)
    _list_bundles(fluid)
    state.num_saved = 0
    for block in range((state.num_bundles + BLOCK - 1) // BLOCK):
        see_soonest(fluid, block)
    for number in range(len(fluid.links)):
        note_alone(fluid, number)


@internal
def note_alone(fluid: Fluid, number: int) -> None:
    """Where a link's only flow meets no other, it is from now on as fast as its slowest link."""
    if not is_alone(fluid, number):
        return
    f = int(np.int64(fluid.members[fluid.links[number].first].flow))
    fluid.dense.alone[fluid.dense.column[f]] = rate_of(fluid, f, 0.0)


@internal
def put_back(fluid: Fluid) -> None:
    """Have the network's records say of flows what the columns do."""
    dense = fluid.dense
    for b in range(dense.state[0].num_bundles):
        bundle = dense.bundles[b]
        for place in range(bundle.next, bundle.end):
            flow = fluid.flows[dense.flow[place]]
            flow.level = dense.level[b]
            flow.rate = dense.rate[b]
            flow.touched = dense.touched[b]
            flow.remaining = dense.remaining[b] if place == bundle.next else dense.left[place]
