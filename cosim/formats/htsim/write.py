"""Format ``htsim``: a connection matrix (.cm) with triggers, closed loop as far as triggers go.

A flow starts at a time, or when a trigger fires: when one flow is done, or, as a barrier, when several are
(:mod:`cosim.formats.htsim.triggers`). htsim has no computations: what is computed before a rank's first
message becomes its start, what is computed later is lost.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import numpy as np
from pydantic import Field

from cosim.formats.htsim.file import HtsimConnection, Matrix
from cosim.formats.htsim.triggers import with_triggers
from cosim.network.flows import I32
from cosim.translation.contract import Progress
from cosim.translation.flat.nodes import COMPUTE, SEND
from cosim.translation.flat.view import Part
from cosim.translation.loss_report import LossReport
from cosim.translation.message_level import MessageLevel
from cosim.translation.source import Source

LARGEST = 2**31 - 1
"""htsim reads a size as an int."""

_Key = tuple[int, int, int]


class HtsimFormat(MessageLevel):
    """A connection matrix of htsim (.cm): flows with start times, and triggers for dependencies"""

    file: str = Field("traffic.cm", pattern=r"^[^/\\]+$", description="name of the file")

    def write(self, source: Source, out: Path, report: LossReport, progress: Progress) -> None:
        """See :meth:`Format.write`; memory grows with the messages, as htsim's own does."""
        numbers = self.numbers(source)
        graph = _FlowGraph(report)
        view = self.view(source)
        for place, seat in enumerate(numbers.seat):
            if seat is not None:
                rank = _RankFlows(graph, place, numbers.of[seat[0]])
                for part in view.parts(*seat):
                    self.count_channels(part.nodes, report)
                    rank.add(part)
            progress(place + 1, numbers.count, "ranks")
        matrix = graph.matrix(numbers.count)
        with (out / self.file).open("w", encoding="ascii") as file:
            write_matrix(file, matrix)
        report.written("messages", len(graph.messages), self.file)
        carriers = len(matrix.connections) - len(graph.messages)
        report.written("messages of 1 byte that carry triggers", carriers, self.file)
        report.written("triggers", len(matrix.triggers), self.file)


