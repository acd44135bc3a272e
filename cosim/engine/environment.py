"""The SimPy clock that jobs, processes and their network share.

Engine and network run up to SimPy's next event, never beyond: now <= granted. Then that event happens, as
SimPy's ``RealtimeEnvironment`` waits for the wall clock before it. Time is integer picoseconds; a delay that
is negative or not whole is refused (SimPy itself would set the clock back).

An instant begins with its bookkeeping: jobs that begin, samples. Then engine and network end what ends in it;
then SimPy's own events happen, in SimPy's order; and only then is anything started that follows from these,
by job, rank, stream and operation. What ends because of that is another round of the same instant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import simpy
from simpy.core import Infinity
from simpy.events import Event

from cosim.errors import CausalityError, SimulationError
from cosim.units import NEVER, TOO_LATE

EARLY = -1
"""SimPy priority of an instant's bookkeeping: before everything else that SimPy has at that time."""


class CoSimEnvironment(simpy.Environment):
    """A SimPy environment whose time is shared with whoever ``go_on`` runs.

    ``go_on(horizon, hold)`` is called with SimPy's next time before its event happens. It has everything else
    run up to there, and, to ``hold``, what ends at that time end. It may stop earlier, where something ended
    that SimPy has events for; it returns how far it is. What it passes on its way, :meth:`pass_to` is told.
    ``on_instant`` is called at the times that :meth:`wake` was asked for.
    """

    def __init__(self, on_instant: Callable[[int], None], go_on: Callable[[int, bool], int]) -> None:
        super().__init__(initial_time=0)
        self.granted_ps = 0
        self._on_instant = on_instant
        self._go_on = go_on
        self._waking: set[int] = set()
        self._early: Counter[int] = Counter()
        self._begun_ps = -1
        """The instant in which all has ended that ends by itself."""

    @property
    def now_ps(self) -> int:
        """The time, in picoseconds, whatever the unit of ``now`` is."""
        return int(self._now)

    @property
    def has_events_now(self) -> bool:
        """Whether SimPy has something at this very time."""
        return bool(super().peek() <= self._now)

    def schedule(self, event: Event, priority: int = 1, delay: float = 0) -> None:
        """As SimPy's, but only whole picoseconds, and never back in time."""
        if not 0 <= delay < NEVER or int(delay) != delay:
            raise CausalityError(f"a delay is a whole number of picoseconds >= 0, not {delay}")
        super().schedule(event, priority, int(delay))  # type: ignore[arg-type]

    def wake(self, time_ps: int) -> None:
        """Have the instant at ``time_ps`` looked at: one SimPy event, however often it is asked for."""
        if time_ps in self._waking:
            return
        if time_ps < self._now:
            raise CausalityError(f"{time_ps} ps is before now, {self._now} ps")
        if time_ps >= NEVER:
            raise SimulationError(TOO_LATE)
        self._waking.add(time_ps)
        event = Event(self)
        event._ok = True
        event._value = None
        assert event.callbacks is not None
        event.callbacks.append(lambda _: self._look(time_ps))
        self.schedule_early(event, time_ps)

    def schedule_early(self, event: Event, time_ps: int) -> None:
        """Have an event happen when an instant begins, before anything of it has ended."""
        self._early[time_ps] += 1
        self.schedule(event, EARLY, time_ps - int(self._now))

    def pass_to(self, time_ps: int) -> None:
        """Set the clock, to no more than SimPy's next time."""
        if time_ps > self._now:
            self._now = time_ps

    def _look(self, time_ps: int) -> None:
        self._waking.discard(time_ps)
        self._on_instant(time_ps)

    def step(self) -> None:
        """Run SimPy's next event, after everything else has gone as far as it may without it."""
        peek = super().peek
        upcoming = peek()
        if upcoming != self._begun_ps:
            horizon = NEVER if upcoming == Infinity else int(upcoming)
            self.granted_ps = self._go_on(horizon, horizon not in self._early)
            upcoming = peek()
            self._begun_ps = NEVER if upcoming == Infinity else int(upcoming)
        if self._early and self._begun_ps in self._early:
            self._pass_early(self._begun_ps)
        super().step()

    def _pass_early(self, time_ps: int) -> None:
        """One of the events that begin this instant happens now; after the last, what ends in it may end."""
        self._early[time_ps] -= 1
        if not self._early[time_ps]:
            del self._early[time_ps]
            self._begun_ps = -1
