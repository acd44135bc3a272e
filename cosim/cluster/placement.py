"""Placements: which endpoint each rank of a job sits on.

Jobs are placed in the scenario's order. Each placement but ``explicit`` chooses among the endpoints that no
earlier job has taken. Not modelled: a scheduler that queues jobs until endpoints are free.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from cosim.cluster.contract import I32, Placement, Wanted
from cosim.errors import WorkloadError
from cosim.workload.draws import splitmix64


class Packed(Placement):
    """Ranks in order on the lowest-numbered free endpoints"""

    def choose(self, wanted: Wanted) -> I32:
        """See :meth:`Placement.choose`."""
        wanted.check_enough()
        return wanted.free[: wanted.num_ranks].copy()


class Spread(Placement):
    """Ranks in order, evenly spaced over the free endpoints: rank r of n on free endpoint r F / n

    Endpoints are numbered leaf by leaf, so neighbouring ranks land on different leaves where they can.
    """

    def choose(self, wanted: Wanted) -> I32:
        """See :meth:`Placement.choose`."""
        wanted.check_enough()
        free, num_ranks = wanted.free, wanted.num_ranks
        return free[np.arange(num_ranks, dtype=np.int64) * len(free) // num_ranks]


class Random(Placement):
    """Ranks on free endpoints in a seeded random order (the same on every machine)"""

    seed: int | None = Field(
        None, ge=0, description="seed of the order; the scenario's seed where it is left out"
    )

    def choose(self, wanted: Wanted) -> I32:
        """See :meth:`Placement.choose`."""
        wanted.check_enough()
        seed = wanted.context.seed if self.seed is None else self.seed
        drawn = splitmix64(wanted.free.astype(np.uint64), seed)
        return wanted.free[np.lexsort((wanted.free, drawn))][: wanted.num_ranks]

    def uses_seed(self) -> bool:
        """Without a seed of its own."""
        return self.seed is None


class Explicit(Placement):
    """Rank r on the r-th endpoint of a list"""

    endpoints: tuple[int, ...] = Field(description="endpoint of each rank, in rank order")

    def choose(self, wanted: Wanted) -> I32:
        """See :meth:`Placement.choose`; taken endpoints are the caller's to refuse."""
        num_ranks, num_endpoints = wanted.num_ranks, wanted.num_endpoints
        if len(self.endpoints) != num_ranks:
            raise WorkloadError(f"{len(self.endpoints)} endpoints are listed, the job has {num_ranks} ranks")
        for rank, endpoint in enumerate(self.endpoints):
            if not 0 <= endpoint < num_endpoints:
                raise WorkloadError(
                    f"rank {rank} is put on endpoint {endpoint}; the topology has 0 to {num_endpoints - 1}"
                )
        if len(set(self.endpoints)) != num_ranks:
            twice = next(e for e in self.endpoints if self.endpoints.count(e) > 1)
            ranks = [r for r, e in enumerate(self.endpoints) if e == twice]
            raise WorkloadError(f"endpoint {twice} is given to ranks {ranks}; a rank needs one of its own")
        return np.array(self.endpoints, np.int32)
