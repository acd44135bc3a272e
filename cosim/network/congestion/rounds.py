"""Rounds: what a connection saw on its path during a round trip, and what it sends in the next one."""

from __future__ import annotations

from typing import Any

from cosim.network.balancing.choosing import choose_at_end
from cosim.network.chance import chance
from cosim.network.congestion.credits import ask_for_credit, granted
from cosim.network.congestion.delays import path_rtt
from cosim.network.congestion.fronts import leaves_with
from cosim.network.congestion.ports import is_hot, look_at_link, mean_mark
from cosim.network.congestion.state import BYTES_PER_BPS_PS, MAX_STATE, CongestionState
from cosim.network.core import Core
from cosim.network.jit import inlined, once
from cosim.units import NEVER

_INF = 1e30  # bytes of a budget that nothing uses up
_LIMITED = 0.93
_LOST_AGAIN = 0.5
_NONE = -1
_DUST = 1.0  # bytes; a queue below it passes on what comes


@inlined
def sent_from(one: Any, since: int, now: int) -> float:
    """Bytes that connection ``one`` has sent since ``since``, or since it has its rate, if that is later."""
    return float(one.rate * BYTES_PER_BPS_PS * float(now - max(one.touched, since)))


@inlined
def left_of(one: Any, now: int) -> float:
    """Bytes that connection ``one`` has not sent yet."""
    return float(max(one.remaining - sent_from(one, one.touched, now), 0.0))


@inlined
def sent_in_round(one: Any, now: int) -> float:
    """Bytes that connection ``one`` has sent in the round under way."""
    return float(one.round_sent + sent_from(one, one.round, now))


@inlined
def count_whole(fluid: CongestionState, one: Any, now: int) -> None:
    """Count what connection ``one`` has sent of its flow, and so of its coflow, in whole bytes: sums of them
    don't depend on the order of connections.
    """
    whole = int(one.size - left_of(one, now))
    if one.coflow >= 0:
        fluid.coflows[one.coflow].sent += whole - one.sent
    one.sent = whole


@inlined
def settle_conn(fluid: CongestionState, c: int, now: int) -> None:
    """Count what a connection has sent up to ``now``, from where on it sends otherwise.

    And only there: as long as it has its rate, all that it has sent follows from the time since then, however
    often it is looked at. A sum of parts would have another last bit for each division into rounds, which
    decides where a packet stands at a threshold.
    """
    one = fluid.conns[c]
    if one.touched == now:
        return
    if one.rate > 0:
        sent = min(sent_from(one, one.touched, now), one.remaining)
        one.round_sent = sent_in_round(one, now)
        one.loss_sent += sent_from(one, one.lost_since, now)
        one.remaining -= sent
        one.budget -= sent
        one.touched = now
        count_whole(fluid, one, now)
    one.touched = now


@inlined
def is_clean(one: Any) -> bool:
    """Whether there is nothing that the control of connection ``one`` is still to be shown."""
    return bool(
        one.seen_rtt == one.base
        and one.seen_marked == 0.0
        and one.marking == 0.0
        and one.lost == 0.0
        and one.resent == 0.0
    )


@inlined
def met_nothing(fluid: CongestionState, one: Any) -> bool:
    """Whether the round under way of connection ``one``, whose links are settled, met no queue so far."""
    if not is_clean(one):
        return False
    hops = fluid.hops
    ports = fluid.ports
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        for k in range(strand.hop, strand.hop + strand.hops):
            hop = hops[k]
            port = ports[hop.port]
            # Also what came and went meanwhile: counters moved since the round began.
            if port.queue > 0.0 or port.paused > 0 or port.marks != hop.marks or port.losses != hop.lost:
                return False
            if hop.back >= 0 and is_hot(fluid, hop.back):
                return False
        s = strand.next
    return True


@inlined
def is_unlimited(fluid: CongestionState, one: Any) -> bool:
    """Whether connection ``one`` can't be limited by its control in a round that meets no queue."""
    if fluid.settings[0].gives_rate != 0.0:
        return bool(one.pace >= float(one.line))
    # A round may be longer than the bare round trip by its place on the grid.
    most = float(one.line) * BYTES_PER_BPS_PS * (one.base + float(2 * one.grid))
    return bool(one.window * _LIMITED > most)


