"""The SimPy clock with a network beside it.

The network runs ahead of SimPy, never the reverse: now <= every undelivered completion <= granted. When
nothing is left to do at or before the grant, :class:`CoSimEnvironment` asks the network to go on, at most
to SimPy's next event, as SimPy's ``RealtimeEnvironment`` waits for the wall clock. Time is integer
picoseconds; a delay that is negative or not whole is refused (SimPy itself would set the clock back).
"""

from __future__ import annotations

from collections.abc import Callable

import simpy
from simpy.core import Infinity
from simpy.events import Event

from cosim.engine.releasing import granted_by
from cosim.errors import CausalityError, NetworkError, SimulationError
from cosim.network.flows import Completions
from cosim.network.outbox import Outbox
from cosim.network.simulator import NetworkSimulator
from cosim.units import NEVER, TOO_LATE

LATE = 2
"""SimPy priority of an instant's bookkeeping: after everything else that SimPy has at that time."""


class CoSimEnvironment(simpy.Environment):
    """A SimPy environment whose time is shared with a :class:`~cosim.network.simulator.NetworkSimulator`.

    ``go_on``, where given, takes the place of all that: it is called with SimPy's next time, has network and
    whoever waits for it run up to there, and returns how far that is; what it passes on its way is told by
    :meth:`pass_to`.

    ``deliver`` is called with each batch of completions, before SimPy gets to their times; it calls
    :meth:`wake` for those that somebody reacts to. ``outbox`` collects what the network is to be given.
    """

    def __init__(
        self,
        network: NetworkSimulator,
        deliver: Callable[[Completions], None],
        on_instant: Callable[[int], None],
        go_on: Callable[[int], int] | None = None,
    ) -> None:
        super().__init__(initial_time=0)
        self.network = network
        self.outbox = Outbox()
        self.granted_ps = 0
        self.num_advances = 0
        self._deliver = deliver
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
        self._now = time_ps

    def _look(self, time_ps: int) -> None:
        self._waking.discard(time_ps)
        self._on_instant(time_ps)

    def step(self) -> None:
        """Run SimPy's next event, after the network has gone as far as it may without it.

        Raises
        ------
        CausalityError
            The network's time went back or beyond what it was asked for, or a completion's time did.
        NetworkError
            The network neither moved nor completed anything.
        """
        while True:
            upcoming = self.peek()
            if self._go_on is not None:
                self.granted_ps = self._go_on(NEVER if upcoming == Infinity else int(upcoming))
                break
            if upcoming <= self.granted_ps:
                break
            if upcoming == Infinity and self.granted_ps >= NEVER and self.outbox.is_empty:
                break
            horizon = NEVER if upcoming == Infinity else int(upcoming)
            batch = self.outbox.take()
            before = self.granted_ps
            answer = self.network.advance(batch, horizon)
            granted, completions = granted_by(self.network.describe().name, answer, before, horizon)
            self.num_advances += 1
            if granted == before and not len(completions) and not len(batch.start_handle):
                raise NetworkError(f"{self.network.describe().name} makes no progress at {granted} ps")
            self.granted_ps = granted
            if len(completions):
                self._deliver(completions)
        super().step()
