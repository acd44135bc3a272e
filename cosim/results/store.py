"""A run as files, for `cosim compare`, for notebooks and for later; :mod:`.stored_run` reads them.

``summary.json``
    :meth:`Summary.to_json`; written last, so a directory that has it is whole.
``columns.npz``
    Everything below, without pickle; :data:`COLUMNS` says what each column is.
``messages.npz`` or ``messages.parquet``
    Every message, where it was recorded and asked for: the fields of
    :class:`~cosim.engine.records.MessageRecords`.
``scenario.yaml``
    The resolved scenario; written by whoever ran it, read for comparing settings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cosim.engine.records import CollectiveRecord, MessageRecords, Records
from cosim.errors import InputError, Location, install_extra
from cosim.results.collective_columns import collective_columns
from cosim.results.critical_path import PathStep, last_critical_paths
from cosim.results.link_users import LinkUsers
from cosim.results.optable import op_table
from cosim.results.pair_paths import PairPaths
from cosim.results.purposes import PURPOSES, purpose_of
from cosim.results.series import series_columns
from cosim.results.summary import Summary
from cosim.results.table import Array, labels
from cosim.workload.program import OpKind
from cosim.workload.table import OperationTable

FORMAT = 1
SUMMARY_FILE = "summary.json"
COLUMNS_FILE = "columns.npz"
SCENARIO_FILE = "scenario.yaml"
MESSAGE_FILES = {"npz": "messages.npz", "parquet": "messages.parquet"}

COLUMNS = {
    "format": "int64 scalar: the version of this list",
    "job_name": "str[J]: the jobs, in the order of their numbers",
    "job_endpoints": "int32: jobs' endpoints in rank order, one job after the other",
    "job_ptr": "int64[J + 1]: where each job's ranks start in job_endpoints and finish_ps",
    "finish_ps": "int64: when each rank ended its last operation",
    "iteration_end_ps": "int64: jobs' [iterations, ranks], flattened, one job after the other",
    "iteration_ptr": "int64[J + 1]: where each job starts in iteration_end_ps",
    "op_job": "int32[O], in order of the operations' ends",
    "op_iteration": "int32[O]: from 0",
    "op_rank": "int32[O]: of its job, from 0; of a folded job, the place among the simulated ranks",
    "op_op": "int32[O]: number in the rank's program",
    "op_start_ps": "int64[O]: of a collective: when the rank arrived",
    "op_end_ps": "int64[O]: of a collective: when the rank was done",
    "collective_job": "int64[C]: number of the job",
    "collective_iteration": "int64[C]: from 0",
    "collective_op": "int64[C]: number in the program of its first rank",
    "collective_name": "str[C]: of the operation",
    "collective_kind": "str[C]: all_reduce ...",
    "collective_algorithm": "str[C]: what carried it",
    "collective_size_bytes": "int64[C]: as the operation gives it",
    "collective_messages": "int64[C]: that carried it",
    "collective_start_ps": "int64[C]: first arrival",
    "collective_ready_ps": "int64[C]: last arrival",
    "collective_end_ps": "int64[C]: when its last rank was done",
    "collective_ranks": "int64: groups, one after the other",
    "collective_ranks_ptr": "int64[C + 1]: where each group starts in collective_ranks",
    "node_name": "str[nodes]: the nodes, in the order of their numbers",
    "link_src": "int32[L]: node",
    "link_dst": "int32[L]: node",
    "link_rate_bps": "float64[L]: of the topology, before any event",
    "link_latency_ps": "int64[L]: of its far end",
    "link_bytes": "int64[L]: sent over the run",
    "link_busy_ps": "int64[B, L]: time busy in each bin of link_bin_ps",
    "link_bin_ps": "int64 scalar: width of the bins of link_busy_ps",
    "traffic_src": "int32[P]: endpoint",
    "traffic_dst": "int32[P]: endpoint",
    "traffic_bytes": "int64[A, P]: arrived in each bin of traffic_bin_ps",
    "traffic_bin_ps": "int64 scalar: width of the bins of traffic_bytes",
    "fct_edges_ps": "int64[H + 1]: edges of the classes of message completion times",
    "fct_counts": "int64[H]: messages in each class",
    "topology_dims": "int64: endpoints along each dimension of the fabric, where it has some",
    "row_name": "int32[R]: of each operation of each program, its place in row_text",
    "row_kind": "int8[R]: compute, memory, collective, send, recv",
    "row_stream": "int32[R]: place in stream_name",
    "row_text": "str: what operations are called",
    "stream_name": "str: the streams, in the order of their numbers",
    "rank_row": "int64[ranks]: the row of operation 0 of each rank's program, jobs one after the other",
    "row_layer": "int8[R]: 0 computes, 1 communicates, 2 is the host, 3 loads or stores",
    "row_sent": "int8[R]: place in sent_text, -1 where it sends nothing",
    "sent_text": "str: all_reduce ..., send, receive",
    "row_purpose": "int8[R]: place in purpose_text, -1 where it sends nothing",
    "purpose_text": "str: dp, ep, pp, tp, other: what communication is for",
    "path_job": "int64[S]: steps of the critical path of each job's last iteration, in order of time",
    "path_iteration": "int64[S]: from 0",
    "path_kind": "str[S]: compute, memory, collective, send, wait, remote",
    "path_rank": "int64[S]: of the job; of a folded job, the simulated rank's place",
    "path_op": "int64[S]: number in the rank's program",
    "path_name": "str[S]: of the operation",
    "path_what": "str[S]: the same for operations alike: a phase, or a collective and its size",
    "path_src": "int64[S]: endpoint, -1 where the step is no message",
    "path_dst": "int64[S]: endpoint, the same",
    "path_start_ps": "int64[S]: the end of the step before",
    "path_end_ps": "int64[S]: the start of the step after",
    "link_counted_name": "str[K]: what the network counted on each link: marks, drops, queues ...",
    "link_counted": "float64[K, L]: those counts",
    "link_pairs": "int64[L]: pairs of endpoints that the link carried; without rows, that can't be said",
    "use_link": "int64[U]: the largest few pairs of each link, and of each job there, in the order of links",
    "use_src": "int64[U]: endpoint",
    "use_dst": "int64[U]: endpoint",
    "use_bytes": "int64[U]: payload",
    "use_job": "int64[U]: -1 where it is not one job's",
    "pair_src": "int64[W]: pairs of endpoints that sent, where there are at most 20,000",
    "pair_dst": "int64[W]: endpoint of the same pair",
    "pair_rate_bps": "float64[W]: of the slowest link of their path",
    "pair_latency_ps": "int64[W]: of all links of it",
    "shared_link": "int64[V]: the busiest links that several jobs use, a row for each job there",
    "shared_job": "int64[V]: number of that job",
    "shared_sent_bytes": "int64[V, A]: what it sent over the link in each bin of the traffic",
}

FOLDED_COLUMNS = {"job_rank_numbers": "int64[ranks]: the number that each simulated rank has in its job"}
"""Where a job is folded."""


def save(
    records: Records,
    summary: Summary,
    directory: str | Path,
    *,
    messages: Literal["npz", "parquet"] | None = None,
) -> Path:
    """Write a run; files of an earlier run in the same directory are replaced or removed.

    Raises
    ------
    InputError
        Messages are asked for but weren't recorded, Parquet without pyarrow, or a directory that can't be
        written.
    """
    target = Path(directory)
    if messages is not None and records.messages is None:
        raise InputError(
            "the run recorded no messages, so they can't be saved",
            hint="set record.messages to true: --set record.messages=true",
        )
    check_format(messages)
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in (SUMMARY_FILE, COLUMNS_FILE, *MESSAGE_FILES.values()):
            (target / name).unlink(missing_ok=True)
        _write_npz(run_columns(records), target / COLUMNS_FILE)
        if messages is not None and records.messages is not None:
            writer = _write_parquet if messages == "parquet" else _write_npz
            _save_messages(records.messages, target / MESSAGE_FILES[messages], writer)
        text = json.dumps(summary.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        (target / SUMMARY_FILE).write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"can't write the run: {error}", location=Location(str(target))) from error
    return target


def check_format(messages: Literal["npz", "parquet"] | None) -> None:
    """Whether messages can be saved so.

    Raises
    ------
    InputError
        Parquet without pyarrow.
    """
    if messages == "parquet":
        pyarrow_modules()


def run_columns(records: Records) -> dict[str, Array]:
    """Everything that is written of a run, by the names of :data:`COLUMNS`."""
    topology, ops, links, traffic = records.topology, records.ops, records.links, records.traffic
    folded = [job.rank_numbers for job in records.jobs] if any(j.folding for j in records.jobs) else None
    return {
        **({} if folded is None else {"job_rank_numbers": _joined(folded, np.int64)}),
        "format": np.int64(FORMAT),
        "job_name": np.array([job.name for job in records.jobs], np.str_),
        "job_endpoints": _joined([job.endpoints for job in records.jobs], np.int32),
        "job_ptr": _ptr([len(job.endpoints) for job in records.jobs]),
        "finish_ps": _joined(list(records.finish_ps), np.int64),
        "iteration_end_ps": _joined([ends.reshape(-1) for ends in records.iteration_end_ps], np.int64),
        "iteration_ptr": _ptr([ends.size for ends in records.iteration_end_ps]),
        **{f"op_{f.name}": getattr(ops, f.name) for f in fields(ops)},
        **_collective_columns(records.collectives),
        "node_name": np.array(topology.node_names, np.str_),
        "link_src": topology.link_src,
        "link_dst": topology.link_dst,
        "link_rate_bps": topology.link_rate_bps,
        "link_latency_ps": topology.link_latency_ps,
        "link_bytes": links.link_bytes,
        "link_busy_ps": links.busy_ps,
        "link_bin_ps": np.int64(links.bin_ps),
        "traffic_src": traffic.src,
        "traffic_dst": traffic.dst,
        "traffic_bytes": traffic.size_bytes,
        "traffic_bin_ps": np.int64(traffic.bin_ps),
        "fct_edges_ps": records.fct.edges_ps,
        "fct_counts": records.fct.counts,
        "topology_dims": np.array(topology.dims, np.int64),
        **_program_columns(records),
        **path_columns(records),
        **_counted_columns(records),
        **_user_columns(records),
        **_pair_columns(records),
        **series_columns(records.series),
    }


def _program_columns(records: Records) -> dict[str, Array]:
    """What operations are called, and on which stream they run."""
    table = op_table(records)
    named = labels([one.names[at] for one in _tables(records) for at in one.name.tolist()])
    return {
        "row_name": named.codes,
        "row_kind": table.kind,
        "row_stream": table.stream,
        "row_text": np.array(named.names, np.str_),
        "stream_name": np.array(table.streams, np.str_),
        "rank_row": table.first,
        "row_layer": table.layer,
        **_sent_columns(records),
    }


def _sent_columns(records: Records) -> dict[str, Array]:
    """What rows of operations send, and what for."""
    named: dict[str, int] = {}
    rows, purposes = [np.zeros(0, np.int8)], [np.zeros(0, np.int8)]
    for job in records.jobs:
        table = job.workload.table
        sent = [one.collective or _POINT_TO_POINT.get(one.kind, "") for one in table.prototypes]
        codes = [named.setdefault(name, len(named)) if name else -1 for name in sent]
        rows.append(np.array(codes, np.int8)[table.like])
        found = [
            PURPOSES.index(purpose_of(one, job.workload.mesh)) if name else -1
            for one, name in zip(table.prototypes, sent, strict=True)
        ]
        purposes.append(np.array(found, np.int8)[table.like])
    return {
        "row_sent": np.concatenate(rows),
        "sent_text": np.array([*named], np.str_),
        "row_purpose": np.concatenate(purposes),
        "purpose_text": np.array(PURPOSES, np.str_),
    }


_POINT_TO_POINT = {OpKind.SEND: "send", OpKind.RECV: "receive"}


def _tables(records: Records) -> list[OperationTable]:
    return [job.workload.table for job in records.jobs]


def path_columns(records: Records) -> dict[str, Array]:
    """The critical path of the last iteration that each job ended."""
    paths = last_critical_paths(records)
    steps = [(path.job, path.iteration, *step) for path in paths for step in path.steps]
    names = ("job", "iteration", *PathStep._fields)
    named = dict(zip(names, zip(*steps, strict=True), strict=False))
    texts = ("kind", "name", "what")
    return {
        f"path_{name}": np.array(named.get(name, ()), np.str_ if name in texts else np.int64)
        for name in names
    }


def _counted_columns(records: Records) -> dict[str, Array]:
    extra = {name: np.asarray(value) for name, value in records.links.extra.items()}
    links = records.topology.num_links
    kept = {name: value for name, value in extra.items() if value.shape == (links,)}
    return {
        "link_counted_name": np.array([*kept], np.str_),
        "link_counted": np.array([*kept.values()], np.float64).reshape(len(kept), links),
    }


def _pair_columns(records: Records) -> dict[str, Array]:
    found: PairPaths | None = records.info.get("pair_paths")
    kinds = {"src": np.int64, "dst": np.int64, "rate_bps": np.float64, "latency_ps": np.int64}
    return {
        f"pair_{name}": np.zeros(0, kind) if found is None else getattr(found, name)
        for name, kind in kinds.items()
    }


_SHARED = ("link", "job", "sent_bytes")


def _user_columns(records: Records) -> dict[str, Array]:
    found: LinkUsers | None = records.info.get("link_users")
    names = {"link": "link", "src": "src", "dst": "dst", "bytes": "size_bytes", "job": "job"}
    none = np.zeros(0, np.int64)
    return {
        "link_pairs": none if found is None else found.pairs,
        **{f"shared_{key}": none if found is None else getattr(found, f"shared_{key}") for key in _SHARED},
        **{f"use_{key}": none if found is None else getattr(found, name) for key, name in names.items()},
    }


def _collective_columns(records: Sequence[CollectiveRecord]) -> dict[str, Array]:
    found = collective_columns(records)
    numbers = ("job", "iteration", "op", "size_bytes", "messages", "start_ps", "ready_ps", "end_ps")
    ranks, sizes = found.ranks(np.arange(len(found)))
    return {
        **{f"collective_{name}": getattr(found, name) for name in numbers},
        "collective_name": found.name.texts(),
        "collective_kind": found.collective.texts(),
        "collective_algorithm": found.algorithm.texts(),
        "collective_ranks": ranks,
        "collective_ranks_ptr": _ptr(sizes.tolist()),
    }


def _joined(parts: list[Any], dtype: type[np.generic]) -> Array:
    return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype)


def _ptr(sizes: list[int]) -> Array:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.array(sizes, np.int64))])


def _save_messages(
    messages: MessageRecords, path: Path, write: Callable[[dict[str, Array], Path], None]
) -> None:
    write({field.name: getattr(messages, field.name) for field in fields(messages)}, path)


def _write_npz(columns: dict[str, Array], path: Path) -> None:
    # Through Any: its signature has one keyword of its own, which no column is named.
    write: Any = np.savez_compressed
    write(path, **columns)


def _write_parquet(columns: dict[str, Array], path: Path) -> None:
    arrow, parquet = pyarrow_modules()
    parquet.write_table(arrow.table(columns), path)


def pyarrow_modules() -> tuple[Any, Any]:
    """pyarrow, and its part for Parquet.

    Raises
    ------
    InputError
        It is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            "Parquet needs pyarrow, which is not installed",
            hint=install_extra("parquet") + ", or save messages as npz",
        ) from error
    return pyarrow, pyarrow.parquet
