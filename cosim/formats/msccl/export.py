"""Formats ``msccl`` and ``mscclpp``: one collective as MSCCL XML, the algorithm that NCCL's fork and its
successors run, or as MSCCL++ execution plan (JSON).

The file says how one collective goes over one process group: which chunks each thread block sends, receives
and reduces. It is proved before it is written. Everything else of a scenario (computations, other operations,
when the collective starts, delays) isn't MSCCL's to say. ``minBytes`` and ``maxBytes`` are left out, so a
runtime takes the file for any size; an operation split into chunks is written whole, as a runtime loops over
the file by itself.
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from cosim.engine.programs import COLLECTIVES, ReadyJob
from cosim.errors import AlgorithmError
from cosim.formats.msccl.algorithm import MscclFile
from cosim.formats.msccl.lower import lower_plan
from cosim.formats.msccl.plan_json import write_plan
from cosim.formats.msccl.program import MscclProgram
from cosim.formats.msccl.read import read_program
from cosim.formats.msccl.write import write_program
from cosim.pattern.mscclpp.prove import prove_plan
from cosim.pattern.mscclpp.read import parse_plan
from cosim.pattern.planner import Planner
from cosim.pattern.template import Collective
from cosim.translation.contract import Format, Progress
from cosim.translation.loss_report import LossReport, TranslationError
from cosim.translation.says import Says
from cosim.translation.source import Source
from cosim.workload.program import Operation, OpKind


class _OneCollective(Format):
    """Base of both: which collective, and its program."""

    says: ClassVar[frozenset[Says]] = frozenset(
        {Says.COLLECTIVES, Says.ALGORITHMS, Says.GROUPS, Says.ROOTS, Says.CHANNELS, Says.PLACEMENT}
    )

    operation: str = Field("", description="name (or collective) of the operation; omitted: the first one.")
    file: str

    def asked_protocol(self) -> str:
        """What the file asks for."""
        return "Simple"

    def examine(self, source: Source, report: LossReport) -> None:
        """See :meth:`Format.examine`."""
        super().examine(source, report)
        _, chosen = self._chosen(source)
        others = [op for each in source.ready for program in each.programs for op in program.operations]
        report.lost(
            "other collectives of the programs",
            sum(op.kind is OpKind.COLLECTIVE and op is not chosen for op in others),
            "the file says one",
        )
        report.left_out("size of the collective", 1, "who calls it says it")

    def write(self, source: Source, out: Path, report: LossReport, progress: Progress) -> None:
        """See :meth:`Format.write`."""
        job, operation = self._chosen(source)
        try:
            program = self._program(source, job, operation, report)
            text = self._text(program, COLLECTIVES[operation.collective], operation.root)
        except AlgorithmError as error:
            raise TranslationError(error.message, location=error.location, hint=error.hint) from error
        (out / self.file).write_text(text, encoding="utf-8")
        progress(1, 1, "files")
        report.written("thread blocks", program.num_blocks, f"{len(program.gpus)} GPUs, {self.file}")
        report.written("steps", program.num_steps)
        report.written("chunks", program.num_chunks)

    @abstractmethod
    def _text(self, program: MscclProgram, collective: Collective, root: int) -> str:
        """What the file says."""

    def _chosen(self, source: Source) -> tuple[ReadyJob, Operation]:
        names = []
        for job in source.ready:
            for program in job.programs:
                for operation in program.operations:
                    if operation.kind is not OpKind.COLLECTIVE:
                        continue
                    if self.operation in ("", operation.name, operation.collective):
                        return job, operation
                    names.append(operation.name or operation.collective)
        if not names:
            raise TranslationError("the scenario has no collective, and this format says nothing else")
        raise TranslationError(
            f"no collective is named {self.operation!r}", hint=f"there are: {', '.join(dict.fromkeys(names))}"
        )

    def _program(
        self, source: Source, job: ReadyJob, operation: Operation, report: LossReport
    ) -> MscclProgram:
        group = job.group(_member(job, operation), operation)
        kind = COLLECTIVES[operation.collective]
        chosen = source.planner.config.choice(kind)
        if isinstance(chosen, MscclFile):
            report.written("algorithm", 1, f"as {chosen.path} has it")
            return read_program(source.planner.context.base / chosen.path)
        config = source.planner.config
        report.approximated(
            "chunks that the operation is split into",
            config.splits - 1 and config.splits,
            "one program for the whole; a runtime loops over it",
        )
        one = config.model_copy(update={"splits": 1})
        whole = Planner(one, source.planner.context, topology=source.topology)
        plan = whole.plan(
            kind,
            len(group.ranks),
            operation.size_bytes,
            root=operation.root,
            dims=group.dims,
            endpoints=tuple(group.endpoints.tolist()),
        )
        lowered = lower_plan(plan, name=f"cosim_{plan.algorithm}", protocol=self.asked_protocol())
        for difference in lowered.differences:
            report.approximated(difference, 1)
        return lowered.program


class MscclFormat(_OneCollective):
    """MSCCL XML: one collective, as thread blocks and steps"""

    protocol: Literal["Simple", "LL", "LL128"] = Field("Simple", description="what the file asks NCCL for.")
    file: str = Field(
        "algorithm.xml", pattern=r"^[^/\\]+$", description="name of the file in the output folder."
    )

    def asked_protocol(self) -> str:
        """What the scenario says."""
        return self.protocol

    def _text(self, program: MscclProgram, collective: Collective, root: int) -> str:
        del collective, root
        return write_program(program)


class MscclppFormat(_OneCollective):
    """MSCCL++ execution plan (JSON): one collective, as thread blocks that put, signal and wait"""

    file: str = Field("plan.json", pattern=r"^[^/\\]+$", description="name of the file in the output folder.")

    def _text(self, program: MscclProgram, collective: Collective, root: int) -> str:
        """It is read back and proved: data, deadlocks and races."""
        found = write_plan(program, collective)
        prove_plan(parse_plan(found, self.file), root=root)
        return found


def _member(job: ReadyJob, operation: Operation) -> int:
    """A rank that runs the operation."""
    if operation.ranks is not None:
        return operation.ranks[0]
    program = next(n for n, each in enumerate(job.programs) if operation in each.operations)
    return next(r for r, its in enumerate(job.info.workload.program_of.tolist()) if its == program)
