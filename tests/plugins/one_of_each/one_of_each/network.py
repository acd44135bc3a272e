"""A network in which every message takes the same time, whatever else is on its way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import Field

from cosim.plugins import (
    Advance,
    Capabilities,
    Completions,
    Context,
    FlowBatch,
    FlowTable,
    NetworkSimulator,
    NetworkSpec,
    NetworkStatistics,
    TimePs,
    Topology,
)


class Constant(NetworkSpec):
    """Every message takes the same time"""

    time: TimePs = Field(gt=0, description="of each message")

    def build(self, context: Context) -> NetworkSimulator:
        return ConstantNetwork(self.time)


class ConstantNetwork(NetworkSimulator):
    def __init__(self, time_ps: int) -> None:
        self.time_ps, self.links, self.done = time_ps, 0, 0
        self.tables: dict[int, FlowTable] = {}
        self.flows = np.zeros((0, 4), np.int64)  # handle, index, start and end of each

    def describe(self) -> Capabilities:
        return Capabilities("constant", dependent_flows=False, peek=True)

    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        self.links = topology.num_links

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        self.tables.update({group.handle: group.table for group in flows.groups})
        for handle, index, start in zip(flows.start_handle, flows.start_index, flows.start_ps, strict=True):
            table = self.tables[handle]
            row = table.row_of(np.array([index]))[0]
            takes = 0 if table.src[row] == table.dst[row] else self.time_ps  # a mark takes no time
            self.flows = np.vstack([self.flows, [handle, index, start, start + takes]])
        # Whoever waits for a completion may start another message at once: no further than the first.
        granted = min(horizon_ps, int(self.flows[:, 3].min(initial=horizon_ps)))
        due = (self.flows[:, 3] <= granted) & (self.flows[:, 2] < horizon_ps)
        handles, indices, starts, ends = self.flows[due].T
        self.flows, self.done = self.flows[~due], self.done + int(due.sum())
        return Advance(granted, Completions(handles.astype(np.int32), indices, starts, ends))

    def peek(self) -> int | None:
        return int(self.flows[:, 3].min()) if len(self.flows) else None

    def statistics(self) -> NetworkStatistics:
        nothing = np.zeros(self.links, np.int64)
        started = self.done + len(self.flows)
        return NetworkStatistics(nothing, 1, nothing[None], started, self.done, started)

    def close(self) -> None:
        pass
