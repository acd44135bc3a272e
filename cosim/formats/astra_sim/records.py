"""What an ASTRA-sim run said, as the records of a run of ours.

ASTRA-sim tells when each rank finished, and, traced, when each node of its workload was issued and called
back: the start and end of our operations, to the nanosecond. It counts no messages and measures no links, so
those columns are empty. Its clock has nanoseconds.

What it measures is not quite what our engine does:

- A rank *finishes* when nothing of it is left, with us when its last operation ends: the same unless a
  message of others is still to be passed on.
- *Exposed communication* is the finish less all time in GPU operations; ours has it under the same name
  (``exposed_astra``) beside the time in which communication runs and computation doesn't (``exposed``).
- A job's start is a node of its own there; it is left out here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.engine.programs import ReadyJob
from cosim.engine.records import CollectiveRecord, FctHistogram, OpRecords, Records, TrafficRecord
from cosim.errors import SimulationError
from cosim.formats.astra_sim.network import said_to_be
from cosim.network.simulator import NetworkStatistics
from cosim.translation.numbering import Numbering
from cosim.translation.source import Source
from cosim.units import PS_PER_NS
from cosim.workload.program import OpKind

I64 = NDArray[np.int64]

_FINISHED = re.compile(r"sys\[(\d+)\] finished, (\d+) cycles, exposed communication \d+ cycles")
_NODE = re.compile(r"\] (issue|callback),sys->id=(\d+), tick=(\d+), node->id=(\d+),")


def finish_times(text: str) -> dict[int, int]:
    """``sys[3] finished, 5560 cycles, ...``: nanoseconds of every NPU that says so."""
    return {int(m[1]): int(m[2]) for m in _FINISHED.finditer(text)}


@dataclass(frozen=True, eq=False)
class NodeTimes:
    """``start_ns`` and ``end_ns`` of each node that was issued: by (NPU, node)."""

    start_ns: dict[tuple[int, int], int]
    end_ns: dict[tuple[int, int], int]


def node_times(lines: Iterable[str]) -> NodeTimes:
    """From the lines of ASTRA-sim's log."""
    times = NodeTimes({}, {})
    for line in lines:
        if found := _NODE.search(line):
            into = times.start_ns if found[1] == "issue" else times.end_ns
            into[int(found[2]), int(found[4])] = int(found[3])
    return times


def records_of(
    source: Source,
    numbers: Numbering,
    network: str,
    finish_ns: dict[int, int],
    times: NodeTimes | None,
    wall_s: float,
    cpu_s: float,
    *,
    leads: bool = False,
) -> Records:
    """A run of ours.

    Parameters
    ----------
    source, numbers
        What was exported, and which NPU each rank was.
    network
        What the summary calls the network.
    finish_ns
        What each NPU said of itself.
    times
        None: there is no log of all nodes, so that there are no operations and no iterations.
    wall_s, cpu_s
        What ASTRA-sim took.
    leads
        Each rank began with a node that did nothing. It took 1 ns, which is taken off.

    Raises
    ------
    SimulationError
        An NPU did not finish; names it.
    """
    _refuse_waiting(numbers, finish_ns)
    jobs = source.ready
    finish_ps = tuple(
        np.array([finish_ns[int(npu)] * PS_PER_NS for npu in numbers.of[job.number]], np.int64)
        - _late_ps(job, leads)
        for job in jobs
    )
    ops, ends = _operations(jobs, numbers, times, leads)
    links = source.topology.num_links
    empty = np.zeros(0, np.int64)
    return Records(
        topology=said_to_be(source.topology),
        network=network,
        release="astra-sim",
        seed=source.seed,
        jobs=source.jobs,
        ops=ops,
        collectives=tuple(_collectives(jobs, ops)),
        finish_ps=finish_ps,
        iteration_end_ps=ends,
        fct=FctHistogram(np.zeros(1, np.int64), empty, 0, 0, 0),
        traffic=TrafficRecord(1, empty.astype(np.int32), empty.astype(np.int32), np.zeros((1, 0), np.int64)),
        links=NetworkStatistics(np.zeros(links, np.int64), 1, np.zeros((1, links), np.int64), 0, 0, 0),
        num_messages=0,
        end_ps=max((int(column.max(initial=0)) for column in finish_ps), default=0),
        digest=_digest((*finish_ps, ops.start_ps, ops.end_ps)),
        wall_s=wall_s,
        cpu_s=cpu_s,
    )


