"""A run as files, for `cosim compare`, for notebooks and for later.

``summary.json``
    :meth:`Summary.to_json`; written last, so a directory that has it is whole.
``columns.npz``
    Everything below, without pickle; :data:`COLUMNS` says what each column is.
``messages.npz`` or ``messages.parquet``
    Every message, where it was recorded and asked for: the fields of
    :class:`~cosim.engine.records.MessageRecords`.
``scenario.yaml``
    The resolved scenario; written by whoever ran it, read here for comparing settings.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cosim.engine.records import CollectiveRecord, MessageRecords, OpRecords, Records
from cosim.errors import InputError, Location
from cosim.files import located_yaml
from cosim.results.summary import Summary
from cosim.results.table import Array, Labels, Table
from cosim.results.tables import (
    TEXTS,
    collectives_table,
    iterations_table,
    links_table,
    messages_table,
    operations_table,
)

FORMAT = 1
SUMMARY_FILE = "summary.json"
COLUMNS_FILE = "columns.npz"
SCENARIO_FILE = "scenario.yaml"
MESSAGE_FILES = {"npz": "messages.npz", "parquet": "messages.parquet"}

COLUMNS = {
    "format": "int64 scalar: the version of this list",
    "job_name": "str[J]",
    "job_endpoints": "int32: jobs' endpoints in rank order, one job after the other",
    "job_ptr": "int64[J + 1]: where each job's ranks start in job_endpoints and finish_ps",
    "finish_ps": "int64: when each rank ended its last operation",
    "iteration_end_ps": "int64: jobs' [iterations, ranks], flattened, one job after the other",
    "iteration_ptr": "int64[J + 1]: where each job starts in iteration_end_ps",
    "op_job": "int32[O], in order of the operations' ends",
    "op_iteration": "int32[O]",
    "op_rank": "int32[O]",
    "op_op": "int32[O]: number in the rank's program",
    "op_start_ps": "int64[O]",
    "op_end_ps": "int64[O]",
    "collective_job": "int64[C]",
    "collective_iteration": "int64[C]",
    "collective_op": "int64[C]",
    "collective_name": "str[C]",
    "collective_kind": "str[C]",
    "collective_algorithm": "str[C]",
    "collective_size_bytes": "int64[C]",
    "collective_messages": "int64[C]",
    "collective_start_ps": "int64[C]: first arrival",
    "collective_ready_ps": "int64[C]: last arrival",
    "collective_end_ps": "int64[C]",
    "collective_ranks": "int64: groups, one after the other",
    "collective_ranks_ptr": "int64[C + 1]",
    "node_name": "str[nodes]",
    "link_src": "int32[L]: node",
    "link_dst": "int32[L]: node",
    "link_rate_bps": "float64[L]",
    "link_latency_ps": "int64[L]",
    "link_bytes": "int64[L]",
    "link_busy_ps": "int64[B, L]: time busy in each bin",
    "link_bin_ps": "int64 scalar",
    "traffic_src": "int32[P]: endpoint",
    "traffic_dst": "int32[P]: endpoint",
    "traffic_bytes": "int64[B, P]: arrived in each bin",
    "traffic_bin_ps": "int64 scalar",
    "fct_edges_ps": "int64[H + 1]",
    "fct_counts": "int64[H]",
}


@dataclass(frozen=True, eq=False, repr=False)
class StoredRun:
    """A run read back: the summary at once, columns and messages when they are asked for.

    Its tables are those of :class:`cosim.Run`, but for what operations are called, which isn't written.
    """

    directory: Path
    summary: Summary

    @property
    def digest(self) -> str:
        """A hex string over every completion and every operation's start and end."""
        return self.summary.digest

    @cached_property
    def columns(self) -> dict[str, Array]:
        """All columns of ``columns.npz`` by name."""
        return _read_npz(self.directory / COLUMNS_FILE, tuple(COLUMNS))

    @cached_property
    def settings(self) -> Any:
        """The resolved scenario as plain values, or None where there is no ``scenario.yaml``."""
        path = self.directory / SCENARIO_FILE
        return located_yaml.read(path, InputError).value if path.exists() else None

    @cached_property
    def message_records(self) -> MessageRecords | None:
        """Every message as the engine wrote it, or None where they weren't saved."""
        names = tuple(field.name for field in fields(MessageRecords))
        if (path := self.directory / MESSAGE_FILES["npz"]).exists():
            return MessageRecords(**_read_npz(path, names))
        if (path := self.directory / MESSAGE_FILES["parquet"]).exists():
            return _read_parquet(path, names)
        return None

    @cached_property
    def operations(self) -> Table:
        """Every operation that ended, of every simulated rank."""
        names = [field.name for field in fields(OpRecords)]
        return operations_table(self._jobs, OpRecords(*(self.columns[f"op_{name}"] for name in names)), {})

    @cached_property
    def collectives(self) -> Table:
        """Every collective of every group; of folded jobs, those of the simulated ranks."""
        stored = {"operation": "op", "collective": "kind"}
        columns: dict[str, Array | Labels] = {
            name: self.columns[f"collective_{stored.get(name, name)}"]
            for name in TEXTS["collectives"]
            if name not in ("job", "group_size")
        }
        columns["job"] = Labels(self.columns["collective_job"], self._jobs)
        columns["group_size"] = np.diff(self.columns["collective_ranks_ptr"])
        return collectives_table({name: columns[name] for name in TEXTS["collectives"]})

    @cached_property
    def messages(self) -> Table:
        """Every message.

        Raises
        ------
        InputError
            They weren't saved.
        """
        return messages_table(self._jobs, self.message_records)

    @cached_property
    def links(self) -> Table:
        """Every link."""
        numbers = {name: self.columns[f"link_{name}"] for name in ("rate_bps", "latency_ps")}
        numbers |= {"sent_bytes": self.columns["link_bytes"]}
        numbers |= {"busy_ps": self.columns["link_busy_ps"].sum(axis=0)}
        src, dst = self.columns["link_src"], self.columns["link_dst"]
        return links_table(self.columns["node_name"].tolist(), src, dst, numbers, self.summary.end_ps)

    @cached_property
    def iterations(self) -> Table:
        """Every iteration that all ranks of its job ended."""
        ptr, ends = self.columns["iteration_ptr"], self.columns["iteration_end_ps"]
        ranks = np.diff(self.columns["job_ptr"])
        parts = [ends[a:b].reshape(-1, count) for a, b, count in zip(ptr[:-1], ptr[1:], ranks, strict=True)]
        return iterations_table(self._jobs, [job.start_ps for job in self.summary.jobs], parts)

    @property
    def _jobs(self) -> tuple[str, ...]:
        return tuple(self.columns["job_name"].tolist())

    def __repr__(self) -> str:
        return f"<StoredRun {self.summary.name} in {self.directory}>"

    def __str__(self) -> str:
        return str(self.summary)

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()


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
        _write_npz(_columns(records), target / COLUMNS_FILE)
        if messages is not None and records.messages is not None:
            writer = _write_parquet if messages == "parquet" else _write_npz
            _save_messages(records.messages, target / MESSAGE_FILES[messages], writer)
        text = json.dumps(summary.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        (target / SUMMARY_FILE).write_text(text + "\n", encoding="utf-8")
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
        _pyarrow()


def load_run(directory: str | Path) -> StoredRun:
    """Read a run that ``cosim run --out``, or :func:`cosim.run` with ``out``, wrote.

    Returns
    -------
    StoredRun
        ``summary``, ``settings`` and the tables of :class:`cosim.Run`; columns are read when asked for.

    Raises
    ------
    InputError
        Not such a directory, a file missing or broken, or another format; says which.

    Examples
    --------
    >>> import tempfile
    >>> import cosim
    >>> folder = tempfile.mkdtemp()
    >>> run = cosim.run('''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''', out=folder)
    >>> again = cosim.load_run(folder)
    >>> again.digest == run.digest, again.iterations.duration_ps
    (True, array([600000000]))
    """
    path = Path(directory)
    if not path.is_dir():
        raise InputError(f"there is no directory {str(path)!r}", hint="give what `cosim run --out` wrote")
    for name in (SUMMARY_FILE, COLUMNS_FILE):
        if not (path / name).is_file():
            raise InputError(
                f"this is not a run: {name} is missing",
                location=Location(str(path)),
                hint="give a directory that `cosim run --out` wrote; a failed run has no summary.json",
            )
    place = path / SUMMARY_FILE
    try:
        data = json.loads(place.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not JSON: {error}", location=Location(str(place))) from error
    try:
        summary = Summary.from_json(data)
    except InputError as error:
        raise InputError(error.message, location=Location(str(place)), hint=error.hint) from error
    _check_columns(path / COLUMNS_FILE)
    return StoredRun(path, summary)


def _columns(records: Records) -> dict[str, Array]:
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
    }


def _collective_columns(records: Sequence[CollectiveRecord]) -> dict[str, Array]:
    collectives = tuple(records)  # each made once
    numbers = ("job", "iteration", "op", "size_bytes", "messages", "start_ps", "ready_ps", "end_ps")
    out: dict[str, Array] = {
        f"collective_{name}": np.array([getattr(c, name) for c in collectives], np.int64) for name in numbers
    }
    for column, name in (("name", "name"), ("kind", "collective"), ("algorithm", "algorithm")):
        out[f"collective_{column}"] = np.array([getattr(c, name) for c in collectives], np.str_)
    out["collective_ranks"] = _joined([np.array(c.ranks, np.int64) for c in collectives], np.int64)
    out["collective_ranks_ptr"] = _ptr([len(c.ranks) for c in collectives])
    return out


def _joined(parts: list[Any], dtype: type[np.generic]) -> Array:
    return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype)


