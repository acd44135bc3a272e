"""What a scenario names: jobs that processes drive, and processes beside the jobs.

::

    class Trainer(Driver):
        '''All-reduces until the loss is low enough'''

        size: SizeBytes = Field(ge=0, description="of the gradients")

        def num_ranks(self) -> int:
            return 8

        def drive(self, sim, job, context):
            for step in range(10):
                yield job.compute(range(8), "1ms")
                yield job.all_reduce(range(8), self.size)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, ClassVar

from simpy.events import Event

from cosim.context import Context
from cosim.engine.driven import driven_workload
from cosim.spec import Spec
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import Workload

if TYPE_CHECKING:  # most scenarios have no process, and load none of this
    from cosim.processes.simulation import Simulation
    from cosim.processes.work import DrivenRanks


class Driver(WorkloadSpec):
    """Base of workloads that a process decides as the run goes on. Fields are settings."""

    changes_links: ClassVar[bool] = False
    """Whether it changes links: :meth:`Simulation.change`."""

    @abstractmethod
    def num_ranks(self) -> int:
        """How many ranks the job has."""

    @abstractmethod
    def drive(self, sim: Simulation, job: DrivenRanks, context: Context) -> Generator[Event, Any, Any]:
        """The process, from the job's start on. The job is over when it returns.

        What it draws comes from ``context.seed``, so that the same scenario gives the same run.
        """

    def build(self, context: Context) -> Workload:  # noqa: ARG002 - what it does is not known yet
        """Ranks that have no program. See :class:`~cosim.workload.contract.WorkloadSpec`."""
        return driven_workload(self.num_ranks())


class ProcessSpec(Spec):
    """Base of processes that a scenario can name, which live beside its jobs. Fields are settings."""

    changes_links: ClassVar[bool] = False
    """Whether it changes links: :meth:`Simulation.change`."""

    def uses_seed(self) -> bool:
        """Whether the scenario's seed changes what it does."""
        return False

    @abstractmethod
    def live(self, sim: Simulation, context: Context) -> Generator[Event, Any, Any]:
        """The process. The run ends when all jobs are over, also where it goes on for ever. Without jobs it
        ends when all processes have returned.
        """
