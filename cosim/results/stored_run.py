"""A run read back from the files that :mod:`.store` writes."""

from __future__ import annotations

import json
import math
import tokenize
import zipfile
import zlib
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.engine.records import MessageRecords, OpRecords, Series
from cosim.errors import InputError, Location
from cosim.files import located_yaml
from cosim.files.folder import settle
from cosim.results.critical_path import PathStep
from cosim.results.series import queues_table, rates_table, series_of
from cosim.results.store import (
    COLUMNS,
    COLUMNS_FILE,
    FORMAT,
    MESSAGE_FILES,
    SCENARIO_FILE,
    SUMMARY_FILE,
    pyarrow_modules,
)
from cosim.results.summary import Summary
from cosim.results.table import Array, Labels, Table
from cosim.results.tables import (
    TEXTS,
    collectives_table,
    iterations_table,
    links_table,
    messages_table,
    operations_table,
    path_table,
)
from cosim.workload.program import OpKind

if TYPE_CHECKING:
    from cosim.results.report.document import RunReport


@dataclass(frozen=True, eq=False, repr=False)
class StoredRun:
    """A run read back: the summary at once, columns and messages when they are asked for.

    Its tables are those of :class:`cosim.Run`.

    Attributes
    ----------
    directory
        Where it lies.
    summary
        What came of it.

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
    >>> stored = cosim.load_run(folder)
    >>> stored.settings["network"], stored.links.sent_bytes.sum() == run.links.sent_bytes.sum()
    ('fair_share', np.True_)
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
        return _read_npz(self.directory / COLUMNS_FILE, None)

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
        ops = OpRecords(*(self.columns[f"op_{name}"] for name in names))
        return operations_table(self._jobs, ops, self._about(ops))

    def _about(self, ops: OpRecords) -> dict[str, Array | Labels]:
        """What each operation is."""
        found = self.columns
        base = found["job_ptr"][ops.job] + ops.rank
        rows = found["rank_row"][base] + ops.op
        numbers = found.get("job_rank_numbers")
        kinds = tuple(kind.value for kind in OpKind)
        return {
            **({} if numbers is None else {"rank": numbers[base]}),
            "name": Labels(found["row_name"][rows], tuple(found["row_text"].tolist())),
            "kind": Labels(found["row_kind"][rows], kinds),
            "stream": Labels(found["row_stream"][rows], tuple(found["stream_name"].tolist())),
        }

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
        return collectives_table(columns)

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

    @cached_property
    def queues(self) -> Table:
        """Queues of links over time.

        Raises
        ------
        InputError
            The scenario didn't ask for them.
        """
        found = self.columns
        return queues_table(found["node_name"].tolist(), found["link_src"], found["link_dst"], self._series)

    @cached_property
    def rates(self) -> Table:
        """Rates of jobs and pairs of endpoints over time.

        Raises
        ------
        InputError
            The scenario didn't ask for them.
        """
        return rates_table(self._series)

    @property
    def _series(self) -> Series | None:
        return series_of(self.columns)

    def critical_path(self, job: int = 0) -> Table:
        """What followed what in the last iteration that a job ended, without a gap, first to last.

        Raises
        ------
        InputError
            There is no such job, or it ended no iteration.
        """
        found = self.columns
        if not 0 <= job < len(self._jobs):
            raise InputError(f"there is no job {job}; there are {len(self._jobs)}, from 0")
        mine = found["path_job"] == job
        if not mine.any():
            raise InputError(
                f"of job {self._jobs[job]!r} no critical path is written",
                location=Location(str(self.directory)),
                hint="it ended no iteration",
            )
        numbers = found.get("job_rank_numbers")
        own = None if numbers is None else numbers[found["job_ptr"][job] :]
        columns = [found[f"path_{name}"][mine].tolist() for name in PathStep._fields]
        return path_table([PathStep(*row) for row in zip(*columns, strict=True)], own)

    def report(self) -> RunReport:
        """The run as one HTML page that shows itself in a notebook and can be saved."""
        from cosim.results.report.document import report

        return report([self])

    @property
    def _jobs(self) -> tuple[str, ...]:
        return tuple(self.columns["job_name"].tolist())

    def __repr__(self) -> str:
        return f"<StoredRun {self.summary.name} in {self.directory}>"

    def __str__(self) -> str:
        return str(self.summary)

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()


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
    settle(path)
    for name in (SUMMARY_FILE, COLUMNS_FILE):
        if not (path / name).is_file():
            raise InputError(
                f"this is not a run: {name} is missing",
                location=Location(str(path)),
                hint="give a directory that `cosim run --out` wrote; a failed run has no summary.json",
            )
    place = path / SUMMARY_FILE
    try:
        data = json.loads(place.read_text(encoding="utf-8"), parse_float=_finite)
    except (ValueError, RecursionError) as error:  # of JSON, UTF-8, an integer of 4,301 digits
        raise InputError(f"not JSON: {error}", location=Location(str(place))) from error
    except OSError as error:
        raise InputError(
            f"can't be read: {error.strerror or error}", location=Location(str(place))
        ) from error
    try:
        summary = Summary.from_json(data)
    except InputError as error:
        raise InputError(error.message, location=Location(str(place)), hint=error.hint) from error
    _check_columns(path / COLUMNS_FILE)
    return StoredRun(path, summary)


_UNREADABLE = (
    *(OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error),
    *(NotImplementedError, RuntimeError),  # of a zip: a way of packing, or a password
    MemoryError,  # a column that says it has more rows than there can be
    tokenize.TokenError,  # of a column's header, which is Python
)


def _finite(text: str) -> float:
    """A number that fits."""
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is beyond what a number can be")
    return number


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
    except _UNREADABLE as error:
        raise _broken(path, error) from error
    if found != FORMAT:
        raise InputError(
            f"columns of format {found}; this version of cosim reads format {FORMAT}",
            location=Location(str(path)),
            hint="run the scenario again with this version of cosim",
        )
    if missing:
        raise InputError(
            f"columns are missing: {', '.join(missing)}",
            location=Location(str(path)),
            hint="run the scenario again with this version of cosim",
        )


def _read_npz(path: Path, names: tuple[str, ...] | None) -> dict[str, Array]:
    """Those named, or all."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in names or stored.files}
    except _UNREADABLE as error:
        raise _broken(path, error) from error


def _read_parquet(path: Path, names: tuple[str, ...]) -> MessageRecords:
    arrow, parquet = pyarrow_modules()
    try:
        table = parquet.read_table(path, columns=list(names))
        return MessageRecords(**{name: table[name].to_numpy() for name in names})
    except (OSError, KeyError, arrow.ArrowException) as error:
        raise _broken(path, error) from error
