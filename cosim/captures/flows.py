"""Flow records: CSV with named columns, Zeek's ``conn.log``, nfdump's CSV, HPCC's flow lists.

CSV: ``src``, ``dst``, ``size_bytes``, ``start_s`` (or ``_ms``, ``_us``, ``_ns``), and ``end_`` or
``duration_`` with a unit. nfdump's has its own names (``nfdump -o csv``), with times of a second or finer.
Zeek's record has both directions, and becomes two transfers. HPCC's list, as ns-3 takes it, has no ends: a
transfer there is a moment.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np

from cosim.captures.counters import UNITS
from cosim.captures.traffic import TrafficCapture, plain_transfers
from cosim.errors import InputError, Location
from cosim.units import PS_PER_S

NFDUMP = ("ts", "td", "sa", "da", "ibyt")
"""Columns that nfdump's CSV has, by which it is known."""
_LATEST_PS = 1 << 62
_LONGEST = 24
"""Digits of a time, before the point."""
Row = tuple[str, str, int, int, int]
"""Source, destination, bytes, start and end in picoseconds."""


def read_flow_csv(path: Path, lines: Iterator[str]) -> TrafficCapture:
    """Read flow records from CSV.

    Raises
    ------
    InputError
        A column or a value is missing or wrong; says the line.
    """
    rows = csv.reader(lines)
    try:
        head = [name.strip() for name in next(rows, [])]
        reader = _nfdump(head) if {*NFDUMP} <= {*head} else _named(path, head)
        found = _FlowRows(path, "flow records")
        for row in rows:
            if row and not row[0].startswith("Summary"):
                found.add(reader, row, rows.line_num)
            elif row:
                break  # what nfdump adds below
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", location=Location(str(path), rows.line_num)) from error
    return found.capture()


def read_zeek(path: Path, lines: Iterator[str]) -> TrafficCapture:
    """Read Zeek's ``conn.log``, tab-separated.

    Raises
    ------
    InputError
        It is no ``conn.log``, or a value is wrong; says the line.
    """
    fields: list[str] = []
    found = _FlowRows(path, "Zeek's connections")
    for number, line in enumerate(lines, 1):
        cells = line.rstrip("\r\n").split("\t")
        if cells[0] == "#fields":
            fields = cells[1:]
            missing = {"ts", "id.orig_h", "id.resp_h", "orig_bytes", "resp_bytes", "duration"} - set(fields)
            if missing:
                raise InputError(
                    f"no conn.log: {', '.join(sorted(missing))} missing among its fields",
                    location=Location(str(path), number),
                    hint="give conn.log; other logs of Zeek have no bytes",
                )
        elif not cells[0].startswith("#") and line.strip():
            if not fields:
                raise InputError("no #fields line before", location=Location(str(path), number))
            for back in (False, True):
                found.add(_zeek(fields, back), cells, number)
    return found.capture()


def read_flow_list(path: Path, lines: Iterator[str]) -> TrafficCapture:
    """Read HPCC's flow list: a number, then ``src dst priority port bytes start`` in each line.

    Raises
    ------
    InputError
        A value is wrong, or lines are missing; says the line.
    """
    count = int(next(lines).strip())
    found = _FlowRows(path, "flow list")
    for number, line in enumerate(lines, 2):
        if line.strip():
            found.add(_hpcc, line.split(), number)
    if found.count != count:
        raise InputError(
            f"{found.count:,} flows, and its first line says {count:,}",
            location=Location(str(path), 1),
            hint="copy it again: it was cut, or its first line is wrong",
        )
    return found.capture()


def _hpcc(cells: Sequence[str]) -> Row:
    src, dst, _, _, size, start = cells
    at = _time(start, PS_PER_S)
    return src, dst, int(size), at, at


def _zeek(fields: list[str], back: bool) -> Callable[[Sequence[str]], Row | None]:
    at = {name: fields.index(name) for name in ("ts", "id.orig_h", "id.resp_h", "duration")}
    size_at = fields.index("resp_bytes" if back else "orig_bytes")

    def read(cells: Sequence[str]) -> Row | None:
        if cells[size_at] in ("-", "0") or cells[at["duration"]] == "-":
            return None
        start = _time(cells[at["ts"]], PS_PER_S)
        ends = cells[at["id.orig_h"]], cells[at["id.resp_h"]]
        src, dst = ends[::-1] if back else ends
        return src, dst, int(cells[size_at]), start, start + _time(cells[at["duration"]], PS_PER_S)

    return read


