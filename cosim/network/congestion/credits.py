"""Credit: what receivers let connections send, where the control is one of receivers.

A receiver shares the rate of its port among the connections that have something to send there, max-min: one
that gets less elsewhere (its own port is shared, or its way is cut) leaves the rest to the others. Who asks,
and what those take that are held back elsewhere, are sums of whole numbers at the last link of each strand; a
connection is granted what it would get if it alone were not held back, so that grants settle at the max-min
share, whoever is asked first. A round's grant is of the instant in which it ends: on a wire, of up to a bare
round trip later.
"""

from __future__ import annotations

from typing import Any

from cosim.network.congestion.state import CongestionState
from cosim.network.jit import inlined

_NONE = -1
_WHOLE = float(1 << 20)
"""A strand with all of a connection's bytes asks for so much: parts are whole numbers, sums exact."""
_HELD_BACK = 0.98


@inlined
def _tell_receiver(fluid: CongestionState, s: int, asked: int, taken: int) -> None:
    """Strand ``s`` asks its last link for so much from now on; ``taken``: bits/s, where it is held back."""
    strand = fluid.strands[s]
    mine = fluid.credits[s]
    port = fluid.links[fluid.hops[strand.hop + strand.hops - 1].link]
    port.asked += (asked if taken == 0 else 0) - (mine.asked if mine.taken == 0 else 0)
    port.taken += taken - mine.taken
    mine.asked = asked
    mine.taken = taken


@inlined
def ask_for_credit(fluid: CongestionState, c: int) -> None:
    """Tell a connection's receiver what it asks for now: nothing while it is idle."""
    one = fluid.conns[c]
    held_back = one.active != 0 and (one.held != 0 or float(one.rate) < _HELD_BACK * float(one.want))
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        if strand.hops > 0:
            asked = int(strand.part * _WHOLE) if one.active != 0 else 0
            taken = max(int(float(one.rate) * strand.part), 1) if held_back and asked > 0 else 0
            _tell_receiver(fluid, s, asked, taken)
        s = strand.next


@inlined
def ask_no_more(fluid: CongestionState, s: int) -> None:
    """A connection leaves strand ``s``."""
    _tell_receiver(fluid, s, 0, 0)


@inlined
def granted(fluid: CongestionState, one: Any) -> float:
    """Bits per second that connection ``one`` may send: the least that a strand's last link grants."""
    least = float(one.line)
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        if strand.part > 0.0:
            mine = fluid.credits[s]
            port = fluid.links[fluid.hops[strand.hop + strand.hops - 1].link]
            asked = port.asked + (mine.asked if mine.taken != 0 else 0)
            free = float(port.capacity - (port.taken - mine.taken))
            if asked > 0:
                least = min(least, max(free, 0.0) * _WHOLE / float(asked))
        s = strand.next
    return least
