"""Counters of ports: octets in and out, sample by sample, from ``.npz`` or CSV.

``.npz``: an int64 array for each port, of three rows: milliseconds, octets in, octets out since the sample
before (as Zhejiang Lab's cluster traces have them).

CSV, one header line, columns in any order: ``port``, ``time_s`` (or ``_ms``, ``_us``, ``_ns``), and either
``in_bytes`` and ``out_bytes`` since the port's sample before, or ``in_total`` and ``out_total``, counters
that run on. A counter that falls has wrapped at 2^32 where it never was above that and fell from its upper
half, else it was reset: that sample's bytes are unknown, and left out.
"""

from __future__ import annotations

import csv
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosim.captures.traffic import I64, PortCounters, TrafficCapture
from cosim.errors import InputError, Location
from cosim.units import PS_PER_MS, PS_PER_NS, PS_PER_S, PS_PER_US

UNITS = {"s": PS_PER_S, "ms": PS_PER_MS, "us": PS_PER_US, "ns": PS_PER_NS}
_LATEST_PS = 1 << 62
_ALWAYS_BYTES = 16 << 20
_MOST_TIMES = 200
_UNREADABLE = (OSError, ValueError, TypeError, KeyError, EOFError, NotImplementedError, RuntimeError)


def read_npz(path: Path) -> TrafficCapture:
    """Read counters of ports from ``.npz``.

    Raises
    ------
    InputError
        Not such a file; says which port and which sample.
    """
    ports: list[PortCounters] = []
    notes: list[str] = []
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            _check_size(path, stored.zip)
            ports += [_port(path, name, stored[name], notes) for name in stored.files]
    except InputError:
        raise
    except (*_UNREADABLE, zipfile.BadZipFile, zlib.error, SyntaxError, MemoryError) as error:
        raise InputError(
            f"broken, or no .npz of numbers: {error}",
            location=Location(str(path)),
            hint="copy it again; it holds an int64 array of three rows for each port",
        ) from error
    return _capture(path, ports, notes)


def _check_size(path: Path, packed: zipfile.ZipFile) -> None:
    """Counters whose clocks go on pack to a tenth at best."""
    most = max(_ALWAYS_BYTES, _MOST_TIMES * path.stat().st_size)
    if sum(one.file_size for one in packed.infolist()) > most:
        raise InputError(f"unpacks to more than {_MOST_TIMES} times its size", location=Location(str(path)))


