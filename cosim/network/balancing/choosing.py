"""What networks share of choosing: who chooses at an instant, what rows say, and whether answers are good.

A connection that begins a message, or asked to be asked again, is put on a list; when time leaves the instant
all of them are one batch, or one of a row each. The network shows what only it knows of paths.
"""

from __future__ import annotations

import math
from typing import Any

from cosim.network.balancing.state import LEAST_AGAIN_PS, NEAR_ONE, Balance
from cosim.network.calendar import room
from cosim.network.chance import chance
from cosim.network.core import DONE, NEED_CALENDAR, Core
from cosim.network.jit import call_at, inlined, internal

NEED_CHOICES, CHOOSE, WRONG_CHOICE = 24, 25, 26
"""What a loop stops for: more room, the balancer's answers on a batch, or to have one refused."""


@inlined
def choose_at_end(balance: Balance, c: int, fresh: int) -> None:
    """Connection ``c`` chooses when time leaves this instant; ``fresh``: because it begins a message."""
    counts = balance.counts[0]
    route = balance.routes[c]
    route.fresh = max(route.fresh, fresh)
    # Once in the list, however many messages it begins at this instant: the room is one place a connection.
    if route.choosing == 0:
        route.choosing = 1
        balance.choosing[counts.num_choosing] = c
        counts.num_choosing += 1


@inlined
def show(balance: Balance, n: int, now: int) -> Any:
    """Fill in what every network knows of the ``n``-th that chooses; its row."""
    c = balance.choosing[balance.counts[0].next + n]
    route = balance.routes[c]
    pair = balance.pairs[route.pair]
    row = balance.rows[n]
    row.conn = c
    row.first = 1.0 if route.known == 0 else 0.0
    row.fresh = float(route.fresh)
    row.idle = float(now - route.idle_since if route.fresh != 0 else route.pause)
    route.pause = 0
    # A draw for this time and one for good, both of the connection's own salt: no other's choice moves them.
    row.chance = chance(route.salt, now)
    row.hash = chance(route.salt, -1)
    row.job = float(route.job)
    row.paths = float(pair.count)
    row.path = float(route.path)
    row.again = 0.0
    # All columns, also beyond this pair's paths: rows are used again, and an answer must find no old parts.
    for k in range(balance.seen.shape[1]):
        seen = balance.seen[n, k]
        seen.part = 0.0
        seen.alive = 0.0
        seen.minimal = 0.0
        seen.hops = 0.0
        seen.rate = 0.0
        seen.latency = 0.0
        seen.load = 0.0
        seen.flows = 0.0
        seen.queue = 0.0
        seen.marked = 0.0
        if k >= pair.count:
            continue
        path = balance.paths[pair.first + k]
        seen.minimal = path.minimal
        seen.hops = float(path.end - path.begin)
        seen.rate = path.rate
        seen.latency = float(path.latency)
        seen.alive = 1.0
        for at in range(path.begin, path.end):
            if balance.dead[balance.links[at]] != 0:
                seen.alive = 0.0
        if route.part >= 0:
            seen.part = balance.parts[route.part + k]
        elif route.path == k:
            seen.part = 1.0
    return row


@internal
def by_lot(balance: Balance) -> None:
    """Put those that choose in an order that is a lot's, whatever came first (heapsort by salt)."""
    choosing = balance.choosing
    routes = balance.routes
    count = int(balance.counts[0].num_choosing)
    # In place, as a loop can't make arrays. Salts are drawn for (job, source, destination, channel), so that
    # the order hangs neither on numbers nor on who came first.
    begin = count // 2
    end = count
    while end > 1:
        if begin > 0:
            begin -= 1
        else:
            end -= 1
            last = choosing[end]
            choosing[end] = choosing[0]
            choosing[0] = last
        at = begin
        one = choosing[at]
        while True:
            child = 2 * at + 1
            if child >= end:
                break
            if child + 1 < end and routes[choosing[child + 1]].salt > routes[choosing[child]].salt:
                child += 1
            if routes[choosing[child]].salt <= routes[one].salt:
                break
            choosing[at] = choosing[child]
            at = child
        choosing[at] = one


