"""Paths that a balancer chooses, in ``congestion``: what it is shown, and how a connection takes its answer.

The loop calls ``choose`` and ``end_choice`` by address: they are compiled where there is a balancer only.
"""

from __future__ import annotations

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
from cosim.network.congestion.moves import go_on, leave_paths, take_path
from cosim.network.congestion.ports import look_at_link, mean_mark, service
from cosim.network.congestion.rounds import left_of
from cosim.network.congestion.sending import send
from cosim.network.congestion.state import AGAIN, CongestionState
from cosim.network.core import DONE, Core
from cosim.network.jit import compiled, inlined, once

NEED_STRANDS, NEED_BATCH = 35, 36
"""What the loop stops for: strands for what was chosen, or rows for as many first rounds."""

_NONE = -1


@inlined
def _crowd(fluid: CongestionState, c: int, sign: int) -> None:
    """Count a connection among those on its links, or no longer."""
    s = fluid.conns[c].strand
    while s != _NONE:
        strand = fluid.strands[s]
        part = sign * int(strand.part * WEIGHT_UNIT + 0.5)
        for k in range(strand.hop, strand.hop + strand.hops):
            fluid.balance.crowd[fluid.hops[k].link] += part
        s = strand.next


def end_choice(core: Core, fluid: CongestionState, c: int) -> int:
    """A connection has sent its flow; nothing is returned."""
    _crowd(fluid, c, -1)
    fluid.balance.routes[c].due = _NONE
    fluid.balance.routes[c].idle_since = core.state[0].instant
    return 0


@compiled
def choose_anew(fluid: CongestionState) -> None:
    """Links failed, or came back: all that send choose again, at this instant."""
    for c in range(len(fluid.balance.routes)):
        if fluid.conns[c].active != 0:
            choose_at_end(fluid.balance, c, 0)


@inlined
def _bring_mine(fluid: CongestionState, c: int, sign: int) -> None:
    """What a connection itself brings to its links now."""
    s = fluid.conns[c].strand
    while s != _NONE:
        strand = fluid.strands[s]
        for k in range(strand.hop, strand.hop + strand.hops):
            fluid.mine[fluid.hops[k].link] += sign * fluid.hops[k].load
        s = strand.next


@once
def _look_at(core: Core, fluid: CongestionState, n: int, k: int, c: int, now: int) -> None:
    """Fill in what the ``n``-th row sees of path ``k``: of links that not all paths share."""
    balance = fluid.balance
    route = balance.routes[c]
    path = balance.paths[balance.pairs[route.pair].first + k]
    seen = balance.seen[n, k]
    mine = seen.part if route.fresh == 0 else 0.0
    unmarked = 1.0
    for at in range(path.own, path.own_end):
        number = balance.links[at]
        look_at_link(core, fluid, number, now)
        link = fluid.links[number]
        others = 0
        p = number
        for _ in range(fluid.counts[0].num_classes):
            others += fluid.ports[p].load
            p += len(fluid.links)
        seen.load = max(seen.load, float(others - fluid.mine[number]) / float(max(link.capacity, 1)))
        seen.flows = max(seen.flows, float(balance.crowd[number]) / WEIGHT_UNIT - mine)
        p = number + fluid.conns[c].priority * len(fluid.links)
        queue = fluid.ports[p].queue
        if queue > 0.0:
            seen.queue += queue * 8e12 / service(fluid, p)
            unmarked *= 1.0 - mean_mark(queue, queue, link.mark_from, link.mark_all, link.mark_most)
    seen.marked = 1.0 - unmarked


@once
def _look(core: Core, fluid: CongestionState, now: int) -> None:
    """Fill in the rows of a batch."""
    balance = fluid.balance
    for n in range(balance.counts[0].num_rows):
        row = show(balance, n, now)
        c = row.conn
        one = fluid.conns[c]
        row.size = one.size
        row.left = left_of(one, now)
        row.rate = float(one.rate)
        row.line = float(one.line)
        row.base_rtt = one.base
        row.rtt = one.seen_rtt if one.known != 0 else one.base
        row.marked = one.marked
        row.priority = float(one.priority)
        if balance.counts[0].looks == 0:
            continue
        # Its own load is marked on its links while its paths are looked at, so that each shows what others
        # bring: with every path in turn, adding and removing are a few steps, and looking it up would be a
        # search.
        _bring_mine(fluid, c, 1)
        for k in range(balance.pairs[balance.routes[c].pair].count):
            _look_at(core, fluid, n, k, c, now)
        _bring_mine(fluid, c, -1)


@once
def _lacks_strands(fluid: CongestionState, n: int) -> bool:
    """Whether the ``n``-th answer names paths that its connection never took."""
    balance = fluid.balance
    row = balance.rows[n]
    choices = fluid.conns[row.conn].choices
    if balance.counts[0].splits == 0:
        return bool(fluid.choices[choices + int(row.path)] == _NONE)
    for k in range(int(row.paths)):
        if balance.seen[n, k].part > 0.0 and fluid.choices[choices + k] == _NONE:
            return True
    return False


@once
def _take(core: Core, fluid: CongestionState, n: int, now: int) -> None:
    """Have the ``n``-th of a batch go where the balancer said."""
    balance = fluid.balance
    c = balance.rows[n].conn
    route = balance.routes[c]
    fresh = route.fresh != 0
    if not fresh:
        _crowd(fluid, c, -1)
    changed = differs(balance, n)
    balance.counts[0].num_choices += 1
    # A first choice is none that changes anything.
    if changed and route.known != 0:
        balance.counts[0].num_changes += 1
    route.known = 1
    route.fresh = 0
    route.choosing = 0
    if changed:
        leave_paths(core, fluid, c, now)
        for k in range(balance.pairs[route.pair].count):
            part = part_of(balance, c, k)
            if part > 0.0:
                take_path(fluid, c, fluid.choices[fluid.conns[c].choices + k], part)
        go_on(core, fluid, c, now)
    _crowd(fluid, c, 1)
    # Only now does it begin to send: before, it had no path.
    if fresh:
        send(core, fluid, c, now)
    route.due = _NONE
    if asks_again(balance, n):
        route.due = now + int(balance.rows[n].again)
        push(core.calendar, route.due, now, now, _NONE, 0, c, AGAIN)


def choose(core: Core, fluid: CongestionState, now: int) -> int:
    """Have a batch of those that choose at this instant do so: shown, asked, checked, taken."""
    balance = fluid.balance
    counts = balance.counts[0]
    if counts.num_choosing > len(fluid.rows):
        return NEED_BATCH
    if counts.asked == 0:
        if not begin_batch(balance):
            return NEED_CHOICES
        _look(core, fluid, now)
        if have_answered(balance) != DONE:
            return CHOOSE
    status = check_batch(core, balance)
    if status != DONE:
        return status
    while counts.taken < counts.num_rows:
        if _lacks_strands(fluid, counts.taken):
            return NEED_STRANDS
        _take(core, fluid, counts.taken, now)
        counts.taken += 1
    end_batch(balance)
    return DONE
