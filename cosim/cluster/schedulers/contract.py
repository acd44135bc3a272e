"""What a scheduler is: from profiles of jobs and the topology to what jobs are told.

::

    class OneAfterAnother(Scheduler):
        '''Job k is served before job k + 1'''

        def decide(self, jobs: Sequence[Placed], topology: Topology) -> Decision:
            return Decision(priorities={job.number: at for at, job in enumerate(jobs)})

It is called again whenever a job starts or ends. What is under way is left alone: priorities and paths are
those of messages to come, shifts those of iterations to come.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from cosim.registry import name_of
from cosim.spec import Spec
from cosim.topology.graph import I32, Topology

if TYPE_CHECKING:
    from cosim.cluster.schedulers.profile import JobProfile, Placed

Path = tuple[int, ...]
"""Links, from source to destination."""


@dataclass(frozen=True, slots=True)
class Shifts:
    """When jobs start their iterations relative to each other: ``shift_ps[job]`` modulo ``period_ps[job]``,
    which is the job's own, or a little longer.
    """

    shift_ps: Mapping[int, int]
    period_ps: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class LinkScore:
    """A link that jobs share: 1 where their demands never exceed it, less by the excess; ``unshifted``: if
    all started together. ``links`` that the same jobs share alike are one.
    """

    link: int
    jobs: tuple[int, ...]
    perimeter_ps: int
    score: float
    unshifted: float
    links: int = 1


@dataclass(frozen=True, slots=True)
class Decision:
    """What jobs, by number, are told; one that isn't named goes on as the scenario says.

    Attributes
    ----------
    shifts
        Of each set of jobs that stand in each other's way.
    drift
        An iteration that is late by more than this part of its period waits for its next turn.
    priorities
        0 is served first.
    paths
        Links from endpoint to endpoint, of pairs that are not to go as the topology routes them.
    intensities
        For the page: of each job.
    links
        For the page: links that jobs share.
    notes
        For the page: what could not be done, and why.
    warnings
        For the page and the log: what makes it useless for a job.
    """

    shifts: Sequence[Shifts] = ()
    drift: float = 0.05
    priorities: Mapping[int, int] = field(default_factory=dict)
    paths: Mapping[int, Mapping[tuple[int, int], Path]] = field(default_factory=dict)
    intensities: Mapping[int, float] = field(default_factory=dict)
    links: Sequence[LinkScore] = ()
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()


class Scheduler(Spec):
    """Base of the schedulers that a scenario can name."""

    pins_paths: ClassVar[bool] = False
    """Its decisions have ``paths``, which not every network takes."""
    sets_priorities: ClassVar[bool] = False
    """Its decisions have ``priorities``."""

    @property
    def name(self) -> str:
        """As a scenario names it; its class's name where it is not registered."""
        return name_of("cosim.schedulers", type(self)) or type(self).__name__

    def num_candidates(self) -> int:
        """How many placements of a job that starts it wants to choose from."""
        return 1

    def choose(
        self,
        candidates: Sequence[I32],  # noqa: ARG002 - for schedulers that place
        name: str,  # noqa: ARG002
        profile: JobProfile,  # noqa: ARG002
        jobs: Sequence[Placed],  # noqa: ARG002
        topology: Topology,  # noqa: ARG002
    ) -> int:
        """Choose the endpoints of a job that starts.

        Parameters
        ----------
        candidates
            int32[ranks] each: endpoints by rank that it could have; the first is its placement's.
        name, profile
            The job, and how it runs alone.
        jobs
            Jobs that run.
        topology
            The fabric.

        Returns
        -------
        The number of a candidate.
        """
        return 0

    @abstractmethod
    def decide(self, jobs: Sequence[Placed], topology: Topology) -> Decision:
        """What the jobs that run are told, in the order in which they came.

        Raises
        ------
        SchedulerError
            Jobs that can't be scheduled so.
        """