@internal
def first_wrong(balance: Balance) -> int:
    """The first row of the batch with an answer that can't be followed; -1: none. Parts are made to add up to
    1.

    Where every path of a pair is down, any will do: its connection waits.
    """
    counts = balance.counts[0]
    for n in range(counts.num_rows):
        row = balance.rows[n]
        count = int(row.paths)
        if not (row.again == 0.0 or (row.again >= LEAST_AGAIN_PS and math.isfinite(row.again))):
            return n
        for k in range(counts.num_states):
            if not math.isfinite(balance.state[int(row.conn), k]):
                return n
        # Whether any path is alive: where none is, an answer is as good as another.
        some = False
        for k in range(count):
            some = some or balance.seen[n, k].alive != 0.0
        if counts.splits == 0:
            if not (row.path >= 0.0 and row.path < row.paths and row.path == math.floor(row.path)):
                return n
            if some and balance.seen[n, int(row.path)].alive == 0.0:
                return n
            continue
        total = 0.0
        for k in range(balance.seen.shape[1]):
            part = balance.seen[n, k].part
            if not (part >= 0.0 and part <= 2.0):
                return n
            if part > 0.0 and (k >= count or (some and balance.seen[n, k].alive == 0.0)):
                return n
            total += part
        if abs(total - 1.0) > NEAR_ONE:
            return n
        # Sums of thirds are off by rounding; bytes must not get lost by it.
        if total != 1.0:
            for k in range(count):
                balance.seen[n, k].part /= total
    return -1


@inlined
def differs(balance: Balance, n: int) -> bool:
    """Whether the ``n``-th answer is another than what its connection has; it has it afterwards."""
    route = balance.routes[balance.rows[n].conn]
    pair = balance.pairs[route.pair]
    changed = False
    if balance.counts[0].splits == 0:
        path = int(balance.rows[n].path)
        changed = route.path != path
        route.path = path
        balance.paths[pair.first + path].users += 1
    else:
        for k in range(pair.count):
            part = balance.seen[n, k].part
            if balance.parts[route.part + k] != part:
                changed = True
                balance.parts[route.part + k] = part
            if part > 0.0:
                balance.paths[pair.first + k].users += 1
    return changed


@inlined
def asks_again(balance: Balance, n: int) -> bool:
    """Whether the ``n``-th is to be asked again at a time of its own. Where every path is down there is
    nothing to choose, and for ever: routes that change ask it.
    """
    row = balance.rows[n]
    some = False
    for k in range(int(row.paths)):
        some = some or balance.seen[n, k].alive != 0.0
    return bool(some and row.again > 0.0)


@inlined
def begin_batch(balance: Balance) -> bool:
    """Who is asked next: all that choose, or one of them; False where there are too few rows."""
    counts = balance.counts[0]
    if counts.one_by_one != 0:
        if counts.next == 0:
            by_lot(balance)
        counts.num_rows = 1
    else:
        counts.num_rows = counts.num_choosing
    return bool(counts.num_rows <= len(balance.rows))


@inlined
def have_answered(balance: Balance) -> int:
    """Ask the balancer about a batch that is filled in: :data:`DONE`; :data:`CHOOSE` where Python has to."""
    counts = balance.counts[0]
    counts.asked = 1
    if counts.kernel == 0:
        return CHOOSE
    call_at(counts.kernel, (counts.num_rows, balance.rows, balance.seen, balance.state, balance.parameters))
    return DONE


@inlined
def check_batch(core: Core, balance: Balance) -> int:
    """Whether a batch's answers can be followed, and there is room for what they ask: :data:`DONE`, or why
    the loop stops.
    """
    counts = balance.counts[0]
    # The loop stopped for room in the middle of taking this batch: it was checked when that began.
    if counts.taken != 0:
        return DONE
    counts.wrong = first_wrong(balance)
    if counts.wrong >= 0:
        return WRONG_CHOICE
    # Each of the batch may ask to be asked again: an event each.
    return DONE if room(core.calendar, counts.num_rows) else NEED_CALENDAR


@inlined
def end_batch(balance: Balance) -> None:
    """All answers of a batch are taken."""
    counts = balance.counts[0]
    counts.next += counts.num_rows
    if counts.next == counts.num_choosing:
        counts.num_choosing = 0
        counts.next = 0
    counts.asked = 0
    counts.taken = 0


@inlined
def part_of(balance: Balance, c: int, k: int) -> float:
    """What part of connection ``c`` goes by path ``k`` of its pair."""
    route = balance.routes[c]
    if balance.counts[0].splits != 0:
        return float(balance.parts[route.part + k])
    return 1.0 if route.path == k else 0.0
