"""A network whose dependent flows are released in front of it, by the same rules as within one.

For networks that cannot follow dependencies, and for ``release: engine``; times are the same, bit for bit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosim.network.flows import I32, I64, ON_COMPLETION, Completions, FlowBatch, FlowGroup, FlowTable
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.releaser import Releaser
from cosim.network.simulator import Advance, Capabilities, NetworkSimulator, granted_by
from cosim.network.store import STARTED
from cosim.units import NEVER


class ReleasingNetwork(ForwardingNetwork):
    """Stands in front of a network, starts dependent flows when what they wait for has come."""

    def __init__(self, inner: NetworkSimulator) -> None:
        super().__init__(inner)
        self._releaser = Releaser()
        self._tables: dict[int, tuple[FlowTable, FlowTable]] = {}
        self._starts: list[tuple[I32, I64, I64, I64]] = []
        self._granted = 0
        self.num_advances = 0
        """How often the network behind was asked."""

    def describe(self) -> Capabilities:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        return replace(self.inner.describe(), dependent_flows=True, peek=False)

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        groups = list(map(self._open, flows.groups))
        if not self._releaser.num_followed:
            self.num_advances += 1
            answer = self.inner.advance(flows, horizon_ps)
            self._granted = answer.granted_ps
            return answer
        given = flows.start_handle, flows.start_index, flows.start_ps, flows.cause_ps
        # What the caller starts, and what was released in the advance before, go in one batch: one order for
        # both.
        self._starts.append(given)
        self._follow(*given[:3], STARTED)
        parts: list[Completions] = []
        bound = NEVER
        while True:
            starts, self._starts = self._starts, []
            columns = [np.concatenate(column) for column in zip(*starts, strict=True)]
            batch = FlowBatch(groups, *columns) if columns else FlowBatch()
            before, limit = self._granted, min(horizon_ps, bound)
            self.num_advances += 1
            answer = granted_by(self.inner, self.inner.advance(batch, limit), before, limit)
            groups, self._granted, done = [], answer.granted_ps, answer.completions
            parts.append(done)
            reaction, released = self._releaser.complete(done)
            bound = min(bound, reaction)
            self._starts += released
            moved = self._granted > before or len(done) or len(batch.start_handle)
            # What was released just now starts at the grant or later: in the next turn, or the next advance.
            if self._granted >= min(horizon_ps, bound) or not moved:
                return Advance(self._granted, Completions.join(parts))

    def _open(self, group: FlowGroup) -> FlowGroup:
        table = group.table
        if group.release == "caller" or not len(table.dep_distance):
            return group
        self._releaser.open(group)
        return replace(group, table=self._table(table), release="caller")

    def _table(self, table: FlowTable) -> FlowTable:
        """The table as the inner network has it: what is released here starts the least delay later."""
        if id(table) not in self._tables:
            rows = np.repeat(np.arange(table.num_rows), np.diff(table.dep_ptr))
            done = table.dep_kind == ON_COMPLETION
            # The network must not run past a completion by more than the delay after which something follows
            # it.
            least = int(table.delay_ps[rows[done]].min()) if done.any() else NEVER
            self._tables[id(table)] = table, replace(table, reaction_ps=np.minimum(table.reaction_ps, least))
        return self._tables[id(table)][1]

    def _follow(self, handle: I32, index: I64, time_ps: I64, kind: int) -> None:
        """Have started what waited for these, which are of groups that are followed."""
        if not self._releaser.num_followed:
            return
        at = np.flatnonzero(self._releaser.follows(handle))
        if len(at):
            self._starts += self._releaser.released_by(handle[at], index[at], time_ps[at], kind)
