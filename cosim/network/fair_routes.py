"""Paths that a balancer chooses, in ``fair_share``: what it is shown, and how a flow goes over to its answer.

A flow that has parts is on each link with the part of its weight that goes that way, all of it at one rate:
max-min sharing with a coefficient for each link. So the link with the least for its part holds back the
others. What has gone by a path when its flow leaves it arrives by it.

The loop calls ``choose`` and ``end_on_route`` by address: they are compiled where there is a balancer only.
"""

from __future__ import annotations

import math

from cosim.network.balancing.choosing import (
    CHOOSE,
    NEED_CHOICES,
    asks_again,
    begin_batch,
    check_batch,
    choose_at_end,
    differs,
    end_batch,
    have_answered,
    part_of,
    show,
)
from cosim.network.balancing.state import WEIGHT_UNIT
from cosim.network.calendar import push
from cosim.network.core import DONE, Core
from cosim.network.fluid import CAME, NONE, Fluid
from cosim.network.jit import compiled, inlined, internal, once
from cosim.network.membership import join, leave_path

NEED_MEMBERS = 21
"""What the loop stops for: more room."""
AGAIN = 1
"""``hop`` of an event: a connection (row) asked to be asked again."""

_DUST = 1e-3  # of 1e-9 of a weight: what parts of a whole lose by rounding
_BPS = 8e12
"""Bits per second in a byte per picosecond."""


@inlined
def begin_on_route(fluid: Fluid, c: int) -> None:
    """A connection begins a message: it chooses when time leaves the instant."""
    fluid.balance.routes[c].sent = 0
    choose_at_end(fluid.balance, c, 1)


@inlined
def _crowd(fluid: Fluid, f: int, sign: int) -> None:
    """Count a flow among those on its links, or no longer."""
    balance = fluid.balance
    whole = float(fluid.flows[f].weight)
    # One membership a link, whatever the paths that go over it: a link is counted once.
    m = fluid.flows[f].member
    while m != NONE:
        member = fluid.members[m]
        balance.crowd[member.link] += sign * int(float(member.weight) / whole * WEIGHT_UNIT + 0.5)
        m = member.sibling


@inlined
def _count(core: Core, fluid: Fluid, f: int, sent: int) -> None:
    """Count bytes on a flow's links; ``sent``: of its message, so far."""
    flow = fluid.flows[f]
    route = fluid.balance.routes[flow.channel]
    more = float(sent - route.sent)
    route.sent = sent
    m = flow.member
    while m != NONE:
        member = fluid.members[m]
        core.link_bytes[member.link] += int(more * (float(member.weight) / float(flow.weight)) + 0.5)
        m = member.sibling


def end_on_route(core: Core, fluid: Fluid, f: int) -> int:
    """A flow that has drained is about to leave its links; when its last byte arrives."""
    now = core.state[0].instant
    flow = fluid.flows[f]
    route = fluid.balance.routes[flow.channel]
    _count(core, fluid, f, core.store.rows[flow.row].size)
    _crowd(fluid, f, -1)
    route.due = NONE
    route.idle_since = now
    route.arrives = max(now + route.latency, route.arrives)
    return int(route.arrives)


@once
def _look_along(fluid: Fluid, n: int, f: int) -> None:
    """What others bring to the links that not all paths share."""
    balance = fluid.balance
    flow = fluid.flows[f]
    pair = balance.pairs[balance.routes[flow.channel].pair]
    for k in range(pair.count):
        path = balance.paths[pair.first + k]
        seen = balance.seen[n, k]
        mine = seen.part if flow.member != NONE else 0.0
        for at in range(path.own, path.own_end):
            link = fluid.links[balance.links[at]]
            load = 1.0
            if link.capacity > 0.0:
                load = (link.used - mine * flow.rate) / link.capacity
            seen.load = max(seen.load, load)
            crowd = float(balance.crowd[balance.links[at]]) / WEIGHT_UNIT - mine
            seen.flows = max(seen.flows, crowd)


@once
def _look(core: Core, fluid: Fluid, now: int) -> None:
    """Fill in the rows of a batch."""
    balance = fluid.balance
    for n in range(balance.counts[0].num_rows):
        row = show(balance, n, now)
        c = row.conn
        route = balance.routes[c]
        f = fluid.channels[c].head
        flow = fluid.flows[f]
        first = balance.paths[balance.pairs[route.pair].first]
        row.size = float(core.store.rows[flow.row].size)
        row.left = max(flow.remaining - flow.rate * (now - flow.touched), 0.0)
        row.rate = flow.rate * _BPS
        row.line = fluid.links[balance.links[first.begin]].capacity * _BPS
        row.base_rtt = 2.0 * float(route.latency if route.known != 0 else first.latency)
        row.rtt = row.base_rtt
        row.marked = 0.0
        row.priority = float(flow.priority)
        if balance.counts[0].looks != 0:
            _look_along(fluid, n, f)


