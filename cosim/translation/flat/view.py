"""All ranks of all jobs, iterations unrolled: what the message-level formats write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cosim.network.flows import I64
from cosim.translation.flat.nodes import COMPUTE, ENTRY, NodeBuilder, Nodes
from cosim.translation.flat.program import Flattener
from cosim.translation.loss_report import LossReport
from cosim.translation.source import Source
from cosim.workload.program import OpKind


@dataclass(frozen=True, eq=False)
class Part:
    """One iteration of a rank: ``nodes``, numbered on from ``first``, and what they wait for likewise.

    ``ends[op]`` are the nodes that an operation's end waits for. The last node of all but the last iteration
    joins its ends: those of the next wait for it.
    """

    iteration: int
    first: int
    nodes: Nodes
    ends: tuple[tuple[int, ...], ...]


StreamOrder = Literal["program", "run"]
"""Where dependencies leave the order on a stream open: as the program lists them, or as a run of ours did."""


class FlatView:
    """The message level of a scenario. Ranks are made when they are asked for, one at a time."""

    def __init__(self, source: Source, order: StreamOrder = "program") -> None:
        self.source = source
        self.order = order
        self.flat = [
            Flattener(job, source.planner, self._starts(job.number) if order == "run" else None)
            for job in source.ready
        ]

    def _starts(self, job: int) -> I64:
        """int64 [ranks, operations]: when a run started each operation of its first iteration."""
        ops, workload = self.source.run.ops, self.source.jobs[job].workload
        mine = (ops.job == job) & (ops.iteration == 0)
        longest = max((len(program.operations) for program in workload.programs), default=0)
        starts = np.zeros((workload.world_size, longest), np.int64)
        starts[ops.rank[mine], ops.op[mine]] = ops.start_ps[mine]
        return starts

    def tag_range(self, job: int) -> int:
        """Tags that one iteration takes."""
        return self.flat[job].num_tags

    def parts(self, job: int, rank: int, iterations: int | None = None) -> Iterator[Part]:
        """A rank's iterations, one after another; ``iterations`` only the first so many.

        A later start of the job is a computation before its first node. Tags go on from iteration to
        iteration, so that no message can be taken for that of another.
        """
        info = self.source.jobs[job]
        program = self.flat[job].rank(rank)
        count = info.iterations if iterations is None else iterations
        first, entry = 0, ENTRY
        if info.start_ps:
            lead = NodeBuilder()
            entry = lead.one(COMPUTE, (), -1, duration_ps=info.start_ps)
            yield Part(-1, 0, lead.nodes(), ())
            first = 1
        for iteration in range(count):
            nodes = _placed(program.nodes, first, entry, iteration * self.tag_range(job))
            ends = tuple(_ends(each, first, entry) for each in program.ends)
            if iteration + 1 < count:
                nodes = _with_join(nodes, sorted({*_ends(program.last, first, entry)}))
                entry = first + len(nodes) - 1
            yield Part(iteration, first, nodes, ends)
            first += len(nodes)

    def report_fixed(self, report: LossReport) -> None:
        """What the engine decides while it runs, and that this view has fixed."""
        for job, flat in zip(self.source.ready, self.flat, strict=True):
            of_program = np.bincount(job.info.workload.program_of, minlength=len(job.programs))
            for program, ranks in zip(job.programs, of_program.tolist(), strict=True):
                if not ranks:
                    continue
                fixed = flat.order(program).open
                how = "in program order" if self.order == "program" else "as in a run of ours"
                what = "operations whose turn on their stream depends on times"
                report.approximated(what, fixed * ranks, how)
                member = int(np.flatnonzero(job.info.workload.program_of == job.programs.index(program))[0])
                for at, op in enumerate(program.operations):
                    if op.kind is OpKind.COLLECTIVE:
                        gates = flat.plan(program, at, job.group(member, op)).gates
                        report.approximated(
                            "chunks let in beside others",
                            gates.early * ranks,
                            "each when the one active_chunks before it has ended; here, when any has",
                        )
                        report.approximated(
                            "phases in queues that several phases share",
                            gates.guessed * ranks,
                            "in the order of a run where each takes as long as it has bytes",
                        )


def _ends(ends: Sequence[int], first: int, entry: int) -> tuple[int, ...]:
    """Nodes numbered from ``first``; what ends as the iteration begins ends with ``entry``, if any."""
    placed = (entry if end == ENTRY else first + end for end in ends)
    return tuple(end for end in placed if end != ENTRY)


def _placed(nodes: Nodes, first: int, entry: int, tags: int) -> Nodes:
    """Nodes numbered from ``first``; what waits for the beginning waits for ``entry``, or for nothing."""
    moves = nodes.kind != COMPUTE
    dep = np.where(nodes.dep == ENTRY, entry, nodes.dep + first)
    ptr: I64 = nodes.dep_ptr
    keep = dep != ENTRY
    if not keep.all():
        kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep)])
        ptr, dep = kept[ptr], dep[keep]
    return Nodes(
        nodes.kind, nodes.peer, nodes.size_bytes, nodes.duration_ps, np.where(moves, nodes.tag + tags, 0),
        nodes.channel, nodes.op, ptr, dep,
    )  # fmt: skip


def _with_join(nodes: Nodes, last: list[int]) -> Nodes:
    """``nodes`` and one more, which takes no time, after ``last``."""
    return Nodes(
        np.append(nodes.kind, np.int8(COMPUTE)),
        np.append(nodes.peer, np.int32(-1)),
        np.append(nodes.size_bytes, 0),
        np.append(nodes.duration_ps, 0),
        np.append(nodes.tag, 0),
        np.append(nodes.channel, np.int32(0)),
        np.append(nodes.op, np.int32(-1)),
        np.append(nodes.dep_ptr, nodes.dep_ptr[-1] + len(last)),
        np.concatenate([nodes.dep, np.array(last, np.int64)]),
    )
