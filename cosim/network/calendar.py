"""The calendar of a network of this process: events by instant (``cosim/kernel/src/calendar.c``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cosim.kernel import Columns, kernel

Records = Any
"""A structured array."""


class Calendar(Columns):
    """Events by instant; an empty one is :func:`make_calendar`."""

    def copied(self) -> Calendar:
        """A copy of what is in it."""
        state = self.state[0]
        used = {"events": "events_used", "buckets": "buckets_used", "heap": "num_instants"}
        return self.copy({name: int(state[field]) for name, field in used.items()})


def make_calendar() -> Calendar:
    """An empty calendar."""
    made = Calendar()
    made.state["free_event"] = made.state["free_bucket"] = kernel.NONE
    return made


def events_of(calendar: Calendar) -> Iterator[tuple[int, Any]]:
    """The time and the row of each event, in no order."""
    heap, buckets, events = calendar.heap, calendar.buckets, calendar.events
    for instant in heap[: calendar.state["num_instants"][0]]:
        at = buckets["head"][instant["bucket"]]
        while at != kernel.NONE:
            yield int(instant["time"]), events[at]
            at = events["next"][at]


def read_only(column: Records) -> Records:
    """A view through which a plug-in can't change what isn't its own."""
    view = column.view()
    view.flags.writeable = False
    return view
