"""When time leaves an instant: new rates reach the links, hop by hop, and what follows from them.

A flow brings its rate to its first port, and to each next one what the port before passes on: a port that is
given more than it can serve passes on its rate, in proportion, and so does one that works off its queue (also
when nothing comes any more), so that what a switch is sent leaves it. Every pass over the changed connections
reads loads that the pass before it wrote, and writes sums of whole numbers: their order means nothing.
Connections that did not change keep what they bring to ports further on until their own round ends, a round
trip, as it is on a wire, unless a port that passes on its rate is now shared otherwise.

A host's own port has no queue of its own flows: where they want more than it has they take turns, as queue
pairs of a NIC and sockets of a host do, so that none gets more than another that wants as much (max-min).
"""

from __future__ import annotations

import math
from typing import Any

from cosim.network.calendar import push
from cosim.network.chance import chance
from cosim.network.congestion.changes import change, own_changed, touch
from cosim.network.congestion.classes import is_waited_for, look_after
from cosim.network.congestion.delays import path_rtt
from cosim.network.congestion.feeds import bring_more
from cosim.network.congestion.fronts import expect_front, have_all_moved, have_moved, leaves_with, line_up
from cosim.network.congestion.pauses import expect_crossing, expect_empty
from cosim.network.congestion.ports import is_hot, least_queue, left_for, passes, settle_link
from cosim.network.congestion.rounds import is_clean, sent_in_round, set_want, settle_conn
from cosim.network.congestion.state import BYTES_PER_BPS_PS, UPDATE, CongestionState
from cosim.network.congestion.strands import detach, drop_left
from cosim.network.core import Core
from cosim.network.drains import drain_time, set_drain
from cosim.network.jit import inlined, internal, once
from cosim.units import NEVER

_NONE = -1
_OVER = 1.05
"""So much more than its window a connection may send in a round: rounds and rates are not exact."""
_FLOOR = 1.0 - 2.0**-40
"""So that what a port gives never adds up to more than it has."""
_PART_UNIT = 2**30
"""Parts of connections are added up as whole numbers, so that sums are exact in any order."""
_ALIKE = 16
"""Loads that differ by less than this part of them are shared as before, until the next round."""


