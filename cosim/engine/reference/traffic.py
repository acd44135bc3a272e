"""How much a job sends in an iteration, which job-aware congestion controls are told."""

from __future__ import annotations

import numpy as np

from cosim.engine.plans import Plans
from cosim.engine.programs import ReadyJob, ReadyProgram
from cosim.workload.operation import OpKind


def iteration_bytes(job: ReadyJob, plans: Plans) -> int:
    """Bytes that one iteration of a job sends, over all its ranks; plans its collectives on the way."""
    program_of = job.info.workload.program_of
    total = 0
    for number in np.unique(program_of).tolist():
        members = np.flatnonzero(program_of == number)
        each = _bytes_of_rank(job, job.programs[number], int(members[0]), plans)
        total += round(each * len(members) * job.info.copies)
    return total


def _bytes_of_rank(job: ReadyJob, program: ReadyProgram, member: int, plans: Plans) -> float:
    """Bytes that one iteration of a rank sends, of collectives its share."""
    mine, shares = 0.0, dict[tuple[object, ...], float]()
    for one in program.operations:
        if one.kind is OpKind.SEND or (one.access and job.info.memory_nodes is not None):
            mine += one.size_bytes
        elif one.kind is OpKind.COLLECTIVE:
            key = one.collective, one.size_bytes, one.root, one.axes, one.ranks
            if key not in shares:
                group = job.group(member, one)
                shares[key] = plans.whole(one, group).total_bytes / len(group.members)
            mine += shares[key]
    return mine
