"""The next drain: a binary heap that knows where each flow sits, so that a changed rate moves one entry.

As many flows as there are may be in it, so that a row of its array is two things: an entry of the heap, and
where the flow of that number is. So what an entry's way through the heap touches lies close together.
"""

from __future__ import annotations

import math

import numpy as np

from cosim.network.calendar import Records
from cosim.network.jit import inlined, internal
from cosim.units import NEVER

DRAIN = np.dtype([("time", "i8"), ("flow", "i4"), ("place", "i4")])
"""Row k: ``time`` and ``flow`` of entry k of the heap; ``place``: one more than flow k's entry, 0: none."""

DUST_PS = 1e-3  # what rounding may have added to a time: not another picosecond
DUST = 1e-14  # the same, in proportion: some 50 units in the last place of a double


@inlined
def drain_time(now: int, remaining: float, rate: float) -> int:
    """When ``remaining`` bytes are gone at ``rate`` bytes per ps: a whole picosecond, rounded up.

    What sticks out over a picosecond by less than a thousandth of one, or by less than 10^-14 of the
    time it takes, is floating-point dust and not rounded up; so volumes that take a whole number
    of picoseconds take just that, at a third of a rate too. At least 1 ps: what is left at ``now`` does not
    drain at ``now``. NEVER at rate 0, and where it lies beyond NEVER.
    """
    if rate <= 0.0 or remaining >= rate * NEVER:
        return NEVER
    exact = remaining / rate
    whole = math.floor(exact)
    if exact - whole > DUST_PS + exact * DUST:
        whole += 1
    return int(min(now + max(int(whole), 1), NEVER))


@internal
def set_drain(count: int, drains: Records, flow: int, time: int) -> int:
    """Put a flow at ``time``, from wherever it was; NEVER takes it out. Returns the heap's new size."""
    at = drains[flow].place - 1
    if time == NEVER:
        if at < 0:
            return count
        drains[flow].place = 0
        # What is last fills the gap; it may belong above or below it, so both loops follow.
        count -= 1
        if at == count:
            return count
        flow = int(drains[count].flow)
        time = drains[count].time
    elif at < 0:
        at = count
        count += 1
    while at > 0:
        parent = (at - 1) >> 1
        if drains[parent].time <= time:
            break
        drains[at].time = drains[parent].time
        drains[at].flow = drains[parent].flow
        drains[drains[at].flow].place = at + 1
        at = parent
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count:  # which one is as good as random: chosen without a jump
            child += int(drains[child + 1].time < drains[child].time)
        if drains[child].time >= time:
            break
        drains[at].time = drains[child].time
        drains[at].flow = drains[child].flow
        drains[drains[at].flow].place = at + 1
        at = child
    drains[at].time = time
    drains[at].flow = flow
    drains[flow].place = at + 1
    return count
