"""Rounds: what a connection saw on its path during a round trip, and what it sends in the next one."""

from __future__ import annotations

from cosim.network.calendar import Records
from cosim.network.congestion.columns import (
    BATCH_N,
    BYTES_PER_BPS_PS,
    GIVES_RATE,
    INTERCEPT,
    LOSSLESS,
    MAX_STATE,
    MSS,
    PACED,
    SCALED,
    SETTLES,
    SLOPE,
    STATES,
    UPDATED_N,
    UPDATES_N,
    WANTS_TELEMETRY,
    Fluid,
)
from cosim.network.congestion.ports import mean_mark, service, settle_link
from cosim.network.flows import F64, I64
from cosim.network.jit import compiled, inlined

_INF = 1e30
_LIMITED = 0.93


@inlined
def settle_conn(conns: Records, coflows: Records, c: int, now: int) -> None:
    """Count what a connection has sent up to ``now``."""
    one = conns[c]
    if one.touched == now:
        return
    if one.rate > 0:
        sent = min(one.rate * BYTES_PER_BPS_PS * float(now - one.touched), one.remaining)
        one.remaining -= sent
        one.budget -= sent
        one.round_sent += sent
        one.loss_sent += sent
        whole = int(one.size - one.remaining)
        if one.coflow >= 0:
            coflows[one.coflow].sent += whole - one.sent
        one.sent = whole
    one.touched = now


@inlined
def path_rtt(conns: Records, hops: Records, links: Records, ports: Records, c: int) -> float:
    """The round-trip time (ps) with queues as they are."""
    one = conns[c]
    wait = 0.0
    for k in range(one.hop, one.hop + one.hops):
        port = hops[k].port
        if ports[port].queue > 0.0:
            wait += ports[port].queue / service(links, ports, port)
    return float(one.base + wait * 8e12)


@compiled
def set_want(conns: Records, hops: Records, links: Records, ports: Records, settings: F64, c: int) -> int:
    """The bits per second that the control lets a connection send, and its budget at them.

    A window that nothing paces goes out at the port's rate in the first round after an idle one, and then
    there is silence until the round ends; later its acknowledgements spread it.
    """
    one = conns[c]
    one.budget = _INF
    if one.spent != 0:
        return 0
    if settings[GIVES_RATE] != 0.0:
        return int(max(1.0, min(one.pace, float(one.line))))
    rtt = path_rtt(conns, hops, links, ports, c)
    rate = one.window * 8e12 / rtt
    if rate >= float(one.line):
        return int(one.line)
    if settings[PACED] == 0.0 and one.bursts != 0:
        one.budget = one.window - one.round_sent
        if one.budget < 1.0:
            one.budget = _INF
            one.spent = 1
            return 0
        return int(one.line)
    return int(max(rate, 1.0))


@compiled
def open_round(conns: Records, hops: Records, ports: Records, c: int, now: int) -> None:
    """Begin a round: remember the counters of the path, whose links are settled."""
    one = conns[c]
    one.round = now
    one.round_sent = 0.0
    one.loss_sent = 0.0
    one.lost_since = now
    one.bursts = 0
    one.spent = 0
    for k in range(one.hop, one.hop + one.hops):
        port = ports[hops[k].port]
        hops[k].marks = port.marks
        hops[k].losses = port.losses
        hops[k].lost = port.losses
        hops[k].served = port.served


@compiled
def count_losses(conns: Records, hops: Records, ports: Records, settings: F64, c: int, now: int) -> int:
    """Whole packets lost since this was last asked; what is less than one is kept for later."""
    one = conns[c]
    kept = 1.0
    span = float(now - one.lost_since)
    for k in range(one.hop, one.hop + one.hops):
        port = ports[hops[k].port]
        if port.losses > hops[k].lost and span > 0.0:
            kept *= 1.0 - min((port.losses - hops[k].lost) / span, 1.0)
        hops[k].lost = port.losses
    if kept < 1.0:
        one.debt += (1.0 - kept) * one.loss_sent
    one.lost_since = now
    one.loss_sent = 0.0
    packets = int(one.debt / settings[MSS])
    one.debt -= packets * settings[MSS]
    one.lost += packets
    return packets


