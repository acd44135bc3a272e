"""A list of what each job does."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from cosim.plugins import Format, LossReport, Progress, Says, Source


class Pairs(Format):
    """A line "job operation kind" for each operation of each job's programs"""

    says: ClassVar[frozenset[Says]] = frozenset({Says.COMPUTE})

    header: bool = Field(False, description="begin with a line of names")

    def write(self, source: Source, out: Path, report: LossReport, progress: Progress) -> None:
        lines = ["job operation kind"] if self.header else []
        for job in source.jobs:
            for program in job.workload.programs:
                lines += [f"{job.name} {op.name} {op.kind.value}" for op in program.operations]
        (out / "pairs.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        report.written("operations", len(lines) - self.header)
