"""What the network carries for collectives and messages: groups of flows, and who waits for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import Literal

import numpy as np
from simpy.events import Event

from cosim.engine.programs import ReadyJob
from cosim.engine.reference.clock import REACTION, Clock
from cosim.engine.reference.recorder import RunRecorder
from cosim.errors import NetworkError
from cosim.network.flows import I32, Completions, FlowGroup, FlowTable
from cosim.network.reference.dependencies import KnownTables, TableRows

FlowCallback = Callable[[int, int], None]
"""Called when a flow that is waited for has come: with its number among these, and when that became
certain.
"""


@dataclass(eq=False, slots=True)
class OpenFlows:
    """A group under way: ``left`` flows have yet to come; of those from ``told_from`` on somebody is told."""

    group: FlowGroup
    rows: TableRows
    nodes: list[int]
    left: int
    told: FlowCallback
    told_from: int


class FlowsUnderWay:
    """All groups of a run that the network knows."""

    def __init__(self, recorder: RunRecorder) -> None:
        self.clock: Clock
        self._recorder = recorder
        self._tables = KnownTables()
        self._open: dict[int, OpenFlows] = {}
        self._free: list[int] = []  # a heap: handles are small, and used again

    def open(
        self,
        table: FlowTable,
        endpoints: I32,
        key: tuple[int, int],
        job: ReadyJob,
        iteration: int,
        told: FlowCallback,
        told_from: int = 0,
        release: Literal["network", "caller"] = "network",
    ) -> OpenFlows:
        """Make a group known to the network."""
        handle = heappop(self._free) if self._free else len(self._open)
        traits = job.traits(iteration)
        nodes = np.ascontiguousarray(endpoints, np.int32)
        group = FlowGroup(handle, table, nodes, key, release, channel=job.channel, **traits)  # type: ignore[arg-type]
        rows = self._tables.rows(table)
        self._open[handle] = flows = OpenFlows(group, rows, nodes.tolist(), table.num_flows, told, told_from)
        self.clock.outbox.open(group)
        return flows

    def are_under_way(self) -> bool:
        """Whether any flow has yet to come."""
        return bool(self._open)

    def start(self, flows: OpenFlows, index: int, cause_ps: int) -> None:
        """Start a flow now: a message, or a rank's arrival at a collective."""
        self.clock.outbox.start(flows.group.handle, index, self.clock.now_ps, cause_ps)

    def deliver(self, done: Completions) -> None:
        """Write completions down; who waits for one is told when the clock gets to its time, in order of
        keys.
        """
        columns = done.handle, done.index, done.start_ps, done.time_ps, done.since()
        for handle, index, start, end, cause in zip(*(column.tolist() for column in columns), strict=True):
            flows = self._checked(handle, index, start, end)
            high, low = flows.group.key[0], flows.group.key[1] + index
            row = flows.rows.row_of(index)
            ends = flows.nodes[flows.rows.src[row]], flows.nodes[flows.rows.dst[row]]
            self._recorder.message((high, low), *ends, flows.rows.size[row], start, end)
            if index >= flows.told_from:
                tell = partial(_tell, flows, index - flows.told_from, cause)
                self.clock.due(end, REACTION, high, low, then=tell)
            flows.left -= 1
            if not flows.left:
                heappush(self._free, handle)
                del self._open[handle]

    def _checked(self, handle: int, index: int, start: int, end: int) -> OpenFlows:
        """The group of a completion, for a network elsewhere may report anything."""
        if handle not in self._open:
            raise NetworkError(f"the network completed a flow of group {handle}, which is not under way")
        flows = self._open[handle]
        if not 0 <= index < flows.rows.num_flows:
            raise NetworkError(f"the network completed flow {index} of group {handle}, which has none such")
        if not 0 <= start <= end:
            raise NetworkError(
                f"the network completed flow {index} of group {handle} at {end} ps; "
                f"it was to start at {start} ps"
            )
        return flows


def _tell(flows: OpenFlows, number: int, cause_ps: int, _: Event) -> None:
    flows.told(number, cause_ps)