@inlined
def fall_silent(fluid: CongestionState, c: int, now: int) -> None:
    """A connection's window is used up, or it waits to hear of a loss: nothing more before its round ends."""
    fluid.conns[c].spent = 1
    if fluid.settings[0].balanced != 0.0:
        fluid.balance.routes[c].idle_since = now


@inlined
def set_want(fluid: CongestionState, c: int, now: int) -> int:
    """The bits per second that the control lets a connection send, and its budget at them.

    A window that nothing paces goes out at the port's rate in the first round after an idle one, and then
    there is silence until the round ends; later its acknowledgements spread it.
    """
    settings = fluid.settings[0]
    one = fluid.conns[c]
    one.budget = _INF
    # Its window is used up, or it waits to hear of a loss, or a link of its path is dead: silent until then.
    if one.spent != 0 or one.held != 0:
        return 0
    if settings.gives_rate != 0.0:
        # A bit a second at least: at 0 there would be no drain, and nothing to wait for.
        return int(max(1.0, min(one.pace, float(one.line))))
    # Asked for once in an instant: queues of a path don't change within one.
    if one.rtt_at != now:
        one.rtt = path_rtt(fluid, c)
    rtt = one.rtt
    rate = one.window * 8e12 / rtt
    # More than a round's worth: acknowledgements come back before the window is used up.
    if rate >= float(one.line):
        return int(one.line)
    if settings.paced == 0.0 and one.bursts != 0:
        settle_conn(fluid, c, now)
        one.budget = one.window - one.round_sent
        # Less than a byte is left of it: a drain of it would fall on this very instant.
        if one.budget < 1.0:
            one.budget = _INF
            fall_silent(fluid, c, now)
            return 0
        return int(one.line)
    return int(max(rate, 1.0))


@inlined
def remember(fluid: CongestionState, strand: Any) -> None:
    """Keep the counters of a strand's path, whose links are settled: what it meets counts from here on."""
    for k in range(strand.hop, strand.hop + strand.hops):
        port = fluid.ports[fluid.hops[k].port]
        fluid.hops[k].marks = port.marks
        fluid.hops[k].lost = port.losses
        if fluid.settings[0].wants_telemetry != 0.0:
            fluid.sights[k].served = port.served


@inlined
def open_round(fluid: CongestionState, c: int, now: int) -> None:
    """Begin a round: remember the counters of the paths, whose links are settled."""
    one = fluid.conns[c]
    one.round = now
    one.round_sent = 0.0
    one.loss_sent = 0.0
    one.lost_since = now
    one.bursts = 0
    one.spent = 0
    one.uneven = 0
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        remember(fluid, strand)
        s = strand.next


@inlined
def count_losses(fluid: CongestionState, c: int, now: int) -> int:
    """Whole packets lost since this was last asked; what is less than one is kept for later.

    The first is known of a round trip after it was sent.
    """
    one = fluid.conns[c]
    hops = fluid.hops
    ports = fluid.ports
    mss = fluid.settings[0].mss
    first = now
    span = float(now - one.lost_since)
    lost = 0.0
    inside = 0.0
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        kept = 1.0
        before = 1.0
        for k in range(strand.hop, strand.hop + strand.hops):
            port = ports[hops[k].port]
            if port.losses > hops[k].lost and span > 0.0 and strand.part > 0.0:
                # Not before it was last counted: what was lost then is known of already.
                first = min(first, max(port.drop_from, one.lost_since))
                # A packet arrives where every queue lets it pass.
                kept *= 1.0 - min((port.losses - hops[k].lost) / span, 1.0)
                if k < strand.hop + strand.hops - 1:
                    before = kept
            hops[k].lost = port.losses
        lost += strand.part * (1.0 - kept)
        inside += strand.part * (1.0 - before)
        s = strand.next
    if lost > 0.0:
        # Fractions of packets add up, so that small losses are not lost by rounding.
        one.debt += lost * (one.loss_sent + sent_from(one, one.lost_since, now))
    one.lost_since = now
    one.loss_sent = 0.0
    packets = int(one.debt / mss)
    one.debt -= packets * mss
    one.lost += packets
    if inside > 0.0 and fluid.settings[0].credits != 0.0:
        fluid.inside[c] += packets * inside / lost
    # The first counts: later losses of the round are heard of with it, as one event.
    if packets > 0 and one.known_at == 0:
        # A header overtakes what queues; a gap is seen when what comes after it has come through them.
        late = one.base if fluid.settings[0].trims != 0.0 else path_rtt(fluid, c)
        one.known_at = first + int(late)
    return packets


