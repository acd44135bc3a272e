"""Format ``chakra``: one .et for each rank, its operations as COMP, COLL, SEND, RECV and MEM nodes.

The nodes are those that ASTRA-sim's workload layer and our own importer read (``cosim.formats.chakra``):
operation k is node k, so that of the nodes that could start the lowest goes first, as in our engine. Groups
other than all ranks go into ``comm_groups.json``. Durations are whole microseconds.

Iterations follow each other in one file: the first operations of one wait for the last of the one before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from cosim.engine.programs import Group, ReadyJob
from cosim.formats.chakra.et_def_pb2 import Node
from cosim.formats.chakra.groups import GROUPS_FILE
from cosim.formats.chakra.read_nodes import COLLECTIVES
from cosim.formats.chakra.write_nodes import node, write_trace
from cosim.network.flows import I32
from cosim.translation.contract import Format, Progress
from cosim.translation.loss_report import MOVED_STREAMS, LossReport
from cosim.translation.numbering import By, Numbering, number, report_idle
from cosim.translation.says import Says, count_operations
from cosim.translation.source import Source
from cosim.units import PS_PER_US
from cosim.workload.match_messages import peers
from cosim.workload.operation import STORE
from cosim.workload.program import COMM_STREAM, COMPUTE_STREAM, CPU_STREAM, NO_STREAM, Operation, OpKind

_COMM_TYPE = {name: value for value, name in COLLECTIVES.items()}
_STREAM = {
    OpKind.COMPUTE: (COMPUTE_STREAM, CPU_STREAM),
    OpKind.MEMORY: (COMM_STREAM,),
    OpKind.COLLECTIVE: (COMM_STREAM,),
    OpKind.SEND: (COMM_STREAM,),
    OpKind.RECV: (NO_STREAM,),
}
"""Streams on which Chakra's readers run each kind."""


