"""Last bytes that stand in the queues of their paths, and leave them as they do.

Of a message by one path, queues as they are say when its last byte will arrive, but where a port is paused
now and then, or serves other classes first. Of one by several paths they don't: many queue at once, and end
with what is sent, so that none goes on as it did. There the last byte of each strand is put at the end of its
port's queue, which it leaves when the port has served all that was there before it, and goes to the next port
with a queue; the flow is complete when the last of them is there. So no flow ends before the links of its
paths can have sent what they were given.

A strand by which less than half a packet of the message goes doesn't hold it back: more often than not none
goes there.
"""

from __future__ import annotations

from cosim.network.congestion.changes import touch
from cosim.network.congestion.delays import largest_part, on_wires
from cosim.network.congestion.ports import settle_link
from cosim.network.congestion.state import CongestionState
from cosim.network.core import Core, complete
from cosim.network.jit import compiled, inlined

_NONE = -1
_DUST = 0.5
"""Bytes; less is rounding: a last byte leaves when fewer are before it."""


@inlined
def has_room(fluid: CongestionState, c: int) -> bool:
    """Whether there are rows for the last bytes of a flow of connection ``c``."""
    return bool(fluid.counts[0].num_lasts + fluid.conns[c].attached <= len(fluid.lasts))


@inlined
def _put(fluid: CongestionState, f: int, s: int) -> int:
    """A row for the last byte of flow ``f`` on strand ``s``; there is room."""
    counts = fluid.counts[0]
    b = counts.free_last
    if b == _NONE:
        b = counts.lasts_used
        counts.lasts_used += 1
    else:
        counts.free_last = fluid.lasts[b].next
    counts.num_lasts += 1
    fluid.flows[f].lasts += 1
    fluid.lasts[b].flow = f
    fluid.lasts[b].strand = s
    return int(b)


@compiled
def _is_there(core: Core, fluid: CongestionState, f: int, c: int, now: int) -> None:
    """One last byte fewer of flow ``f`` of connection ``c`` is on its way: with none it is complete."""
    flow = fluid.flows[f]
    flow.lasts -= 1
    if flow.lasts > 0:
        return
    one = fluid.conns[c]
    at = max(flow.arrives, one.arrived)
    one.arrived = at
    flow.next = fluid.counts[0].free_flow
    fluid.counts[0].free_flow = f
    complete(core, flow.handle, flow.rep, flow.row, flow.origin, at, now)


@compiled
def _follow(core: Core, fluid: CongestionState, b: int, first: int, now: int) -> None:
    """Last byte ``b`` comes to hop ``first`` of its strand, or, past its last, arrives."""
    last = fluid.lasts[b]
    flow = fluid.flows[last.flow]
    strand = fluid.strands[last.strand]
    for m in range(first, strand.hop + strand.hops):
        settle_link(core, fluid, fluid.hops[m].link, now)
        p = flow.priority * len(fluid.links) + fluid.hops[m].link
        port = fluid.ports[p]
        if port.queue > _DUST:
            last.hop = m
            last.leaves = port.served + port.queue
            last.next = _NONE
            if port.head == _NONE:
                port.head = b
            else:
                fluid.lasts[port.tail].next = b
            port.tail = b
            touch(fluid, p)
            return
    flow.arrives = max(flow.arrives, now + on_wires(fluid, strand, core.store.rows[flow.row].size))
    last.next = fluid.counts[0].free_last
    fluid.counts[0].free_last = b
    fluid.counts[0].num_lasts -= 1
    _is_there(core, fluid, last.flow, strand.conn, now)


@compiled
def send_last(core: Core, fluid: CongestionState, f: int, c: int, now: int) -> None:
    """The last bytes of flow ``f`` of connection ``c`` leave; there are rows for them."""
    flow = fluid.flows[f]
    flow.priority = fluid.conns[c].priority
    flow.arrives = 0
    # The sender's own, so that it is not complete before all are on their way.
    flow.lasts = 1
    size = float(core.store.rows[flow.row].size)
    counts = min(largest_part(fluid, c), 0.5 * fluid.settings[0].mss / max(size, 1.0))
    s = fluid.conns[c].strand
    while s != _NONE:
        strand = fluid.strands[s]
        if strand.part > 0.0 and strand.part >= counts:
            _follow(core, fluid, _put(fluid, f, s), strand.hop, now)
        s = strand.next
    _is_there(core, fluid, f, c, now)


@compiled
def has_left(core: Core, fluid: CongestionState, p: int, now: int) -> bool:
    """Let the first of the last bytes at a port go on, if the port has served it; whether it did."""
    port = fluid.ports[p]
    b = port.head
    if b == _NONE:
        return False
    settle_link(core, fluid, port.link, now)
    if fluid.lasts[b].leaves - port.served > _DUST and port.queue > _DUST:
        return False
    port.head = fluid.lasts[b].next
    _follow(core, fluid, b, fluid.lasts[b].hop + 1, now)
    return True
