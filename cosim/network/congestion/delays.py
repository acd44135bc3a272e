"""Delays of paths with queues as they are: a round trip, and when a last byte arrives."""

from __future__ import annotations

import math
from typing import Any

from cosim.network.congestion.ports import left_for, service
from cosim.network.congestion.state import CongestionState
from cosim.network.jit import inlined
from cosim.units import NEVER

_NONE = -1


@inlined
def _waits(fluid: CongestionState, strand: Any, priority: int) -> float:
    """How long a packet waits there and its acknowledgement back, in what a byte takes at a bit a second."""
    hops = fluid.hops
    links = fluid.links
    ports = fluid.ports
    wait = 0.0
    # Where a packet waits, queues behind grow meanwhile. A window sends what comes back of them; a rate goes
    # on until it hears of what it did.
    ahead = fluid.settings[0].gives_rate != 0.0
    for k in range(strand.hop, strand.hop + strand.hops):
        port = hops[k].port
        queue, rate = ports[port].queue, service(fluid, port)
        if rate <= 0.0:  # it is dead, and nothing waits there
            continue
        if ahead and wait > 0.0:
            queue = max(queue + (float(ports[port].load) - rate) * wait, 0.0)
        if queue > 0.0:
            wait += queue / rate
    # Acknowledgements of what is sent now come later, to queues that went on as they do now.
    after = strand.base - float(strand.latency)
    for k in range(strand.hop + strand.hops - 1, strand.hop - 1, -1):
        if hops[k].back >= 0:
            port = priority * len(links) + hops[k].back
            load = float(ports[port].load)
            if load > 0.0 or ports[port].queue > 0.0:
                rate = service(fluid, port)
                # Nor do they wait for a link that is dead: they would be for data that is.
                if rate <= 0.0 or (ports[port].queue == 0.0 and load <= rate):
                    after += float(links[hops[k].back].latency)
                    continue
                meets = ports[port].queue + (load - rate) * (after * 1e-12 + wait * 8.0) / 8.0
                wait += max(min(meets, links[hops[k].back].buffer), 0.0) / rate
            after += float(links[hops[k].back].latency)
    return float(wait)


@inlined
def path_rtt(fluid: CongestionState, c: int) -> float:
    """The round-trip time (ps) with queues as they are, and acknowledgements in them; the mean over what a
    connection sends by each of its strands.
    """
    one = fluid.conns[c]
    wait = 0.0
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        if strand.part > 0.0:
            wait += strand.part * _waits(fluid, strand, one.priority)
        s = strand.next
    return float(one.base + wait * 8e12)


@inlined
def on_wires(fluid: CongestionState, strand: Any, size: int) -> int:
    """What a flow's last byte takes without queues: latencies, and its packet's time on each further link."""
    store = 0.0
    if size > 0:
        store = float(strand.store) * min(float(size) / fluid.settings[0].mss, 1.0)
    return int(strand.latency + math.ceil(store - 1e-3))


@inlined
def arrives_by(fluid: CongestionState, strand: Any, size: int, now: int) -> int:
    """When the last byte that goes by a strand is at the receiver, or NEVER; see :func:`arrival`."""
    wait = 0.0
    for k in range(strand.hop, strand.hop + strand.hops if size > 0 else strand.hop):
        port = fluid.ports[fluid.hops[k].port]
        queue = port.queue
        rate = service(fluid, fluid.hops[k].port)
        if port.paused > 0 or port.duty < 1.0:
            return int(NEVER)
        # Who waits behind other classes waits for what comes to them meanwhile, too.
        after = fluid.hops[k].port != port.link
        if after and (queue > 0.0 or left_for(fluid, fluid.hops[k].port) < float(port.load)):
            return int(NEVER)
        if rate <= 0.0:  # it is dead, and nothing waits there
            continue
        if wait > 0.0:
            # What is in the queues before comes with it, and what others send meanwhile before it.
            link = fluid.links[port.link]
            meets = queue + (float(port.load) - rate) * wait / 8.0
            if fluid.settings[0].lossless == 0.0:
                meets = min(meets, max(queue, link.buffer))
            elif meets > link.pause:
                return int(NEVER)
            queue = meets
        if queue > 0.0:
            wait += queue * 8.0 / rate
    return int(now + math.ceil(wait * 1e12 - 1e-3) + on_wires(fluid, strand, size))


@inlined
def largest_part(fluid: CongestionState, c: int) -> float:
    """What goes by the strand of a connection that most goes by, of all its bytes."""
    most = 0.0
    s = fluid.conns[c].strand
    while s != _NONE:
        most = max(most, fluid.strands[s].part)
        s = fluid.strands[s].next
    return most


@inlined
def arrival(fluid: CongestionState, c: int, size: int, now: int) -> int:
    """When the last byte, sent at ``now``, is at the receiver; the path's links are settled.

    NEVER: that can't be said, as the bytes go by several strands, they wait in a class that others go before,
    or a port on the way is paused now and then, or would be.
    """
    one = fluid.conns[c]
    at = one.arrived
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        if strand.part > 0.0:
            came = arrives_by(fluid, strand, size, now) if strand.part == 1.0 else NEVER
            if came == NEVER:
                return int(NEVER)
            at = max(at, came)
        s = strand.next
    one.arrived = at
    return int(at)