@inlined
def _show(fluid: CongestionState, n: int, c: int, now: int) -> None:
    """What a control is shown of a connection in any round."""
    one = fluid.conns[c]
    row = fluid.rows[n]
    row.conn = c
    row.first = 0.0
    row.base_rtt = one.base
    row.mss = fluid.settings[0].mss
    row.line = float(one.line)
    row.sent = float(one.sent)
    row.size = one.size
    row.job = float(one.job)
    row.priority = float(one.priority)
    row.weight = one.weight
    row.hops = float(one.hops)
    row.window = one.window
    row.rate = one.pace
    row.wait = 0.0
    row.slow_start = 0.0
    row.lost = 0.0
    row.timeout = 0.0
    row.chance = chance(one.salt, now)
    row.granted = 0.0
    row.lost_inside = 0.0


@inlined
def _clear_telemetry(fluid: CongestionState, n: int) -> None:
    """No hop tells anything yet."""
    for k in range(fluid.telemetry.shape[1]):
        t = fluid.telemetry[n, k]
        t.queue = 0.0
        t.tx = 0.0
        t.capacity = 0.0


@inlined
def first_round(fluid: CongestionState, c: int, now: int) -> None:
    """Put a connection that its control does not know into the batch; the links of its path are settled."""
    one = fluid.conns[c]
    counts = fluid.counts[0]
    n = counts.batch_size
    counts.batch_size = n + 1
    _show(fluid, n, c, now)
    row = fluid.rows[n]
    row.first = 1.0
    row.elapsed = 0.0
    row.rtt = one.base
    row.marked = 0.0
    row.again = 0.0
    row.acked = 0.0
    row.delivered = 0.0
    row.flight = 0.0
    row.limited = 0.0
    one.seen_rtt = path_rtt(fluid, c)
    _clear_telemetry(fluid, n)
    s = one.strand
    while s != _NONE:
        strand = fluid.strands[s]
        for k in range(strand.hops if strand.part > 0.0 else 0):
            capacity = float(fluid.links[fluid.hops[strand.hop + k].link].capacity)
            fluid.telemetry[n, k].capacity += strand.part * capacity
        s = strand.next


@once
def _look_along(core: Core, fluid: CongestionState, c: int, now: int, span: float) -> tuple[float, float]:
    """Bring a connection's paths up to now: what part of its bytes was marked in the round, and is now."""
    hops = fluid.hops
    marked = 0.0
    marks = 0.0
    s = fluid.conns[c].strand
    while s != _NONE:
        strand = fluid.strands[s]
        unmarked = 1.0
        passed = 1.0
        for k in range(strand.hop, strand.hop + strand.hops):
            look_at_link(core, fluid, hops[k].link, now)
            # The way back matters where acknowledgements queue there.
            if hops[k].back >= 0:
                look_at_link(core, fluid, hops[k].back, now)
            port = fluid.ports[hops[k].port]
            link = fluid.links[hops[k].link]
            if port.queue > link.mark_from:
                here = mean_mark(port.queue, port.queue, link.mark_from, link.mark_all, link.mark_most)
                passed *= 1.0 - here
            # A byte is marked where any of the queues marks it.
            if port.marks > hops[k].marks:
                unmarked *= 1.0 - min((port.marks - hops[k].marks) / span, 1.0)
        marked += strand.part * (1.0 - unmarked)
        marks += strand.part * (1.0 - passed)
        s = strand.next
    return marked, marks


@once
def _tell_losses(fluid: CongestionState, n: int, c: int, now: int, span: float) -> None:
    """What the round lost is sent again; the control hears of it when the sender would, or of a timeout."""
    row = fluid.rows[n]
    one = fluid.conns[c]
    packets = count_losses(fluid, c, now)
    if packets > 0 and one.active != 0:
        settle_conn(fluid, c, now)
        one.remaining += packets * fluid.settings[0].mss
        # What was lost can't be more than there is.
        one.remaining = min(one.remaining, one.size)
    if one.timeout_at > 0:
        row.timeout = 1.0
        one.timeout_at = 0
        one.known_at = 0
        one.lost = 0.0
    elif one.resent > 0.0 and fluid.settings[0].trims == 0.0:
        # What was sent again shares the fate of all that was sent; lost twice, it waits for the timer.
        sent = sent_in_round(one, now)
        again = packets * min(one.resent * fluid.settings[0].mss / max(sent, 1.0), 1.0)
        if again >= _LOST_AGAIN and one.active != 0:
            one.timeout_at = one.round + int(max(fluid.settings[0].least_rto, 2.0 * span))
    one.resent = 0.0
    if one.known_at > 0 and now >= one.known_at:
        row.lost = one.lost
        one.resent = one.lost
        one.known_at = 0
        one.lost = 0.0
        if fluid.settings[0].credits != 0.0:
            row.lost_inside = fluid.inside[c]
            fluid.inside[c] = 0.0


