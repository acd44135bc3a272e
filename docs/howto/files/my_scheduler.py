"""A scheduler: the job that has least left of its period to send in goes first."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.plugins import Decision, Placed, Scheduler, Topology


class BusiestFirst(Scheduler):
    """Jobs that communicate most of their time are served first"""

    sets_priorities = True

    def decide(self, jobs: Sequence[Placed], topology: Topology) -> Decision:
        order = sorted(jobs, key=lambda job: (-job.profile.communicates, job.number))
        return Decision(priorities={job.number: at for at, job in enumerate(order)})
