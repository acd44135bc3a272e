"""Kind ``flow-list``: the flow file of HPCC's and SimAI's ns-3, as a workload that sends at given times.

The first line is the number of flows; each other line is ``src dst pg dport size start``: nodes, priority
group, destination port, bytes, and seconds. Open loop: nothing waits for anything. Source: the
``FLOW_FILE`` of HPCC (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019,
doi:10.1145/3341302.3342085).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import Field, PositiveInt

from cosim.context import Context
from cosim.errors import Location, WorkloadError
from cosim.files.import_report import ReportBuilder
from cosim.files.text import MOST_RANKS, lines_of, open_regular
from cosim.formats.flow_list.plain import picoseconds, plain_flows
from cosim.formats.flow_list.timed import TimedFlows
from cosim.units import NEVER
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import Workload
from cosim.workload.table import I64

_BLOCK = 1 << 21
"""Bytes that are read at once; a line that they end in is looked at with the next."""


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
        last = max(int(np.maximum.reduce(ranks, initial=0)) for ranks in (flows.src, flows.dst))
        count = self.nodes if self.nodes is not None else last + 1
        if last >= count:
            raise WorkloadError(
                f"names node {last}, but nodes is {count}",
                location=Location(str(path)),
                hint=f"nodes: {last + 1}",
            )
        report, many = ReportBuilder(), len(flows)
        report.read("flow", many)
        report.ignored("pg, the priority group of a flow (a job has a priority)", many)
        report.ignored("dport, the port of a flow", many)
        return flows.workload(path.stem, count, report)


def read_columns(path: Path) -> TimedFlows:
    """Flows in file order.

    Raises
    ------
    WorkloadError
        As :func:`read_flows` does.
    """
    columns = _plain_columns(path)
    if columns is None:
        # Whatever isn't plain is looked at line by line, which says what is wrong, if anything is.
        flows = [(one.src, one.dst, one.size_bytes, one.start_ps) for one in read_flows(path)]
        columns = np.array(flows, np.int64).reshape(-1, 4).T
    return TimedFlows(*columns)


def _plain_columns(path: Path) -> I64 | None:
    """int64[4, flows] of a file whose lines are all plain, and as many as it says; else None."""
    blocks = []
    try:
        with open_regular(path, WorkloadError) as file:
            first, _, rest = file.read(_BLOCK).partition(b"\n")
            begin = first.decode("latin-1").strip()
            if not _is_number(begin):
                return None
            while (part := file.read(_BLOCK)) or rest:
                block = rest + part
                whole = block.rfind(b"\n") + 1 if part else len(block)
                found = plain_flows(block[:whole])
                if found is None:
                    return None
                blocks.append(found)
                rest = block[whole:]
    except OSError:
        return None  # who reads line by line says why
    if int(begin) != sum(block.shape[1] for block in blocks):
        return None
    if len(blocks) == 1:
        return blocks[0]
    return np.concatenate([np.zeros((4, 0), np.int64), *blocks], axis=1)


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
    start = picoseconds(parts[5])
    if not 0 <= start <= NEVER or size > NEVER:
        raise _wrong(path, line, f"{size} bytes at {parts[5][:40]} s", "bytes, and seconds from 0 to 53 days")
    return Flow(src, dst, group, port, size, round(start))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def _wrong(path: Path, line: int | None, message: str, right: str) -> WorkloadError:
    return WorkloadError(message, location=Location(str(path), line), hint=right)
