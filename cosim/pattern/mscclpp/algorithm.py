"""A collective algorithm from an MSCCL++ execution plan, as a scenario names it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from cosim.context import Context
from cosim.errors import AlgorithmError, InputError, Location
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.mscclpp.plan import KernelPlan
from cosim.pattern.template import Collective, Template
from cosim.pattern.unread import Unread
from cosim.spec import TimePs


def template_of(
    plan: KernelPlan, collective: Collective, size_bytes: int, costs: Costs, launch_ps: int, root: int
) -> Template:
    """The template of a plan, after its proof.

    Raises
    ------
    AlgorithmError
        A deadlock, a race, a wrong result, or more than fits.
    """
    from cosim.pattern.mscclpp.messages import plan_template
    from cosim.pattern.mscclpp.prove import prove_plan

    if plan.collective is not collective:
        raise AlgorithmError(
            f"{plan.name} is an {plan.collective.value}, and is to carry an {collective.value}",
            location=Location(plan.file) if plan.file else None,
        )
    prove_plan(plan, root=root)
    return plan_template(plan, size_bytes, costs, launch_ps)


class _PlanAlgorithm(Algorithm):
    name: ClassVar[str] = "mscclpp"
    checks_data: ClassVar[bool] = True
    splits: ClassVar[bool] = False
    carries: ClassVar[frozenset[Collective]] = frozenset(
        {
            Collective.ALL_REDUCE,
            Collective.ALL_GATHER,
            Collective.REDUCE_SCATTER,
            Collective.ALL_TO_ALL,
            Collective.BROADCAST,
            Collective.SEND_RECV,
        }
    )

    path: str = Field(description="the JSON file")
    launch: TimePs = Field(0, ge=0, description="of the kernel, and its end: added once")


class MscclppFile(Unread, _PlanAlgorithm):
    """An MSCCL++ execution plan as JSON: thread blocks that put, get, signal and wait"""

    @classmethod
    def in_file(cls, path: Path) -> MscclppFile | None:
        """A JSON file with GPUs of thread blocks."""
        if not path.is_file() or path.suffix != ".json":
            return None
        with path.open("rb") as file:
            return cls(path=str(path)) if b"threadblocks" in file.read(1 << 16) else None

    def read(self, context: Context) -> ReadMscclpp:
        """The plan in the file."""
        from cosim.pattern.mscclpp.read import read_plan

        return ReadMscclpp(path=self.path, launch=self.launch, plan=read_plan(context.base / self.path))


class ReadMscclpp(_PlanAlgorithm):
    """What such a file says."""

    plan: KernelPlan

    def meant_for(self, collective: Collective | None, num_ranks: int | None) -> tuple[Collective, int]:
        """What the file says it is for."""
        gpus = len(self.plan.gpus)
        if num_ranks not in (None, gpus):
            raise InputError(f"--ranks {num_ranks}: {self.path} is for {gpus} GPUs")
        if collective not in (None, self.plan.collective):
            raise InputError(
                f"--collective {collective.value}: {self.path} is an {self.plan.collective.value}"
            )
        return self.plan.collective, gpus

    def build(
        self,
        collective: Collective,
        num_ranks: int,
        size_bytes: int,
        costs: Costs,
        *,
        reverse: bool = False,
        chunk: int = 0,
        root: int = 0,
    ) -> Template:
        """See :meth:`Algorithm.build`; the data is proved on the plan, cell by cell."""
        del reverse, chunk
        self.check(collective, num_ranks)
        plan = self.plan
        if len(plan.gpus) != num_ranks:
            raise AlgorithmError(
                f"{plan.name} is for {len(plan.gpus)} GPUs, and this group has {num_ranks}",
                location=Location(plan.file),
            )
        return template_of(plan, collective, size_bytes, costs, self.launch, root)

    def prove(self, collective: Collective, num_ranks: int, size_bytes: int, *, root: int = 0) -> str:
        """Its data, exactly, and every order in which its steps may run."""
        from cosim.pattern.mscclpp.prove import prove_plan

        del collective, num_ranks, size_bytes
        return str(prove_plan(self.plan, root=root))