class ChakraFormat(Format):
    """Chakra .et, one per rank: computations, collectives, sends and receives (ASTRA-sim's workload)"""

    says: ClassVar[frozenset[Says]] = frozenset(
        {
            Says.DEPENDENCIES, Says.COMPUTE, Says.MEMORY, Says.COLLECTIVES, Says.GROUPS, Says.MESSAGES,
            Says.OFFSETS, Says.TAGS, Says.STREAMS, Says.SEVERAL_JOBS, Says.ITERATIONS, Says.START,
            Says.PLACEMENT, Says.NAMES,
        }
    )  # fmt: skip

    skipped: ClassVar[frozenset[str]] = frozenset()
    """Collectives that the target refuses: nodes without effect stand for them."""

    def leads(self, source: Source) -> bool:
        """Whether each rank begins with a node that does nothing, because the target needs one."""
        del source
        return False

    prefix: str = Field("trace", pattern=r"^[^/\\]+$", description="files are PREFIX.0.et, PREFIX.1.et ...")
    numbering: By = Field(
        "auto", description="of files and peers: ranks, or endpoints; auto: ranks where there is one job"
    )

    def examine(self, source: Source, report: LossReport) -> None:
        """See :meth:`Format.examine`."""
        super().examine(source, report)
        report_idle(self.number(source), report, "a node without effect: ASTRA-sim wants a trace for each")
        for kind, streams in _STREAM.items():
            elsewhere = count_operations(
                source, lambda op, k=kind, s=streams: op.kind is k and op.stream not in s  # type: ignore[misc]
            )  # fmt: skip
            to = streams[0] or "no stream"
            report.approximated(MOVED_STREAMS, elsewhere, f"{kind.value} runs on {to} there")
        timed = (OpKind.COMPUTE,)
        rounded = count_operations(source, lambda op: op.kind in timed and op.duration_ps % PS_PER_US != 0)
        report.approximated("durations", rounded, "rounded to whole microseconds")
        report.approximated(
            "computations below half a microsecond",
            count_operations(source, lambda op: op.kind in timed and op.duration_ps < PS_PER_US // 2),
            "written as 0, which ASTRA-sim takes for 1 ns",
        )
        memory = count_operations(source, lambda op: op.kind is OpKind.MEMORY and not op.access)
        report.approximated(
            "memory accesses", memory, "loads of as many bytes; the target's memory times them"
        )
        pairs = count_operations(source, lambda op: op.collective == "send_recv")
        report.approximated("send_recv collectives", pairs, "a SEND and a RECV node")
        starts = sum(1 for job in source.jobs if job.start_ps % PS_PER_US)
        report.approximated("starts of jobs", starts, "rounded to whole microseconds")

    def number(self, source: Source) -> Numbering:
        """Who has which file."""
        return number(source, self.numbering)

    def write(self, source: Source, out: Path, report: LossReport, progress: Progress) -> None:
        """See :meth:`Format.write`."""
        numbers = self.number(source)
        groups: dict[tuple[int, ...], str] = {}
        leads = self.leads(source)
        writers = [
            _JobWriter(job, numbers.of[job.number], numbers.count, groups, self.skipped, leads)
            for job in source.ready
        ]
        total = 0
        for file, seat in enumerate(numbers.seat):
            nodes = iter(()) if seat is None else writers[seat[0]].nodes(seat[1])
            first = next(nodes, node(0, "idle", "METADATA"))  # a trace without nodes is none
            total += write_trace(out / f"{self.prefix}.{file}.et", chain((first,), nodes))
            progress(file + 1, numbers.count, "ranks")
        if groups:
            said = {name: list(ranks) for ranks, name in groups.items()}
            (out / GROUPS_FILE).write_text(json.dumps(said, indent=0) + "\n", encoding="utf-8")
            report.written("process groups", len(groups), GROUPS_FILE)
        report.written("nodes", total, f"{self.prefix}.0.et to {self.prefix}.{numbers.count - 1}.et")


class _JobWriter:
    """Writes the ranks of one job; ``groups`` numbers process groups, shared by all jobs."""

    def __init__(
        self,
        job: ReadyJob,
        of: I32,
        count: int,
        groups: dict[tuple[int, ...], str],
        skipped: frozenset[str],
        leads: bool,
    ) -> None:
        self._leads = leads or job.info.start_ps > 0
        self._job, self._of, self._count, self._groups, self._skipped = job, of, count, groups, skipped
        self._names: dict[tuple[int, ...], str] = {}
        programs = job.info.workload.programs
        self._tags = 1 + max((op.tag for p in programs for op in p.operations if op.peer), default=-1)

    def nodes(self, rank: int) -> Iterator[Node]:
        """A rank's nodes, iteration after iteration."""
        info = self._job.info
        program = self._job.program(rank)
        size = len(program.operations)
        ends = [at for at, after in enumerate(program.successors) if not after]
        first = 0
        before: tuple[int, ...] = ()
        if self._leads:
            yield node(0, "start of the job", "COMP", (), info.start_ps, is_cpu_op=False)
            first, before = 1, (0,)
        for iteration in range(info.iterations):
            base = first + iteration * size
            for at, op in enumerate(program.operations):
                deps = tuple(base + dep for dep in sorted(op.deps)) if op.deps else before
                yield self._node(base + at, rank, at, op, deps)
            before = tuple(base + end for end in ends)

    def _node(self, number: int, rank: int, at: int, op: Operation, deps: tuple[int, ...]) -> Node:
        if op.kind is OpKind.COMPUTE:
            on_cpu = op.stream == CPU_STREAM
            return node(number, op.name, "COMP", deps, op.duration_ps, is_cpu_op=on_cpu)
        if op.kind is OpKind.MEMORY:
            size = op.size_bytes if op.access else int(op.bytes_moved)
            kind = "MEM_STORE" if op.access == STORE else "MEM_LOAD"
            return node(number, op.name, kind, deps, is_cpu_op=False, tensor_size=size)
        if op.kind is OpKind.COLLECTIVE:
            return self._collective(number, rank, at, op, deps)
        assert op.peer is not None
        peer = int(peers(self._job.info.workload, np.array([rank]), op.peer)[0])
        return self._message(number, rank, op, deps, op.kind is OpKind.SEND, peer, op.tag)

    def _message(
        self, number: int, rank: int, op: Operation, deps: tuple[int, ...], sends: bool, peer: int, tag: int
    ) -> Node:
        mine, theirs = int(self._of[rank]), int(self._of[peer])
        kind, src, dst = ("COMM_SEND", mine, theirs) if sends else ("COMM_RECV", theirs, mine)
        return node(
            number, op.name, kind, deps, is_cpu_op=False, comm_size=op.size_bytes, comm_src=src, comm_dst=dst,
            comm_tag=tag,
        )  # fmt: skip

    def _collective(self, number: int, rank: int, at: int, op: Operation, deps: tuple[int, ...]) -> Node:
        if op.collective in self._skipped:
            return node(number, op.name, "METADATA", deps)
        group = self._job.group(rank, op)
        if op.collective == "send_recv":
            sends = group.position[rank] == 0
            tag = self._tags + self._job.program(rank).occurrence[at]
            return self._message(number, rank, op, deps, sends, group.ranks[1 if sends else 0], tag)
        attributes: dict[str, int | str | bool] = {
            "is_cpu_op": False, "comm_type": _COMM_TYPE[op.collective], "comm_size": op.size_bytes,
        }  # fmt: skip
        name = self._group_name(group)
        if name:
            attributes["pg_name"] = name
        return node(number, op.name, "COMM_COLL", deps, **attributes)

    def _group_name(self, group: Group) -> str:
        """The name of a group in ``comm_groups.json``; empty for all ranks."""
        name = self._names.get(group.ranks)
        if name is None:
            members = tuple(int(number) for number in self._of[list(group.ranks)])
            every = members == tuple(range(self._count))
            name = "" if every else self._groups.setdefault(members, str(len(self._groups) + 1))
            self._names[group.ranks] = name
        return name
