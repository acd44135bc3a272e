"""A network whose dependent flows are started in front of it: for one that can't, and for ``release:
engine``.

Times are the same, bit for bit, as where the network does so itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cosim.network.flows import ON_COMPLETION, ON_START, Completions, FlowBatch, FlowGroup, FlowTable
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.outbox import Outbox
from cosim.network.reference.dependencies import Followed, KnownTables
from cosim.network.simulator import Advance, Capabilities, NetworkSimulator, granted_by
from cosim.units import NEVER


@dataclass(eq=False)
class ReleasedGroup:
    """A group of which ``left`` flows have yet to come; ``released``: its dependencies are followed."""

    followed: Followed
    left: int
    released: bool


class PlainReleasing(ForwardingNetwork):
    """Stands in front of ``inner``, which is given each flow when its time has come."""

    def __init__(self, inner: NetworkSimulator) -> None:
        super().__init__(inner)
        self.num_advances = 0
        """How often the network behind was asked."""
        self._granted = 0
        self._open: dict[int, ReleasedGroup] = {}
        self._tables = KnownTables()
        self._given: dict[int, tuple[FlowTable, FlowTable]] = {}
        self._outbox = Outbox()

    def describe(self) -> Capabilities:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        return replace(super().describe(), dependent_flows=True, peek=False)

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        # What the caller starts, and what was released before, go in one batch: one order for both.
        self._outbox.add(replace(flows, groups=[self._open_group(group) for group in flows.groups]))
        columns = flows.start_handle, flows.start_index, flows.start_ps
        for handle, index, start in zip(*(column.tolist() for column in columns), strict=True):
            self._follow(handle, index, start, ON_START)
        parts: list[Completions] = []
        limit = horizon_ps
        while True:
            before, batch = self._granted, self._outbox.take()
            self.num_advances += 1
            answer = self.inner.advance(batch, limit)
            self._granted, done = granted_by(self, answer, before, limit)
            parts.append(done)
            limit = min(limit, self._completed(done))
            moved = self._granted > before or len(done) or len(batch.start_handle)
            # What was released just now starts at the grant or later: in the next turn, or the next advance.
            if self._granted >= limit or not moved:
                return Advance(self._granted, Completions.join(parts))

    def _open_group(self, group: FlowGroup) -> FlowGroup:
        rows = self._tables.rows(group.table)
        released = group.release == "network" and any(rows.waits)
        self._open[group.handle] = ReleasedGroup(Followed(group, rows), rows.num_flows, released)
        return replace(group, table=self._table(group.table), release="caller") if released else group

    def _table(self, table: FlowTable) -> FlowTable:
        """The table as the inner network has it: what is released here starts the least delay later."""
        if id(table) not in self._given:
            of_row = np.repeat(np.arange(table.num_rows), np.diff(table.dep_ptr))
            done = table.dep_kind == ON_COMPLETION
            # The network must not run past a completion by more than the delay after which something follows.
            least = int(table.delay_ps[of_row[done]].min()) if done.any() else NEVER
            self._given[id(table)] = table, replace(table, reaction_ps=np.minimum(table.reaction_ps, least))
        return self._given[id(table)][1]

    def _follow(self, handle: int, index: int, time_ps: int, kind: int) -> None:
        known = self._open.get(handle)
        if known is not None and known.released:
            for flow, start, cause in known.followed.tell(index, time_ps, kind):
                self._outbox.start(handle, flow, start, cause)

    def _completed(self, done: Completions) -> int:
        """Release what waited for completions; the earliest that the caller may react to one.

        What isn't under way is left to the caller to refuse.
        """
        bound = NEVER
        for handle, index, time_ps in zip(
            done.handle.tolist(), done.index.tolist(), done.time_ps.tolist(), strict=True
        ):
            known = self._open.get(handle)
            if known is None or not 0 <= index < known.followed.rows.num_flows:
                continue
            rows = known.followed.rows
            bound = min(bound, time_ps + rows.reaction[rows.row_of(index)])
            self._follow(handle, index, time_ps, ON_COMPLETION)
            known.left -= 1
            if not known.left:
                del self._open[handle]
        return bound