def _nfdump(head: list[str]) -> Callable[[Sequence[str]], Row]:
    ts, td, sa, da, size = (head.index(name) for name in NFDUMP)

    def read(cells: Sequence[str]) -> Row:
        moment = datetime.fromisoformat(cells[ts].strip()).replace(tzinfo=UTC)
        start = round(moment.timestamp() * 1e6) * 1_000_000
        return (
            cells[sa].strip(),
            cells[da].strip(),
            int(cells[size]),
            start,
            start + _time(cells[td], PS_PER_S),
        )

    return read


def _named(path: Path, head: list[str]) -> Callable[[Sequence[str]], Row]:
    def with_unit(kind: str) -> tuple[int, int] | None:
        found = [(head.index(f"{kind}_{unit}"), UNITS[unit]) for unit in UNITS if f"{kind}_{unit}" in head]
        return found[0] if found else None

    start, end, duration = map(with_unit, ("start", "end", "duration"))
    if not {"src", "dst", "size_bytes"} <= set(head) or start is None or (end or duration) is None:
        raise InputError(
            f"not flow records: the columns are {', '.join(head)}",
            location=Location(str(path), 1),
            hint="columns: src, dst, size_bytes, start_s (or _ms, _us, _ns), and end_s or duration_s",
        )
    src_at, dst_at, size_at = (head.index(name) for name in ("src", "dst", "size_bytes"))
    start_at, unit = start

    def read(cells: Sequence[str]) -> Row:
        begin = _time(cells[start_at], unit)
        if end is not None:
            last = _time(cells[end[0]], end[1])
        else:
            assert duration is not None
            last = begin + _time(cells[duration[0]], duration[1])
        return cells[src_at].strip(), cells[dst_at].strip(), int(cells[size_at]), begin, last

    return read


def _time(text: str, unit: int) -> int:
    value = Decimal(text.strip())
    if not value.is_finite() or value.adjusted() > _LONGEST:
        raise ValueError(f"{text} is no time")
    return int(value * unit)


class _FlowRows:
    """Rows, as transfers; times from the first row's on, so that they fit."""

    def __init__(self, path: Path, kind: str) -> None:
        self._path, self._kind = path, kind
        self._hosts: dict[str, int] = {}
        self._rows: list[tuple[int, int, int, int, int]] = []
        self._zero: int | None = None
        self.count = 0

    def add(self, read: Callable[[Sequence[str]], Row | None], cells: Sequence[str], line: int) -> None:
        try:
            self.count += 1
            row = read(cells)
            if row is None:
                return
            src, dst, size, start, end = row
            if not src or not dst:
                raise ValueError("a host has no name")
            if size < 0 or end < start:
                raise ValueError("bytes below 0" if size < 0 else "it ends before it starts")
            self._zero = start if self._zero is None else self._zero
            begin, last = start - self._zero, end - self._zero
            if max(abs(begin), abs(last), size) >= _LATEST_PS:
                raise ValueError("times lie over 53 days apart, or bytes are too many")
        except (ValueError, IndexError, InvalidOperation, OverflowError) as error:
            what = "a number is wrong" if isinstance(error, InvalidOperation) else str(error)
            raise InputError(
                f"not a flow: {what}",
                location=Location(str(self._path), line),
                hint="correct the line, or take it out",
            ) from error
        ends = (self._hosts.setdefault(name, len(self._hosts)) for name in (src, dst))
        self._rows.append((*ends, size, begin, last))  # type: ignore[arg-type]

    def capture(self) -> TrafficCapture:
        if not self._rows:
            raise InputError(
                "holds no flow with bytes", location=Location(str(self._path)), hint="give a longer record"
            )
        src, dst, size, start, end = np.array(self._rows, np.int64).T
        order = np.lexsort((end, start))
        ends = src[order].astype(np.int32), dst[order].astype(np.int32)
        rest = (column[order] for column in (size, start, end))
        transfers = plain_transfers(tuple(self._hosts), *ends, *rest)
        return TrafficCapture(str(self._path), self._kind, transfers, notes=(f"{len(transfers):,} flows",))
