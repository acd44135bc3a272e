"""What the message-level formats share: the flat view, and what all of them can and can't say."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cosim.engine.records import MessageRecords
from cosim.errors import SimulationError
from cosim.network.flows import I32
from cosim.translation.contract import Format
from cosim.translation.flat.nodes import COMPUTE, SEND, Nodes
from cosim.translation.flat.view import FlatView, StreamOrder
from cosim.translation.loss_report import LossReport
from cosim.translation.numbering import By, Numbering, number
from cosim.translation.says import Says, count
from cosim.translation.source import Source

SAID = frozenset(
    {
        Says.DEPENDENCIES, Says.COMPUTE, Says.MEMORY, Says.COLLECTIVES, Says.ALGORITHMS, Says.GROUPS,
        Says.ROOTS, Says.MESSAGES, Says.OFFSETS, Says.TAGS, Says.STREAMS, Says.RENDEZVOUS,
        Says.ENDPOINT_DELAY, Says.REDUCTION, Says.SEVERAL_JOBS, Says.ITERATIONS, Says.START, Says.PLACEMENT,
        Says.CHANNELS,
    }
)  # fmt: skip
"""What the messages themselves carry: algorithms, groups, streams and iterations are in the dependencies.

Lost channels are counted as messages, where the format has none (``MessageLevel.count_channels``).
"""


class OpenLoop(Format):
    """Base of formats of messages at the times of a run of ours. ``goes``: what has its time there."""

    says: ClassVar[frozenset[Says]] = SAID
    goes: ClassVar[str]

    def examine(self, source: Source, report: LossReport) -> None:
        """See :meth:`Format.examine`."""
        super().examine(source, report)
        why = f"{self.goes} its time in a run of ours, whatever has arrived (open loop)"
        report.lost("dependencies between messages", 1, why)

    def timed(self, source: Source) -> MessageRecords:
        """The messages of the run.

        Raises
        ------
        SimulationError
            It was interrupted.
        """
        messages = source.run.messages
        if messages is None or source.run.interrupted:
            raise SimulationError("the run that gives the times was interrupted; nothing was written")
        return messages


class MessageLevel(Format):
    """Base of formats of messages. ``channels``: the target keeps messages in order by channel."""

    says: ClassVar[frozenset[Says]] = SAID
    channels: ClassVar[bool] = False

    numbering: By = Field(
        "auto", description="of ranks in the files: ranks, or endpoints; auto: ranks where there is one job"
    )

    order: StreamOrder = Field(
        "program",
        description="where a stream's order depends on times: the program's, or that of a run of ours",
    )

    def examine(self, source: Source, report: LossReport) -> None:
        """See :meth:`Format.examine`; also what had to be fixed to make a static graph."""
        super().examine(source, report)
        if number(source, self.numbering).by_rank:
            report.left_out("ranks placed elsewhere", count(Says.PLACEMENT, source), "the target places them")
        self.view(source).report_fixed(report)

    def view(self, source: Source) -> FlatView:
        """The messages."""
        return FlatView(source, self.order)

    def numbers(self, source: Source) -> Numbering:
        """Who is called what."""
        return number(source, self.numbering)

    def count_channels(self, nodes: Nodes, report: LossReport) -> None:
        """Report messages on other channels than the first, where the target has none."""
        if not self.channels:
            apart = int(((nodes.kind == SEND) & (nodes.channel != 0)).sum())
            report.lost("messages on channels beside the first", apart, "kept in order with the others")


def chains(nodes: Nodes, chosen: NDArray[np.bool_], last: list[int], before: list[int]) -> I32:
    """The least lanes, found greedily, on which ``chosen`` nodes never meet: each waits for the one before.

    ``last`` (of each lane) and ``before`` (of each node of the rank, the latest chosen one that it waits for)
    go on from part to part; both are extended. -1 for nodes that are not chosen.
    """
    lanes = np.full(len(nodes), -1, np.int32)
    deps, ptr, wanted = nodes.dep.tolist(), nodes.dep_ptr.tolist(), chosen.tolist()
    lane_of: dict[int, int] = {node: lane for lane, node in enumerate(last)}
    first = len(before)
    for at in range(len(nodes)):
        latest = -1
        for dep in deps[ptr[at] : ptr[at + 1]]:
            latest = max(latest, before[dep])
        if wanted[at]:
            lane = lane_of.pop(latest, -1)
            if lane < 0:
                lane = len(last)
                last.append(-1)
            last[lane] = latest = first + at
            lane_of[latest] = lane
            lanes[at] = lane
        before.append(latest)
    return lanes


def delays(nodes: Nodes) -> NDArray[np.bool_]:
    """Computations that take time."""
    return np.asarray((nodes.kind == COMPUTE) & (nodes.duration_ps > 0), bool)
