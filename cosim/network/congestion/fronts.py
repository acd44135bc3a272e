"""What stands in a queue, told apart by strand, where paths may change while a run goes on or ports pause.

A queue is served in the order in which its bytes came. Where a strand brings another rate to a port in whose
queue bytes stand, a *front* is put behind them: what the port passes on of that strand changes when it has
served all that was before the front, and not earlier. In between each strand has the part of what leaves that
it had of what came. So every byte goes to whom it is for, also of strands by which nothing is sent any more.

Fronts nearer to each other than a packet pass together: within a packet there is no order.
"""

from __future__ import annotations

import math

from cosim.network.calendar import Calendar, push
from cosim.network.congestion.changes import touch
from cosim.network.congestion.feeds import set_out
from cosim.network.congestion.ports import left_for, settle_link
from cosim.network.congestion.state import BYTES_PER_BPS_PS, FRONT_PASSES, CongestionState
from cosim.network.core import Core
from cosim.network.jit import compiled, inlined

_NONE = -1
_ALIKE = 16
"""As where loads change: less than this part of what leaves is shared as before."""


@inlined
def have_moved(fluid: CongestionState, s: int) -> None:
    """What a strand brings to its ports is to be worked out anew when time leaves the instant."""
    counts = fluid.counts[0]
    strand = fluid.strands[s]
    if strand.attached != 0 and fluid.moved[s] != counts.stamp:
        fluid.moved[s] = counts.stamp
        fluid.moving[counts.num_moving] = s
        counts.num_moving += 1
        counts.most_hops = max(counts.most_hops, strand.hops)
        counts.open = 1


@inlined
def have_all_moved(fluid: CongestionState, p: int) -> None:
    """The same of all strands on a port, where the sum that they share has changed."""
    line = fluid.lines[p]
    if abs(line.out - line.told) * _ALIKE > line.told:
        line.told = line.out
        m = fluid.ports[p].first
        while m != _NONE:
            have_moved(fluid, fluid.strand_of[m])
            m = fluid.hops[m].after


@inlined
def line_up(fluid: CongestionState, at: int, least: float, now: int) -> None:
    """Hop ``at`` brings another load to its port, whose queue is settled: that leaves after what is there."""
    counts = fluid.counts[0]
    hop = fluid.hops[at]
    port = fluid.ports[hop.port]
    line = fluid.lines[hop.port]
    # What goes to a receiver goes to no further port; it matters where it waits for one that pauses others.
    told = fluid.links[hop.link].onward > 0 or fluid.settings[0].lossless != 0.0
    if line.head == _NONE and (port.queue <= least or not told):
        set_out(fluid, at, hop.load, port.served + port.queue, now)
        return
    f = counts.free_front
    if f == _NONE:
        f = counts.fronts_used
        counts.fronts_used += 1
    else:
        counts.free_front = fluid.fronts[f].next
    counts.num_fronts += 1
    fluid.sights[at].fronts += 1
    front = fluid.fronts[f]
    front.leaves = port.served + port.queue
    front.load = hop.load
    front.hop = at
    front.next = _NONE
    if line.head == _NONE:
        line.head = f
    else:
        fluid.fronts[line.tail].next = f
    line.tail = f


@compiled
def pass_fronts(core: Core, fluid: CongestionState, p: int, least: float, now: int) -> None:
    """Have a port pass on what is at the head of its queue now."""
    counts = fluid.counts[0]
    port = fluid.ports[p]
    line = fluid.lines[p]
    settle_link(core, fluid, port.link, now)
    touch(fluid, p)
    f = line.head
    if f == _NONE or (fluid.fronts[f].leaves - port.served > 1.0 and port.queue > least):
        return
    while f != _NONE and (fluid.fronts[f].leaves - port.served <= least or port.queue <= least):
        front = fluid.fronts[f]
        # Of a dead link's queue nothing is left that would be served before.
        set_out(fluid, front.hop, front.load, min(front.leaves, port.served + port.queue), now)
        have_moved(fluid, fluid.strand_of[front.hop])
        after = front.next
        front.next = counts.free_front
        counts.free_front = f
        counts.num_fronts -= 1
        fluid.sights[front.hop].fronts -= 1
        f = after
    line.head = f
    have_all_moved(fluid, p)


@inlined
def expect_front(calendar: Calendar, fluid: CongestionState, p: int, now: int) -> None:
    """Look again when a port will have served what is before its first front, as loads are now."""
    port = fluid.ports[p]
    line = fluid.lines[p]
    if line.head == _NONE or port.paused != 0:
        return
    rate = left_for(fluid, p)
    if rate <= 0.0:
        return
    before = fluid.fronts[line.head].leaves - port.served
    at = now + max(math.ceil(min(before / (rate * BYTES_PER_BPS_PS), 1e17)), 1)
    if line.due <= now or at < line.due:
        line.due = at
        push(calendar, at, now, now, _NONE, 0, p, FRONT_PASSES)


@inlined
def leaves_with(fluid: CongestionState, at: int, least: float) -> int:
    """The bits per second of hop ``at``'s strand that leave its port."""
    p = fluid.hops[at].port
    port = fluid.ports[p]
    line = fluid.lines[p]
    out = fluid.outs[at]
    if port.paused > 0 or out == 0:
        return 0
    rate = left_for(fluid, p)
    if line.head == _NONE and float(line.out) <= rate and port.queue <= least:
        return int(out)
    return int(float(out) * rate / float(line.out))
