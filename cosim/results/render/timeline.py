"""A timeline that opens in https://ui.perfetto.dev or chrome://tracing.

Chrome's trace-event format (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU):
a process for each rank, a thread for each stream, a complete event for each operation, and counters for
the utilisation of the busiest links. Timestamps are microseconds, with picoseconds as decimals. Operations
of one stream that overlap (receives have no limit) get a thread each, since slices of a thread must nest.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import CollectiveRecord, Records
from cosim.errors import InputError, Location
from cosim.files.whole import whole_file
from cosim.results.intervals import lanes
from cosim.results.links import bin_lengths, busiest, utilisation_over_time
from cosim.results.optable import OpTable, op_table
from cosim.units import PS_PER_US
from cosim.workload.program import NO_STREAM, Operation, OpKind

TraceEvent = dict[str, Any]
I64 = NDArray[np.int64]

_LINKS_PID = 1
_FIRST_RANK_PID = 2
_MAX_GROUP = 16


def timeline(records: Records, *, max_ranks: int = 32, max_links: int = 8) -> dict[str, Any]:
    """The trace as plain values: ``{"traceEvents": [...], "displayTimeUnit": "ns", "otherData": {...}}``.

    At most ``max_ranks`` ranks are shown, the lowest of each job, jobs in equal parts; a note in the trace
    and in ``otherData`` says how many were left out.
    """
    table = op_table(records)
    chosen = _chosen_ranks(records, max_ranks)
    events = _link_events(records, max_links)
    left_out = sum(len(job.endpoints) for job in records.jobs) - len(chosen)
    if left_out:
        text = f"{left_out} of {left_out + len(chosen)} ranks are not shown"
        events.append(
            {"ph": "i", "s": "g", "name": text, "cat": "note", "ts": 0, "pid": _LINKS_PID, "tid": 0}
        )
    details = _Details(records, chosen)
    numbers = table.ranks(records.ops)
    order = np.argsort(numbers, kind="stable")
    wanted = np.array([table.rank_base[j] + r for j, r in chosen], np.int64)
    first = np.searchsorted(numbers[order], wanted)
    last = np.searchsorted(numbers[order], wanted, side="right")
    for place, where in enumerate(chosen):
        rows = order[first[place] : last[place]]
        events += _rank_events(records, table, where, rows, _FIRST_RANK_PID + place, details)
    other = {
        "topology": records.topology.name,
        "network": records.network,
        "digest": records.digest,
        "ranks_shown": len(chosen),
        "ranks_left_out": left_out,
    }
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": other}


def write_timeline(records: Records, path: str | Path, *, max_ranks: int = 32, max_links: int = 8) -> Path:
    """Write :func:`timeline` as JSON.

    Raises
    ------
    InputError
        The file can't be written.
    """
    target = Path(path)
    text = json.dumps(timeline(records, max_ranks=max_ranks, max_links=max_links), separators=(",", ":"))
    try:
        with whole_file(target) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"can't write the timeline: {error}", location=Location(str(target))) from error
    return target


class _Details:
    """Which collective record belongs to an operation of a chosen rank."""

    def __init__(self, records: Records, chosen: list[tuple[int, int]]) -> None:
        of_job: dict[int, set[int]] = {}
        for job, rank in chosen:
            of_job.setdefault(job, set()).add(rank)
        self._found: dict[tuple[int, int, int, int], CollectiveRecord] = {}
        for c in records.collectives:
            for rank in of_job.get(c.job, set()).intersection(c.ranks):
                self._found[c.job, c.iteration, rank, c.op] = c

    def get(
        self, job: int, iteration: int, rank: int, op: int, operation: Operation, start_ps: int
    ) -> CollectiveRecord | None:
        """None where ranks number the collective differently, so that it can't be told which it is."""
        found = self._found.get((job, iteration, rank, op))
        if found is None or found.collective != operation.collective:
            return None
        return found if found.start_ps <= start_ps <= found.ready_ps else None


def _chosen_ranks(records: Records, max_ranks: int) -> list[tuple[int, int]]:
    """(job, rank) of those shown: one recorded rank of each job in turn, until there are enough."""
    recorded = records.recorded or [np.arange(len(job.endpoints)) for job in records.jobs]
    out: list[tuple[int, int]] = []
    for turn in range(max(map(len, recorded), default=0)):
        for j, ranks in enumerate(recorded):
            if turn < len(ranks) and len(out) < max_ranks:
                out.append((j, int(ranks[turn])))
        if len(out) >= max_ranks:
            break
    return sorted(out)


