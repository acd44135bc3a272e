"""A connection takes other paths: what it has sent goes on where it is, the rest goes the new ways."""

from __future__ import annotations

from cosim.network.calendar import push
from cosim.network.changes import ROUTES, begin_change
from cosim.network.congestion.apply import wake, wake_all
from cosim.network.congestion.changes import change, tell
from cosim.network.congestion.classes import look_after
from cosim.network.congestion.delays import arrives_by
from cosim.network.congestion.feeds import settle_feeds
from cosim.network.congestion.fronts import pass_fronts
from cosim.network.congestion.pauses import at_threshold
from cosim.network.congestion.ports import settle_link
from cosim.network.congestion.rounds import count_losses, remember, settle_conn
from cosim.network.congestion.sending import look_at_paths
from cosim.network.congestion.state import CROSS, CongestionState
from cosim.network.congestion.strands import attach, count_bytes, drop_left, hold_or_go_on, weigh
from cosim.network.core import Core
from cosim.network.flows import I32
from cosim.network.jit import compiled, inlined, internal
from cosim.units import NEVER

_NONE = -1


@internal
def leave_paths(core: Core, fluid: CongestionState, c: int, now: int) -> None:
    """Take a connection's bytes off all its strands, which keep what was sent by them."""
    one = fluid.conns[c]
    if one.asleep != 0:
        wake(fluid, c, now)
    if one.active != 0:
        settle_conn(fluid, c, now)
        look_at_paths(core, fluid, c, now)
        if fluid.settings[0].lossless == 0.0:
            # Known of and sent again as if it had stayed.
            lost = count_losses(fluid, c, now) * fluid.settings[0].mss
            one.remaining = min(one.remaining + lost, one.size)
        count_bytes(core, fluid, c, one.sent)
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        if strand.part > 0.0:
            strand.part = 0.0
            strand.listed = 2
            one.leaving += 1
        s = strand.next


@inlined
def take_path(fluid: CongestionState, c: int, s: int, part: float) -> None:
    """Send a part of a connection's bytes by strand ``s``, by which nothing goes yet."""
    one = fluid.conns[c]
    strand = fluid.strands[s]
    strand.part = part
    if strand.listed != 0:
        one.leaving -= 1
    else:
        strand.listed = 1
        strand.next = one.strand
        one.strand = s


@inlined
def _note_arrivals(fluid: CongestionState, c: int, now: int) -> None:
    """Nothing of a connection is there before what went by strands that it has left in this instant."""
    one = fluid.conns[c]
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        if strand.listed == 2 and strand.part == 0.0 and one.active != 0:
            came = arrives_by(fluid, strand, int(one.sent), now)
            one.arrived = max(one.arrived, came if came < NEVER else 0)
        strand.listed = 1
        s = strand.next


@internal
def go_on(core: Core, fluid: CongestionState, c: int, now: int) -> None:
    """All parts of a connection are given: it goes on with what it sends, if it does."""
    one = fluid.conns[c]
    _note_arrivals(fluid, c, now)
    drop_left(fluid, c)
    weigh(fluid, c)
    one.rtt_at = _NONE
    if one.active == 0:
        return
    look_at_paths(core, fluid, c, now)
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        if strand.attached == 0:
            remember(fluid, strand)
        s = strand.next
    attach(fluid, c)
    hold_or_go_on(fluid, c, now)
    change(fluid, c)


@compiled
def reroute(core: Core, fluid: CongestionState, conns: I32, strands: I32) -> None:
    """Have connections go by one strand each from now on."""
    now = core.state[0].instant
    for k in range(len(conns)):
        leave_paths(core, fluid, conns[k], now)
        take_path(fluid, conns[k], strands[k], 1.0)
        go_on(core, fluid, conns[k], now)


@internal
def _change_link(core: Core, fluid: CongestionState, link: int, rate_bps: int, now: int) -> None:
    """From now on a link has another rate; 0: it is dead, and what waits for it counts as arrived."""
    ports = fluid.ports
    settle_link(core, fluid, link, now)
    fluid.links[link].capacity = rate_bps
    ports[link].hot = 1
    wake_all(fluid, link, now)
    p = link
    for _ in range(fluid.counts[0].num_classes):
        if rate_bps == 0:
            ports[p].queue = 0.0
            if fluid.settings[0].traced != 0.0:
                pass_fronts(core, fluid, p, 0.0, now)
            at_threshold(core, fluid, p, now)
            # Last bytes that stand in it go on, one by one.
            if ports[p].head != _NONE:
                ports[p].check = now + 1
                push(core.calendar, now + 1, now, now, _NONE, 0, p, CROSS)
        # What came to a dead link is gone of its feeds, too.
        settle_feeds(fluid, p, now)
        tell(fluid, p)
        m = ports[p].first
        while m != _NONE:
            hold_or_go_on(fluid, fluid.hops[m].conn, now)
            m = fluid.hops[m].after
        p += len(fluid.links)
    look_after(fluid, link)


@compiled
def pass_change(core: Core, fluid: CongestionState) -> int:
    """Go to the next change, whose row is returned: a link's comes into force. There is room in the calendar
    for an event of each class.
    """
    row = begin_change(core, fluid)
    one = fluid.changes[row]
    if one.link != ROUTES:
        _change_link(core, fluid, one.link, int(one.rate), core.state[0].instant)
    return row
