"""SimPy's clock with a network beside it, and the order of what happens at one picosecond.

The network runs ahead of SimPy, never the reverse: now <= every undelivered completion <= granted. When
nothing is left to do up to the grant, the clock has the network go on, at most to SimPy's next event, as
SimPy's own ``RealtimeEnvironment`` waits for the clock on the wall.

An instant is rounds: all that ends, then all that starts because of it, until neither is left. SimPy takes
events of one time by their priority, then in the order in which they were scheduled. So here a priority is
a tuple: (round, what it is, who it is), and the order of scheduling decides nothing that a user can see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import simpy
from simpy.events import Event

from cosim.errors import CausalityError, NetworkError, SimulationError
from cosim.network.flows import Completions
from cosim.network.outbox import Outbox
from cosim.network.simulator import NetworkSimulator, granted_by
from cosim.units import NEVER, TOO_LATE

STOP, BEGINNING, REACTION, ENDING, TELLING, PROCESS, JOINING, START = range(8)
"""What happens first in a round: a call of ``run`` ends; jobs begin; messages arrive, by key; operations end,
by (job, rank); processes of your own are told of that, and go on, in SimPy's order; ranks that these have
begin do so; and then ranks start operations, by (job, rank)."""
Happened = Callable[[Event], None]
Deliver = Callable[[Completions], None]


class Clock(simpy.Environment):
    """A SimPy environment that shares its time with a network.

    ``deliver`` is called with each batch of completions, before SimPy gets to their times.
    """

    def __init__(self, network: NetworkSimulator, deliver: Deliver) -> None:
        simpy.Environment.__init__(self, initial_time=0)
        self.network = network
        self.outbox = Outbox()
        self.round = 0
        """The number, in this instant, of the starts that come next."""
        self.granted_ps = 0
        self.num_advances = 0
        self.expects: Callable[[], bool] = lambda: True
        """Whether anything may still come of the network."""
        self._deliver = deliver

    @property
    def now_ps(self) -> int:
        """The time, in whole picoseconds."""
        return int(self._now)

    # -- the order within an instant -----------------------------------------------------------------

    def schedule(self, event: Event, priority: Any = 1, delay: float = 0) -> None:
        """As SimPy's, but only whole picoseconds, and never back in time."""
        if not 0 <= delay < NEVER or int(delay) != delay:
            raise CausalityError(f"a delay is a whole number of picoseconds >= 0, not {delay}")
        order = priority
        if not isinstance(priority, tuple):  # SimPy's own
            order = self.round if delay == 0 else 0, STOP if priority < 0 else PROCESS, priority
        super().schedule(event, order, int(delay))

    def due(self, time_ps: int, what: int, *who: int, then: Happened | None = None) -> Event:
        """An event that happens at ``time_ps``, in its order within that instant."""
        return self._put(Event(self), time_ps, what, *who, then=then)

    def _put(self, event: Event, time_ps: int, what: int, *who: int, then: Happened | None) -> Event:
        if time_ps < self.now_ps:
            raise CausalityError(f"{time_ps} ps is before now, {self.now_ps} ps")
        if time_ps >= NEVER:
            raise SimulationError(TOO_LATE)
        event._ok, event._value = True, None  # as SimPy's Timeout does
        if then is not None:
            assert event.callbacks is not None
            event.callbacks.insert(0, then)
        of_round = self.round if time_ps == self.now_ps else 0
        self.schedule(event, (of_round, what, *who), time_ps - self.now_ps)
        return event

    def start_next_round(self, event: Event, rank: int) -> None:
        """Have a rank look in the next round of starts at what is ready."""
        this_round = self.round

        def begin_round(_: Event) -> None:
            self.round = this_round + 1  # what ends from here on lets start in the one after

        self._put(event, self.now_ps, START, rank, then=begin_round)

    def has_only(self, what: int) -> bool:
        """Whether all that is to come is of this kind."""
        return all(order[1] == what for _, order, *_ in self._queue)  # type: ignore[index]

    # -- the network beside it -----------------------------------------------------------------------

    def step(self) -> None:
        """Take SimPy's next event, after the network has gone as far as it may without it."""
        while self._waits_for_network():
            self._advance()
        if self._next_ps > self._now:
            self.round = 0
        super().step()

    @property
    def _next_ps(self) -> int:
        """When SimPy's next event is, in picoseconds whatever ``now`` counts."""
        return int(self._queue[0][0]) if self._queue else NEVER

    def _waits_for_network(self) -> bool:
        if self._next_ps == NEVER:  # nothing is left here: until the network, too, is through
            return not self.outbox.is_empty or (self.granted_ps < NEVER and self.expects())
        return self._next_ps > self.granted_ps

    def _advance(self) -> None:
        """Give the network what there is for it, and let it run up to SimPy's next event."""
        horizon = self._next_ps
        batch, before = self.outbox.take(), self.granted_ps
        answer = granted_by(self.network, self.network.advance(batch, horizon), before, horizon)
        self.granted_ps, done = answer
        self.num_advances += 1
        self.round += 1  # what completes now does so after all that ended before
        if self.granted_ps == before and not len(done) and not len(batch.start_handle):
            raise NetworkError(f"{self.network.describe().name} makes no progress at {before} ps")
        self._deliver(done)
