"""When time leaves an instant: new rates reach the links, hop by hop, and what follows from them.

A flow brings its rate to its first port, and to each next one what the port before passes on: a port that is
given more than it can serve passes on its rate, in proportion, and so does one that works off its queue (also
when nothing comes any more), so that what a switch is sent leaves it. Every pass over the changed connections
reads loads that the pass before it wrote, and writes sums of whole numbers: their order means nothing.
Connections that did not change keep what they bring to ports further on until their own round ends, a round
trip, as it is on a wire, unless a port that passes on its rate is now shared otherwise.

A host's own port has no queue of its own flows: where they want more than it has, each gets the same share of
what it wants.
"""

from __future__ import annotations

import math

from cosim.network.calendar import push
from cosim.network.congestion.changes import change, own_changed, touch
from cosim.network.congestion.columns import BYTES_PER_BPS_PS, UPDATE, Fluid
from cosim.network.congestion.delays import path_rtt
from cosim.network.congestion.pauses import expect_crossing, expect_empty
from cosim.network.congestion.ports import is_hot, passes, settle_link
from cosim.network.congestion.rounds import set_want, settle_conn
from cosim.network.core import Core
from cosim.network.drains import drain_time, set_drain
from cosim.network.jit import inlined
from cosim.units import NEVER

_NONE = -1
_OVER = 1.05
"""So much more than its window a connection may send in a round: rounds and rates are not exact."""
_FLOOR = 1.0 - 2.0**-40
"""So that shares of a port never add up to more than it has."""
_ALIKE = 16
"""Loads that differ by less than this part of them are shared as before, until the next round."""
_DROP = 64.0
"""Bytes; smaller queues go on as what comes in does. Where nothing pauses, queues below a packet do."""


@inlined
def detach(fluid: Fluid, c: int) -> None:
    """Take a connection that brings nothing anywhere off its ports."""
    hops = fluid.hops
    one = fluid.conns[c]
    for k in range(one.hop, one.hop + one.hops):
        hop = hops[k]
        if hop.before != _NONE:
            hops[hop.before].after = hop.after
        else:
            fluid.ports[hop.port].first = hop.after
        if hop.after != _NONE:
            hops[hop.after].before = hop.before
        if k < one.hop + one.hops - 1:
            fluid.links[hop.link].onward -= 1
    one.attached = 0


