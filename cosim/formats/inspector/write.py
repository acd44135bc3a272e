"""Format ``inspector``: the collectives of a run of ours, as NCCL Inspector's verbose JSON (v4.0) has them.

A file for each rank, an object for each collective: sequence number in the communicator, bytes as NCCL counts
them, microseconds from the rank's arrival until it was done. One channel stands for all. Source of the
format: NVIDIA/nccl, ``plugins/profiler/inspector/inspector_json.cc``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

from cosim.captures.inspector import VERSION
from cosim.engine.records import CollectiveRecord, JobInfo, Records
from cosim.errors import SimulationError
from cosim.results.collectives import bus_factor, nccl_size_bytes
from cosim.translation.contract import Format, Progress
from cosim.translation.loss_report import LossReport
from cosim.translation.says import Says
from cosim.translation.source import Source
from cosim.units import PS_PER_US
from cosim.workload.program import OpKind

NAMES = {
    "all_reduce": "AllReduce",
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "all_to_all": "All2All",
    "broadcast": "Broadcast",
    "send_recv": "SendRecv",
}
"""What NCCL calls a collective; it has no barrier."""


class InspectorFormat(Format):
    """NCCL Inspector's JSON (v4.0, verbose): collectives, at the times of a run of ours"""

    says: ClassVar[frozenset[Says]] = frozenset(
        {Says.COLLECTIVES, Says.GROUPS, Says.ITERATIONS, Says.SEVERAL_JOBS, Says.START}
    )

    def write(self, source: Source, out: Path, report: LossReport, progress: Progress) -> None:
        """See :meth:`Format.write`."""
        records = source.run
        if records.interrupted:
            raise SimulationError("the run that gives the times was interrupted; nothing was written")
        lines: dict[tuple[int, int], list[str]] = defaultdict(list)
        times, places = _times(records), _SameName(records.jobs)
        numbers: dict[tuple[int, tuple[int, ...]], int] = defaultdict(int)
        written = 0
        for at, record in enumerate(sorted(records.collectives, key=lambda one: one.start_ps), 1):
            if record.collective not in NAMES:
                report.lost("barriers", 1, "NCCL has none")
                continue
            numbers[record.job, record.ranks] += 1
            for place, rank in enumerate(record.ranks):
                key = record.job, record.iteration, rank, places.operation(record, rank)
                start, end = times.get(key, (record.start_ps, record.end_ps))
                text = _line(source, record, place, rank, start, end, numbers[record.job, record.ranks])
                lines[record.job, rank].append(text)
                written += 1
            if not at % 4096:
                progress(at, len(records.collectives), "collectives")
        for (job, rank), texts in sorted(lines.items()):
            name = f"{_host(source, job, rank)}-pid{_pid(job, rank)}.log"
            (out / name).write_text("".join(texts), encoding="utf-8")
        report.written("records", written, f"{len(lines)} files, a rank each")


def _times(records: Records) -> dict[tuple[int, int, int, int], tuple[int, int]]:
    ops = records.ops
    keys = zip(*(column.tolist() for column in (ops.job, ops.iteration, ops.rank, ops.op)), strict=True)
    return dict(zip(keys, zip(ops.start_ps.tolist(), ops.end_ps.tolist(), strict=True), strict=True))


class _SameName:
    """Which operation of a rank's program a collective is: the n-th of its name on each of its ranks."""

    def __init__(self, jobs: tuple[JobInfo, ...]) -> None:
        self._jobs = jobs
        self._numbers: dict[tuple[int, int], dict[tuple[str, str], list[int]]] = {}

    def _of(self, job: int, rank: int) -> dict[tuple[str, str], list[int]]:
        workload = self._jobs[job].workload
        program = int(workload.program_of[rank])
        if (job, program) not in self._numbers:
            found: dict[tuple[str, str], list[int]] = defaultdict(list)
            for number, operation in enumerate(workload.programs[program].operations):
                if operation.kind is OpKind.COLLECTIVE:
                    found[operation.name, operation.collective].append(number)
            self._numbers[job, program] = found
        return self._numbers[job, program]

    def operation(self, record: CollectiveRecord, rank: int) -> int:
        key = record.name, record.collective
        first, mine = (self._of(record.job, one).get(key, []) for one in (record.ranks[0], rank))
        number = first.index(record.op) if record.op in first else 0
        return mine[number] if number < len(mine) else -1


def _host(source: Source, job: int, rank: int) -> str:
    return source.topology.node_names[int(source.jobs[job].endpoints[rank])].replace("/", "_")


def _pid(job: int, rank: int) -> int:
    return (job << 24) + rank + 1


def _line(
    source: Source, record: CollectiveRecord, place: int, rank: int, start: int, end: int, number: int
) -> str:
    size = record.size_bytes
    count = record.group_size
    # NCCL counts what a rank gets of a reduce-scatter, and what goes to one peer of an all-to-all.
    if record.collective in ("reduce_scatter", "all_to_all"):
        size //= count
    begin_us, end_us = start // PS_PER_US, end // PS_PER_US
    took_us = end_us - begin_us
    whole = nccl_size_bytes(record.collective, record.size_bytes, count)
    algbw = whole / 1e3 / took_us if took_us else 0.0
    kernel = {
        "channel_id": 0,
        "kernel_start_ts": begin_us,
        "kernel_stop_ts": end_us,
        "kernel_record_ts": end_us,
    }
    serial = {"channel_id": 0, "kernel_start_sn": 3, "kernel_stop_sn": 5, "kernel_record_sn": 4}
    value: dict[str, Any] = {
        "header": {
            "id": f"0x{(record.job << 32) + _group_number(record):x}",
            "comm_name": f"{source.jobs[record.job].name} {_ranks(record.ranks)}",
            "rank": place,
            "n_ranks": count,
            "nnodes": 1,
        },
        "metadata": {
            "inspector_output_format_version": VERSION,
            "git_rev": "",
            "rec_mechanism": "nccl_profiler_interface",
            "dump_timestamp_us": end_us,
            "hostname": _host(source, record.job, rank),
            "pid": _pid(record.job, rank),
        },
        "coll_perf": {
            "coll": NAMES[record.collective],
            "coll_sn": number,
            "coll_msg_size_bytes": size,
            "coll_exec_time_us": took_us,
            "coll_timing_source": "kernel_gpu",
            "coll_algobw_gbs": round(algbw, 6),
            "coll_busbw_gbs": round(algbw * bus_factor(record.collective, count), 6),
            "event_trace_sn": {"coll_start_sn": 1, "coll_stop_sn": 2, "kernel_events": [serial]},
            "event_trace_ts": {
                "coll_start_ts": begin_us,
                "coll_stop_ts": begin_us,
                "kernel_events": [kernel],
            },
        },
    }
    return json.dumps(value, separators=(",", ":")) + "\n"


def _group_number(record: CollectiveRecord) -> int:
    """A number for a group, the same in every run."""
    number = 0
    for rank in record.ranks:
        number = (number * 1_000_003 + rank + 1) & 0xFFFFFFFF
    return number


def _ranks(ranks: tuple[int, ...]) -> str:
    shown = ",".join(map(str, ranks[:8]))
    return f"[{shown},...]" if len(ranks) > 8 else f"[{shown}]"