@once
def _tell_hops(fluid: CongestionState, n: int, c: int, span: float) -> None:
    """Telemetry: what the hops were like when the round before this one ended, as it comes back now. Of
    several strands the mean, by what goes by each.
    """
    _clear_telemetry(fluid, n)
    s = fluid.conns[c].strand
    while s != _NONE:
        strand = fluid.strands[s]
        for k in range(strand.hops if strand.part > 0.0 else 0):
            t = fluid.telemetry[n, k]
            hop = fluid.hops[strand.hop + k]
            port = fluid.ports[hop.port]
            sight = fluid.sights[strand.hop + k]
            t.queue += strand.part * sight.queue
            t.tx += strand.part * sight.rate
            t.capacity += strand.part * float(fluid.links[hop.link].capacity)
            sight.queue = port.queue
            sight.rate = (port.served - sight.served) / (span * BYTES_PER_BPS_PS)
        s = strand.next


@once
def _tell_marks(
    fluid: CongestionState, n: int, c: int, share: float, ends_marking: float, span: float
) -> None:
    """Which of the round's marks the control hears of now, and which with the next round."""
    row = fluid.rows[n]
    one = fluid.conns[c]
    if one.wait > 0.0:
        # Packets are marked as they leave a queue: notifications are late by the bare way alone.
        late = share * min(0.5 * one.base / span, 1.0)
        row.marked = min(one.seen_marked + share - late, 1.0)
        one.seen_marked = late
        if one.wait >= 2.0 * one.seen_rtt:
            row.rtt = one.seen_rtt
            row.lost = max(row.lost, one.lost)
            one.known_at = 0
            one.lost = 0.0
    else:
        # Marks come back half a round late in the mean; where marking began in this round, they lie at its
        # end, and where it ended, at its beginning.
        early = 0.5 * share
        if ends_marking > one.marking:
            early = max(share - 0.5, 0.0)
        elif ends_marking < one.marking:
            early = min(share, 0.5)
        row.marked = one.seen_marked + early
        one.seen_marked = share - early
        one.marking = ends_marking


@once
def _comes(fluid: CongestionState, c: int) -> float:
    """Bits per second that come to a connection's receiver now, out of queues as well."""
    rate = 0.0
    s = fluid.conns[c].strand
    while s != _NONE:
        last = fluid.strands[s].hop + fluid.strands[s].hops - 1
        rate += float(leaves_with(fluid, last, _DUST))
        s = fluid.strands[s].next
    return rate


@inlined
def end_round(core: Core, fluid: CongestionState, c: int, now: int) -> None:
    """Put a connection into the batch: show it what the round before this one saw, keep what this one saw."""
    one = fluid.conns[c]
    counts = fluid.counts[0]
    n = counts.batch_size
    counts.batch_size = n + 1
    count_whole(fluid, one, now)
    _show(fluid, n, c, now)
    row = fluid.rows[n]
    counts.num_updates += 1
    span = float(now - one.round)
    sent = sent_in_round(one, now)
    share, ends_marking = _look_along(core, fluid, c, now, span)
    if fluid.settings[0].lossless == 0.0:
        _tell_losses(fluid, n, c, now, span)
    row.elapsed = span
    row.rtt = one.seen_rtt
    row.acked = sent
    row.delivered = sent
    if one.wait > 0.0 and fluid.settings[0].traced != 0.0:
        row.delivered = _comes(fluid, c) * BYTES_PER_BPS_PS * span
    # A loss may have ended the round early.
    row.flight = sent + max(1.0 - span / one.seen_rtt, 0.0) * one.before_sent
    one.before_sent = sent
    row.limited = 1.0 if row.flight >= one.window * _LIMITED else 0.0
    if fluid.settings[0].gives_rate != 0.0:
        row.limited = 1.0 if one.rate == one.want else 0.0
    if fluid.settings[0].wants_telemetry != 0.0:
        _tell_hops(fluid, n, c, span)
    one.seen_rtt = path_rtt(fluid, c)
    one.rtt = one.seen_rtt
    one.rtt_at = now
    one.marked = share
    row.again = 1.0 if ends_marking > 0.0 else 0.0
    _tell_marks(fluid, n, c, share, ends_marking, span)
    if fluid.settings[0].credits != 0.0:
        ask_for_credit(fluid, c)