def _refuse_waiting(numbers: Numbering, finish_ns: dict[int, int]) -> None:
    waiting = [npu for npu, seat in enumerate(numbers.seat) if seat is not None and npu not in finish_ns]
    if waiting:
        shown = ", ".join(map(str, waiting[:8])) + (" ..." if len(waiting) > 8 else "")
        raise SimulationError(
            f"ASTRA-sim ended, but {len(waiting)} of {numbers.count} NPUs did not finish ({shown}): "
            "what they wait for never came"
        )


def _digest(columns: Iterable[I64]) -> str:
    content = hashlib.blake2b(b"ASTRA-sim", digest_size=16)
    for column in columns:
        content.update(column.tobytes())
    return content.hexdigest()


def _late_ps(job: ReadyJob, leads: bool) -> int:
    """How much later than it should a job began: its first node did nothing, for 1 ns."""
    return PS_PER_NS if leads and not job.info.start_ps else 0


def _rows(
    jobs: tuple[ReadyJob, ...], numbers: Numbering, leads: bool
) -> Iterator[tuple[int, int, int, int, int, int]]:
    """(job, iteration, rank, operation, NPU, node): operation k of an iteration is its k-th node."""
    for job in jobs:
        first = int(leads or job.info.start_ps > 0)  # a node that lasts until the job starts
        for rank, npu in enumerate(numbers.of[job.number].tolist()):
            size = len(job.program(rank).operations)
            for iteration in range(job.info.iterations):
                for op in range(size):
                    yield job.number, iteration, rank, op, npu, first + iteration * size + op


def _operations(
    jobs: tuple[ReadyJob, ...], numbers: Numbering, times: NodeTimes | None, leads: bool
) -> tuple[OpRecords, tuple[I64, ...]]:
    none = np.zeros((0, 6), np.int64)
    rows = none
    if times is not None:
        found = []
        for number, iteration, rank, op, npu, node in _rows(jobs, numbers, leads):
            start, end = times.start_ns.get((npu, node)), times.end_ns.get((npu, node))
            if start is None or end is None:
                raise SimulationError(
                    f"ASTRA-sim's log has no start or no end of node {node} of NPU {npu}, though it finished"
                )
            late = _late_ps(jobs[number], leads)
            found.append((end * PS_PER_NS - late, number, rank, op, iteration, start * PS_PER_NS - late))
        rows = np.array(sorted(found), np.int64).reshape(-1, 6)
    ended, job, ranks, ops, iterations, began = (np.ascontiguousarray(column) for column in rows.T)
    ends = []
    for one in jobs:
        done = one.info.iterations if times is not None else 0
        last = np.full((done, one.info.workload.world_size), one.info.start_ps, np.int64)
        mine = job == one.number
        np.maximum.at(last, (iterations[mine], ranks[mine]), ended[mine])
        ends.append(last)
    small = [column.astype(np.int32) for column in (job, iterations, ranks, ops)]
    return OpRecords(small[0], small[1], small[2], small[3], began, ended), tuple(ends)


def _collectives(jobs: tuple[ReadyJob, ...], ops: OpRecords) -> Iterator[CollectiveRecord]:
    """Collectives by (job, iteration, group, how many it had before), in the order of their ends."""
    groups: dict[tuple[int, int, tuple[int, ...], int], list[int]] = {}
    for at, (number, iteration, rank, op) in enumerate(
        zip(ops.job.tolist(), ops.iteration.tolist(), ops.rank.tolist(), ops.op.tolist(), strict=True)
    ):
        program = jobs[number].program(rank)
        operation = program.operations[op]
        if operation.kind is OpKind.COLLECTIVE:
            ranks = jobs[number].group(rank, operation).ranks
            groups.setdefault((number, iteration, ranks, program.occurrence[op]), []).append(at)
    for (number, iteration, ranks, _), members in sorted(groups.items(), key=lambda item: item[1][-1]):
        rank, op = int(ops.rank[members[0]]), int(ops.op[members[0]])
        operation = jobs[number].program(rank).operations[op]
        assert operation.collective is not None
        starts = ops.start_ps[members]
        yield CollectiveRecord(
            number, iteration, op, operation.name, operation.collective, "ASTRA-sim's", ranks,
            operation.size_bytes, 0, int(starts.min()), int(starts.max()), int(ops.end_ps[members].max()),
        )  # fmt: skip
