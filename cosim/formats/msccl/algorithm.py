"""A collective algorithm from an MSCCL XML file, as a scenario names it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from cosim.errors import AlgorithmError, Location
from cosim.pattern.algorithm import FromFiles
from cosim.pattern.costs import Costs
from cosim.pattern.template import Collective, Template


class MscclFile(FromFiles):
    """An algorithm as MSCCL XML: thread blocks, steps, dependencies"""

    name: ClassVar[str] = "msccl"
    carries: ClassVar[frozenset[Collective]] = frozenset(
        {
            Collective.ALL_REDUCE,
            Collective.ALL_GATHER,
            Collective.REDUCE_SCATTER,
            Collective.ALL_TO_ALL,
            Collective.BROADCAST,
        }
    )

    path: str = Field(description="the XML file")
    flags: bool = Field(
        False, description="count the flags of the file's protocol: LL sends 8 bytes for 4, LL128 128 for 120"
    )

    def idle_in(self, base: Path) -> list[tuple[str, str]]:
        """What the file says that isn't read, and flags of a protocol that has none."""
        from cosim.formats.msccl.read import read_program

        try:
            program = read_program(base / self.path)
        except AlgorithmError:
            return []
        idle = [("path", f"{self.path} says {name}, which is not read") for name in program.ignored]
        if self.flags and program.protocol == "Simple":
            idle.append(("flags", f"{self.path} is for protocol Simple, which sends no flags"))
        return idle

    def read(
        self,
        base: Path,
        collective: Collective,
        num_ranks: int,
        size_bytes: int,
        costs: Costs,
        *,
        root: int = 0,
    ) -> Template:
        """See :meth:`FromFiles.read`; the data is proved on the program, chunk by chunk."""
        from cosim.formats.msccl.messages import program_template
        from cosim.formats.msccl.prove import prove_schedule
        from cosim.formats.msccl.read import read_program
        from cosim.formats.msccl.schedule import schedule

        self.check(collective, num_ranks)
        program = read_program(base / self.path)
        if len(program.gpus) != num_ranks:
            raise AlgorithmError(
                f"{program.name} is for {len(program.gpus)} GPUs, and this group has {num_ranks}",
                location=Location(program.file, 1, "<algo> ngpus"),
            )
        plan = schedule(program)
        prove_schedule(plan, collective, root=root)
        return program_template(plan, collective, size_bytes, costs, flags=self.flags)
