"""Last bytes on paths whose ports pause: each stands in the queues of its path, and leaves them as they do.

Where a port is paused now and then, nobody can say beforehand when a flow's last byte arrives. It is put at
the end of its port's queue, which it leaves when the port has served all that was there before it, and goes
to the next port with a queue; after the last the flow completes. (Of several strands: on the one that is the
slowest when the flow has left.) So no flow ends before the links of its
path can have sent what they were given.
"""

from __future__ import annotations

from cosim.network.congestion.changes import touch
from cosim.network.congestion.delays import on_wires
from cosim.network.congestion.ports import settle_link
from cosim.network.congestion.state import CongestionState
from cosim.network.core import Core, complete
from cosim.network.jit import compiled

_NONE = -1
_DUST = 0.5  # bytes; less than half a byte is rounding
"""Bytes; a last byte leaves when fewer are before it."""


@compiled
def follow(core: Core, fluid: CongestionState, f: int, first: int, now: int) -> None:
    """The last byte of flow ``f`` comes to hop ``first`` of its strand, or, past its last, arrives."""
    flow = fluid.flows[f]
    strand = fluid.strands[flow.strand]
    one = fluid.conns[strand.conn]
    for m in range(first, strand.hop + strand.hops):
        settle_link(core, fluid, fluid.hops[m].link, now)
        p = flow.priority * len(fluid.links) + fluid.hops[m].link
        port = fluid.ports[p]
        if port.queue > _DUST:
            flow.hop = m
            flow.leaves = port.served + port.queue
            flow.next = _NONE
            if port.head == _NONE:
                port.head = f
            else:
                fluid.flows[port.tail].next = f
            port.tail = f
            touch(fluid, p)
            return
    at = max(now + on_wires(fluid, strand, core.store.rows[flow.row].size), one.arrived)
    one.arrived = at
    flow.next = fluid.counts[0].free_flow
    fluid.counts[0].free_flow = f
    complete(core, flow.handle, flow.rep, flow.row, flow.origin, at, now)


@compiled
def has_left(core: Core, fluid: CongestionState, p: int, now: int) -> bool:
    """Let the first of the last bytes at a port go on, if the port has served it; whether it did."""
    port = fluid.ports[p]
    f = port.head
    if f == _NONE:
        return False
    settle_link(core, fluid, port.link, now)
    if fluid.flows[f].leaves - port.served > _DUST and port.queue > _DUST:
        return False
    port.head = fluid.flows[f].next
    follow(core, fluid, f, fluid.flows[f].hop + 1, now)
    return True