def _ptr(sizes: list[int]) -> Array:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.array(sizes, np.int64))])


def _broken(path: Path, error: Exception) -> InputError:
    return InputError(
        f"broken, or not what cosim wrote: {error}",
        location=Location(str(path)),
        hint="copy the run again, or run the scenario again",
    )


def _check_columns(path: Path) -> None:
    """Look at the table of contents only; columns are read when asked for."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            missing = [name for name in COLUMNS if name not in stored.files]
            found = None if "format" not in stored.files else int(stored["format"])
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise _broken(path, error) from error
    if found != FORMAT:
        raise InputError(
            f"columns of format {found}; this version of cosim reads format {FORMAT}",
            location=Location(str(path)),
            hint="run the scenario again with this version of cosim",
        )
    if missing:
        raise InputError(f"columns are missing: {', '.join(missing)}", location=Location(str(path)))


def _read_npz(path: Path, names: tuple[str, ...]) -> dict[str, Array]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in names}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise _broken(path, error) from error


def _save_messages(
    messages: MessageRecords, path: Path, write: Callable[[dict[str, Array], Path], None]
) -> None:
    write({field.name: getattr(messages, field.name) for field in fields(messages)}, path)


def _write_npz(columns: dict[str, Array], path: Path) -> None:
    # Through Any: its signature has one keyword of its own, which no column is named.
    write: Any = np.savez_compressed
    write(path, **columns)


def _write_parquet(columns: dict[str, Array], path: Path) -> None:
    arrow, parquet = _pyarrow()
    parquet.write_table(arrow.table(columns), path)


def _read_parquet(path: Path, names: tuple[str, ...]) -> MessageRecords:
    arrow, parquet = _pyarrow()
    try:
        table = parquet.read_table(path, columns=list(names))
        return MessageRecords(**{name: table[name].to_numpy() for name in names})
    except (OSError, KeyError, arrow.ArrowException) as error:
        raise _broken(path, error) from error


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            "Parquet needs pyarrow, which is not installed",
            hint="pip install 'cosim-net[parquet]', or save messages as npz",
        ) from error
    return pyarrow, pyarrow.parquet
