"""Kind ``flow-list``: the flow file of HPCC's, SimAI's and ConWeave's ns-3: sends at given times.

The first line is the number of flows; each other line is ``src dst pg dport size start``: nodes, priority
group, destination port, bytes, and seconds; ConWeave's lines have no ``dport``. What follows so many flows
is prose, which ns-3 doesn't read. Open loop: nothing waits for anything. Sources: the ``FLOW_FILE`` of HPCC
(Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, doi:10.1145/3341302.3342085) and
``traffic_gen.py`` of ConWeave (Song et al., SIGCOMM 2023, doi:10.1145/3603269.3604849).
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
_WIDTHS = 5, 6
"""Fields of a line, without a port and with it."""


class Flow(NamedTuple):
    """One line: nodes, priority group, destination port (-1: none), bytes, and when it starts."""

    src: int
    dst: int
    priority_group: int
    port: int
    size_bytes: int
    start_ps: int


class FlowListWorkload(WorkloadSpec):
    """A flow list of HPCC's, SimAI's or ConWeave's ns-3 (src dst pg [dport] size start): timed sends"""

    path: str = Field(description="the file")
    topology: str | None = Field(
        default=None,
        description="the topology.txt of these flows, whose hosts are the ranks in order; default: a rank "
        "for each number",
    )
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
        report = ReportBuilder()
        flows = read_columns(path, report)
        if self.topology is not None:
            flows = _on_hosts(path, flows, context.base / self.topology)
        last = max(int(np.maximum.reduce(ranks, initial=0)) for ranks in (flows.src, flows.dst))
        count = self.nodes if self.nodes is not None else last + 1
        if last >= count:
            raise WorkloadError(
                f"names node {last}, but nodes is {count}",
                location=Location(str(path)),
                hint=f"nodes: {last + 1}",
            )
        return flows.workload(path.stem, count, report)


def _on_hosts(path: Path, flows: TimedFlows, topology: Path) -> TimedFlows:
    """Flows between ranks, which are the topology's hosts in order."""
    from cosim.formats.ns3.topology import Ns3Topology
    from cosim.topology.file_format import Cables

    cables = Cables(str(topology))
    Ns3Topology().read(topology, cables, ReportBuilder())
    hosts = np.array([int(name) for name, role in cables.roles.items() if role == "endpoint"], np.int64)
    rank_of = np.full(len(cables.roles), -1, np.int64)
    rank_of[hosts] = np.arange(len(hosts))
    for ranks in (flows.src, flows.dst):
        wrong = ranks[(ranks >= len(rank_of)) | (rank_of[np.minimum(ranks, len(rank_of) - 1)] < 0)]
        if len(wrong):
            raise WorkloadError(
                f"names node {wrong[0]}, which is no host of {topology}",
                location=Location(str(path)),
                hint=f"hosts are {hosts[0]} to {hosts[-1]}",
            )
    return TimedFlows(rank_of[flows.src], rank_of[flows.dst], flows.size_bytes, flows.start_ps)


def read_columns(path: Path, report: ReportBuilder | None = None) -> TimedFlows:
    """Flows in file order; ``report`` is told what of them is read and ignored.

    Raises
    ------
    WorkloadError
        As :func:`read_flows` does.
    """
    columns, told = _plain_columns(path), report or ReportBuilder()
    if columns is not None:
        ports = columns.shape[1]
    else:
        # Whatever isn't plain is looked at line by line, which says what is wrong, if anything is.
        found = [*read_flows(path, told)]
        flows = [(one.src, one.dst, one.size_bytes, one.start_ps) for one in found]
        columns = np.array(flows, np.int64).reshape(-1, 4).T
        ports = sum(one.port >= 0 for one in found)
    told.read("flow", columns.shape[1])
    told.ignored("pg, the priority group of a flow (a job has a priority)", columns.shape[1])
    told.ignored("dport, the port of a flow", ports)
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


def read_flows(path: Path, report: ReportBuilder | None = None) -> Iterator[Flow]:
    """Flows in file order; ``report`` is told of what comes behind them.

    Raises
    ------
    WorkloadError
        A file that can't be read or meant; names file and line.
    """
    wanted, found, number, width, more, prose = -1, 0, 0, 0, 0, 0
    for number, text in lines_of(path):
        parts = text.split()
        if not parts:
            continue
        if wanted < 0:
            wanted = _count(path, number, parts)
            continue
        if found == wanted:
            is_flow = len(parts) in _WIDTHS and all(map(_is_number, parts[:4]))
            more, prose = more + is_flow, prose + (not is_flow)
            continue
        found += 1
        width = width or len(parts)
        yield _flow(path, number, parts, width)
    if report is not None and wanted >= 0:
        report.ignored("line behind the flows", prose)
        if more:
            report.doubt(
                str(path),
                f"has {more} flows more than the {wanted} that its first line says, which ns-3 doesn't read",
                f"{wanted + more} in the first line, or a shorter file",
            )
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


def _flow(path: Path, line: int, parts: list[str], width: int) -> Flow:
    """A line of six fields, or five without a port, as the file's first has."""
    if len(parts) != width or width not in _WIDTHS or not all(map(_is_number, parts[:-1])):
        right = "src dst pg dport size start, as in 0 1 3 100 65536 0.5"
        if width == _WIDTHS[0]:
            right = "src dst pg size start as in the lines before, 0 1 3 65536 0.5"
        raise _wrong(path, line, f"{' '.join(parts)[:60]!r}", right)
    src, dst, group = map(int, parts[:3])
    port, size = int(parts[3]) if width == _WIDTHS[1] else -1, int(parts[-2])
    if max(src, dst) >= MOST_RANKS or src == dst:
        raise _wrong(path, line, f"a flow from {src} to {dst}", f"two different nodes, 0 to {MOST_RANKS - 1}")
    start = picoseconds(parts[-1])
    if not 0 <= start <= NEVER or size > NEVER:
        raise _wrong(
            path, line, f"{size} bytes at {parts[-1][:40]} s", "bytes, and seconds from 0 to 53 days"
        )
    return Flow(src, dst, group, port, size, round(start))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def _wrong(path: Path, line: int | None, message: str, right: str) -> WorkloadError:
    return WorkloadError(message, location=Location(str(path), line), hint=right)
