"""The state of the congestion network, in columns, and what a control is shown.

Rates are whole bits per second, so that what flows add to a link and take from it sums exactly, in any order:
a link's load is a function of the flows on it, and nothing depends on the order of calls. Queues are float
bytes, integrated between changes of load.
"""

from __future__ import annotations

import numpy as np

from cosim.network.arrays import Arrays
from cosim.network.balancing.state import Balance
from cosim.network.calendar import Records
from cosim.network.flows import F64, I32, I64

COUNTS = np.dtype(
    [
        ("num_drains", "i8"),
        ("begin", "i8"),
        ("num_changed", "i8"),
        ("num_updated", "i8"),
        ("num_woken", "i8"),
        ("batch_size", "i8"),
        ("num_waiting", "i8"),
        ("num_hosts", "i8"),
        ("num_touched", "i8"),
        ("free_flow", "i8"),
        ("flows_used", "i8"),
        ("num_active", "i8"),
        ("num_classes", "i8"),
        ("kernel", "i8"),
        ("num_updates", "i8"),
        ("stamp", "i8"),
        ("visit", "i8"),
        ("open", "i8"),
        ("stuck", "i8"),
        ("num_moving", "i8"),
        ("most_hops", "i8"),
        ("change", "i8"),
        ("num_changes", "i8"),
        ("more_changes", "i8"),
        ("in_vain", "i8"),
        ("progress", "i8"),
        ("free_front", "i8"),
        ("fronts_used", "i8"),
        ("num_fronts", "i8"),
        ("free_feed", "i8"),
        ("feeds_used", "i8"),
        ("free_last", "i8"),
        ("lasts_used", "i8"),
        ("num_lasts", "i8"),
    ]
)
"""``begin``: the connection that takes its next flow, plus one. Changed: connections with a new rate;
updated: with a round to open; woken: with a round to end, not in the calendar yet; batch: whose control is to
be asked; waiting: batch rows that were asked; hosts: own ports to share anew; touched: ports whose load
changed. ``kernel``: where the control is, if it is compiled, else 0. ``num_classes``: of priority, in use;
``num_updates``: how often controls were asked; ``open``: an instant has changes that are not applied yet;
``stuck``: a port that pauses itself, plus one; moving: strands whose loads are
brought to their ports, of ``most_hops`` links at most. The
five from ``change`` on are of the table of changes, as ``fair_share`` has them."""
SETTINGS = np.dtype(
    [
        ("mss", "f8"),
        ("gives_rate", "f8"),
        ("paced", "f8"),
        ("lossless", "f8"),
        ("trims", "f8"),
        ("slope", "f8"),
        ("intercept", "f8"),
        ("settles", "f8"),
        ("rests", "f8"),
        ("wants_telemetry", "f8"),
        ("num_states", "i8"),
        ("least_rto", "f8"),
        ("scaled", "f8"),
        ("balanced", "f8"),
        ("changing", "f8"),
        ("traced", "f8"),
        ("credits", "f8"),
    ]
)
"""What control and scenario say, 1 for yes. ``slope`` and ``intercept`` give the gain (MLTCP); ``scaled``:
growth is multiplied by it from outside, the control doesn't do it. ``rests``: rounds of who has settled
may be left out. ``balanced``: a load balancer chooses;
``changing``: links fail or slow down; ``traced``: queues are told apart by strand, as paths may change or
ports pause;
``credits``: receivers say what may be sent."""

START, UPDATE, CROSS, EMPTY, AGAIN, FRONT_PASSES = 0, 1, 2, 3, 4, 5
"""``hop`` of an event: a flow starts; a round trip ends (row: connection); a queue may cross a PFC
threshold, or be empty (row: port); a connection (row) wants to choose its paths again; a front in a queue
(row: port) is at its head."""

BYTES_PER_BPS_PS = 1.25e-13
"""Bytes that one bit per second brings in a picosecond."""
MAX_STATE = 8  # columns of its own that a control may have
NUM_CLASSES = 8  # of priority, as PFC has them (IEEE 802.1Qbb)

