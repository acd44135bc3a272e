"""Formats ``csv`` and ``parquet``: jobs as tables of operations and dependencies.

At the level of ``operations`` (the default) nothing of our model is lost: ``workload: {kind: csv, path:
DIR}`` is the same workload again, field by field. At the level of ``messages`` each rank is a program of its
own, of computations, sends and receives, as the other message-level formats have it. Either way the tables'
columns are those of :mod:`cosim.formats.tables.schema`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from cosim.engine.records import JobInfo
from cosim.formats.tables.file import Suffix, TableWriter, check_parquet
from cosim.formats.tables.rows import dependency_columns, operation_columns
from cosim.translation.contract import Format, Progress
from cosim.translation.flat.nodes import COMPUTE
from cosim.translation.flat.view import FlatView, Part, StreamOrder
from cosim.translation.loss_report import LossReport
from cosim.translation.message_level import SAID
from cosim.translation.says import OUTSIDE, Says, count
from cosim.translation.source import Source

_JOB = frozenset({Says.PRIORITY, Says.WEIGHT})
_COLLECTIVES = (Says.ALGORITHMS, Says.ENDPOINT_DELAY, Says.REDUCTION)
"""Not in the operations: the ``collectives`` section of a scenario says them."""


class _TablesFormat(Format):
    suffix: ClassVar[Suffix]

    level: Literal["operations", "messages"] = Field(
        "operations", description="operations: as the workload has them; messages: collectives spelled out"
    )

    order: StreamOrder = Field(
        "program", description="messages: where a stream's order depends on times, the program's or a run's"
    )

    def said(self) -> frozenset[Says]:
        """Everything of a job; at the level of messages without labels."""
        return frozenset(Says) - OUTSIDE if self.level == "operations" else SAID | _JOB

    def examine(self, source: Source, report: LossReport) -> None:
        """See :meth:`Format.examine`."""
        super().examine(source, report)
        if self.level == "messages":
            FlatView(source, self.order).report_fixed(report)
        for part in _COLLECTIVES if self.level == "operations" else ():
            report.left_out(part.value, count(part, source), "the collectives section says them")
        if self.suffix == "parquet":
            check_parquet()

    def write(self, source: Source, out: Path, report: LossReport, progress: Progress) -> None:
        """See :meth:`Format.write`."""
        with TableWriter(out, self.suffix) as writer:
            for number, job in enumerate(source.jobs):
                _write_job(writer, number, job if self.level == "operations" else _unrolled(job))
                if self.level == "operations":
                    _write_operations(writer, number, job)
            if self.level == "messages":
                _write_messages(writer, source, FlatView(source, self.order), progress)
        for table, rows in writer.rows.items():
            report.written(table, rows, f"{table}.{self.suffix}")


class CsvFormat(_TablesFormat):
    """Jobs as CSV tables: operations and dependencies, or messages; nothing of the model is lost"""

    suffix: ClassVar[Suffix] = "csv"


class ParquetFormat(_TablesFormat):
    """Jobs as Parquet tables: operations and dependencies, or messages; nothing of the model is lost"""

    suffix: ClassVar[Suffix] = "parquet"


def _write_job(writer: TableWriter, number: int, job: JobInfo) -> None:
    row: dict[str, Any] = {
        "job": number, "name": job.name, "workload": job.workload.name, "iterations": job.iterations,
        "start_ps": job.start_ps, "weight": float(job.weight), "priority": job.priority,
        "rendezvous": int(job.workload.rendezvous),
    }  # fmt: skip
    writer.append("jobs", {name: [cell] for name, cell in row.items()})


def _unrolled(job: JobInfo) -> JobInfo:
    """The job as its messages say it: iterations, start and rendezvous are in the graph."""
    return replace(job, iterations=1, start_ps=0, workload=replace(job.workload, rendezvous=False))


def _write_operations(writer: TableWriter, number: int, job: JobInfo) -> None:
    workload = job.workload
    axes = workload.mesh.axes
    if axes:
        writer.append("mesh", {"job": [number] * len(axes), "axis": list(axes), "size": list(axes.values())})
    _write_ranks(writer, number, job, workload.program_of.tolist())
    names = [program.name for program in workload.programs]
    _write_programs(writer, number, names)
    for at, program in enumerate(workload.programs):
        writer.append("operations", operation_columns(number, at, program.operations))
        writer.append("dependencies", dependency_columns(number, at, [op.deps for op in program.operations]))


def _write_ranks(writer: TableWriter, number: int, job: JobInfo, program_of: list[int]) -> None:
    world = job.workload.world_size
    writer.append(
        "ranks",
        {
            "job": [number] * world,
            "rank": list(range(world)),
            "program": program_of,
            "endpoint": job.endpoints.tolist(),
        },
    )


def _write_programs(writer: TableWriter, number: int, names: list[str]) -> None:
    count = len(names)
    writer.append("programs", {"job": [number] * count, "program": list(range(count)), "name": names})


def _write_messages(writer: TableWriter, source: Source, view: FlatView, progress: Progress) -> None:
    ranks, done = sum(job.workload.world_size for job in source.jobs), 0
    for number, job in enumerate(source.jobs):
        world = job.workload.world_size
        writer.append("mesh", {"job": [number], "axis": ["rank"], "size": [world]})
        _write_ranks(writer, number, job, list(range(world)))
        _write_programs(writer, number, [f"rank {rank}" for rank in range(world)])
        for rank in range(world):
            for part in view.parts(number, rank):
                _write_part(writer, number, rank, part)
            done += 1
            progress(done, ranks, "ranks")


_KIND_NAMES = np.array(["compute", "send", "recv"])


def _write_part(writer: TableWriter, number: int, rank: int, part: Part) -> None:
    nodes = part.nodes
    count = len(nodes)
    numbers = np.arange(part.first, part.first + count)
    empty, zero = [""] * count, [0] * count
    writer.append(
        "operations",
        {
            "job": [number] * count,
            "program": [rank] * count,
            "op": numbers.tolist(),
            "name": numbers.astype(str).tolist(),
            "kind": _KIND_NAMES[nodes.kind].tolist(),
            "stream": empty,
            "duration_ps": nodes.duration_ps.tolist(),
            "flops": [0.0] * count,
            "bytes_moved": [0.0] * count,
            "collective": empty,
            "axes": empty,
            "ranks": empty,
            "size_bytes": nodes.size_bytes.tolist(),
            "root": zero,
            "peer_rank": np.where(nodes.kind == COMPUTE, "", nodes.peer.astype(str)).tolist(),
            "peer_axis": empty,
            "peer_offset": zero,
            "tag": nodes.tag.tolist(),
            "channel": nodes.channel.tolist(),
            "phase": empty,
            "access": empty,
            "ahead": zero,
        },
    )
    edges = len(nodes.dep)
    writer.append(
        "dependencies",
        {
            "job": [number] * edges,
            "program": [rank] * edges,
            "op": np.repeat(numbers, np.diff(nodes.dep_ptr)).tolist(),
            "dep": nodes.dep.tolist(),
        },
    )
