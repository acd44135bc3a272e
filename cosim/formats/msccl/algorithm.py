"""A collective algorithm from an MSCCL XML file, as a scenario names it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from cosim.context import Context
from cosim.errors import AlgorithmError, InputError, Location
from cosim.formats.msccl.program import MscclProgram
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.template import Collective, Template
from cosim.pattern.unread import Unread


class _Msccl(Algorithm):
    name: ClassVar[str] = "msccl"
    checks_data: ClassVar[bool] = True
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


class MscclFile(Unread, _Msccl):
    """An algorithm as MSCCL XML: thread blocks, steps, dependencies"""

    @classmethod
    def in_file(cls, path: Path) -> MscclFile | None:
        """Any XML file."""
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return cls(path=str(path)) if file.read(64).lstrip().startswith(b"<") else None

    def read(self, context: Context) -> ReadMsccl:
        """The program in the file."""
        from cosim.formats.msccl.read import read_program

        return ReadMsccl(path=self.path, flags=self.flags, program=read_program(context.base / self.path))


class ReadMsccl(_Msccl):
    """What such a file says."""

    program: MscclProgram

    def idle_settings(self) -> list[tuple[str, str]]:
        """What the file says that isn't read, and flags of a protocol that has none."""
        idle = [("path", f"{self.path} says {name}, which is not read") for name in self.program.ignored]
        if self.flags and self.program.protocol == "Simple":
            idle.append(("flags", f"{self.path} is for protocol Simple, which sends no flags"))
        return idle

    def meant_for(self, collective: Collective | None, num_ranks: int | None) -> tuple[Collective, int]:
        """What the file says it is for, unless that is a custom collective."""
        from cosim.formats.msccl.prove import collective_of

        gpus = len(self.program.gpus)
        if num_ranks not in (None, gpus):
            raise InputError(f"--ranks {num_ranks}: {self.path} is for {gpus} GPUs")
        return collective_of(self.program, collective), gpus

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
        """See :meth:`Algorithm.build`; the data is proved on the program, chunk by chunk."""
        from cosim.formats.msccl.program_template import program_template
        from cosim.formats.msccl.prove import prove_schedule
        from cosim.formats.msccl.schedule import schedule

        del reverse, chunk
        self.check(collective, num_ranks)
        program = self.program
        if len(program.gpus) != num_ranks:
            raise AlgorithmError(
                f"{program.name} is for {len(program.gpus)} GPUs, and this group has {num_ranks}",
                location=Location(program.file, 1, "<algo> ngpus"),
            )
        plan = schedule(program)
        prove_schedule(plan, collective, root=root)
        return program_template(plan, collective, size_bytes, costs, flags=self.flags)

    def prove(self, collective: Collective, num_ranks: int, size_bytes: int, *, root: int = 0) -> str:
        """Its data, exactly, and every order in which its steps may run."""
        from cosim.formats.msccl.prove import prove_program

        del num_ranks, size_bytes
        return str(prove_program(self.program, collective, root=root))
