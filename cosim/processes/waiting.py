"""Who waits for what, and in which line of whose file."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import simpy
from simpy.events import Event

from cosim.units import format_time


class Outcome(NamedTuple):
    """What an event of the co-simulation gives. Times are picoseconds since the start of the run.

    Attributes
    ----------
    began_ps
        When it was asked for.
    ended_ps
        When its last part ended.
    times
        When each rank had ended its part, in the order of ``ranks``: of collectives, ``compute`` and
        ``memory``. Of a collective, it has the result then, and has sent what others need of it.
        Empty for all else.
    messages
        How many messages the whole collective takes; 0 for all else. With ``rank`` and a
        :class:`~cosim.plugins.Carrier`: how many it had sent when this rank was through.

    Examples
    --------
    >>> import cosim
    >>> ring = {"kind": "ring", "endpoints": 3, "rate": "80Gbps", "latency": "1us"}
    >>> sim = cosim.open({"topology": ring, "network": "fair_share"})
    >>> def tell(sim):
    ...     done = yield sim.broadcast(range(3), "3MB", algorithm="ring")
    ...     print(done.times, done.messages, done.took_ps)
    >>> _ = sim.process(tell(sim))
    >>> run = sim.run()
    (0, 301000000, 402000000) 6 402000000
    """

    began_ps: int
    ended_ps: int
    times: tuple[int, ...] = ()
    messages: int = 0

    @property
    def took_ps(self) -> int:
        """From the one to the other."""
        return self.ended_ps - self.began_ps


class WorkEvent(Event):
    """Something that ranks do, or that becomes of a job: it happens when that has ended on all of them.

    ``what`` says it in words; of those of one instant the first in ``order`` happens first. ``ranks``: how
    many ranks do it together, whose ``times`` are told, and their ``messages``.
    """

    ranks = 0
    times: tuple[int, ...] = ()
    messages = 0

    def __init__(
        self, sim: simpy.Environment, what: tuple[object, ...], order: tuple[int, int], now_ps: int
    ) -> None:
        super().__init__(sim)
        self._what = what
        self.order = order
        self.began_ps = now_ps

    @property
    def what(self) -> str:
        """In words."""
        return " ".join(map(str, self._what))

    def __repr__(self) -> str:
        return f"<{self.what}, since {format_time(self.began_ps)}>"


class NumberedProcess(simpy.Process):
    """A process, which knows its number and its generator."""

    def __init__(self, sim: Any, generator: Generator[Event, Any, Any]) -> None:
        self.generator = generator
        self.number: int = sim.number_process(self)
        super().__init__(sim, generator)

    @property
    def place(self) -> str:
        """``trainer (my.py:12)``: its innermost line."""
        inner: Any = self.generator
        while (deeper := getattr(inner, "gi_yieldfrom", None)) is not None and hasattr(deeper, "gi_frame"):
            inner = deeper
        frame = getattr(inner, "gi_frame", None)
        where = "" if frame is None else f" ({frame.f_code.co_filename}:{frame.f_lineno})"
        return f"{getattr(inner, '__name__', self.name)}{where}"


def who_waits(event: Event) -> list[NumberedProcess]:
    """The processes that wait for an event, by itself or as a part of conditions."""
    found: list[NumberedProcess] = []
    todo, seen = [event], {id(event)}
    while todo:
        for callback in todo.pop().callbacks or ():
            one = getattr(callback, "__self__", None)
            if isinstance(one, NumberedProcess):
                found.append(one)
            elif isinstance(one, Event) and id(one) not in seen:
                seen.add(id(one))
                todo.append(one)
    return found