@inlined
def on_grid(time: float, grid: int, now: int) -> int:
    """The first whole multiple of ``grid`` that is not before ``now + time``, and after ``now``."""
    at = now + math.ceil(time)
    return int(max((at + grid - 1) // grid * grid, (now // grid + 1) * grid))


@inlined
def wake(fluid: Fluid, c: int, now: int) -> None:
    """Let a connection that rests go on with its rounds, as if it had not rested; time leaves the instant by
    way of :func:`apply`, which puts the end of its round into the calendar.
    """
    counts = fluid.counts[0]
    one = fluid.conns[c]
    one.asleep = 0
    settle_conn(fluid, c, now)
    one.due = one.ends
    if now >= one.ends:
        one.round = one.ends + (now - one.ends) // one.period * one.period
        one.due = one.round + one.period
        one.bursts = 0
        one.lost_since = one.round
        sent = one.rate * BYTES_PER_BPS_PS * float(now - one.round)
        one.round_sent = sent
        one.loss_sent = sent
    fluid.woken[counts.num_woken] = c
    counts.num_woken += 1
    counts.open = 1


@inlined
def apply(core: Core, fluid: Fluid, now: int) -> None:
    """Bring everything that changed at ``now`` into force. The caller saw to the room in the calendar."""
    calendar = core.calendar
    counts = fluid.counts[0]
    conns = fluid.conns
    hops = fluid.hops
    ports = fluid.ports
    links = fluid.links
    changed = fluid.changed
    settings = fluid.settings[0]
    least = _DROP if settings.lossless != 0.0 else settings.mss
    # What controls let connections send, from queues as they are.
    for k in range(counts.num_updated):
        change(fluid, fluid.updated[k])
    for k in range(counts.num_changed):
        one = conns[changed[k]]
        if one.attached == 0:
            continue
        want = 0
        if one.active != 0:
            settle_conn(fluid, changed[k], now)
            want = set_want(fluid, changed[k], now)
        if want != one.want:
            own_changed(fluid, hops[one.hop].port, want - one.want)
            one.want = want
    # Own ports, class by class.
    room = 0.0
    for k in range(counts.num_hosts * counts.num_classes):
        p = fluid.hosts[k // counts.num_classes]
        if k % counts.num_classes == 0:
            ports[p].listed = 0
            room = float(links[p].capacity)
        p += k % counts.num_classes * len(links)
        port = ports[p]
        share = 1.0
        if port.paused > 0:
            share = 0.0
        elif float(port.own) > room:
            share = room / float(port.own) * _FLOOR
        room -= share * float(port.own)
        if share != port.share:
            port.share = share
            m = port.first
            while m != _NONE:
                c = hops[m].conn
                if conns[c].hop == m:
                    settle_conn(fluid, c, now)
                    if conns[c].asleep != 0:
                        wake(fluid, c, now)
                    change(fluid, c)
                m = hops[m].after
    counts.num_hosts = 0
    # Hop by hop.
    most = 0
    for k in range(counts.num_changed):
        one = conns[changed[k]]
        if one.attached != 0:
            most = max(most, one.hops)
            share = ports[hops[one.hop].port].share
            one.rate = one.want if share == 1.0 else int(one.want * share)
    level = 0
    while level < most:
        count = counts.num_changed
        for k in range(count):
            one = conns[changed[k]]
            if one.attached != 0 and level < one.hops:
                at = one.hop + level
                fresh = one.rate
                if level > 0:
                    fresh = hops[at - 1].load
                    before = ports[hops[at - 1].port]
                    part = passes(fluid, hops[at - 1].port, least)
                    if part != 1.0:
                        fresh = int(fresh * part)
                    if fresh > 0:
                        fluid.sights[at].kept = fresh
                    elif before.load == 0 and before.queue > least and before.paused == 0:
                        fresh = fluid.sights[at].kept  # nothing comes, but the queue before goes on
                hops[at].fresh = fresh
        for k in range(count):
            one = conns[changed[k]]
            if one.attached != 0 and level < one.hops:
                hop = hops[one.hop + level]
                if hop.fresh != hop.load:
                    settle_link(core, fluid, hop.link, now)
                    ports[hop.port].load += hop.fresh - hop.load
                    hop.load = hop.fresh
                    touch(fluid, hop.port)
        # Where a port passes on its rate, a share that changes is the others' too.
        for k in range(count):
            one = conns[changed[k]]
            if one.attached != 0 and 0 < level < one.hops - 1:
                port = ports[hops[one.hop + level].port]
                if abs(port.load - port.told) * _ALIKE > port.told and (
                    port.queue > least or port.load > links[port.link].capacity
                ):
                    port.told = port.load
                    m = port.first
                    while m != _NONE:
                        change(fluid, hops[m].conn)
                        m = hops[m].after
        for k in range(count, counts.num_changed):
            settle_conn(fluid, changed[k], now)
            most = max(most, conns[changed[k]].hops)
        level += 1
    # Who has nothing to send leaves when the queues on the way have passed on what it sent.
    for k in range(counts.num_changed):
        one = conns[changed[k]]
        if one.active == 0 and one.attached != 0:
            gone = True
            for m in range(one.hop, one.hop + one.hops):
                port = ports[hops[m].port]
                passed_on = m == one.hop + one.hops - 1 or port.queue <= least or port.load != 0
                if hops[m].load != 0 or not passed_on:
                    gone = False
            if gone:
                detach(fluid, changed[k])
    # Links that begin to queue wake who rests on them; queues may cross the threshold of pauses.
    for k in range(counts.num_touched):
        p = fluid.touched[k]
        link = ports[p].link
        if ports[link].hot == 0 and is_hot(fluid, p):
            ports[link].hot = 1
            q = link
            for _ in range(counts.num_classes):
                m = ports[q].first
                while m != _NONE:
                    if conns[hops[m].conn].asleep != 0:
                        wake(fluid, hops[m].conn, now)
                    m = hops[m].after
                q += len(links)
            m = links[link].back_first
            while m != _NONE:
                if conns[hops[m].conn].asleep != 0:
                    wake(fluid, hops[m].conn, now)
                m = fluid.sights[m].back_next
        q = p
        while q < len(links) * counts.num_classes:  # those after it get what it leaves
            if links[link].onward > 0:
                expect_empty(calendar, fluid, q, least, now)
            if settings.lossless != 0.0:
                expect_crossing(calendar, fluid, q, now)
            q += len(links)
    counts.num_touched = 0
    # Rounds that began here, or their rest.
    for k in range(counts.num_updated):
        c = fluid.updated[k]
        one = conns[c]
        if one.active == 0 or one.due > now:
            continue
        time = one.wait
        if time <= 0.0:
            time = path_rtt(fluid, c)
        due = on_grid(time, one.grid, now)
        if one.timeout_at > 0:
            due = on_grid(float(one.timeout_at - now), one.grid, now)
        elif one.known_at > 0:
            due = min(due, on_grid(float(one.known_at - now), one.grid, now))
        left = one.window - one.round_sent
        if (
            settings.gives_rate == 0.0
            and settings.paced == 0.0
            and one.rate * BYTES_PER_BPS_PS * time > _OVER * left
        ):
            # Queues grew by what begins here: acknowledgements come later, and with them leave to send.
            one.budget = left
        if one.settled != 0 and one.budget > one.remaining:
            rest = True
            for m in range(one.hop, one.hop + one.hops):
                if is_hot(fluid, hops[m].port):
                    rest = False
                if hops[m].back >= 0 and is_hot(fluid, hops[m].back):
                    rest = False
            if rest:
                for m in range(one.hop, one.hop + one.hops):
                    ports[hops[m].link].hot = 0
                    if hops[m].back >= 0:
                        ports[hops[m].back].hot = 0
                one.asleep = 1
                one.period = on_grid(time, one.grid, 0)
                one.ends = due
                one.due = NEVER
                continue
        one.due = due
        fluid.woken[counts.num_woken] = c
        counts.num_woken += 1
    counts.num_updated = 0
    for k in range(counts.num_woken):
        c = fluid.woken[k]
        due = conns[c].due
        push(calendar, due, now, now, _NONE, 0, c, UPDATE)
    counts.num_woken = 0
    # When each has sent what it has, or may, if that is before its round ends and all is looked at again.
    for k in range(counts.num_changed):
        c = int(changed[k])
        one = conns[c]
        if one.active != 0:
            left = min(one.remaining, one.budget)
            rate = one.rate * BYTES_PER_BPS_PS
            when = int(NEVER)
            if left <= rate * float(one.due - now + 1):
                when = drain_time(now, left, rate)
            counts.num_drains = set_drain(counts.num_drains, fluid.drains, conns, c, when)
    counts.num_changed = 0
    counts.open = 0
    counts.stamp += 1
