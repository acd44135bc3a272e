"""Jobs of a scenario that processes have begin: they only arrive at their start."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cosim.engine.directing import Director, JobOrder


class HeldJobs(Director):
    """Tells of jobs that arrive, and orders nothing by itself."""

    def __init__(self) -> None:
        self.on_arrival: Callable[[int], None] = lambda _: None
        """Told the number of each job that arrives."""

    def arrived(self, jobs: Sequence[int], now_ps: int) -> Sequence[JobOrder]:  # noqa: ARG002 - it is now
        """See :class:`~cosim.engine.directing.Director`."""
        for job in jobs:
            self.on_arrival(job)
        return ()

    def ended(self, job: int, now_ps: int) -> Sequence[JobOrder]:  # noqa: ARG002 - has an event of its own
        """See :class:`~cosim.engine.directing.Director`."""
        return ()

    def delays(self, job: int) -> bool:  # noqa: ARG002 - none
        """See :class:`~cosim.engine.directing.Director`."""
        return False

    def starts(self, job: int, iteration: int, now_ps: int) -> int:  # noqa: ARG002 - at once
        """See :class:`~cosim.engine.directing.Director`."""
        return now_ps
