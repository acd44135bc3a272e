"""Whoever takes fewest GPUs goes first."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.plugins import Decision, Placed, Scheduler, Topology


class SmallestFirst(Scheduler):
    """Jobs of fewer GPUs are served before larger ones"""

    def decide(self, jobs: Sequence[Placed], topology: Topology) -> Decision:
        order = sorted(jobs, key=lambda job: (job.profile.num_ranks, job.number))
        return Decision(priorities={job.number: at for at, job in enumerate(order)})
