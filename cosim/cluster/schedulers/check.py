"""What a scheduler said, looked at before anything goes by it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cosim.answers import is_foreign, misfit
from cosim.cluster.schedulers.contract import Decision, Path, Scheduler
from cosim.cluster.schedulers.profile import Placed
from cosim.errors import SchedulerError
from cosim.topology.graph import Topology

_LAST = 2**31 - 2
"""The lowest priority that networks, here and elsewhere, have a number for."""


def checked(scheduler: Scheduler, said: object, jobs: Sequence[Placed], topology: Topology) -> Decision:
    """What ``decide`` gave, if it is a decision about these jobs.

    Raises
    ------
    SchedulerError
        It is not; says what is wrong.
    """
    who = f"{type(scheduler).__name__}.decide"
    if not isinstance(said, Decision):
        raise SchedulerError(f"{who} gave {repr(said)[:80]}; it should give a Decision")
    if is_foreign(type(scheduler)) and (text := misfit(said, Decision)):
        raise SchedulerError(f"{who} gave a Decision whose {text.removeprefix('.')}")
    for wrong in _wrong(scheduler, said, {job.number for job in jobs}, topology):
        raise SchedulerError(f"{who} gave {wrong}")
    return said


def _wrong(scheduler: Scheduler, said: Decision, jobs: set[int], topology: Topology) -> Iterator[str]:
    named = {*said.priorities, *said.paths, *(job for shifts in said.shifts for job in shifts.shift_ps)}
    for job in sorted(named - jobs):
        yield f"orders for job {job}; those that run are {', '.join(map(str, sorted(jobs)))}"
    for job, priority in said.priorities.items():
        if not isinstance(priority, int) or not 0 <= priority <= _LAST:
            yield f"job {job} the priority {priority!r}; it should be a whole number from 0 to {_LAST}"
    for shifts in said.shifts:
        for job, shift in shifts.shift_ps.items():
            period = shifts.period_ps.get(job)
            if not isinstance(shift, int) or not isinstance(period, int) or period <= 0:
                yield f"job {job} a shift of {shift!r} in {period!r}; both are whole picoseconds"
    if said.paths and not scheduler.pins_paths:
        yield f"paths; set {type(scheduler).__name__}.pins_paths = True"
    for job, paths in said.paths.items():
        for (src, dst), path in paths.items():
            if not _leads(src, dst, path, topology):
                yield f"job {job} a path from {src} to {dst} that doesn't lead there: links {path}"


def _leads(src: int, dst: int, path: Path, topology: Topology) -> bool:
    node = src
    for link in path:
        if not 0 <= link < topology.num_links or topology.link_src[link] != node:
            return False
        node = int(topology.link_dst[link])
    return node == dst
