"""Jobs that run beside processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosim.errors import SimulationError
from cosim.processes.waiting import WorkEvent
from cosim.units import format_time

if TYPE_CHECKING:
    from cosim.processes.simulation import Simulation


class RunningJob:
    """A job of the run that has programs: from a scenario, or started by a process.

    Attributes
    ----------
    name
        As the page calls it.

    Examples
    --------
    >>> import cosim
    >>> ring = {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "1us"}
    >>> sim = cosim.open({"topology": ring, "network": "fair_share"})
    >>> work = {"kind": "collective", "collective": "all_reduce", "ranks": 4, "size": "4MB"}
    >>> sim.start({"name": "late", "workload": work})
    <job late: 0 iterations done>
    >>> sim.run().summary.jobs[-1].name
    'late'
    """

    def __init__(self, sim: Simulation, number: int) -> None:
        self._sim = sim
        self.number = number
        self.name = sim.engine_job(number).info.name
        self._events: dict[int, WorkEvent] = {}
        self._stopped = ""
        self._ended: WorkEvent | None = None

    def __repr__(self) -> str:
        return f"<job {self.name}: {self.iterations_done} iterations done>"

    @property
    def iterations_done(self) -> int:
        """Iterations that every rank has ended."""
        return self._sim.iterations_done(self.number)

    @property
    def is_through(self) -> bool:
        """Whether it has ended all that it does."""
        return self.iterations_done >= self._sim.iterations_of(self.number)

    def iteration(self, number: int | None = None) -> WorkEvent:
        """An event: an iteration, counted from 0, has ended on every rank; None: the next that ends.

        Raises
        ------
        SimulationError
            The job does not have so many.
        """
        number = self.iterations_done if number is None else number
        if not 0 <= number < self._sim.iterations_of(self.number):
            raise SimulationError(
                f"{self.name} has no iteration {number}, but {self._sim.iterations_of(self.number)}"
            )
        event = self._events.get(number)
        if event is None:
            event = self._events[number] = self._sim.work_of_job(self, (f"iteration {number} of", self.name))
            self.look()
        return event

    @property
    def ended(self) -> WorkEvent:
        """An event: every rank has ended its last iteration."""
        if self._ended is None:
            self._ended = self._sim.work_of_job(self, ("the end of", self.name))
            self.look()
        return self._ended

    def stop(self) -> WorkEvent:
        """Have its ranks begin no further iteration; those under way end. The event is :attr:`ended`.

        Raises
        ------
        SimulationError
            It was stopped before: says by whom.
        """
        if self._stopped:
            raise SimulationError(f"{self.name} was stopped {self._stopped} already")
        who = self._sim.active_place
        self._stopped = f"at {format_time(self._sim.now_ps)}" + (f" by {who}" if who else "")
        self._sim.stop_job(self.number)
        return self.ended

    def look(self) -> None:
        """See which of its events have happened."""
        done = self.iterations_done
        for number in [one for one in self._events if one < done]:
            self._sim.happened(self._events.pop(number))
        if self._ended is not None and not self._ended.triggered and self.is_through:
            self._sim.happened(self._ended)
