"""What is done with the jobs of a run that have programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cosim.engine.directing import JobOrder
from cosim.engine.live import LiveReplay
from cosim.engine.programs import check_job
from cosim.engine.under_way import Waiting
from cosim.errors import NetworkError, WorkloadError
from cosim.fabric.pinned import PinnedPaths
from cosim.network.flows import I32
from cosim.processes.links import LiveLinks
from cosim.processes.work import End

Placements = Callable[[int, I32, int], Sequence[I32]]
"""(Job, free endpoints, at most how many) to placements of a job; none: it has to wait."""


class JobControl:
    """Jobs by number. ``placements`` are those of jobs that are held."""

    def __init__(
        self, replay: LiveReplay, links: LiveLinks, placements: Placements, *, has_priorities: bool
    ) -> None:
        self.replay, self.links = replay, links
        self.placements = placements
        self.has_priorities = has_priorities

    def iterations_of(self, job: int) -> int:
        """Iterations that a job does."""
        return self.replay.jobs[job].info.iterations

    def begin(self, job: int, placement: Sequence[int]) -> None:
        """Have a job that was held begin now.

        Raises
        ------
        WorkloadError
            Not one endpoint for each rank, or one that is not there.
        """
        endpoints, info = np.array([*placement], np.int32), self.replay.jobs[job].info
        check_job(job, replace(info, endpoints=endpoints), self.links.topology)
        if len(np.unique(endpoints)) < len(endpoints):
            raise WorkloadError(f"{info.name}: an endpoint has one rank of it, not several")
        self.replay.order(JobOrder(job, endpoints))

    def order(self, order: JobOrder) -> None:
        """Have a job do as it is ordered from now on.

        Raises
        ------
        NetworkError
            A priority, where the network has none.
        """
        if order.priority is not None and not self.has_priorities:
            raise NetworkError(
                f"{self.replay.network.describe().name} has no priorities: fair_share and congestion have"
            )
        self.replay.order(order)

    def waits_for(self, job: int, rank: int) -> list[Waiting]:
        """What a rank has under way.

        Raises
        ------
        WorkloadError
            There is no such rank.
        """
        world = self.replay.jobs[job].info.workload.world_size
        if not 0 <= rank < world:
            raise WorkloadError(f"there is no rank {rank}; there are 0 to {world - 1}")
        return self.replay.waits_for(job, rank)

    def channel_of(
        self, paths: Mapping[tuple[End, End], Sequence[str]], endpoint: Callable[[str], int]
    ) -> int:
        """What to add to channels so that messages between endpoints go from node to node as is said.

        Raises
        ------
        WorkloadError, TopologyError
            There is no such endpoint, or no link between two nodes.
        NetworkError
            The network finds paths itself.
        """
        self.links.check_changing("paths")
        network, topology = self.replay.network, self.links.topology
        if not network.takes_paths:
            raise NetworkError(
                f"{network.describe().name} finds paths itself: sim.change(link, avoid=True) leaves links out"
            )
        routing, names = topology.routing, topology.node_names
        assert isinstance(routing, PinnedPaths)
        found = {}
        for pair, between in paths.items():
            src, dst = (endpoint(end if isinstance(end, str) else names[end]) for end in pair)
            found[src, dst] = self.links.path([names[src], *between, names[dst]])
        return routing.pin(found)
