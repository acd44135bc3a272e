"""The next drain: a binary heap that knows where each flow sits, so that a changed rate moves one entry."""

from __future__ import annotations

import math

import numpy as np

from cosim.network.calendar import Records
from cosim.network.jit import internal, once
from cosim.units import NEVER

DRAIN = np.dtype([("time", "i8"), ("flow", "i8")])

_NONE = -1
_DUST_PS = 1e-3  # what rounding may have added to a time: not another picosecond
_DUST = 1e-14  # the same, in proportion: some 50 units in the last place of a double


@once
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
    if exact - whole > _DUST_PS + exact * _DUST:
        whole += 1
    return int(min(now + max(int(whole), 1), NEVER))


@internal
def set_drain(count: int, drains: Records, flows: Records, flow: int, time: int) -> int:
    """Put a flow at ``time``, from wherever it was; NEVER takes it out. Returns the heap's new size."""
    at = flows[flow].place
    if time == NEVER:
        if at == _NONE:
            return count
        flows[flow].place = _NONE
        # What is last fills the gap; it may belong above or below it, so both loops follow.
        count -= 1
        if at == count:
            return count
        flow = drains[count].flow
        time = drains[count].time
    elif at == _NONE:
        at = count
        count += 1
    while at > 0:
        parent = (at - 1) >> 1
        if drains[parent].time <= time:
            break
        drains[at].time = drains[parent].time
        drains[at].flow = drains[parent].flow
        flows[drains[at].flow].place = at
        at = parent
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and drains[child + 1].time < drains[child].time:
            child += 1
        if drains[child].time >= time:
            break
        drains[at].time = drains[child].time
        drains[at].flow = drains[child].flow
        flows[drains[at].flow].place = at
        at = child
    drains[at].time = time
    drains[at].flow = flow
    flows[flow].place = at
    return count
