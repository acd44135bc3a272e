"""Priority flow control: a port stops one before it, class by class, where what came from there and stands in
its queue (its *feed*) reaches a threshold, and lets it go on when that is down to a lower one.

So eight ports that bring alike fill a queue to eight thresholds, where one alone would to one. A port that is
stopped sends nothing of that class, to whomever it is for, so its own queue grows, and stops go on towards
the hosts. Pause frames take no time: over its threshold a feed has at most what comes in a nanosecond
(``_LEAST_PS``; 5 bytes at 40 Gb/s), in whatever class, where a switch has what its headroom is for.

Source: IEEE 802.1Qbb; that switches count by link in: Y. Zhu et al., SIGCOMM 2015, section 4. Not modelled:
what a link brings to other ports of the same switch, which counts there, too, and that its ports share their
memory, which ends (a queue with many feeds outgrows its port's ``buffer``, as a switch's does, which takes of
the other ports' rooms; but no threshold falls as that memory fills, see docs/validation/rdma.md); the frames'
own way, the headroom above the threshold that a switch keeps for what is sent meanwhile (rate x 2 latency +
2 packets a port), the watchdog that ends deadlocks.
"""

from __future__ import annotations

import math

from cosim.network.calendar import Calendar, push
from cosim.network.congestion.changes import tell, touch
from cosim.network.congestion.classes import look_after
from cosim.network.congestion.feeds import settle_feed
from cosim.network.congestion.ports import left_for, settle_link
from cosim.network.congestion.state import BYTES_PER_BPS_PS, CROSS, EMPTY, CongestionState
from cosim.network.core import Core
from cosim.network.jit import compiled, inlined
from cosim.units import NEVER

_NONE = -1
_NEAR = 1e-6
_NEWEST = 0.25
_LEAST_DUTY = 0.125
_LEAST_PS = 1000  # between two looks at a threshold, see at_threshold
_FAR = 1e17  # ps, 28 hours: no threshold is looked for farther ahead


@inlined
def _crossing(fluid: CongestionState, p: int, rate: float, now: int) -> float:
    """How long it takes, as loads are, until a feed of port ``p`` is to be stopped or let go on, in ps."""
    port = fluid.ports[p]
    line = fluid.lines[p]
    link = fluid.links[port.link]
    soonest = _FAR
    if port.stops == 0 and port.queue < link.pause:
        # No feed of a queue can be longer than the queue: as on most links, most of the time.
        slope = (float(port.load) - rate) * BYTES_PER_BPS_PS
        return (link.pause - port.queue) / slope if slope > 0.0 else soonest
    each = 0.0
    if line.out > 0:
        each = (rate if port.queue > 0.0 else min(rate, float(port.load))) / float(line.out)
    at = port.feeds
    while at != _NONE:
        feed = fluid.feeds[at]
        settle_feed(fluid, p, feed, now)
        slope = (float(feed.load) - float(feed.out) * each) * BYTES_PER_BPS_PS
        away = link.pause - feed.bytes
        if feed.stopped != 0:
            slope = -slope
            away = feed.bytes - link.resume
        if away <= 0.0:
            soonest = 0.0
        elif slope > 0.0:
            soonest = min(soonest, away / slope)
        at = feed.next
    return float(soonest)


@inlined
def expect_crossing(core: Core, fluid: CongestionState, p: int, now: int) -> None:
    """Look again when a feed, as loads are now, would cross a threshold, or a last byte leave the port."""
    port = fluid.ports[p]
    rate = left_for(fluid, p) if port.paused == 0 else 0.0
    settle_link(core, fluid, port.link, now)
    soonest = _crossing(fluid, p, rate, now) if fluid.settings[0].lossless != 0.0 else _FAR
    at = NEVER
    if soonest < _FAR:
        # At least a nanosecond on: rounding may leave it just short of the threshold, again and again.
        at = now + max(math.ceil(soonest), _LEAST_PS)
    if port.head != _NONE and rate > 0.0:
        before = fluid.lasts[port.head].leaves - port.served
        at = min(at, now + max(math.ceil(min(before / (rate * BYTES_PER_BPS_PS), _FAR)), 1))
    if at == NEVER:
        return
    # One that is to be looked at earlier already is left: it is looked at then, and expected anew.
    if port.check <= now or at < port.check:
        port.check = at
        push(core.calendar, at, now, now, _NONE, 0, p, CROSS)


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
        look_after(fluid, u)
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
    if cycle > 0.0:
        # From release to release, in the mean over some: one long stop says little of the time to come.
        last = max(1.0 - float(now - port.since) / cycle, _LEAST_DUTY)
        port.duty += _NEWEST * (last - port.duty)
    port.resumed = now
    tell(fluid, u)
    look_after(fluid, u)


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
        m = ports[fluid.scan[at]].feeds
        at += 1
        while m != _NONE:
            v = fluid.feeds[m].port
            stopped = fluid.feeds[m].stopped != 0
            # 802.1Qbb has no way out of such a circle but a watchdog, which is not modelled.
            if stopped and v == u:
                return True
            if stopped and ports[v].visit != counts.visit:
                ports[v].visit = counts.visit
                fluid.scan[count] = v
                count += 1
            m = fluid.feeds[m].next
    return False


@compiled
def at_threshold(core: Core, fluid: CongestionState, p: int, now: int) -> None:
    """Feeds of a port may have crossed a threshold."""
    port = fluid.ports[p]
    link = fluid.links[port.link]
    settle_link(core, fluid, port.link, now)
    touch(fluid, p)
    if port.stops == 0 and port.queue < link.pause * (1.0 - _NEAR):
        return
    at = port.feeds
    while at != _NONE:
        feed = fluid.feeds[at]
        settle_feed(fluid, p, feed, now)
        if feed.stopped == 0 and feed.bytes >= link.pause * (1.0 - _NEAR):
            feed.stopped = 1
            port.stops += 1
            _hold(core, fluid, feed.port, now)
            if closes_circle(fluid, feed.port):
                fluid.counts[0].stuck = feed.port + 1
        elif feed.stopped != 0 and feed.bytes <= link.resume * (1.0 + _NEAR):
            feed.stopped = 0
            port.stops -= 1
            _free(core, fluid, feed.port, now)
        at = feed.next
