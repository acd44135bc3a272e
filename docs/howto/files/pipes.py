"""Every pair of endpoints has a pipe of its own: messages of one pair queue, nobody else meets."""

from heapq import heappop, heappush

import numpy as np
from pydantic import Field

from cosim.plugins import (
    Advance,
    Capabilities,
    Completions,
    NetworkSimulator,
    NetworkSpec,
    NetworkStatistics,
    RateBps,
    TimePs,
)


class PipesNetwork(NetworkSimulator):
    def __init__(self, rate_bps, latency_ps):
        self.rate_bps, self.latency_ps = rate_bps, latency_ps

    def describe(self):
        return Capabilities("pipes", dependent_flows=False)  # the engine releases what waits

    def open(self, topology, seed=0, options=None):
        self.groups, self.coming, self.idle_at, self.started = {}, [], {}, 0
        self.num_links = topology.num_links

    def advance(self, flows, horizon_ps):
        self.groups.update({group.handle: group for group in flows.groups})
        starts = (flows.start_ps, flows.cause_ps, flows.start_handle, flows.start_index)
        for start, _, handle, index in sorted(zip(*(column.tolist() for column in starts))):
            heappush(self.coming, (self.arrival(self.groups[handle], index, start), handle, index, start))
            self.started += 1
        done = []
        while self.coming and self.coming[0][0] <= horizon_ps:  # a completion may shorten the horizon
            time, handle, index, start = heappop(self.coming)
            table = self.groups[handle].table
            done.append((handle, index, start, time))
            horizon_ps = min(horizon_ps, time + int(table.reaction_ps[table.row_of(index)]))
        columns = np.array(done, np.int64).reshape(-1, 4).T
        return Advance(horizon_ps, Completions(columns[0].astype(np.int32), *columns[1:]))

    def arrival(self, group, index, start):
        row = group.table.row_of(index)
        src, dst = group.endpoints[group.table.src[row]], group.endpoints[group.table.dst[row]]
        if src == dst:
            return start  # a mark: no time, no link
        pipe = (group.job, int(src), int(dst), group.channel + int(group.table.channel[row]))
        bits = 8 * 10**12 * int(group.table.size_bytes[row])
        self.idle_at[pipe] = max(start, self.idle_at.get(pipe, 0)) + -int(-bits // self.rate_bps)
        return self.idle_at[pipe] + self.latency_ps

    def statistics(self):
        nothing = np.zeros(self.num_links, np.int64)
        return NetworkStatistics(
            nothing, 10**9, nothing[None], self.started, self.started - len(self.coming), 0
        )

    def close(self):
        pass


class Pipes(NetworkSpec):
    """A pipe of its own for every pair of endpoints"""

    rate: RateBps = Field(gt=0, description="of each pipe")
    latency: TimePs = Field(0, ge=0, description="of each pipe")

    def build(self, context):
        return PipesNetwork(self.rate, self.latency)

    def shares_by_weight(self):
        return False
