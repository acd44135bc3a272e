"""Format ``chakra-messages``: one .et for each rank, of SEND, RECV and COMP nodes only.

Collectives are spelled out as messages. A join of several dependencies is a METADATA node, which takes no
time. Readers such as ASTRA-sim run one COMP and one SEND of a rank at a time: what our engine runs beside
each other is counted in the loss report. Durations are whole microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from cosim.formats.chakra.et_def_pb2 import Node
from cosim.formats.chakra.write_nodes import node, write_trace
from cosim.network.flows import I32
from cosim.translation.contract import Progress
from cosim.translation.flat.nodes import COMPUTE, SEND
from cosim.translation.flat.view import FlatView, Part
from cosim.translation.loss_report import LossReport
from cosim.translation.message_level import SAID, MessageLevel, chains, delays
from cosim.translation.numbering import report_idle
from cosim.translation.says import Says
from cosim.translation.source import Source
from cosim.units import PS_PER_US
from cosim.workload.program import Operation


class ChakraMessagesFormat(MessageLevel):
    """Chakra .et, one per rank, of sends, receives and computations: collectives spelled out"""

    says: ClassVar[frozenset[Says]] = SAID | {Says.NAMES}

    prefix: str = Field("trace", pattern=r"^[^/\\]+$", description="files are PREFIX.0.et, PREFIX.1.et ...")

    def examine(self, source: Source, report: LossReport) -> None:
        """See :meth:`MessageLevel.examine`."""
        super().examine(source, report)
        report_idle(self.numbers(source), report, "a node without effect: ASTRA-sim wants a trace for each")

    def write(self, source: Source, out: Path, report: LossReport, progress: Progress) -> None:
        """See :meth:`Format.write`."""
        numbers = self.numbers(source)
        view = self.view(source)
        messages = 0
        for file, seat in enumerate(numbers.seat):
            path = out / f"{self.prefix}.{file}.et"
            if seat is None:
                write_trace(path, [node(0, "idle", "METADATA")])
            else:
                operations = source.ready[seat[0]].program(seat[1]).operations
                rank = _RankTrace(numbers.of[seat[0]], file, operations)
                write_trace(path, self._nodes(rank, view, seat, report))
                messages += rank.messages
                rank.report(report)
            progress(file + 1, numbers.count, "ranks")
        report.written("messages", messages, f"{self.prefix}.0.et to {self.prefix}.{numbers.count - 1}.et")

    def _nodes(
        self, rank: _RankTrace, view: FlatView, seat: tuple[int, int], report: LossReport
    ) -> Iterator[Node]:
        empty = True
        for part in view.parts(*seat):
            self.count_channels(part.nodes, report)
            empty = empty and not len(part.nodes)
            yield from rank.nodes(part)
        if empty:
            yield node(0, "idle", "METADATA")


class _RankTrace:
    """Writes the parts of one rank."""

    def __init__(self, of: I32, me: int, operations: Sequence[Operation]) -> None:
        self._of, self._me, self._operations = of, me, operations
        self._lanes: dict[str, tuple[list[int], list[int]]] = {"COMP": ([], []), "SEND": ([], [])}
        self._beside = {"COMP": 0, "SEND": 0}
        self._rounded = 0
        self.messages = 0

    def nodes(self, part: Part) -> Iterator[Node]:
        nodes = part.nodes
        self.messages += nodes.num_messages
        self._rounded += int((nodes.duration_ps % PS_PER_US != 0).sum())
        for kind, chosen in (("COMP", delays(nodes)), ("SEND", nodes.kind == SEND)):
            lanes = chains(nodes, chosen, *self._lanes[kind])
            self._beside[kind] += int((lanes > 0).sum())
        kinds, ops = nodes.kind.tolist(), nodes.op.tolist()
        peers = self._of[np.maximum(nodes.peer, 0)].tolist()
        sizes, tags, spans = nodes.size_bytes.tolist(), nodes.tag.tolist(), nodes.duration_ps.tolist()
        deps, ptr = nodes.dep.tolist(), nodes.dep_ptr.tolist()
        for at, kind in enumerate(kinds):
            number, before = part.first + at, deps[ptr[at] : ptr[at + 1]]
            name = self._operations[ops[at]].name if ops[at] >= 0 else "iteration"
            if kind == COMPUTE:
                what = "COMP" if spans[at] else "METADATA"
                yield node(number, name, what, before, spans[at], is_cpu_op=False)
                continue
            sends = kind == SEND
            src, dst = (self._me, peers[at]) if sends else (peers[at], self._me)
            yield node(
                number,
                name,
                "COMM_SEND" if sends else "COMM_RECV",
                before,
                is_cpu_op=False,
                comm_size=sizes[at],
                comm_src=src,
                comm_dst=dst,
                comm_tag=tags[at],
            )

    def report(self, report: LossReport) -> None:
        why = "one at a time of a rank there"
        report.approximated("sends that may overlap", self._beside["SEND"], why)
        report.approximated("computations that may overlap", self._beside["COMP"], why)
        report.approximated("durations", self._rounded, "rounded to whole microseconds")