@compiled
def end_round(meta: I64, busy: I64, fluid: Fluid, c: int, now: int) -> None:
    """Put a connection into the batch: show it what the round before this one saw, keep what this one saw."""
    conns = fluid.conns
    hops = fluid.hops
    ports = fluid.ports
    one = conns[c]
    n = meta[BATCH_N]
    meta[BATCH_N] = n + 1
    row = fluid.rows[n]
    row.conn = c
    row.first = 0.0
    row.base_rtt = one.base
    row.mss = fluid.settings[MSS]
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
    if one.known == 0:
        row.first = 1.0
        row.elapsed = 0.0
        row.rtt = one.base
        row.marked = 0.0
        row.lost = 0.0
        row.acked = 0.0
        row.limited = 0.0
        one.seen_rtt = one.base
        for k in range(one.hops):
            t = fluid.telemetry[n, k]
            t.queue = 0.0
            t.tx = 0.0
            t.capacity = float(fluid.links[hops[one.hop + k].link].capacity)
        for k in range(one.hops, fluid.telemetry.shape[1]):
            fluid.telemetry[n, k].capacity = 0.0
        return
    meta[UPDATES_N] += 1
    settle_conn(conns, fluid.coflows, c, now)
    unmarked = 1.0
    passed = 1.0
    span = float(now - one.round)
    for k in range(one.hop, one.hop + one.hops):
        settle_link(meta, busy, fluid.links, ports, fluid.histogram, fluid.settings, hops[k].link, now)
        port = ports[hops[k].port]
        link = fluid.links[hops[k].link]
        if port.queue > link.mark_from:
            passed *= 1.0 - mean_mark(port.queue, port.queue, link.mark_from, link.mark_all, link.mark_most)
        if port.marks > hops[k].marks:
            unmarked *= 1.0 - min((port.marks - hops[k].marks) / span, 1.0)
    ends_marking = 1.0 - passed
    if fluid.settings[LOSSLESS] == 0.0:
        packets = count_losses(conns, hops, ports, fluid.settings, c, now)
        if packets > 0 and one.active != 0:
            one.remaining += packets * fluid.settings[MSS]
            one.remaining = min(one.remaining, one.size)
    row.elapsed = span
    row.rtt = one.seen_rtt
    row.lost = one.seen_lost
    row.acked = one.round_sent
    row.limited = 1.0 if one.round_sent >= one.window * _LIMITED else 0.0
    if fluid.settings[GIVES_RATE] != 0.0:
        row.limited = 1.0 if one.rate == one.want else 0.0
    if fluid.settings[WANTS_TELEMETRY] != 0.0:
        for k in range(one.hops):
            t = fluid.telemetry[n, k]
            hop = hops[one.hop + k]
            port = ports[hop.port]
            t.queue = hop.seen_queue
            t.tx = hop.seen_rate
            t.capacity = float(fluid.links[hop.link].capacity)
            hop.seen_queue = port.queue
            hop.seen_rate = (port.served - hop.served) / (span * BYTES_PER_BPS_PS)
        for k in range(one.hops, fluid.telemetry.shape[1]):
            fluid.telemetry[n, k].capacity = 0.0
    one.seen_rtt = path_rtt(conns, hops, fluid.links, ports, c)
    one.seen_lost = one.lost
    one.lost = 0.0
    share = 1.0 - unmarked
    if one.wait >= 2.0 * one.seen_rtt:
        row.rtt = one.seen_rtt
        row.marked = share
        row.lost = one.seen_lost
        return
    # Marks come back half a round late in the mean. Where marking began in this round they lie at its end.
    early = 0.5 * share
    if ends_marking > one.marking:
        early = max(share - 0.5, 0.0)
    elif ends_marking < one.marking:
        early = min(share, 0.5)
    row.marked = one.seen_marked + early
    one.seen_marked = share - early
    one.marking = ends_marking


@compiled
def ask(meta: I64, fluid: Fluid) -> None:
    """Fill in what only the whole batch says, and remember what growth and rest are measured against."""
    states = int(fluid.settings[STATES])
    for n in range(meta[BATCH_N]):
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
        row.gain = fluid.settings[SLOPE] * share + fluid.settings[INTERCEPT]
        fluid.before[n, MAX_STATE] = row.window
        fluid.before[n, MAX_STATE + 1] = row.rate
        for k in range(states):
            fluid.before[n, k] = fluid.state[row.conn, k]


@compiled
def answer(meta: I64, fluid: Fluid, now: int) -> None:
    """Take what the control said, and open the next round of who has something to send."""
    settings = fluid.settings
    states = int(settings[STATES])
    scaled = settings[SCALED] != 0.0
    conns = fluid.conns
    for n in range(meta[BATCH_N]):
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
        still = settings[SETTLES] != 0.0 and known
        if fluid.before[n, MAX_STATE] != row.window or fluid.before[n, MAX_STATE + 1] != row.rate:
            still = False
        for k in range(states):
            if fluid.before[n, k] != fluid.state[c, k]:
                still = False
        one.settled = 1 if still else 0
        one.known = 1
        if one.active != 0:
            open_round(conns, fluid.hops, fluid.ports, c, now)
            if known == 0:
                one.bursts = 1
            fluid.updated[meta[UPDATED_N]] = c
            meta[UPDATED_N] += 1
    meta[BATCH_N] = 0