@inlined
def ask(fluid: CongestionState) -> None:
    """Fill in what only the whole batch says, and remember what growth and rest are measured against."""
    states = fluid.settings[0].num_states
    for n in range(fluid.counts[0].batch_size):
        row = fluid.rows[n]
        coflow = fluid.conns[row.conn].coflow
        row.coflow_sent = 0.0
        row.coflow_size = 0.0
        if coflow >= 0:
            row.coflow_sent = float(fluid.coflows[coflow].sent)
            row.coflow_size = float(fluid.coflows[coflow].size)
        share = 0.0
        if row.coflow_size > 0.0:
            share = min(row.coflow_sent / row.coflow_size, 1.0)
        # All rounds of the instant have ended: whose end came first plays no part.
        if fluid.settings[0].credits != 0.0:
            row.granted = granted(fluid, fluid.conns[row.conn])
        row.gain = fluid.settings[0].slope * share + fluid.settings[0].intercept
        # Growth alone is scaled, and rest needs to know whether anything moved: both compare with this.
        fluid.before[n, MAX_STATE] = row.window
        fluid.before[n, MAX_STATE + 1] = row.rate
        for k in range(states):
            fluid.before[n, k] = fluid.state[row.conn, k]


@once
def _note_pause(fluid: CongestionState, n: int, now: int) -> None:
    """The connection of the ``n``-th answer chooses its paths again where its packets paused for long enough:
    its window was used up, is less than what is on its way, or its packets are so far apart.
    """
    row = fluid.rows[n]
    one = fluid.conns[row.conn]
    pause = 0.0
    if one.spent != 0:
        pause = float(now - fluid.balance.routes[row.conn].idle_since)
    elif one.rate > 0:
        # Until acknowledgements have come for what is more than the window now, nothing is sent.
        less = row.flight - row.window if fluid.settings[0].gives_rate == 0.0 else 0.0
        pause = max(less, row.mss) * 8e12 / float(one.rate)
    if pause > float(fluid.balance.counts[0].least_pause):
        fluid.balance.routes[row.conn].pause = int(pause)
        choose_at_end(fluid.balance, row.conn, 0)
        # At rest it would not be asked again.
        one.settled = 0


@inlined
def answer(fluid: CongestionState, now: int) -> None:
    """Take what the control said, and open the next round of who has something to send."""
    counts = fluid.counts[0]
    settings = fluid.settings[0]
    states = settings.num_states
    scaled = settings.scaled != 0.0
    pauses = settings.balanced != 0.0 and fluid.balance.counts[0].least_pause < NEVER
    conns = fluid.conns
    for n in range(counts.batch_size):
        row = fluid.rows[n]
        c = row.conn
        one = conns[c]
        known = one.known != 0
        if scaled and known and row.slow_start == 0.0:
            more = row.window - fluid.before[n, MAX_STATE]
            if more > 0.0:
                row.window = fluid.before[n, MAX_STATE] + row.gain * more
            more = row.rate - fluid.before[n, MAX_STATE + 1]
            if more > 0.0:
                row.rate = fluid.before[n, MAX_STATE + 1] + row.gain * more
        one.window = row.window
        one.pace = row.rate
        one.wait = row.wait
        # To rest, a control must have answered as before, of a round like those to come: window, rate and
        # every number it remembers.
        still = settings.settles != 0.0 and known and one.uneven == 0
        if fluid.before[n, MAX_STATE] != row.window or fluid.before[n, MAX_STATE + 1] != row.rate:
            still = False
        for k in range(states):
            if fluid.before[n, k] != fluid.state[c, k]:
                still = False
        one.settled = 1 if still else 0
        one.known = 1
        if one.active != 0:
            if pauses and known:
                _note_pause(fluid, n, now)
            open_round(fluid, c, now)
            if not known:
                one.bursts = 1
            if one.timeout_at > 0 or (one.known_at > 0 and one.remaining <= one.lost * settings.mss):
                fall_silent(fluid, c, now)
            fluid.updated[counts.num_updated] = c
            counts.num_updated += 1
    counts.batch_size = 0