@compiled
def choose_anew(fluid: Fluid) -> None:
    """Links failed, or came back: all that send choose again, at this instant."""
    for c in range(min(len(fluid.channels), len(fluid.balance.routes))):
        f = fluid.channels[c].head
        if f != NONE and fluid.flows[f].member != NONE:
            choose_at_end(fluid.balance, c, 0)


@once
def _num_hops(fluid: Fluid, n: int) -> int:
    """How many memberships the ``n``-th answer takes at most."""
    balance = fluid.balance
    route = balance.routes[balance.rows[n].conn]
    pair = balance.pairs[route.pair]
    hops = 0
    for k in range(pair.count):
        path = balance.paths[pair.first + k]
        if balance.counts[0].splits != 0 or k == int(balance.rows[n].path):
            hops += path.end - path.begin
    return int(hops)


@internal
def _go(core: Core, fluid: Fluid, f: int, now: int) -> None:
    """Put a flow on the links of what its connection has chosen."""
    balance = fluid.balance
    flow = fluid.flows[f]
    route = balance.routes[flow.channel]
    pair = balance.pairs[route.pair]
    if flow.member != NONE:
        # What it has sent by now went by the old paths: it is counted on them before they are left.
        left = max(flow.remaining - flow.rate * (now - flow.touched), 0.0)
        _count(core, fluid, f, int(core.store.rows[flow.row].size) - math.ceil(left))
        _crowd(fluid, f, -1)
        leave_path(fluid, f)
        flow.level = -1.0  # to the filling it is a new one
        route.arrives = max(route.arrives, now + route.latency)
    route.latency = 0
    last = NONE
    for k in range(pair.count):
        part = part_of(balance, flow.channel, k)
        if part == 0.0:
            continue
        path = balance.paths[pair.first + k]
        route.latency = max(route.latency, path.latency)
        # Rounded up: a link is never given more than it has.
        weight = math.ceil(part * float(flow.weight) - _DUST)
        for at in range(path.begin, path.end):
            link = balance.links[at]
            # Paths of a pair share links: `spot` says which membership a link has already, and is cleared
            # below.
            m = balance.spot[link]
            if m == NONE:
                last = join(fluid, f, link, last, 0, CAME)
                fluid.counts[0].num_members += 1
                balance.spot[link] = last
                m = last
            fluid.members[m].weight = min(fluid.members[m].weight + max(weight, 1), flow.weight)
    flow.member = last
    while last != NONE:
        balance.spot[fluid.members[last].link] = NONE
        last = fluid.members[last].sibling
    _crowd(fluid, f, 1)


@once
def _take(core: Core, fluid: Fluid, now: int) -> bool:
    """Have those of a batch go where the balancer said; False where there is no room for their memberships,
    and those that remain go on later.
    """
    balance = fluid.balance
    counts = balance.counts[0]
    while counts.taken < counts.num_rows:
        n = counts.taken
        c = balance.rows[n].conn
        route = balance.routes[c]
        f = fluid.channels[c].head
        # Looked at before anything is changed: the loop comes back to this very answer with more room.
        if fluid.counts[0].num_members + _num_hops(fluid, n) > len(fluid.members):
            return False
        counts.taken = n + 1
        changed = differs(balance, n)
        counts.num_choices += 1
        if changed and route.known != 0:
            counts.num_changes += 1
        route.known = 1
        route.fresh = 0
        route.choosing = 0
        if changed or fluid.flows[f].member == NONE:
            _go(core, fluid, f, now)
        route.due = NONE
        if asks_again(balance, n):
            route.due = now + int(balance.rows[n].again)
            push(core.calendar, route.due, now, now, NONE, 0, c, AGAIN)
    end_batch(balance)
    return True


def choose(core: Core, fluid: Fluid, now: int) -> int:
    """Have a batch of those that choose at this instant do so: shown, asked, checked, taken."""
    balance = fluid.balance
    counts = balance.counts[0]
    if counts.asked == 0:
        if not begin_batch(balance):
            return NEED_CHOICES
        _look(core, fluid, now)
        if have_answered(balance) != DONE:
            return CHOOSE
    status = check_batch(core, balance)
    if status != DONE:
        return status
    if not _take(core, fluid, now):
        return NEED_MEMBERS
    return DONE
