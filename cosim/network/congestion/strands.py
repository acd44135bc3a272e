"""Strands: the paths that a connection's bytes take, and what part of them goes by each.

ECMP is one strand with all of it. Where a connection takes other paths, the strands that it leaves stay on
their ports until what was sent that way is through, and new ones come to theirs.
"""

from __future__ import annotations

from typing import Any

from cosim.network.congestion.changes import change
from cosim.network.congestion.credits import ask_no_more
from cosim.network.congestion.delays import path_rtt
from cosim.network.congestion.feeds import join, leave
from cosim.network.congestion.rounds import open_round, settle_conn
from cosim.network.congestion.state import CongestionState
from cosim.network.core import Core
from cosim.network.jit import inlined, internal

_NONE = -1


@inlined
def _has_dead_link(fluid: CongestionState, strand: Any) -> bool:
    """Whether a link of a strand is dead."""
    for k in range(strand.hop, strand.hop + strand.hops):
        if fluid.links[fluid.hops[k].link].capacity == 0:
            return True
    return False


@inlined
def is_cut(fluid: CongestionState, c: int) -> bool:
    """Whether a link that a connection has to take is dead."""
    s = fluid.conns[c].strand
    while s != _NONE:
        strand = fluid.strands[s]
        if strand.part > 0.0 and _has_dead_link(fluid, strand):
            return True
        s = strand.next
    return False


@inlined
def _put_on_ports(fluid: CongestionState, one: Any, strand: Any) -> None:
    """Put a strand of connection ``one`` on the ports of its path."""
    hops = fluid.hops
    pauses = fluid.settings[0].lossless != 0.0
    strand.attached = 1
    one.attached += 1
    for k in range(strand.hop, strand.hop + strand.hops):
        hop = hops[k]
        hop.port = one.priority * len(fluid.links) + hop.link
        port = fluid.ports[hop.port]
        # At the head of the port's list, doubly linked through hops: no search, here or when it leaves.
        hop.before = _NONE
        hop.after = port.first
        if port.first != _NONE:
            hops[port.first].before = k
        port.first = k
        if pauses and k > strand.hop:
            join(fluid, k)
        if k < strand.hop + strand.hops - 1:
            fluid.links[hop.link].onward += 1


@inlined
def attach(fluid: CongestionState, c: int) -> None:
    """Put a connection on the ports of its strands, where it is not yet."""
    one = fluid.conns[c]
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        if strand.part > 0.0 and strand.attached == 0:
            _put_on_ports(fluid, one, strand)
            if fluid.settings[0].changing != 0.0 and _has_dead_link(fluid, strand):
                one.held = 1
        s = strand.next


@inlined
def detach(fluid: CongestionState, one: Any, strand: Any) -> None:
    """Take a strand of connection ``one`` that brings nothing anywhere off its ports."""
    hops = fluid.hops
    pauses = fluid.settings[0].lossless != 0.0
    for k in range(strand.hop, strand.hop + strand.hops):
        hop = hops[k]
        if pauses and k > strand.hop:
            leave(fluid, k)
        if hop.before != _NONE:
            hops[hop.before].after = hop.after
        else:
            fluid.ports[hop.port].first = hop.after
        if hop.after != _NONE:
            hops[hop.after].before = hop.before
        if k < strand.hop + strand.hops - 1:
            # Not of the last hop: what a port passes to a receiver is brought to no further port.
            fluid.links[hop.link].onward -= 1
    strand.attached = 0
    one.attached -= 1
    if one.attached == 0:
        one.held = 0


@inlined
def drop_left(fluid: CongestionState, c: int) -> None:
    """Forget strands that have no part of a connection and are on no port."""
    one = fluid.conns[c]
    s = one.strand
    before = _NONE
    while s != _NONE:
        strand = fluid.strands[s]
        if strand.part == 0.0 and strand.attached == 0:
            strand.listed = 0
            one.leaving -= 1
            if fluid.settings[0].credits != 0.0:
                ask_no_more(fluid, s)
            if before == _NONE:
                one.strand = strand.next
            else:
                fluid.strands[before].next = strand.next
        else:
            before = s
        s = strand.next


@inlined
def hold_or_go_on(fluid: CongestionState, c: int, now: int) -> None:
    """A connection's links died or came back, or it has others: it is silent while one of them is dead."""
    one = fluid.conns[c]
    cut = one.attached != 0 and is_cut(fluid, c)
    if cut:
        one.held = 1
        change(fluid, c)
    elif one.held != 0:
        one.held = 0
        if one.active == 0:
            return
        settle_conn(fluid, c, now)
        change(fluid, c)
        # Rounds that end while it is held are the last: it goes on with a new one.
        if one.due < 0 and one.known != 0:
            one.seen_rtt = path_rtt(fluid, c)
            open_round(fluid, c, now)
            fluid.updated[fluid.counts[0].num_updated] = c
            fluid.counts[0].num_updated += 1


@internal
def weigh(fluid: CongestionState, c: int) -> None:
    """Work out what a connection has of its strands together: its bare round trip in the mean, the rate at
    which the first of its own ports is full, the most links.
    """
    strands = fluid.strands
    hops = fluid.hops
    one = fluid.conns[c]
    one.base = 0.0
    one.hops = 0
    line = 1e30
    s = one.strand
    while s != _NONE:
        strand = strands[s]
        if strand.part > 0.0 and strand.hops > 0:
            one.base += strand.part * strand.base
            one.hops = max(one.hops, strand.hops)
            link = hops[strand.hop].link
            together = 0.0
            t = one.strand
            while t != _NONE:
                if strands[t].part > 0.0 and hops[strands[t].hop].link == link:
                    together += strands[t].part
                t = strands[t].next
            line = min(line, float(fluid.links[link].nominal) / together)
        s = strand.next
    one.line = int(line)
    # The largest power of two in an eighth of it.
    one.grid = 1
    while 16.0 * float(one.grid) <= one.base:
        one.grid *= 2


@inlined
def count_bytes(core: Core, fluid: CongestionState, c: int, sent: int) -> None:
    """Count bytes on a connection's links; ``sent``: of its flow, so far."""
    one = fluid.conns[c]
    more = float(sent - one.counted)
    one.counted = sent
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        if strand.part > 0.0:
            mine = int(more * strand.part + 0.5)
            for k in range(strand.hop, strand.hop + strand.hops):
                core.link_bytes[fluid.hops[k].link] += mine
        s = strand.next