# Records are whole cache lines of 64 bytes, their fields in the order in which a round asks for them.
CONN = np.dtype(
    [
        ("due", "i8"),
        ("touched", "i8"),
        ("rate", "i8"),
        ("remaining", "f8"),
        ("budget", "f8"),
        ("round_sent", "f8"),
        ("loss_sent", "f8"),
        ("size", "f8"),
        ("strand", "i4"),
        ("leaving", "i4"),
        ("coflow", "i4"),
        ("priority", "i4"),
        ("active", "i4"),
        ("attached", "i4"),
        ("asleep", "i4"),
        ("settled", "i4"),
        ("sent", "i8"),
        ("stamp", "i8"),
        ("round", "i8"),
        ("base", "f8"),
        ("window", "f8"),
        ("pace", "f8"),
        ("wait", "f8"),
        ("seen_rtt", "f8"),
        ("seen_marked", "f8"),
        ("marking", "f8"),
        ("line", "i8"),
        ("grid", "i8"),
        ("want", "i8"),
        ("lost", "f8"),
        ("resent", "f8"),
        ("known_at", "i8"),
        ("timeout_at", "i8"),
        ("before_sent", "f8"),
        ("lost_since", "i8"),
        ("debt", "f8"),
        ("flow", "i4"),
        ("tail", "i4"),
        ("pad", "i4"),
        ("job", "i4"),
        ("known", "i2"),
        ("uneven", "i2"),
        ("bursts", "i4"),
        ("spent", "i4"),
        ("held", "i4"),
        ("weight", "f8"),
        ("salt", "i8"),
        ("counted", "i8"),
        ("period", "i8"),
        ("ends", "i8"),
        ("hops", "i8"),
        ("arrived", "i8"),
        ("seen", "i8"),
        ("rtt", "f8"),
        ("rtt_at", "i8"),
        ("marked", "f8"),
        ("choices", "i8"),
    ]
)
"""A connection: the flows of one (job, source, destination, channel), one at a time, and its control's state.
It has ``rate`` since ``touched`` (``want`` before its own port is shared), may send ``budget`` bytes at it,
and ends its round, begun at ``round``, at ``due``. Where it rests, that round would end at ``ends``, and
further ones every ``period``. ``seen_*``: what the round before saw, which the control is shown;
``before_sent``: the bytes it sent. ``lost`` packets are known of from ``known_at`` on (0: none are lost); the
round after sends ``resent`` of them again, and where some are lost again nothing is sent until ``timeout_at``
(0: it did not come to that). ``rtt``: the round-trip time as it was found at ``rtt_at``. Of its strands,
linked from ``strand`` on, so many are ``attached`` to ports, and so many ``leaving``: they have no part of it
any more; ``base``, ``line`` and ``hops`` are of those that have. ``held``: a link of one of those is dead;
``counted``: bytes of the flow that links have counted; ``marked``: part of its last round that was. The
strands of what it may choose are from ``choices`` on, where there is a balancer. ``uneven``: its rate
changed in the midst of its round."""
STRAND = np.dtype(
    [
        ("hop", "i4"),
        ("hops", "i4"),
        ("conn", "i4"),
        ("next", "i4"),
        ("part", "f8"),
        ("want", "i8"),
        ("base", "f8"),
        ("latency", "i8"),
        ("store", "i8"),
        ("attached", "i4"),
        ("listed", "i4"),
    ]
)
"""A path of a connection, and what part of its bytes goes that way: ECMP is one strand with all of it. It
wants ``want`` of its first port. ``listed``: it is among its connection's strands (2: and had a part until
this instant), ``attached``: it is on the
ports of its path, both as long as what was sent that way is on the way. ``base``: a round trip without
queues, ``store``: a packet's time on each further link."""
HOP = np.dtype(
    [
        ("load", "i8"),
        ("fresh", "i8"),
        ("marks", "f8"),
        ("lost", "f8"),
        ("leads", "i8"),
        ("port", "i4"),
        ("link", "i4"),
        ("conn", "i4"),
        ("after", "i4"),
        ("before", "i4"),
        ("back", "i4"),
    ]
)
"""A strand on a port: what it brings there, the port's counters when the round began, its place in the port's
list; ``leads``: it is the first of that strand, plus one. ``back``: the same cable's link the other way,
where acknowledgements wait behind data (-1: they don't)."""
SIGHT = np.dtype(
    [
        ("kept", "i8"),
        ("of", "f8"),
        ("served", "f8"),
        ("queue", "f8"),
        ("rate", "f8"),
        ("back_next", "i8"),
        ("fronts", "i4"),
        ("feed", "i4"),
    ]
)
"""The rest of a hop: the last load above 0, ``of`` what its class had of the link before; what telemetry is
about; the next hop whose acknowledgements take the same link; how many fronts of the hop wait in its port's
queue; and where ports pause, what the port before brings there."""
PORT = np.dtype(
    [
        ("load", "i8"),
        ("queue", "f8"),
        ("marks", "f8"),
        ("losses", "f8"),
        ("served", "f8"),
        ("stamp", "i8"),
        ("duty", "f8"),
        ("link", "i4"),
        ("paused", "i4"),
        ("own", "i8"),
        ("told", "i8"),
        ("level", "i8"),
        ("peak", "f8"),
        ("marked", "f8"),
        ("drop_from", "i8"),
        ("first", "i4"),
        ("hot", "i2"),
        ("listed", "i2"),
        ("stops", "i4"),
        ("head", "i4"),
        ("dropped", "f8"),
        ("paused_ps", "i8"),
        ("since", "i8"),
        ("resumed", "i8"),
        ("check", "i8"),
        ("empties", "i8"),
        ("visit", "i8"),
        ("feeds", "i4"),
        ("tail", "i4"),
        ("left", "f8"),
    ]
)
"""One class of priority on one link: load (bits/s) and queue; ``marks``, ``losses`` (the fraction marked or
lost, times ps) and ``served`` (bytes) ever growing; ``own``: what the flows that begin here want, of which
a connection gets ``level`` at most; ``told``: the load when all that pass here were last looked at;
``empties``: when the queue is expected to be gone; ``drop_from``: when it began to drop; ``paused`` by so
many ports downstream, ``stops`` so many before it, of those that ``feeds`` lists; ``head``, ``tail``: the
last bytes that wait in its queue; ``left``: what classes before it left of the link (bits/s) when those that
pass here were last looked at because of it. Class k of link l is number k * links + l: those of the first
class lie side by side."""
LINK = np.dtype(
    [
        ("capacity", "i8"),
        ("touched", "i8"),
        ("busy", "f8"),
        ("mark_from", "f8"),
        ("mark_all", "f8"),
        ("mark_most", "f8"),
        ("buffer", "f8"),
        ("latency", "i8"),
        ("onward", "i8"),
        ("pause", "f8"),
        ("resume", "f8"),
        ("back_first", "i8"),
        ("nominal", "i8"),
        ("asked", "i8"),
        ("taken", "i8"),
        ("pad_1", "i8"),
    ]
)
"""``onward``: the strands on it that go on from where it ends. ``capacity`` is 0 while it is dead;
``nominal``: what it was built with. To
a receiver that grants credit: ``asked`` by who isn't held back elsewhere, ``taken`` (bits/s) by who is."""
CREDIT = np.dtype([("asked", "i8"), ("taken", "i8")])
"""What a strand asks its last link for, and takes of it where its connection is held back elsewhere."""
LINE = np.dtype(
    [
        ("out", "i8"),
        ("told", "i8"),
        ("due", "i8"),
        ("head", "i4"),
        ("tail", "i4"),
        ("turns", "f8"),
        ("since", "f8"),
    ]
)
"""A port's queue, told apart: ``out`` is the sum of what leaves as it came (of each hop ``outs``), ``told``
that when all that pass here were last looked at; from ``head`` on its fronts, of which the first is looked
for at ``due``. ``turns``: bytes served for each bit/s of ``out``, ever growing, up to when it had served
``since``."""
FRONT = np.dtype([("leaves", "f8"), ("load", "i8"), ("hop", "i4"), ("next", "i4")])
"""From here on ``hop`` brought ``load`` to its port; it passes when the port has served ``leaves`` bytes."""
FLOW = np.dtype(
    [
        ("origin", "i8"),
        ("handle", "i4"),
        ("rep", "i4"),
        ("row", "i4"),
        ("next", "i4"),
        ("arrives", "i8"),
        ("lasts", "i4"),
        ("priority", "i4"),
    ]
)
"""A flow that has started and not drained; ``next`` on its connection. Or one of which so many last bytes,
one a strand, stand in queues (``lasts``); those that don't any more are at its receiver by ``arrives``."""
LAST = np.dtype([("leaves", "f8"), ("flow", "i4"), ("strand", "i4"), ("hop", "i4"), ("next", "i4")])
"""The last byte of a flow that goes by ``strand``, in the queue of ``hop``: it leaves when that port has
served ``leaves`` bytes; ``next`` of the same queue."""
GROUP_TRAITS = np.dtype(
    [("weight", "f8"), ("coflow", "i4"), ("priority", "i4"), ("job", "i4"), ("pad", "i4")]
)
COFLOW = np.dtype([("sent", "i8"), ("size", "i8")])
FEED = np.dtype(
    [
        ("load", "i8"),
        ("out", "i8"),
        ("bytes", "f8"),
        ("at", "i8"),
        ("turns", "f8"),
        ("port", "i4"),
        ("next", "i4"),
        ("hops", "i4"),
        ("stopped", "i4"),
    ]
)
"""What a port brings to one after it, by so many ``hops``: ``bytes`` of the queue there at ``at``, when its
line was at ``turns``; ``load`` comes, ``out`` is its part of what leaves. ``next`` of the same queue."""

