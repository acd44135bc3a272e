"""Queues and rates over time: a SimPy process that looks at the network at fixed instants."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from simpy.core import Infinity
from simpy.events import Event

from cosim.engine.reference.clock import BEGINNING
from cosim.engine.series import SeriesLog
from cosim.units import NEVER

if TYPE_CHECKING:
    from cosim.engine.reference.replay import ReferenceReplay


class SampledSeries(SeriesLog):
    """Takes a sample when an instant begins: what ends in it has ended, nothing that follows has begun."""

    def live(self, run: ReferenceReplay) -> Generator[Event, None, None]:
        """The process: it goes on while anything may still happen."""
        clock, seen = run.clock, (-1, -1)
        while self.due_ps < NEVER:
            yield clock.due(self.due_ps, BEGINNING, -1)
            self.take(clock.now_ps)
            done = run.recorder.num_operations, run.recorder.num_messages
            goes_on = clock.peek() != Infinity or self.has_work() or not clock.outbox.is_empty
            if run.is_done or not (goes_on or done != seen):
                return
            seen = done