def _rank_events(
    records: Records, table: OpTable, where: tuple[int, int], rows: I64, pid: int, details: _Details
) -> list[TraceEvent]:
    """Names of the process and of its threads, and a complete event for each operation of one rank."""
    j, rank = where
    job, ops = records.jobs[j], records.ops
    operations = job.workload.program(rank).operations
    endpoint = records.topology.node_names[int(job.endpoints[rank])]
    events = _named(pid, f"{job.name} rank {job.rank_numbers[rank]} ({endpoint})", pid)
    streams = table.stream[table.rows(ops)[rows]] if len(rows) else np.zeros(0, np.int32)
    tid = 0
    for number in np.unique(streams):
        mine = rows[streams == number]
        lane = lanes(ops.start_ps[mine], ops.end_ps[mine])
        name = table.streams[int(number)]
        name = "receives" if name == NO_STREAM else name
        for k in range(int(lane.max()) + 1):
            events.append(_thread(pid, tid + 1 + k, name if k == 0 else f"{name} {k + 1}"))
        for row, k in zip(mine, lane, strict=True):
            i, op = int(ops.iteration[row]), int(ops.op[row])
            start, end = int(ops.start_ps[row]), int(ops.end_ps[row])
            found = details.get(j, i, rank, op, operations[op], start)
            events.append(
                {
                    "ph": "X",
                    "name": operations[op].name,
                    "cat": operations[op].kind.value,
                    "pid": pid,
                    "tid": tid + 1 + int(k),
                    "ts": start / PS_PER_US,
                    "dur": (end - start) / PS_PER_US,
                    "args": _arguments(operations[op], i, op, found),
                }
            )
        tid += int(lane.max()) + 1
    return events


def _arguments(
    operation: Operation, iteration: int, number: int, found: CollectiveRecord | None
) -> TraceEvent:
    """What a click on an operation shows."""
    args: TraceEvent = {"iteration": iteration, "operation": number}
    if operation.phase:
        args["phase"] = operation.phase
    if operation.kind in (OpKind.COLLECTIVE, OpKind.SEND, OpKind.RECV):
        args["bytes"] = operation.size_bytes
    if operation.kind is OpKind.COMPUTE and operation.flops:
        args["flops"] = operation.flops
    if operation.kind is OpKind.COLLECTIVE:
        args["collective"] = operation.collective
    if found is not None:
        shown = ", ".join(str(r) for r in found.ranks[:_MAX_GROUP])
        more = f", ... {len(found.ranks) - _MAX_GROUP} more" if len(found.ranks) > _MAX_GROUP else ""
        args["algorithm"] = found.algorithm
        args["group"] = shown + more
        args["waited_for_last_us"] = (found.ready_ps - found.start_ps) / PS_PER_US
    return args


def _link_events(records: Records, max_links: int) -> list[TraceEvent]:
    """A counter for each of the busiest links: utilisation in percent, a value where it changes."""
    events = _named(_LINKS_PID, f"network {records.network}, {records.topology.name}", 0)
    lengths = bin_lengths(records.links, records.end_ps)
    shares = utilisation_over_time(records.links, records.end_ps)
    times = np.arange(len(lengths)) * records.links.bin_ps
    for link in busiest(records.links, max_links):
        values = shares[:, link]
        name = f"link {records.topology.link_name(int(link))}"
        changes = np.flatnonzero(np.diff(values, prepend=-1.0))
        points = [(int(times[b]), round(100 * float(values[b]), 4)) for b in changes]
        for at, value in [*points, (records.end_ps, 0.0)]:
            args = {"utilisation %": value}
            events.append(
                {"ph": "C", "name": name, "pid": _LINKS_PID, "tid": 0, "ts": at / PS_PER_US, "args": args}
            )
    return events


def _named(pid: int, name: str, sort: int) -> list[TraceEvent]:
    """Name and place of a process."""
    return [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": name}},
        {
            "ph": "M",
            "name": "process_sort_index",
            "pid": pid,
            "tid": 0,
            "ts": 0,
            "args": {"sort_index": sort},
        },
    ]


def _thread(pid: int, tid: int, name: str) -> TraceEvent:
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}
