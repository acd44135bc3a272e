"""A replay that checks itself: on measured communications a step has to take as long as the trace says.

Threads, streams and what waits for what are put together from a trace, which doesn't say all of it. Where the
replay differs from what was measured by more than 1 %, an answer on other communications isn't worth more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cosim.files.import_report import ReportBuilder
from cosim.formats.pytorch.measured_program import write
from cosim.units import format_time
from cosim.workload.program import DeviceMesh, Operation, Program, Workload

if TYPE_CHECKING:
    from cosim.formats.pytorch.job import TracedJob

WITHIN = 0.01


def check_replay(job: TracedJob) -> None:
    """Replay every rank on measured communications; the report says how long that takes, and doubts it."""
    written = [_program(job, rank) for rank in range(len(job.steps))]
    ends = _replayed([operations for operations, _ in written])
    took = [int(replayed.max()) - begin for replayed, begin in zip(ends, job.begin_ps, strict=True)]
    measured = [job.measured_ps(rank) for rank in range(len(took))]
    off = [abs(mine / wanted - 1) for mine, wanted in zip(took, measured, strict=True)]
    worst = max(range(len(off)), key=lambda rank: off[rank])
    job.report.read(
        f"measured time of the step, {format_time(measured[worst])}: replayed on measured communications"
        f" {took[worst] / measured[worst] - 1:+.2%}" + (f" at worst, rank {worst}" if len(off) > 1 else "")
    )
    if off[worst] > WITHIN:
        lane, since = _first_apart(job, worst, *written[worst], ends[worst])
        job.report.doubt(
            f"the step of rank {worst}",
            f"replayed on measured communications it takes {format_time(took[worst])}, but it was measured to"
            f" take {format_time(measured[worst])}: {lane} differs most, from {since} on",
            "another `step`, or a trace of a step that begins and ends with torch.cuda.synchronize()",
        )


def _program(job: TracedJob, rank: int) -> tuple[tuple[Operation, ...], dict[int, int]]:
    """A rank's program with measured collectives, which ranks still begin together; the rest as its own."""
    alone = len(job.steps) == 1
    parts = {
        call: replace(part, measured=True, alone=alone or part.alone or part.shared.number < 0)
        for call, part in job.parts[rank].items()
    }
    return write(job.steps[rank], rank, parts, job.begin_ps[rank], ReportBuilder())


def _replayed(programs: Sequence[tuple[Operation, ...]]) -> list[NDArray[np.int64]]:
    """When each operation of each rank ends, picoseconds."""
    from cosim.experiment.build import build
    from cosim.experiment.scenario import from_document
    from cosim.experiment.simulate import simulate
    from cosim.files.located_yaml import Document

    count = len(programs)
    listed = tuple(Program(f"rank {rank}", operations) for rank, operations in enumerate(programs))
    workload = Workload("as measured", DeviceMesh({"rank": count}), listed, np.arange(count, dtype=np.int32))
    fabric = {"kind": "switch", "endpoints": max(count, 2), "rate": "100Gbps", "latency": "0ns"}
    asked = {"topology": fabric, "network": "fair_share", "jobs": [{"workload": workload}]}
    scenario = from_document(Document("as measured", asked), Path(), "as measured")
    ops = simulate(scenario, build(scenario)).records.ops
    found = [np.zeros(len(operations), np.int64) for operations in programs]
    for rank, ends in enumerate(found):
        mine = ops.rank == rank
        ends[ops.op[mine]] = ops.end_ps[mine]
    return found


def _first_apart(
    job: TracedJob,
    rank: int,
    operations: Sequence[Operation],
    measured: Mapping[int, int],
    ends: NDArray[np.int64],
) -> tuple[str, str]:
    """The thread or stream whose end differs most, and the first operation on it that does."""
    step, begin = job.steps[rank], job.begin_ps[rank]
    apart = {
        op: int(ends[op]) - begin - step.lasts(step.begin, end)
        for op, end in sorted(measured.items(), key=lambda pair: pair[1])
    }
    last = {operations[op].stream: op for op in apart}
    lane = max(last, key=lambda stream: abs(apart[last[stream]]))
    first = next(
        op
        for op, own in apart.items()
        if operations[op].stream == lane and (op == last[lane] or abs(own) > WITHIN * job.measured_ps(rank))
    )
    at = format_time(step.lasts(step.begin, measured[first]))
    return step.lane_name(lane), f"{operations[first].name[:60]!r}, which ended {at} after it began,"