class _FlowGraph:
    """Messages of all ranks: when each starts, or which others' ends it waits for."""

    def __init__(self, report: LossReport) -> None:
        self.report = report
        self.sent: dict[_Key, deque[int]] = defaultdict(deque)
        self.received: dict[_Key, deque[int]] = defaultdict(deque)
        self.messages: list[tuple[int, int, int]] = []
        self.starts: list[int] = []
        self.waits: list[frozenset[int]] = []
        """Tokens: 2 x message for its sender's end, 2 x receive + 1 for an arrival."""
        self.receives: list[_Key] = []

    def send(self, key: _Key, size: int, start: int, waits: frozenset[int]) -> int:
        """A message; its number."""
        self.sent[key].append(len(self.messages))
        self.messages.append((key[0], key[1], size))
        self.starts.append(start)
        self.waits.append(waits)
        return len(self.messages) - 1

    def receive(self, key: _Key) -> int:
        """A receive; its number."""
        self.received[key].append(len(self.receives))
        self.receives.append(key)
        return len(self.receives) - 1

    def matrix(self, nodes: int) -> Matrix:
        """Everything, with triggers numbered in the order of the flows that they start."""
        arrived = [0] * len(self.receives)
        for key, numbers in self.received.items():
            for receive, message in zip(numbers, self.sent[key], strict=True):
                arrived[receive] = message
        flows = [
            HtsimConnection(src, dst, min(max(size, 1), LARGEST), flow_id=at + 1, start_ps=start)
            for at, ((src, dst, size), start) in enumerate(zip(self.messages, self.starts, strict=True))
        ]
        empty = sum(size == 0 for _, _, size in self.messages)
        self.report.approximated("messages of 0 bytes", empty, "1 byte: htsim sends no less")
        large = sum(size > LARGEST for _, _, size in self.messages)
        self.report.approximated(
            "messages of 2 GiB and more", large, f"{LARGEST} bytes: all that htsim reads"
        )
        timed = [start for start, waits in zip(self.starts, self.waits, strict=True) if not waits]
        rounded = int((np.array(timed, np.int64) != np.array(timed, np.float32)).sum())
        self.report.approximated("starts of messages", rounded, "htsim reads them with 24 bits")
        waits = [frozenset(arrived[t // 2] if t & 1 else t // 2 for t in tokens) for tokens in self.waits]
        return with_triggers(nodes, flows, waits, self.report)


class _RankFlows:
    """Follows one rank's nodes: what each end waits for, and the computations before it."""

    def __init__(self, graph: _FlowGraph, me: int, of: I32) -> None:
        self._graph, self._me, self._of = graph, me, of
        self._ends: list[frozenset[int]] = []
        self._after: list[int] = []
        self._source: list[tuple[int, int] | None] = []
        self._rows: dict[tuple[int, int], set[int]] = defaultdict(set)
        """Arrivals from one sender in one operation: they come one after another."""

    def add(self, part: Part) -> None:
        """One iteration's nodes."""
        nodes, graph = part.nodes, self._graph
        deps, ptr = nodes.dep.tolist(), nodes.dep_ptr.tolist()
        rows = zip(
            nodes.kind.tolist(), nodes.peer.tolist(), nodes.tag.tolist(), nodes.op.tolist(), strict=True
        )
        sizes, spans = nodes.size_bytes.tolist(), nodes.duration_ps.tolist()
        for at, (kind, peer, tag, op) in enumerate(rows):
            before = deps[ptr[at] : ptr[at + 1]]
            ends: frozenset[int] = frozenset().union(*(self._ends[dep] for dep in before))
            after = max((self._after[dep] for dep in before), default=0)
            source = None
            if kind == COMPUTE:
                lost = bool(spans[at] and ends)
                graph.report.lost("computations", int(lost), "after a rank's first receive: htsim has none")
                after += 0 if lost else spans[at]
            elif kind == SEND:
                key = (self._me, int(self._of[peer]), tag)
                message = graph.send(key, sizes[at], 0 if ends else after, ends)
                ends = frozenset((2 * message,))
            else:
                source = (peer, op)
                row = self._rows[source]
                others = [dep for dep in before if self._source[dep] != source]
                posted = frozenset().union(*(self._ends[dep] for dep in others)) - row
                if others:
                    why = "taken as posted early enough, but for the first of a row"
                    graph.report.approximated("receives posted after something", 1, why)
                token = 2 * graph.receive((int(self._of[peer]), self._me, tag)) + 1
                row.add(token)
                ends = posted | {token}
            self._ends.append(ends)
            self._after.append(after)
            self._source.append(source)


def write_matrix(file: TextIO, matrix: Matrix) -> None:
    """Write a matrix as htsim reads it."""
    file.write(f"Nodes {matrix.nodes}\nConnections {len(matrix.connections)}\n")
    if matrix.triggers:
        file.write(f"Triggers {len(matrix.triggers)}\n")
    if matrix.failures:
        file.write(f"Failures {len(matrix.failures)}\n")
    file.writelines(map(_line, matrix.connections))
    for trigger in matrix.triggers:
        count = f" count {trigger.count}" if trigger.count else ""
        file.write(f"trigger id {trigger.number} {trigger.kind}{count}\n")
    file.writelines(f"{failure}\n" for failure in matrix.failures)


def _line(flow: HtsimConnection) -> str:
    said: Iterable[tuple[str, int | None]] = (
        ("id", flow.flow_id or None),
        ("start", flow.start_ps),
        ("trigger", flow.trigger or None),
        ("size", flow.size_bytes),
        ("send_done_trigger", flow.send_done or None),
        ("recv_done_trigger", flow.recv_done or None),
        ("prio", flow.priority),
    )
    words = [f"{name} {value}" for name, value in said if value is not None]
    return f"{flow.src}->{flow.dst} {' '.join(words)}\n"
