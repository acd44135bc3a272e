"""Messages of ``congestion_aware`` and ``congestion_unaware`` where links change: what is sent, and how far.

A message is sent in *legs*: under ``congestion_aware`` each link of its path is one, which sends one message
at a time; under ``congestion_unaware`` the whole path is, and any number at once are on it. On a leg a
message has the rate of the slowest link there. Where that changes, what has been sent counts, and the rest
goes at the new rate; at rate 0 it waits.
"""

from __future__ import annotations

import numpy as np

from cosim.network.arrays import Arrays
from cosim.network.calendar import Records
from cosim.network.core import Core, add_busy
from cosim.network.drains import set_drain
from cosim.network.flows import I32, I64
from cosim.network.jit import inlined, internal
from cosim.units import MOST_NS, NEVER, PS_PER_NS

NONE = -1

COUNTS = np.dtype(
    [
        ("in_turn", "i8"),
        ("free", "i8"),
        ("used", "i8"),
        ("num_drains", "i8"),
        ("under_way", "i8"),
        ("change", "i8"),
        ("num_changes", "i8"),
        ("more_changes", "i8"),
        ("in_vain", "i8"),
        ("progress", "i8"),
    ]
)
"""``in_turn``: 1 where a link sends one message after the other. Messages ``under_way`` are taken from a free
list, then from the untouched rest from ``used`` on. Of changes: see :data:`~cosim.network.fluid.COUNTS`."""
LANE = np.dtype([("rate", "f8"), ("latency", "i8"), ("head", "i4"), ("tail", "i4"), ("avoided", "i8")])
"""A link: bytes per ns (0: it is dead), ps, whom it sends and who waits behind; ``avoided``: routing knows
that it is dead."""
MESSAGE = np.dtype(
    [
        ("origin", "i8"),
        ("begin", "i8"),
        ("touched", "i8"),
        ("since", "i8"),
        ("left", "f8"),
        ("rate", "f8"),
        ("counted", "f8"),
        ("path", "i8"),
        ("handle", "i4"),
        ("rep", "i4"),
        ("row", "i4"),
        ("hop", "i4"),
        ("pad", "i4"),
        ("next", "i4"),
        ("sending", "i8"),
    ]
)
"""A message that started at ``origin``, on its leg from ``hop`` of ``path`` on. If it is ``sending``: since
``begin``, ``left`` bytes at ``touched``, at ``rate`` (bytes per ns) since; of links' statistics ``counted``
bytes are in, up to ``since``. ``next`` in its queue, or of the free list."""


class Legs(Arrays):
    """Their arrays; ``counts`` is one record. ``path_now``: where the links of each row are now. ``instant``,
    ``spare``, ``other``: room for the events of an instant.
    """

    counts: Records
    lanes: Records
    messages: Records
    drains: Records
    changes: Records
    path_now: I64
    instant: I32
    spare: I32
    other: I32


@inlined
def end_of_leg(core: Core, legs: Legs, m: int) -> int:
    """Where in ``path_link`` the links of a message's leg end; they begin at its hop."""
    one = legs.messages[m]
    if legs.counts[0].in_turn != 0:
        return int(core.path_ptr[one.path] + one.hop + 1)
    return int(core.path_ptr[one.path + 1])


@internal
def is_on(core: Core, legs: Legs, m: int, link: int) -> bool:
    """Whether a link is on a message's leg."""
    one = legs.messages[m]
    for k in range(core.path_ptr[one.path] + one.hop, end_of_leg(core, legs, m)):
        if core.path_link[k] == link:
            return True
    return False


@inlined
def left_at(legs: Legs, m: int, now: int) -> float:
    """Bytes that a message that is sending still has to send on its leg."""
    one = legs.messages[m]
    return float(max(one.left - one.rate * ((now - one.touched) / PS_PER_NS), 0.0))


@internal
def count(core: Core, legs: Legs, m: int, left: float, now: int) -> None:
    """Count what was sent, but for ``left`` bytes, on the leg's links, before any of them changes."""
    one = legs.messages[m]
    sent = float(core.store.rows[one.row].size) - left
    more = int(sent) - int(one.counted)
    for k in range(core.path_ptr[one.path] + one.hop, end_of_leg(core, legs, m)):
        link = core.path_link[k]
        core.link_bytes[link] += more
        if sent > one.counted:
            busy = int((sent - one.counted) / legs.lanes[link].rate * PS_PER_NS)
            add_busy(core, link, one.since, min(busy, now - one.since))  # it is free at a whole nanosecond
    one.counted = sent
    one.since = now


@inlined
def takes_ns(legs: Legs, m: int) -> float:
    """How long a message takes on its leg from the first byte to the last, as things are."""
    one = legs.messages[m]
    return float((one.touched - one.begin) / PS_PER_NS + one.left / one.rate)


@internal
def set_rate(core: Core, legs: Legs, m: int, now: int) -> None:
    """Have a message go on at the rate that its leg has now."""
    one = legs.messages[m]
    counts = legs.counts[0]
    rate = np.inf
    for k in range(core.path_ptr[one.path] + one.hop, end_of_leg(core, legs, m)):
        rate = min(rate, legs.lanes[core.path_link[k]].rate)
    if rate == one.rate:  # what doesn't touch it must not round it anew
        return
    one.left = left_at(legs, m, now)
    one.touched = now
    one.rate = rate
    time = int(np.int64(NEVER))
    if rate > 0.0:
        takes = takes_ns(legs, m)
        if takes >= MOST_NS - one.begin / PS_PER_NS:  # as an integer it would be any number
            core.state[0].too_late = 1
            return
        # Whole nanoseconds, cut off as ASTRA-sim does, but for a change within the last one.
        time = one.begin + int(takes) * PS_PER_NS
        if time < now:
            time += PS_PER_NS
    counts.num_drains = set_drain(counts.num_drains, legs.drains, m, time)


@internal
def begin(core: Core, legs: Legs, m: int, now: int) -> None:
    """A message that is whole at the beginning of its leg is sent."""
    one = legs.messages[m]
    one.sending = 1
    one.begin = now
    one.touched = now
    one.since = now
    one.left = core.store.rows[one.row].size
    one.counted = 0.0
    one.rate = 0.0
    set_rate(core, legs, m, now)


@internal
def reach(core: Core, legs: Legs, m: int, now: int) -> None:
    """A message is at the beginning of its leg: it is sent, or waits for its turn."""
    one = legs.messages[m]
    one.next = NONE
    if legs.counts[0].in_turn != 0:
        lane = legs.lanes[core.path_link[core.path_ptr[one.path] + one.hop]]
        if lane.head != NONE:
            legs.messages[lane.tail].next = m
            lane.tail = m
            return
        lane.head = m
        lane.tail = m
    begin(core, legs, m, now)
