"""What placements and arrival processes are: which endpoints a job's ranks sit on, and when jobs start.

::

    class Last(Placement):
        '''The highest-numbered free endpoints'''

        def choose(self, wanted: Wanted) -> I32:
            wanted.check_enough()
            return wanted.free[-wanted.num_ranks :]


    class Doubling(Arrival):
        '''Each twice as late as the one before'''

        first: TimePs = Field(gt=0, description="of the second job")

        def times(self, count: int, context: Context) -> list[int]:
            return [0, *(self.first << k for k in range(count - 1))]
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cosim.context import HERE, Context
from cosim.errors import WorkloadError
from cosim.spec import Spec
from cosim.topology.graph import I64
from cosim.workload.program import DeviceMesh

I32 = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Wanted:
    """What a job wants, and what there is.

    ``free`` are the endpoints that no earlier job has taken, ascending; ``context`` is the scenario's;
    ``domains`` are :func:`cosim.cluster.locality.domains`, for a placement that needs them. ``mesh`` are the
    job's axes; ``scale_up`` int64[endpoints] is the scale-up domain of each, None where there are none.
    """

    num_ranks: int
    free: I32
    num_endpoints: int
    context: Context = HERE
    domains: tuple[I32, ...] = ()
    mesh: DeviceMesh | None = None
    scale_up: I64 | None = None

    def check_enough(self) -> None:
        """There is a free endpoint for each rank.

        Raises
        ------
        WorkloadError
            There is not; says who has them.
        """
        if self.num_ranks > len(self.free):
            taken = self.num_endpoints - len(self.free)
            others = f", of which {taken} are taken by earlier jobs" if taken else ""
            raise WorkloadError(
                f"the job has {self.num_ranks} ranks, the topology {self.num_endpoints} endpoints{others}",
                hint="make the topology larger or the job smaller, or say share_endpoints: true",
            )


class Placement(Spec):
    """Base of the placements that a scenario can name."""

    needs_domains: ClassVar[bool] = False
    """It goes by ``Wanted.domains``, which take time to find."""

    @abstractmethod
    def choose(self, wanted: Wanted) -> I32:
        """Endpoints, one for each rank, in rank order.

        Raises
        ------
        WorkloadError
            Fewer endpoints than ranks, or an endpoint that isn't there.
        """


class Arrival(Spec):
    """Base of the arrival processes that a scenario can name."""

    @abstractmethod
    def times(self, count: int, context: Context) -> list[int]:
        """Picoseconds after the first possible start, one for each of ``count`` jobs.

        Raises
        ------
        WorkloadError
            Times that don't fit the number of jobs.
        """


class Queue(Spec):
    """Jobs wait until their placement finds enough free endpoints, and give them back at their end

    Not modelled: jobs that are taken off their endpoints again, and reservations: with ``backfill`` a large
    job may wait for as long as smaller ones come.
    """

    order: Literal["fifo"] = Field("fifo", description="who is first: fifo, whoever came first")
    backfill: bool = Field(
        False, description="a job that fits starts before one that waits, though it came later"
    )
