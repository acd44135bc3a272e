"""Jobs that run beside processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cosim.engine.directing import JobOrder
from cosim.engine.under_way import Waiting
from cosim.errors import SimulationError, WorkloadError
from cosim.processes.waiting import WorkEvent
from cosim.processes.work import End
from cosim.units import format_time

if TYPE_CHECKING:
    from cosim.processes.simulation import Simulation


class RunningJob:
    """A job of the run that has programs: from a scenario, or started by a process.

    Attributes
    ----------
    name
        As the page calls it.
    is_held
        Whether it waits for a process that has it begin: see :func:`cosim.open`, ``held``.

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

    def __init__(self, sim: Simulation, number: int, *, is_held: bool = False) -> None:
        self._sim = sim
        self.is_held = is_held
        self.number = number
        self.name = sim.engine_job(number).info.name
        self._events: dict[int, WorkEvent] = {}
        self._stopped = ""
        self._ended: WorkEvent | None = None
        self._is_paused = False
        self._pausing: list[tuple[int, WorkEvent]] = []
        self._arrived: WorkEvent | None = None
        self._has_arrived = False

    def __repr__(self) -> str:
        return f"<job {self.name}: {self.iterations_done} iterations done>"

    @property
    def iterations_done(self) -> int:
        """Iterations that every rank has ended."""
        return self._sim.control.replay.iterations_done(self.number)

    @property
    def is_through(self) -> bool:
        """Whether it has ended all that it does."""
        return self.iterations_done >= self._sim.control.iterations_of(self.number)

    def iteration(self, number: int | None = None) -> WorkEvent:
        """An event: an iteration, counted from 0, has ended on every rank; None: the next that ends.

        Raises
        ------
        SimulationError
            The job does not have so many.
        """
        number, count = (
            self.iterations_done if number is None else number,
            self._sim.control.iterations_of(self.number),
        )
        if not 0 <= number < count:
            raise SimulationError(f"{self.name} has no iteration {number}, but {count}")
        event = self._events.get(number)
        if event is None:
            what = f"iteration {number} of", self.name
            event = self._events[number] = self._sim.event_of_job(self.number, what)
            self.look()
        return event

    @property
    def ended(self) -> WorkEvent:
        """An event: every rank has ended its last iteration."""
        if self._ended is None:
            self._ended = self._sim.event_of_job(self.number, ("the end of", self.name))
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
        self._is_paused = False
        replay = self._sim.control.replay
        replay.shorten(self.number, replay.pause(self.number))
        self.look()
        return self.ended

    def pause(self) -> WorkEvent:
        """Have its ranks begin no further iteration until :meth:`resume`. The event: those under way have
        ended. Its endpoints stay its own.

        Raises
        ------
        SimulationError
            It was stopped, or is paused.
        """
        if self._stopped or self._is_paused:
            how = f"was stopped {self._stopped}" if self._stopped else "is paused"
            raise SimulationError(f"{self.name} {how} already")
        event = self._sim.event_of_job(self.number, ("the pause of", self.name))
        self._is_paused = True
        self._pausing.append((self._sim.control.replay.pause(self.number), event))
        self.look()
        return event

    def resume(self) -> None:
        """Have it go on after a pause.

        Raises
        ------
        SimulationError
            It is not paused.
        """
        if not self._is_paused:
            raise SimulationError(f"{self.name} is not paused")
        self._is_paused = False
        self._sim.control.replay.resume(self.number, begins=not self.is_held)

    def change(
        self,
        *,
        priority: int | None = None,
        paths: Mapping[tuple[End, End], Sequence[str]] | None = None,
    ) -> None:
        """Have its messages to come be of another priority, or go other ways.

        Parameters
        ----------
        priority
            0 goes first, where the network has priorities.
        paths
            Of pairs of endpoints, by number or name, the switches between them; all others go as the topology
            says. Needs ``changes_links``.

        Raises
        ------
        NetworkError
            The network has no priorities, or finds paths itself.
        WorkloadError, TopologyError
            It is not said what changes; or there is no such endpoint or link.
        """
        if (priority is None) == (paths is None):
            raise WorkloadError("a job's messages change their priority, or their paths")
        channel = None if paths is None else self._sim.control.channel_of(paths, self._sim.endpoint)
        if priority is not None and priority < 0:
            raise WorkloadError(f"priority {priority} is 0 or more")
        self._sim.control.order(JobOrder(self.number, priority=priority, channel=channel))

    def waits_for(self, rank: int) -> list[Waiting]:
        """What a rank has under way, and for which ranks that waits.

        Raises
        ------
        WorkloadError
            There is no such rank.
        """
        return self._sim.control.waits_for(self.number, rank)

    # -- jobs that are held --------------------------------------------------------------------------

    @property
    def arrived(self) -> WorkEvent:
        """An event: its start has come. It may begin."""
        if self._arrived is None:
            self._arrived = self._sim.event_of_job(self.number, ("the arrival of", self.name))
            if self._has_arrived or not self.is_held:
                self._sim.happened(self._arrived)
        return self._arrived

    def arrive(self) -> None:
        """Its start has come."""
        self._has_arrived = True
        if self._arrived is not None:
            self._sim.happened(self._arrived)

    def begin(self, placement: Sequence[int]) -> None:
        """Have it begin now, on these endpoints by rank.

        Raises
        ------
        SimulationError
            It has begun, or has not arrived.
        WorkloadError
            Not one endpoint for each rank, or one that is not there.
        """
        if not self.is_held or not self._has_arrived:
            raise SimulationError(f"{self.name} {'has not arrived yet' if self.is_held else 'has begun'}")
        self._sim.control.begin(self.number, placement)
        self.is_held = False

    # -- what comes of it ----------------------------------------------------------------------------

    @property
    def why_still(self) -> str:
        """Why no rank of it goes on; empty: for no reason of its own."""
        if self._is_paused:
            return "is paused, and no process resumes it"
        return "is held, and no process has it begin" if self.is_held else ""

    def look(self) -> None:
        """See which of its events have happened."""
        done = self.iterations_done
        for number in [one for one in self._events if one < done]:
            self._sim.happened(self._events.pop(number))
        if self._ended is not None and not self._ended.triggered and self.is_through:
            self._sim.happened(self._ended)
        while self._pausing and self._pausing[0][0] <= done:
            self._sim.happened(self._pausing.pop(0)[1])
