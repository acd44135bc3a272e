"""Delays of a path with queues as they are: a round trip, and when a last byte arrives."""

from __future__ import annotations

import math

from cosim.network.congestion.ports import service
from cosim.network.congestion.state import CongestionState
from cosim.network.jit import inlined
from cosim.units import NEVER


@inlined
def path_rtt(fluid: CongestionState, c: int) -> float:
    """The round-trip time (ps) with queues as they are, and acknowledgements in them."""
    one = fluid.conns[c]
    hops = fluid.hops
    links = fluid.links
    ports = fluid.ports
    wait = 0.0
    for k in range(one.hop, one.hop + one.hops):
        port = hops[k].port
        if ports[port].queue > 0.0:
            wait += ports[port].queue / service(fluid, port)
    # Acknowledgements of what is sent now come later, to queues that went on as they do now.
    after = one.base - float(one.latency)
    for k in range(one.hop + one.hops - 1, one.hop - 1, -1):
        if hops[k].back >= 0:
            port = one.priority * len(links) + hops[k].back
            load = float(ports[port].load)
            if load > 0.0 or ports[port].queue > 0.0:
                rate = service(fluid, port)
                if ports[port].queue == 0.0 and load <= rate:
                    after += float(links[hops[k].back].latency)
                    continue
                meets = ports[port].queue + (load - rate) * (after * 1e-12 + wait * 8.0) / 8.0
                wait += max(min(meets, links[hops[k].back].buffer), 0.0) / rate
            after += float(links[hops[k].back].latency)
    return float(one.base + wait * 8e12)


@inlined
def on_wires(fluid: CongestionState, c: int, size: int) -> int:
    """What a flow's last byte takes without queues: latencies, and its packet's time on each further link."""
    one = fluid.conns[c]
    store = 0.0
    if size > 0:
        store = float(one.store) * min(float(size) / fluid.settings[0].mss, 1.0)
    return int(one.latency + math.ceil(store - 1e-3))


@inlined
def arrival(fluid: CongestionState, c: int, size: int, now: int) -> int:
    """When the last byte, sent at ``now``, is at the receiver; the path's links are settled.

    NEVER: that can't be said, as a port on the way is paused now and then, or would be.
    """
    one = fluid.conns[c]
    wait = 0.0
    for k in range(one.hop, one.hop + one.hops if size > 0 else one.hop):
        port = fluid.ports[fluid.hops[k].port]
        queue = port.queue
        rate = service(fluid, fluid.hops[k].port)
        if port.paused > 0 or port.duty < 1.0:
            return int(NEVER)
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
    at = max(now + math.ceil(wait * 1e12 - 1e-3) + on_wires(fluid, c, size), one.arrived)
    one.arrived = at
    return int(at)
