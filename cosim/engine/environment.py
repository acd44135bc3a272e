"""The SimPy clock that jobs and their network share.

Engine and network run up to SimPy's next event, never beyond: now <= granted. Then that event happens, as
SimPy's ``RealtimeEnvironment`` waits for the wall clock before it. Time is integer picoseconds; a delay that
is negative or not whole is refused (SimPy itself would set the clock back).
"""

from __future__ import annotations

from collections.abc import Callable

import simpy
from simpy.core import Infinity
from simpy.events import Event

from cosim.errors import CausalityError, SimulationError
from cosim.units import NEVER, TOO_LATE

LATE = 2
"""SimPy priority of an instant's bookkeeping: after everything else that SimPy has at that time."""


class CoSimEnvironment(simpy.Environment):
    """A SimPy environment whose time is shared with whoever ``go_on`` runs.

    ``go_on`` is called with SimPy's next time before its event happens. It has everything else run up to
    there, and returns how far that is; what it passes on its way it tells by :meth:`pass_to`.
    ``on_instant`` is called at the times that :meth:`wake` was asked for.
    """

    def __init__(self, on_instant: Callable[[int], None], go_on: Callable[[int], int]) -> None:
        super().__init__(initial_time=0)
        self.granted_ps = 0
        self._on_instant = on_instant
        self._go_on = go_on
        self._waking: set[int] = set()

    def schedule(self, event: Event, priority: int = 1, delay: float = 0) -> None:
        """As SimPy's, but only whole picoseconds, and never back in time."""
        if not 0 <= delay < NEVER or int(delay) != delay:
            raise CausalityError(f"a delay is a whole number of picoseconds >= 0, not {delay}")
        super().schedule(event, priority, int(delay))  # type: ignore[arg-type]

    def wake(self, time_ps: int) -> None:
        """Have the instant at ``time_ps`` looked at: one SimPy event, however often it is asked for."""
        if time_ps in self._waking:
            return
        if time_ps < self.now:
            raise CausalityError(f"{time_ps} ps is before now, {self.now} ps")
        if time_ps >= NEVER:
            raise SimulationError(TOO_LATE)
        self._waking.add(time_ps)
        event = Event(self)
        event._ok = True
        event._value = None
        assert event.callbacks is not None
        event.callbacks.append(lambda _: self._look(time_ps))
        self.schedule(event, LATE, time_ps - int(self.now))

    def pass_to(self, time_ps: int) -> None:
        """Set the clock, to no more than SimPy's next time."""
        self._now = max(int(self.now), time_ps)

    def _look(self, time_ps: int) -> None:
        self._waking.discard(time_ps)
        self._on_instant(time_ps)

    def step(self) -> None:
        """Run SimPy's next event, after everything else has gone as far as it may without it."""
        upcoming = self.peek()
        self.granted_ps = self._go_on(NEVER if upcoming == Infinity else int(upcoming))
        super().step()
