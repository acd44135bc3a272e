"""Kinds ``csv`` and ``parquet``: a job in tables, as ``cosim translate --to csv`` writes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from cosim.context import Context
from cosim.errors import Location, WorkloadError
from cosim.files.import_report import ReportBuilder
from cosim.files.text import MOST_RANKS
from cosim.formats.tables.file import Suffix, read_table
from cosim.formats.tables.rows import operation_of
from cosim.workload.check import check
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import DeviceMesh, Operation, Program, Workload


class _TablesWorkload(WorkloadSpec):
    suffix: ClassVar[Suffix]

    path: str = Field(description="the folder of the tables")
    job: int = Field(default=0, ge=0, description="which of the jobs in them")

    def build(self, context: Context) -> Workload:
        """The job's workload; iterations, start, weight, priority and endpoints are the scenario's to say.

        Raises
        ------
        WorkloadError, MismatchError, StallError
            Tables that are missing or can't be meant; names file, line and cell.
        """
        workload = _TablesReader(context.base / self.path, self.suffix, self.job).workload()
        check(workload)
        return workload


class CsvWorkload(_TablesWorkload):
    """A job in CSV tables (operations, dependencies, ranks ...), as cosim translate writes them"""

    suffix: ClassVar[Suffix] = "csv"


class ParquetWorkload(_TablesWorkload):
    """A job in Parquet tables (operations, dependencies, ranks ...), as cosim translate writes them"""

    suffix: ClassVar[Suffix] = "parquet"


class _TablesReader:
    def __init__(self, folder: Path, suffix: Suffix, job: int) -> None:
        self._folder, self._suffix, self._job = folder, suffix, job
        self._report = ReportBuilder()

    def _rows(self, table: str) -> Iterator[tuple[Location, dict[str, Any]]]:
        """One at a time: a small Parquet file may say that it has any number of equal ones."""
        count = 0
        for where, row in read_table(self._folder, table, self._suffix):
            if row["job"] == self._job:
                count += 1
                yield where, row
        self._report.read(f"row of {table}", count)

    def workload(self) -> Workload:
        """All tables, put together."""
        jobs = [*self._rows("jobs")]
        if len(jobs) != 1:
            raise WorkloadError(
                f"there are {len(jobs)} jobs of number {self._job}",
                location=Location(str(self._folder / f"jobs.{self._suffix}")),
                hint="say which as `job: 0`",
            )
        _, info = jobs[0]
        for key in ("iterations", "start_ps", "weight", "priority"):
            self._report.ignored(f"{key} {info[key]} (the scenario's job says it)")
        self._report.ignored("endpoints (the scenario's placement says them)")
        mesh = self._mesh()
        programs = self._programs()
        return Workload(
            info["workload"],
            mesh,
            programs,
            self._program_of(mesh, len(programs)),
            self._report.build(),
            bool(info["rendezvous"]),
        )

    def _mesh(self) -> DeviceMesh:
        axes: dict[str, int] = {}
        for where, row in self._rows("mesh"):
            if row["axis"] in axes:
                raise WorkloadError(f"axis {row['axis']!r} is there twice", location=where)
            if not 1 <= row["size"] <= MOST_RANKS:
                raise WorkloadError(f"size is {row['size']}", location=where, hint=f"1 to {MOST_RANKS}")
            axes[row["axis"]] = row["size"]
        return DeviceMesh(axes)

    def _programs(self) -> tuple[Program, ...]:
        names = self._numbered("programs", "program")
        deps: dict[tuple[int, int], list[int]] = defaultdict(list)
        for where, row in self._rows("dependencies"):
            self._known(where, row["program"], len(names))
            deps[row["program"], row["op"]].append(row["dep"])
        operations: list[list[Operation]] = [[] for _ in names]
        for where, row in self._rows("operations"):
            self._known(where, row["program"], len(names))
            mine = operations[row["program"]]
            if row["op"] != len(mine):
                raise WorkloadError(
                    f"op is {row['op']}",
                    location=where,
                    hint=f"operations are in order; the next is {len(mine)}",
                )
            mine.append(operation_of(where, row, tuple(deps.pop((row["program"], row["op"]), ()))))
        if deps:
            program, op = min(deps)
            raise WorkloadError(
                f"program {program} has no operation {op}, which depends on {deps[program, op][0]}",
                location=Location(str(self._folder / f"dependencies.{self._suffix}")),
            )
        return tuple(Program(row["name"], tuple(ops)) for row, ops in zip(names, operations, strict=True))

    def _known(self, where: Location, program: int, count: int) -> None:
        if not 0 <= program < count:
            raise WorkloadError(
                f"program is {program}", location=where, hint=f"there are {count} of them, from 0"
            )

    def _numbered(self, table: str, key: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for where, row in self._rows(table):
            if row[key] != len(found):
                raise WorkloadError(
                    f"{key} is {row[key]}",
                    location=where,
                    hint=f"they are in order; the next is {len(found)}",
                )
            found.append(row)
        return found

    def _program_of(self, mesh: DeviceMesh, programs: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        rows = self._numbered("ranks", "rank")
        if len(rows) != mesh.world_size:
            raise WorkloadError(
                f"there are {len(rows)} ranks, but the mesh has {mesh.world_size}",
                location=Location(str(self._folder / f"ranks.{self._suffix}")),
            )
        return np.array([min(max(row["program"], -1), programs) for row in rows], np.int32)
