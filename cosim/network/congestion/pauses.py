"""Priority flow control: a port whose queue reaches a threshold pauses the ports that feed it, class by
class.

A paused port sends nothing of that class, to whomever it is for, so its own queue grows, and pauses go on
towards the hosts. It is released when the queue is down to the lower threshold. Pause frames take no time.

Source: IEEE 802.1Qbb. Not modelled: the frames' own way, the headroom above the threshold that a switch keeps
for what is sent meanwhile (rate x 2 latency + 2 packets a port), the watchdog that ends deadlocks.
"""

from __future__ import annotations

import math

from cosim.network.calendar import Calendar, push
from cosim.network.congestion.changes import tell, touch
from cosim.network.congestion.ports import left_for, settle_link
from cosim.network.congestion.state import BYTES_PER_BPS_PS, CROSS, EMPTY, CongestionState
from cosim.network.core import Core
from cosim.network.jit import compiled, inlined
from cosim.units import NEVER

_NONE = -1
_NEAR = 1e-6
_LEAST_DUTY = 1.0 / 64.0
_LEAST_PS = 1000


@inlined
def expect_crossing(calendar: Calendar, fluid: CongestionState, p: int, now: int) -> None:
    """Look again when a port's queue, as loads are, would cross the threshold, or a last byte leave it."""
    links = fluid.links
    ports = fluid.ports
    port = ports[p]
    link = port.link
    rate = 0.0
    if port.paused == 0:
        rate = float(links[link].capacity)
        k = link
        while k < p:
            rate -= float(ports[k].load)
            k += len(links)
    rate = max(rate, 0.0)
    slope = (float(port.load) - rate) * BYTES_PER_BPS_PS
    away = links[link].pause - port.queue
    # A full one is watched on its way down, to the lower of the two thresholds.
    if port.full != 0:
        slope = -slope
        away = port.queue - links[link].resume
    at = NEVER
    if slope > 0.0:
        # At least a nanosecond on: rounding may leave it just short of the threshold, again and again.
        at = now + max(math.ceil(min(away / slope, 1e17)), _LEAST_PS)
    if port.head != _NONE and rate > 0.0:
        before = fluid.flows[port.head].leaves - port.served
        at = min(at, now + max(math.ceil(min(before / (rate * BYTES_PER_BPS_PS), 1e17)), 1))
    if at == NEVER:
        return
    # One that is to be looked at earlier already is left: it is looked at then, and expected anew.
    if port.check <= now or at < port.check:
        port.check = at
        push(calendar, at, now, now, _NONE, 0, p, CROSS)


@inlined
def expect_empty(calendar: Calendar, fluid: CongestionState, p: int, least: float, now: int) -> None:
    """Look again when a queue of over ``least`` bytes, as loads are now, is gone: its port passes on less."""
    ports = fluid.ports
    port = ports[p]
    if port.queue <= least or port.paused != 0:
        return
    slope = (left_for(fluid, p) - float(port.load)) * BYTES_PER_BPS_PS
    if slope <= 0.0:
        return
    at = now + max(math.ceil(min(port.queue / slope, 1e17)), _LEAST_PS)
    if port.empties <= now or at < port.empties:
        port.empties = at
        push(calendar, at, now, now, _NONE, 0, p, EMPTY)


@inlined
def _hold(core: Core, fluid: CongestionState, u: int, now: int) -> None:
    """One more port pauses port ``u``."""
    port = fluid.ports[u]
    if port.paused == 0:
        # Up to now it sent: its queue is brought up to date while that is still so.
        settle_link(core, fluid, port.link, now)
        port.since = now
        port.paused = 1
        tell(fluid, u)
    else:
        port.paused += 1


@inlined
def _free(core: Core, fluid: CongestionState, u: int, now: int) -> None:
    """One port fewer pauses port ``u``; what share of its time it may send follows from the last cycle."""
    port = fluid.ports[u]
    port.paused -= 1
    if port.paused > 0:
        return
    # Paused until now: settled as such, though nobody pauses it any more.
    port.paused = 1
    settle_link(core, fluid, port.link, now)
    port.paused = 0
    port.paused_ps += now - port.since
    cycle = float(now - port.resumed)
    port.duty = 1.0
    if cycle > 0.0:
        # From release to release; never 0, or those behind it would never be given a rate again.
        port.duty = max(1.0 - float(now - port.since) / cycle, _LEAST_DUTY)
    port.resumed = now
    tell(fluid, u)


@inlined
def closes_circle(fluid: CongestionState, u: int) -> bool:
    """Whether port ``u``, paused now, pauses itself by way of others: none of them can ever send again."""
    counts = fluid.counts[0]
    ports = fluid.ports
    # A search in breadth; a number of its own for each saves clearing marks on all ports.
    counts.visit += 1
    count = 1
    fluid.scan[0] = u
    at = 0
    while at < count:
        m = ports[fluid.scan[at]].blocks
        at += 1
        while m != _NONE:
            v = fluid.pairs[m].port
            # 802.1Qbb has no way out of such a circle but a watchdog, which is not modelled.
            if v == u:
                return True
            if ports[v].visit != counts.visit:
                ports[v].visit = counts.visit
                fluid.scan[count] = v
                count += 1
            m = fluid.pairs[m].next
    return False


@compiled
def pause_from(core: Core, fluid: CongestionState, m: int, now: int) -> None:
    """Pause the port before hop ``m``, whose own port is full; once for all that come from there."""
    if fluid.hops[m].leads != 0:
        return
    u = fluid.hops[m - 1].port
    port = fluid.ports[fluid.hops[m].port]
    at = port.blocks
    while at != _NONE:
        # It is paused from here already: counted twice, it would be released once and stay paused for ever.
        if fluid.pairs[at].port == u:
            return
        at = fluid.pairs[at].next
    fluid.pairs[m].port = u
    fluid.pairs[m].next = port.blocks
    port.blocks = m
    _hold(core, fluid, u, now)
    if closes_circle(fluid, u):
        fluid.counts[0].stuck = u + 1


@compiled
def at_threshold(core: Core, fluid: CongestionState, p: int, now: int) -> None:
    """A queue may have crossed its threshold."""
    port = fluid.ports[p]
    link = port.link
    settle_link(core, fluid, link, now)
    touch(fluid, p)
    if port.full == 0 and port.queue >= fluid.links[link].pause * (1.0 - _NEAR):
        # All that come through a port before it, whomever they go to: 802.1Qbb knows classes, not flows.
        port.full = 1
        m = port.first
        while m != _NONE:
            pause_from(core, fluid, m, now)
            m = fluid.hops[m].after
    elif port.full != 0 and port.queue <= fluid.links[link].resume * (1.0 + _NEAR):
        port.full = 0
        at = port.blocks
        port.blocks = _NONE
        while at != _NONE:
            u = fluid.pairs[at].port
            at = fluid.pairs[at].next
            _free(core, fluid, u, now)
