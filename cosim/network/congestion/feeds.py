"""What of a queue came from which port before it: a *feed* of that port, whatever strands it brings.

A queue is served in the order in which its bytes came, so what leaves of a feed is what came of it, a queue
later (``fronts``): between two changes it loses its part of whatever the port serves. ``turns`` counts what
the port serves for each bit per second of what is leaving, so that a feed is brought up to date by itself,
whenever its own rates change, and not when those of another one do.
"""

from __future__ import annotations

from typing import Any

from cosim.network.congestion.state import BYTES_PER_BPS_PS, CongestionState
from cosim.network.jit import inlined

_NONE = -1


@inlined
def join(fluid: CongestionState, k: int) -> None:
    """Hop ``k``, not its strand's first, is on its port from now on, where it brings nothing yet."""
    counts = fluid.counts[0]
    p = fluid.hops[k].port
    u = fluid.hops[k - 1].port
    at = fluid.ports[p].feeds
    while at != _NONE and fluid.feeds[at].port != u:
        at = fluid.feeds[at].next
    if at == _NONE:
        at = counts.free_feed
        if at == _NONE:
            at = counts.feeds_used
            counts.feeds_used += 1
        else:
            counts.free_feed = fluid.feeds[at].next
        feed = fluid.feeds[at]
        feed.port = u
        feed.hops = 0
        feed.stopped = 0
        feed.load = 0
        feed.out = 0
        feed.bytes = 0.0
        feed.next = fluid.ports[p].feeds
        fluid.ports[p].feeds = at
    fluid.feeds[at].hops += 1
    fluid.sights[k].feed = at


@inlined
def leave(fluid: CongestionState, k: int) -> None:
    """Hop ``k``, of which nothing is left at its port, is taken off it; its feed, too, with the last."""
    counts = fluid.counts[0]
    left = fluid.sights[k].feed
    fluid.feeds[left].hops -= 1
    if fluid.feeds[left].hops > 0:
        return
    port = fluid.ports[fluid.hops[k].port]
    if port.feeds == left:
        port.feeds = fluid.feeds[left].next
    else:
        at = port.feeds
        while fluid.feeds[at].next != left:
            at = fluid.feeds[at].next
        fluid.feeds[at].next = fluid.feeds[left].next
    fluid.feeds[left].next = counts.free_feed
    counts.free_feed = left


@inlined
def _turns_at(fluid: CongestionState, p: int, served: float) -> float:
    """The turns of port ``p``'s line when it has served so much, as what leaves is shared now."""
    line = fluid.lines[p]
    turns = line.turns
    if line.out > 0:
        turns += (served - line.since) / float(line.out)
    return float(turns)


@inlined
def _settle_at(feed: Any, turns: float, now: int) -> None:
    """Bring a feed up to ``now`` by what came, and up to ``turns`` by what left."""
    came = float(feed.load) * BYTES_PER_BPS_PS * float(now - feed.at)
    # Nothing is cut off here: what is below 0 for want of a front's last bytes is made up for when it passes.
    feed.bytes += came - float(feed.out) * (turns - feed.turns)
    feed.at = now
    feed.turns = turns


@inlined
def settle_feed(fluid: CongestionState, p: int, feed: Any, now: int) -> None:
    """Bring a feed of port ``p``, whose queue is settled, up to ``now``."""
    port = fluid.ports[p]
    _settle_at(feed, _turns_at(fluid, p, port.served), now)
    # An empty queue, of which all fronts have passed, has nothing of any, nor any rounding.
    if port.queue == 0.0 and fluid.lines[p].head == _NONE:
        feed.bytes = 0.0


@inlined
def settle_feeds(fluid: CongestionState, p: int, now: int) -> None:
    """Bring all feeds of port ``p``, whose queue is settled, up to ``now``."""
    at = fluid.ports[p].feeds
    while at != _NONE:
        settle_feed(fluid, p, fluid.feeds[at], now)
        at = fluid.feeds[at].next


@inlined
def bring_more(fluid: CongestionState, k: int, more: int, now: int) -> None:
    """Hop ``k`` brings so many bits per second more to its port, whose queue is settled."""
    feed = fluid.feeds[fluid.sights[k].feed]
    settle_feed(fluid, fluid.hops[k].port, feed, now)
    feed.load += more


@inlined
def set_out(fluid: CongestionState, k: int, out: int, served: float, now: int) -> None:
    """What leaves of hop ``k`` its port, whose queue is settled, is another rate when it has served so much.

    That may be a few bytes ahead (see ``fronts``). All goes on with the new rate at once, but accounts of
    feeds are as if it did there: else a feed that comes and goes would have lost those bytes of another one
    each time, which adds up for as long as something stands in the queue.
    """
    p = fluid.hops[k].port
    line = fluid.lines[p]
    more = out - fluid.outs[k]
    if fluid.settings[0].lossless != 0.0:
        turns = _turns_at(fluid, p, served)
        if fluid.hops[k].leads == 0:
            feed = fluid.feeds[fluid.sights[k].feed]
            _settle_at(feed, turns, now)
            feed.out += more
        line.turns = turns
        line.since = served
    line.out += more
    fluid.outs[k] = out
