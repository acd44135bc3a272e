"""Kind ``flow-list``: the flow file of HPCC's and SimAI's ns-3, as a workload that sends at given times.

The first line is the number of flows; each other line is ``src dst pg dport size start``: nodes, priority
group, destination port, bytes, and seconds. Open loop: nothing waits for anything. Source: the
``FLOW_FILE`` of HPCC (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019,
doi:10.1145/3341302.3342085).
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Context as Precision
from decimal import Decimal, InvalidOperation
from itertools import islice
from operator import eq
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import Field, PositiveInt

from cosim.context import Context
from cosim.errors import Location, WorkloadError
from cosim.files.import_report import ReportBuilder
from cosim.files.text import MOST_RANKS, lines_of
from cosim.units import NEVER
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import Workload
from cosim.workload.table import I64
from cosim.workload.timed_flows import TimedFlows

_END = ";"
_BLOCK = 1 << 16
"""Lines that are read at once."""
_EXACT = Precision(prec=60)
"""Digits enough for any time of less than 40 characters."""


class Flow(NamedTuple):
    """One line: nodes, priority group, destination port, bytes, and when it starts."""

    src: int
    dst: int
    priority_group: int
    port: int
    size_bytes: int
    start_ps: int


class FlowListWorkload(WorkloadSpec):
    """A flow list of HPCC's or SimAI's ns-3 (src dst pg dport size start): sends at given times"""

    path: str = Field(description="the file")
    nodes: PositiveInt | None = Field(
        default=None, le=MOST_RANKS, description="ranks; default: up to the last node that the file names"
    )

    def build(self, context: Context) -> Workload:
        """Read the flows; ``path`` is relative to ``context.base``.

        Raises
        ------
        WorkloadError
            A file that is missing or can't be meant; names file and line.
        """
        path = context.base / self.path
        flows = read_columns(path)
        last = int(max(flows.src.max(initial=0), flows.dst.max(initial=0)))
        count = self.nodes if self.nodes is not None else last + 1
        if last >= count:
            raise WorkloadError(
                f"names node {last}, but nodes is {count}",
                location=Location(str(path)),
                hint=f"nodes: {last + 1}",
            )
        report = ReportBuilder()
        report.read("flow", len(flows))
        report.ignored("pg, the priority group of a flow (a job has a priority)", len(flows))
        report.ignored("dport, the port of a flow", len(flows))
        return flows.workload(path.stem, count, report)


def read_columns(path: Path) -> TimedFlows:
    """Flows in file order.

    Raises
    ------
    WorkloadError
        As :func:`read_flows` does.
    """
    lines = (text for _, text in lines_of(path))
    begin = next(lines, "").strip()
    blocks = [np.zeros((4, 0), np.int64)]
    plain = _is_number(begin)
    while plain and (block := list(islice(lines, _BLOCK))):
        found = _plain(block)
        plain = found is not None
        blocks += [] if found is None else [found]
    # Whatever isn't plain is looked at line by line, which says what is wrong, if anything is.
    if not plain or int(begin) != sum(one.shape[1] for one in blocks):
        flows = [(one.src, one.dst, one.size_bytes, one.start_ps) for one in read_flows(path)]
        blocks = [np.array(flows, np.int64).reshape(-1, 4).T]
    return TimedFlows(*np.concatenate(blocks, axis=1))


def _plain(lines: list[str]) -> I64 | None:
    """int64[4, flows]: ``src``, ``dst``, ``size``, ``start`` of lines that :func:`_flow` takes; or None."""
    # One flat list: lists for lines would have the garbage collector look at all of them again and again.
    words = f" {_END} ".join([*lines, ""]).split()
    if len(words) != 7 * len(lines) or {*words[6::7]} != {_END}:
        return None
    src, dst, group, port, size, start = (words[k::7] for k in range(6))
    for column in (src, dst, group, port, size):
        digits = "".join(column)
        if not (digits.isascii() and digits.isdigit()) or max(map(len, column)) >= 20:
            return None
    times = {text: _picoseconds(text) for text in {*start}}
    found = [*([*map(int, column)] for column in (src, dst, size)), [round(times[text]) for text in start]]
    right = (
        max(*found[0], *found[1]) < MOST_RANKS
        and not any(map(eq, found[0], found[1]))
        and max(found[2]) <= NEVER
        and 0 <= min(times.values()) <= max(times.values()) <= NEVER
    )
    return np.array(found, np.int64) if right else None


def read_flows(path: Path) -> Iterator[Flow]:
    """Flows in file order.

    Raises
    ------
    WorkloadError
        A file that can't be read or meant; names file and line.
    """
    wanted, found, number = -1, 0, 0
    for number, text in lines_of(path):
        parts = text.split()
        if not parts:
            continue
        if wanted < 0:
            wanted = _count(path, number, parts)
            continue
        found += 1
        if found > wanted:
            raise _wrong(path, number, f"more than the {wanted} flows that the first line says", "correct it")
        yield _flow(path, number, parts)
    if wanted < 0:
        raise _wrong(path, number or None, "the file is empty", "the first line is the number of flows")
    if found < wanted:
        raise _wrong(path, number, f"the file ends after {found} of {wanted} flows", "is it complete?")


def _count(path: Path, line: int, parts: list[str]) -> int:
    if len(parts) != 1 or not _is_number(parts[0]):
        raise _wrong(
            path, line, f"begins with {' '.join(parts)[:60]!r}", "the first line is the number of flows"
        )
    return int(parts[0])


def _flow(path: Path, line: int, parts: list[str]) -> Flow:
    if len(parts) != 6 or not all(map(_is_number, parts[:5])):
        raise _wrong(
            path, line, f"{' '.join(parts)[:60]!r}", "src dst pg dport size start, as in 0 1 3 100 65536 0.5"
        )
    src, dst, group, port, size = map(int, parts[:5])
    if max(src, dst) >= MOST_RANKS or src == dst:
        raise _wrong(path, line, f"a flow from {src} to {dst}", f"two different nodes, 0 to {MOST_RANKS - 1}")
    start = _picoseconds(parts[5])
    if not 0 <= start <= NEVER or size > NEVER:
        raise _wrong(path, line, f"{size} bytes at {parts[5][:40]} s", "bytes, and seconds from 0 to 53 days")
    return Flow(src, dst, group, port, size, round(start))


def _picoseconds(text: str) -> Decimal:
    """A time, exactly; -1 for what is none, nor is a large exponent: 1e999999999 would take for ever."""
    try:
        value = Decimal(text) if len(text) < 40 else Decimal(-1)
    except InvalidOperation:
        return Decimal(-1)
    return value.scaleb(12, _EXACT) if value.is_finite() and abs(value.adjusted()) < 30 else Decimal(-1)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def _wrong(path: Path, line: int | None, message: str, right: str) -> WorkloadError:
    return WorkloadError(message, location=Location(str(path), line), hint=right)
