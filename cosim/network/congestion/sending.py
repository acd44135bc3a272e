"""A connection begins to send a flow."""

from __future__ import annotations

from cosim.network.congestion.changes import change
from cosim.network.congestion.credits import ask_for_credit
from cosim.network.congestion.delays import path_rtt
from cosim.network.congestion.ports import look_at_link
from cosim.network.congestion.rounds import first_round, is_clean, is_unlimited, open_round
from cosim.network.congestion.state import CongestionState
from cosim.network.congestion.strands import attach
from cosim.network.core import Core
from cosim.network.jit import inlined, once

_NONE = -1


@inlined
def look_ahead(core: Core, fluid: CongestionState, c: int, now: int) -> None:
    """Bring the queues that a connection's bytes meet up to now."""
    s = fluid.conns[c].strand
    while s != _NONE:
        strand = fluid.strands[s]
        for k in range(strand.hop, strand.hop + strand.hops):
            look_at_link(core, fluid, fluid.hops[k].link, now)
        s = strand.next


@inlined
def look_at_paths(core: Core, fluid: CongestionState, c: int, now: int) -> None:
    """The same, and those that its acknowledgements meet, where those wait."""
    s = fluid.conns[c].strand
    while s != _NONE:
        strand = fluid.strands[s]
        for k in range(strand.hop, strand.hop + strand.hops):
            hop = fluid.hops[k]
            look_at_link(core, fluid, hop.link, now)
            if hop.back >= 0:
                look_at_link(core, fluid, hop.back, now)
        s = strand.next


@once
def send(core: Core, fluid: CongestionState, c: int, now: int) -> None:
    """A connection that took its next flow begins to send it."""
    counts = fluid.counts[0]
    one = fluid.conns[c]
    one.touched = now
    fresh = one.active == 0
    if fresh:
        one.active = 1
        counts.num_active += 1
    look_at_paths(core, fluid, c, now)
    attach(fluid, c)
    by_credit = fluid.settings[0].credits != 0.0
    if by_credit:
        ask_for_credit(fluid, c)
    if one.known == 0 or (by_credit and fresh and one.due < 0):
        # Its control has to say first what it may send; after a silence the last grant is void.
        first_round(fluid, c, now)
        one.due = _NONE
        return
    if one.due < 0:
        one.seen_rtt = path_rtt(fluid, c)
        # Its want is asked for in this instant, too.
        one.rtt = one.seen_rtt
        one.rtt_at = now
        # After a silence the window may mean another rate than it did: what was settled need not be.
        if one.settled != 0 and not (is_unlimited(fluid, one) and is_clean(one)):
            one.settled = 0
        open_round(fluid, c, now)
        fluid.updated[counts.num_updated] = c
        counts.num_updated += 1
    if fresh:
        one.bursts = 1
    change(fluid, c)