ROW = np.dtype(
    [
        ("conn", "i8"),
        ("first", "f8"),
        ("elapsed", "f8"),
        ("rtt", "f8"),
        ("base_rtt", "f8"),
        ("marked", "f8"),
        ("again", "f8"),
        ("lost", "f8"),
        ("timeout", "f8"),
        ("acked", "f8"),
        ("delivered", "f8"),
        ("flight", "f8"),
        ("limited", "f8"),
        ("mss", "f8"),
        ("line", "f8"),
        ("sent", "f8"),
        ("size", "f8"),
        ("coflow_sent", "f8"),
        ("coflow_size", "f8"),
        ("job", "f8"),
        ("priority", "f8"),
        ("weight", "f8"),
        ("hops", "f8"),
        ("window", "f8"),
        ("rate", "f8"),
        ("wait", "f8"),
        ("slow_start", "f8"),
        ("gain", "f8"),
        ("chance", "f8"),
        ("granted", "f8"),
        ("lost_inside", "f8"),
    ]
)
"""What a control is shown of a connection, and where it answers; see
:mod:`cosim.network.congestion.control`."""
TELEMETRY = np.dtype([("queue", "f8"), ("tx", "f8"), ("capacity", "f8")])
"""Of each hop: bytes queued, bits/s sent over the round, and the link's bits/s; capacity 0 where there is
none."""


