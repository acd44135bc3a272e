"""NCCL Inspector's JSON, format v4.0: what each rank logged of each collective and send.

Source: NVIDIA/nccl, ``plugins/profiler/inspector/inspector_json.cc``: an object a line, with ``header``
(communicator, rank, ranks), ``metadata`` (version, host, time of the dump) and ``coll_perf`` or ``p2p_perf``.
With ``NCCL_INSPECTOR_DUMP_VERBOSE=1`` they have times of events; without, a start isn't known. A folder is
read whole: ``*.log``, ``*.json``, ``*.jsonl``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.captures.traffic import LoggedCollectives, TrafficCapture
from cosim.errors import InputError, Location
from cosim.units import PS_PER_US

VERSION = "v4.0"
_SUFFIXES = (".log", ".json", ".jsonl")
_MOST = 1 << 62
_BLOCK = 1 << 16
_WRONG = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


def is_inspector(begin: bytes) -> bool:
    """Whether a file that begins so is Inspector's."""
    return begin.lstrip().startswith(b"{") and b'"header"' in begin and b'"metadata"' in begin


def inspector_files(folder: Path) -> list[Path]:
    """Inspector's files in a folder, sorted."""
    return sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES and _is_inspectors(path))


def _is_inspectors(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return is_inspector(file.read(4096))


def read_inspector(path: Path, files: Sequence[Path] | None = None) -> TrafficCapture:
    """Read a file, or a folder of ``files``.

    Raises
    ------
    InputError
        No record, another version, a line that can't be read; says the line.
    """
    rows = _LogRows()
    cut = []
    files = [path] if files is None else files
    for file in files:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    rows.add(json.loads(line))
                except _WRONG as error:
                    if not line.endswith(b"\n"):  # the rank was killed while it wrote
                        cut.append(file.name)
                        break
                    what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                    raise InputError(
                        f"not a record of Inspector's: {what}",
                        location=Location(str(file), number),
                        hint=f"format {VERSION} has header, metadata, coll_perf or p2p_perf; take it out",
                    ) from error
    if not len(rows):
        raise InputError(
            "holds no record of NCCL Inspector's",
            location=Location(str(path)),
            hint="NCCL_INSPECTOR_ENABLE=1; it writes when communicators end, or at an interval",
        )
    logged = rows.logged()
    notes = [f"{len(files)} files, {len(logged):,} records of {len(logged.groups)} communicators"]
    if cut:
        notes.append(f"{len(cut)} files end within a record: {', '.join(cut[:3])}")
    untimed = int((logged.start_ps < 0).sum())
    if untimed:
        notes.append(
            f"{untimed:,} records have no times of events (NCCL_INSPECTOR_DUMP_VERBOSE=1 gives them)"
        )
    return TrafficCapture(str(path), "NCCL Inspector", collectives=logged, notes=tuple(notes))


class _LogRows:
    def __init__(self) -> None:
        self._values: list[tuple[int, ...]] = []
        self._blocks: list[NDArray[np.int64]] = []
        self._groups: dict[str, int] = {}
        self._kinds: dict[str, int] = {}
        self._processes: dict[str, int] = {}

    def add(self, record: Any) -> None:
        metadata = record["metadata"]
        version = metadata["inspector_output_format_version"]
        if version != VERSION:
            raise ValueError(f"format {version}, and {VERSION} is read")
        header = record["header"]
        word = "coll" if "coll_perf" in record else "p2p"
        perf = record[f"{word}_perf"]
        times = perf.get("event_trace_ts")
        start_us = -1
        if times is not None:
            kernels = [one["kernel_start_ts"] for one in times["kernel_events"] if one["kernel_start_ts"]]
            start_us = min(kernels) if kernels else times[f"{word}_start_ts"]
        numbers = (
            int(header["rank"]),
            int(header["n_ranks"]),
            int(perf[f"{word}_sn"]),
            int(perf[f"{word}_msg_size_bytes"]),
            int(perf[f"{word}_exec_time_us"]),
            int(start_us),
            int(perf["p2p_peer"]) if word == "p2p" else -1,
        )
        rank, ranks, number, size, took, _, peer = numbers
        if not 0 <= rank < ranks <= 1 << 24 or not -1 <= peer < ranks:
            raise ValueError(f"rank {rank}, peer {peer} of {ranks} ranks")
        if min(number, size, took) < 0 or max(numbers) >= _MOST:
            raise ValueError("a number below 0, or too large")
        if took >= _MOST // PS_PER_US:
            raise ValueError(f"{took} us")
        group = self._groups.setdefault(f"{header['id']}", len(self._groups))
        kind = self._kinds.setdefault(f"{perf[word]}", len(self._kinds))
        name = f"{metadata['hostname']}:{metadata['pid']}"
        process = self._processes.setdefault(name, len(self._processes))
        self._values.append((group, kind, *numbers, process))
        if len(self._values) == _BLOCK:
            self._pack()

    def _pack(self) -> None:
        """Keep rows as columns, which take a tenth of the memory."""
        if self._values:
            self._blocks.append(np.array(self._values, np.int64).T)
            self._values = []

    def __len__(self) -> int:
        return len(self._values) + sum(len(block.T) for block in self._blocks)

    def _columns(self) -> NDArray[np.int64]:
        self._pack()
        return np.concatenate(self._blocks, axis=1)

    def logged(self) -> LoggedCollectives:
        group, kind, rank, ranks, number, size, took, start, peer, process = self._columns()
        timed = start >= 0
        zero = int(start[timed].min()) if timed.any() else 0
        since = np.minimum(np.where(timed, start - zero, 0), (_MOST // PS_PER_US) - 1)
        return LoggedCollectives(
            tuple(self._groups),
            tuple(self._kinds),
            group.astype(np.int32),
            rank.astype(np.int32),
            ranks.astype(np.int32),
            kind.astype(np.int32),
            number,
            size,
            took * PS_PER_US,
            np.where(timed, since * PS_PER_US, -1),
            peer.astype(np.int32),
            tuple(self._processes),
            process.astype(np.int32),
        )
