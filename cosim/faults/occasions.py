"""When an event happens: once, every so often, or drawn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from cosim.faults.event import Event
from cosim.units import NEVER
from cosim.workload.draws import UNIT, draw, exponential

Occasion = tuple[int, int]
"""From when until when, in ps; NEVER: for good."""
_TAG = 0x6576656E7473


def occasions(event: Event, seed: int, number: int, part: int, last_ps: int = NEVER) -> Iterator[Occasion]:
    """When an event happens to a part of what it is of, one after the other; they may never end.

    Parameters
    ----------
    event, number
        The scenario's event, and its number there.
    seed
        The scenario's.
    part
        Which of the links, nodes or ranks that it is of: each is drawn by itself.
    last_ps
        What comes later is left out; that is :data:`~cosim.units.NEVER` for simulated time.
    """
    often = range(event.times) if event.times is not None else count()
    if event.mtbf is not None:
        own, begin, lasts = draw(seed, _TAG, number, part), event.at, event.repair or 0
        for k in often:
            begin += max(1, event.mtbf * exponential(own, k) // UNIT)
            if begin >= last_ps:
                return
            yield begin, min(begin + lasts, last_ps)
            begin += lasts
        return
    for k in often if event.every is not None else range(1):
        later = k * (event.every or 0)
        if event.at + later >= last_ps:
            return
        yield event.at + later, last_ps if event.until is None else min(event.until + later, last_ps)