class CongestionState(Arrays):
    """The model's state; ``counts`` and ``settings`` are one record each.

    ``channel_of`` runs beside ``path_ptr``, ``traits`` are numbered by the groups. ``histogram``: bytes
    served by queue length, [links, QUEUE_BINS], but for those that met none; ``choices``: strands of
    candidates, -1 where there is none yet; ``mine``: scratch beside the links. Where receivers grant credit,
    ``credits`` runs beside the strands, ``inside`` (packets lost before the receiver's port, of which its
    control wasn't told yet) beside the connections.
    """

    balance: Balance
    counts: Records
    settings: Records
    conns: Records
    strands: Records
    credits: Records
    inside: F64
    choices: I32
    hops: Records
    sights: Records
    outs: I64
    strand_of: I32
    moved: I64
    lines: Records
    fronts: Records
    ports: Records
    links: Records
    flows: Records
    lasts: Records
    drains: Records
    traits: Records
    coflows: Records
    feeds: Records
    changes: Records
    rows: Records
    telemetry: Records
    before: F64
    state: F64
    histogram: F64
    parameters: F64
    channel_of: I32
    changed: I32
    updated: I32
    woken: I32
    hosts: I32
    touched: I32
    moving: I32
    mine: I64
    instant: I32
    spare: I32
    other: I32
    third: I32
    scan: I32


BINS = 32
"""Of the queue's histogram, in a power of two, from 256 bytes to 4 GiB."""
QUEUE_BINS = 1 + 24 * BINS
