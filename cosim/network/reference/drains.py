"""What drains next, where rates change what was expected."""

from __future__ import annotations

import math
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from cosim.units import NEVER

T = TypeVar("T")

_DUST_PS = 1e-3  # what rounding may have added to a time: not another picosecond
_DUST = 1e-14  # the same, in proportion: some 50 units in the last place of a double


class Drains(Generic[T]):
    """Flows by the time at which they drain. What was put off stays in the heap until it comes up."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, T]] = []
        self._time: dict[T, int] = {}
        self._serial = count()

    def put(self, flow: T, time_ps: int) -> None:
        """A flow drains then, and not when it was said before; NEVER: it doesn't."""
        if time_ps == NEVER:
            self._time.pop(flow, None)
        else:
            self._time[flow] = time_ps
            heappush(self._heap, (time_ps, next(self._serial), flow))

    @property
    def next_ps(self) -> int:
        """When the next one drains; NEVER: none does."""
        while self._heap and self._time.get(self._heap[0][2]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else NEVER

    def pop(self) -> T:
        """Take the next one, which there is."""
        flow = heappop(self._heap)[2]
        del self._time[flow]
        return flow


def drain_time(now_ps: int, remaining: float, rate: float) -> int:
    """When ``remaining`` bytes are gone at ``rate`` bytes per ps: a whole picosecond, rounded up.

    What sticks out over a picosecond by less than a thousandth of one, or by less than 10^-14 of the time
    it takes, is floating-point dust and not rounded up. At least 1 ps: what is left now does not drain now.
    NEVER at rate 0, and where it lies beyond NEVER.
    """
    if rate <= 0.0 or remaining >= rate * NEVER:
        return NEVER
    exact = remaining / rate
    whole = math.floor(exact)
    if exact - whole > _DUST_PS + exact * _DUST:
        whole += 1
    return min(now_ps + max(whole, 1), NEVER)