@inlined
def on_grid(time: float, grid: int, now: int) -> int:
    """The first whole multiple of ``grid`` that is not before ``now + time``, and after ``now``."""
    at = now + math.ceil(time)
    # Rounds of equal connections end in the same instants, so that their controls are asked in one batch; and
    # never at ``now``, or an instant would not end.
    return int(max((at + grid - 1) // grid * grid, (now // grid + 1) * grid))


@inlined
def wake(fluid: CongestionState, c: int, now: int) -> None:
    """Let a connection that rests go on with its rounds, as if it had not rested; time leaves the instant by
    way of :func:`apply`, which puts the end of its round into the calendar.
    """
    counts = fluid.counts[0]
    one = fluid.conns[c]
    one.asleep = 0
    one.due = one.ends
    counts.open = 1
    if now >= one.ends:
        # The rounds that were left out ended on their grid; the one under way is what is left of the last.
        begin = one.ends + (now - one.ends) // one.period * one.period
        if begin > one.ends:
            one.round = begin - one.period
            one.round_sent = 0.0
        # Its rate stood still while it rested: a changed rate would have woken it.
        one.before_sent = sent_in_round(one, begin)
        one.round = begin
        one.due = begin + one.period
        one.bursts = 0
        one.lost_since = begin
        one.round_sent = 0.0
        one.loss_sent = 0.0
        # One of those left out ends in this instant: rates are worked out anew, as after any.
        if begin == now:
            change(fluid, c)
    fluid.woken[counts.num_woken] = c
    counts.num_woken += 1


@once
def _set_wants(fluid: CongestionState, now: int) -> None:
    """What controls let changed connections send, from queues as they are."""
    counts = fluid.counts[0]
    # Whose control has answered is changed, too, whether its want is another one or not: its drain is.
    for k in range(counts.num_updated):
        change(fluid, fluid.updated[k])
    for k in range(counts.num_changed):
        c = fluid.changed[k]
        one = fluid.conns[c]
        # It was let go of meanwhile, and is on no port that could be shared.
        if one.attached == 0:
            continue
        want = 0
        if one.active != 0:
            want = set_want(fluid, c, now)
        one.want = want
        s = one.strand
        while s != _NONE:
            strand = fluid.strands[s]
            mine = int(want * strand.part)
            if mine != strand.want:
                own_changed(fluid, fluid.hops[strand.hop].port, mine - strand.want)
                strand.want = mine
            s = strand.next


@once
def _change_own(fluid: CongestionState, p: int, above: int, now: int) -> None:
    """Connections that begin at a port and want more than ``above`` are changed: it is shared otherwise."""
    hops = fluid.hops
    m = fluid.ports[p].first
    while m != _NONE:
        c = hops[m].conn
        # On a host's own link others may pass that began elsewhere; those keep what the port before gives.
        if hops[m].leads != 0 and fluid.conns[c].want > above:
            if fluid.conns[c].asleep != 0:
                wake(fluid, c, now)
            change(fluid, c)
        m = hops[m].after


@once
def _level(fluid: CongestionState, p: int, room: float) -> int:
    """The most that a connection may send of ``room`` bits/s, which all together want more of: who wants less
    has what it wants, and the others have alike what is left.
    """
    hops = fluid.hops
    level = 0
    while True:
        # From below, until nobody is left who wants less; each turn reads all anew, in any order.
        content = 0
        parts = 0
        m = fluid.ports[p].first
        while m != _NONE:
            if hops[m].leads != 0:
                strand = fluid.strands[hops[m].leads - 1]
                if fluid.conns[hops[m].conn].want <= level:
                    content += strand.want
                else:
                    parts += int(strand.part * _PART_UNIT)
            m = hops[m].after
        higher = level
        if parts > 0:
            higher = int((room - float(content)) * _FLOOR * _PART_UNIT / float(parts))
        if higher <= level:
            return level
        level = higher


@once
def _share_own_ports(fluid: CongestionState, now: int) -> None:
    """Share hosts' own ports among what wants to begin there, class by class."""
    counts = fluid.counts[0]
    ports = fluid.ports
    links = fluid.links
    room = 0.0
    for k in range(counts.num_hosts * counts.num_classes):
        p = fluid.hosts[k // counts.num_classes]
        if k % counts.num_classes == 0:
            ports[p].listed = 0
            # Class 0 is first: what it leaves is what the next class finds.
            room = float(links[p].capacity)
        p += k % counts.num_classes * len(links)
        port = ports[p]
        level = int(NEVER)
        if port.paused > 0:
            level = 0
        elif float(port.own) > room:
            level = _level(fluid, p, room)
            room = 0.0
        else:
            room -= float(port.own)
        if level != port.level:
            above = min(level, port.level)
            port.level = level
            _change_own(fluid, p, above, now)
    counts.num_hosts = 0


@once
def _passed_on(fluid: CongestionState, at: int, least: float) -> int:
    """The rate that comes to hop ``at``, not its connection's first, from the port before."""
    if fluid.settings[0].traced != 0.0:
        return int(leaves_with(fluid, at - 1, least))
    hop = fluid.hops[at - 1]
    before = fluid.ports[hop.port]
    fresh = hop.load
    part = passes(fluid, hop.port, least)
    if part != 1.0:
        # Rounded down: what leaves a port must not add up to more than it serves.
        fresh = int(fresh * part)
    sight = fluid.sights[at]
    if fresh > 0:
        sight.kept = fresh
        sight.of = left_for(fluid, hop.port)
    elif hop.load > 0:
        # It waits for classes before it, and goes on as it came when it may.
        sight.of = float(fluid.links[before.link].capacity)
        sight.kept = int(float(hop.load) * sight.of / float(before.load))
    elif before.load == 0 and before.queue > least:
        fresh = sight.kept  # nothing comes, but the queue before goes on
        if fluid.counts[0].num_classes > 1 and sight.of > 0.0:
            fresh = int(float(fresh) * left_for(fluid, hop.port) / sight.of)
    return int(fresh)


@once
def _bring(core: Core, fluid: CongestionState, level: int, count: int, least: float, now: int) -> None:
    """Bring the rates of the first ``count`` moving strands to their ports number ``level``: all are read
    before any is written.
    """
    hops = fluid.hops
    strands = fluid.strands
    traced = fluid.settings[0].traced != 0.0
    pauses = fluid.settings[0].lossless != 0.0
    for k in range(count):
        strand = strands[fluid.moving[k]]
        # Read first, written below: the order of connections in ``changed`` must not show in the rates.
        if level < strand.hops:
            at = strand.hop + level
            if level == 0:
                hops[at].fresh = int(fluid.conns[strand.conn].rate * strand.part)
            else:
                hops[at].fresh = _passed_on(fluid, at, least)
    for k in range(count):
        strand = strands[fluid.moving[k]]
        if level < strand.hops:
            hop = hops[strand.hop + level]
            if hop.fresh != hop.load:
                # Up to now the queue grew by the old load; it is brought up to date before that is gone.
                settle_link(core, fluid, hop.link, now)
                if pauses and level > 0:
                    bring_more(fluid, strand.hop + level, hop.fresh - hop.load, now)
                fluid.ports[hop.port].load += hop.fresh - hop.load
                hop.load = hop.fresh
                touch(fluid, hop.port)
                if traced:
                    line_up(fluid, strand.hop + level, least, now)


@internal
def wake_all(fluid: CongestionState, link: int, now: int) -> None:
    """Wake who rests on a link that begins to queue: data of every class, and acknowledgements."""
    hops = fluid.hops
    p = link
    for _ in range(fluid.counts[0].num_classes):
        m = fluid.ports[p].first
        while m != _NONE:
            if fluid.conns[hops[m].conn].asleep != 0:
                wake(fluid, hops[m].conn, now)
            m = hops[m].after
        p += len(fluid.links)
    m = fluid.links[link].back_first
    while m != _NONE:
        if fluid.conns[hops[m].conn].asleep != 0:
            wake(fluid, hops[m].conn, now)
        m = fluid.sights[m].back_next


@inlined
def _wake_if_hot(fluid: CongestionState, p: int, now: int) -> None:
    """Wake who rests on a port's link, if that begins to queue."""
    ports = fluid.ports
    link = ports[p].link
    # Once for all that rest here: the flag stays until somebody rests again.
    if ports[link].hot == 0 and is_hot(fluid, p):
        ports[link].hot = 1
        wake_all(fluid, link, now)


@once
def _change_others(fluid: CongestionState, level: int, count: int, least: float, now: int) -> None:
    """Where a port passes on its rate, a share that changes is that of all others on it too, at once or when
    their rounds end, as they may in this very instant: who rests there is woken before the next ports' turn.
    """
    hops = fluid.hops
    traced = fluid.settings[0].traced != 0.0
    classes = fluid.counts[0].num_classes > 1
    for k in range(count):
        strand = fluid.strands[fluid.moving[k]]
        if level < strand.hops:
            _wake_if_hot(fluid, hops[strand.hop + level].port, now)
            if classes:
                look_after(fluid, hops[strand.hop + level].port)
        if traced:
            if 0 < level < strand.hops - 1:
                have_all_moved(fluid, hops[strand.hop + level].port)
        elif 0 < level < strand.hops - 1:
            port = fluid.ports[hops[strand.hop + level].port]
            # Every change would change all others on the port, and theirs the next ports': most of the
            # work, for differences that the next round levels out.
            if abs(port.load - port.told) * _ALIKE > port.told and (
                port.queue > least or port.load > fluid.links[port.link].capacity
            ):
                port.told = port.load
                m = port.first
                while m != _NONE:
                    change(fluid, hops[m].conn)
                    m = hops[m].after


@inlined
def _move_strands(fluid: CongestionState, one: Any) -> int:
    """Have a connection's strands moved; the most that its own ports let it send."""
    counts = fluid.counts[0]
    level = int(NEVER)
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        if strand.attached != 0:
            if fluid.settings[0].traced != 0.0:
                have_moved(fluid, s)
            else:
                fluid.moving[counts.num_moving] = s
                counts.num_moving += 1
                counts.most_hops = max(counts.most_hops, strand.hops)
            if strand.part > 0.0:
                level = min(level, fluid.ports[fluid.hops[strand.hop].port].level)
        s = strand.next
    return int(level)


@once
def _set_loads(core: Core, fluid: CongestionState, least: float, now: int) -> None:
    """Bring new rates to the ports, hop by hop; more connections may change on the way."""
    counts = fluid.counts[0]
    conns = fluid.conns
    for k in range(counts.num_changed):
        one = conns[fluid.changed[k]]
        if one.attached != 0:
            rate = min(one.want, _move_strands(fluid, one))
            # A round of two rates says nothing of the next one, which will have the second alone.
            if rate != one.rate and one.active != 0 and one.round < now:
                one.uneven = 1
            if rate != one.rate:
                settle_conn(fluid, fluid.changed[k], now)
            one.rate = rate
    level = 0
    while level < counts.most_hops:
        # Those that join on the way have brought their rates to the ports before; they change from here on.
        known = counts.num_changed
        count = counts.num_moving
        _bring(core, fluid, level, count, least, now)
        _change_others(fluid, level, count, least, now)
        for k in range(known, counts.num_changed):
            _move_strands(fluid, conns[fluid.changed[k]])
        level += 1
    counts.num_moving = 0
    counts.most_hops = 0


@inlined
def _is_through(fluid: CongestionState, strand: Any, least: float) -> bool:
    """Whether the queues on the way have passed on what was sent by a strand."""
    hops = fluid.hops
    pauses = fluid.settings[0].lossless != 0.0
    for m in range(strand.hop, strand.hop + strand.hops):
        port = fluid.ports[hops[m].port]
        if fluid.settings[0].traced != 0.0:
            # What came may wait behind others in whole: then nothing leaves yet, and nothing comes any more.
            if hops[m].load != 0 or fluid.outs[m] != 0 or fluid.sights[m].fronts != 0:
                return False
            # It goes on to be stopped there until the queue says otherwise.
            if pauses and m > strand.hop and fluid.feeds[fluid.sights[m].feed].stopped != 0:
                return False
            continue
        # A queue that nobody feeds still sends to the next port: off its list, nothing would bring that
        # there.
        passed_on = m == strand.hop + strand.hops - 1 or port.queue <= least or port.load != 0
        if hops[m].load != 0 or not passed_on:
            return False
    return True


@once
def _let_go(fluid: CongestionState, least: float) -> None:
    """Who has nothing to send, at all or by a strand, leaves when what it sent is through."""
    for k in range(fluid.counts[0].num_changed):
        c = fluid.changed[k]
        one = fluid.conns[c]
        if one.attached == 0 or (one.active != 0 and one.leaving == 0):
            continue
        s = one.strand
        while s != _NONE:
            strand = fluid.strands[s]
            done = one.active == 0 or strand.part == 0.0
            if strand.attached != 0 and done and _is_through(fluid, strand, least):
                detach(fluid, one, strand)
            s = strand.next
        if one.leaving != 0:
            drop_left(fluid, c)


@once
def _watch_queues(core: Core, fluid: CongestionState, least: float, now: int) -> None:
    """Ports whose load changed: they may begin to queue, be empty, or cross a threshold of pauses."""
    counts = fluid.counts[0]
    ports = fluid.ports
    links = fluid.links
    for k in range(counts.num_touched):
        touched = fluid.touched[k]
        link = ports[touched].link
        _wake_if_hot(fluid, touched, now)
        p = link
        while p < len(links) * counts.num_classes:
            # Who comes behind a queue that nobody waited for until now has its end expected, too.
            waited_for = is_waited_for(fluid, p)
            if waited_for or (p >= touched and links[link].onward > 0):
                expect_empty(core.calendar, fluid, p, 0.0 if waited_for else least, now)
            if p >= touched:  # those after it get what it leaves
                if fluid.settings[0].traced != 0.0:
                    expect_front(core.calendar, fluid, p, now)
                if fluid.settings[0].lossless != 0.0 or ports[p].head != _NONE:
                    expect_crossing(core, fluid, p, now)
            p += len(links)
    counts.num_touched = 0


@once
def _may_rest(fluid: CongestionState, one: Any) -> bool:
    """Whether nothing on the path of connection ``one`` waits."""
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        for m in range(strand.hop, strand.hop + strand.hops):
            hop = fluid.hops[m]
            if is_hot(fluid, hop.port) or (hop.back >= 0 and is_hot(fluid, hop.back)):
                return False
        s = strand.next
    return True


@once
def _rest(fluid: CongestionState, one: Any, period: int, due: int) -> None:
    """Leave out the rounds of connection ``one`` until a link on its path begins to queue."""
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        for m in range(strand.hop, strand.hop + strand.hops):
            hop = fluid.hops[m]
            fluid.ports[hop.link].hot = 0
            if hop.back >= 0:
                fluid.ports[hop.back].hot = 0
        s = strand.next
    one.asleep = 1
    one.period = period
    one.ends = due
    one.due = NEVER


@inlined
def _to_next_packet(fluid: CongestionState, one: Any, time: float, now: int) -> float:
    """A round of so many ps, up to the acknowledgement of the first packet that leaves after it began: at a
    slow rate one leaves in many round trips. Where between two packets it began is drawn; where the control
    has settled it is half way, so that rounds that are left out are all of a length.
    """
    gap = fluid.settings[0].mss * 8e12 / max(one.pace, 1.0)
    if time < gap:
        return float(gap)
    return float(time + (0.5 if one.settled != 0 else chance(one.salt, now)) * gap)


@inlined
def _round_time(fluid: CongestionState, c: int, now: int) -> float:
    """How long a round of a connection takes that begins now, in ps."""
    one = fluid.conns[c]
    settings = fluid.settings[0]
    if one.wait > 0.0:
        return float(one.wait)
    time = path_rtt(fluid, c)
    # Who goes by credit hears of it without having sent anything, and may have none.
    if settings.gives_rate != 0.0 and settings.credits == 0.0 and one.pace < float(one.line):
        time = _to_next_packet(fluid, one, time, now)
    return time


@once
def _set_rounds(core: Core, fluid: CongestionState, now: int) -> None:
    """When the rounds end that began here, or their rest; and those that were woken."""
    counts = fluid.counts[0]
    settings = fluid.settings[0]
    bursts = settings.gives_rate == 0.0 and settings.paced == 0.0
    for k in range(counts.num_woken):
        one = fluid.conns[fluid.woken[k]]
        # One of those left out would have begun in this very instant: it ends as links are after that.
        if one.round == now and one.active != 0:
            one.due = on_grid(_round_time(fluid, fluid.woken[k], now), one.grid, now)
    for k in range(counts.num_updated):
        c = fluid.updated[k]
        one = fluid.conns[c]
        # Nothing to send, or woken in this instant: its round has its end already.
        if one.active == 0 or one.due > now:
            continue
        # While it is held it has none.
        if one.held != 0:
            one.due = _NONE
            continue
        time = _round_time(fluid, c, now)
        due = on_grid(time, one.grid, now)
        if one.timeout_at > 0:
            # Silent until the timer: no acknowledgement comes that could end the round before.
            due = on_grid(float(one.timeout_at - now), one.grid, now)
        elif one.known_at > 0:
            # A loss ends the round: the sender reacts when it hears of it.
            due = min(due, on_grid(float(one.known_at - now), one.grid, now))
        left = one.window - sent_in_round(one, now)
        if bursts and one.rate * BYTES_PER_BPS_PS * time > _OVER * left:
            # Queues grew by what begins here: acknowledgements come later, and with them leave to send.
            settle_conn(fluid, c, now)
            one.budget = left
        # One that is silent until a loss is known has a round to end, or it would be silent for ever.
        rests = settings.rests != 0.0 and one.settled != 0 and one.spent == 0 and one.budget > one.remaining
        if rests and is_clean(one) and _may_rest(fluid, one):
            _rest(fluid, one, on_grid(time, one.grid, 0), due)
            continue
        one.due = due
        fluid.woken[counts.num_woken] = c
        counts.num_woken += 1
    counts.num_updated = 0
    for k in range(counts.num_woken):
        c = fluid.woken[k]
        push(core.calendar, fluid.conns[c].due, now, now, _NONE, 0, c, UPDATE)
    counts.num_woken = 0


@once
def _set_drains(fluid: CongestionState) -> None:
    """When each has sent what it has, or may, if that is before its round ends and all is looked at again."""
    counts = fluid.counts[0]
    for k in range(counts.num_changed):
        c = fluid.changed[k]
        one = fluid.conns[c]
        if one.active != 0:
            left = min(one.remaining, one.budget)
            rate = one.rate * BYTES_PER_BPS_PS
            when = int(NEVER)
            # A drain that lies beyond the end of the round would be moved then anyhow: the heap stays small.
            if left <= rate * float(one.due - one.touched + 1):
                when = drain_time(one.touched, left, rate)
            counts.num_drains = set_drain(counts.num_drains, fluid.drains, c, when)
    counts.num_changed = 0


@once
def apply(core: Core, fluid: CongestionState, now: int) -> None:
    """Bring everything that changed at ``now`` into force. The caller saw to the room in the calendar."""
    least = least_queue(fluid)
    # The order matters: wants need queues as they are, shares need all wants, loads need shares; who leaves,
    # rests or drains depends on the loads.
    _set_wants(fluid, now)
    _share_own_ports(fluid, now)
    _set_loads(core, fluid, least, now)
    _let_go(fluid, least)
    _watch_queues(core, fluid, least, now)
    _set_rounds(core, fluid, now)
    _set_drains(fluid)
    fluid.counts[0].open = 0
    fluid.counts[0].stamp += 1