def _port(path: Path, name: str, found: NDArray[np.generic], notes: list[str]) -> PortCounters:
    if found.ndim != 2 or len(found) != 3 or found.dtype.kind not in "iu":
        raise InputError(
            f"has {found.dtype} of shape {found.shape}",
            location=Location(str(path), key=name),
            hint="write int64 of three rows: milliseconds, octets in, octets out",
        )
    at, into, out = found.astype(np.int64)
    if (np.abs(at) > _LATEST_PS // PS_PER_MS).any():
        raise InputError("has a time beyond what picoseconds can be", location=Location(str(path), key=name))
    into, out = (_unwrapped(name, column, notes) for column in (into, out))
    _check(path, name, at, into, out)
    return PortCounters(name, at * PS_PER_MS, into, out)


def _check(path: Path, name: str, at: I64, into: I64, out: I64) -> None:
    back = np.flatnonzero(np.diff(at) <= 0)
    if len(back):
        raise InputError(
            f"the clock goes back or stands still at sample {int(back[0]) + 1}",
            location=Location(str(path), key=name),
            hint="sort each port's samples by time, and leave out repeated ones",
        )
    below = np.flatnonzero((into < 0) | (out < 0))
    if len(below):
        raise InputError(
            f"negative bytes at sample {int(below[0])}",
            location=Location(str(path), key=name),
            hint="give bytes since the sample before; a CSV may have running totals, in_total and out_total",
        )


def read_csv(path: Path, lines: Iterator[str]) -> TrafficCapture:
    """Read counters of ports from the lines of a CSV.

    Raises
    ------
    InputError
        A column or a number is missing or wrong; says the line.
    """
    rows = csv.reader(lines)
    samples: dict[str, list[tuple[int, int, int]]] = {}
    try:
        head = [name.strip() for name in next(rows, [])]
        unit, totals = _columns(path, head)
        kinds = ("in_total", "out_total") if totals else ("in_bytes", "out_bytes")
        where = [head.index(name) for name in ("port", f"time_{unit}", *kinds)]
        for row in rows:
            if not row:
                continue
            try:
                port, time, into, out = (row[at] for at in where)
                sample = round(float(time) * UNITS[unit]), int(into), int(out)
                if max(map(abs, sample)) >= _LATEST_PS:
                    raise ValueError("a number is too large")
            except (IndexError, ValueError, OverflowError) as error:
                raise InputError(
                    f"not a sample: {error}",
                    location=Location(str(path), rows.line_num),
                    hint=f"write {','.join(head)}; bytes are whole numbers",
                ) from error
            samples.setdefault(port, []).append(sample)
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", location=Location(str(path), rows.line_num)) from error
    notes: list[str] = []
    ports = [_from_rows(path, name, found, totals, notes) for name, found in samples.items()]
    return _capture(path, ports, notes)


def _columns(path: Path, head: list[str]) -> tuple[str, bool]:
    unit = next((unit for unit in UNITS if f"time_{unit}" in head), None)
    totals = "in_total" in head
    needed = {"port", *(("in_total", "out_total") if totals else ("in_bytes", "out_bytes"))}
    if unit is None or not needed <= set(head):
        raise InputError(
            f"not counters of ports: the columns are {', '.join(head) or 'missing'}",
            location=Location(str(path), 1),
            hint="columns: port, time_s (or _ms, _us, _ns), in_bytes, out_bytes (or in_total, out_total)",
        )
    return unit, totals


def _from_rows(
    path: Path, name: str, found: list[tuple[int, int, int]], totals: bool, notes: list[str]
) -> PortCounters:
    at, into, out = (np.array(column, np.int64) for column in zip(*found, strict=True))
    if totals:
        _check(path, name, at, np.abs(into), np.abs(out))
        into, out = (_since(name, column, notes) for column in (into, out))
    else:
        into, out = (_unwrapped(name, column, notes) for column in (into, out))
    _check(path, name, at, into, out)
    return PortCounters(name, at, into, out)


def _unwrapped(name: str, since: I64, notes: list[str]) -> I64:
    """Bytes since the sample before; a collector that subtracts says about -2^32 where 32 bits wrapped."""
    wrapped = (since > -(1 << 32)) & (since < -(1 << 31))
    notes += [f"{name}: the counter wrapped at sample {at}" for at in np.flatnonzero(wrapped).tolist()]
    return since + (wrapped.astype(np.int64) << 32)


def _since(name: str, total: I64, notes: list[str]) -> I64:
    """Bytes since the sample before, from a counter that runs on."""
    since = np.append(0, np.diff(total))
    fell = np.flatnonzero(since < 0)
    wraps = total.max(initial=0) < 1 << 32
    for at in fell.tolist():
        if wraps and total[at - 1] >= 1 << 31:
            since[at] += 1 << 32
        else:
            since[at] = 0
            notes.append(f"{name}: the counter was reset at sample {at}; its bytes there are left out")
    return since


def _capture(path: Path, ports: list[PortCounters], notes: list[str]) -> TrafficCapture:
    if not any(len(port.at_ps) > 1 for port in ports):
        raise InputError(
            "holds no port with two samples", location=Location(str(path)), hint="give a longer record"
        )
    samples = sum(len(port.at_ps) for port in ports)
    return TrafficCapture(
        str(path), "counters", ports=tuple(ports), notes=(f"{len(ports)} ports, {samples:,} samples", *notes)
    )
