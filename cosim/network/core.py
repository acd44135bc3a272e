"""What the loops of all networks of this process share: ``cosim/kernel/src/core.c``.

Flows of one (job, source, destination, channel) go in order, one at a time. Each such quadruple gets a small
number when a table is first bound to endpoints; a hash table finds it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cosim.kernel import Columns, kernel
from cosim.network.flows import I32, I64


class Core(Columns):
    """State that every such network has."""


class LinkUses(Columns):
    """What links carried in an interval that may be repeated."""


class Reported(Columns):
    """The columns of completions, and the handles of groups that ended with them."""


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


class DrainHeap(Columns):
    """When flows drain, the next one first: ``count`` of ``entries``; see ``kernel/src/drains.c``."""

    def next_ps(self) -> int | None:
        """When the next one drains; None where none is to."""
        return int(self.entries[0]["time"]) if self.count else None


class ChannelNumbers(Columns):
    """Numbers quadruples in the order in which they are first seen."""

    def __len__(self) -> int:
        return int(self.used)

    def number(self, job: int, src: I32, dst: I32, channel: I32) -> I32:
        """The number of each row's channel, int32[R]."""
        numbers = np.empty(len(src), np.int32)
        ends = (np.ascontiguousarray(one, np.int32) for one in (src, dst, channel))
        kernel.number_channels(self, job, len(src), *ends, numbers)
        return numbers

    def ends(self, numbers: I64) -> tuple[I32, I32, I32]:
        """Job, source and destination of channels."""
        name = self.names[numbers]
        high, low = name["high"], name["low"]
        ends = (high >> 32, low >> 32, low & 0x7FFFFFFF)
        return ends[0].astype(np.int32), ends[1].astype(np.int32), ends[2].astype(np.int32)
