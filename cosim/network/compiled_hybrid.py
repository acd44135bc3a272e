"""A hybrid of two networks of the kernel: one loop, without Python between their turns.

The same as :class:`~cosim.network.hybrid.HybridNetwork` of the two, and as exact; how time goes:
``cosim/kernel/src/hybrid.c``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cosim.errors import NetworkError
from cosim.fabric.changes import LinkChange, RouteChange
from cosim.kernel import Columns, kernel, record
from cosim.network.carriers import carriers, carriers_together
from cosim.network.compiled import CompiledNetwork
from cosim.network.core import Reported
from cosim.network.flows import I32, I64, FlowGroup, FlowTable, flat_table
from cosim.network.merged import TwoNetworks
from cosim.network.shares import without_dependencies
from cosim.network.simulator import NetworkSimulator
from cosim.topology.graph import Topology
from cosim.units import NEVER

_MARK = FlowGroup(0, flat_table([0], [0], [0]), np.zeros(1, np.int32), (1 << 62, 0), release="caller")
_NONE = -1
_ALL_STEPS = 4
"""No round is under way."""


class HybridPair(Columns):
    """Both parts, and what each of them calls rows, tables and traits of the whole."""

    container = "hybrid"


class CompiledHybridNetwork(TwoNetworks, CompiledNetwork):
    """The model of the module's text."""

    loop = "run_hybrid"

    def __init__(self, scale_up: CompiledNetwork, scale_out: CompiledNetwork) -> None:
        super().__init__(scale_up, scale_out)
        self._parts = (scale_up, scale_out)
        both = self.describe()
        self.name, self.peeks, self.link_changes = both.name, both.peek, both.link_changes
        self.live_changes = both.live_changes

    def _open_model(self, topology: Topology, seed: int) -> None:
        self._open_parts(topology, seed)
        for part in self._parts:
            self._open_mark(part)
        self._rows = 0
        self._tables: dict[int, tuple[FlowTable, FlowTable]] = {}
        self._traits: dict[tuple[int, ...], int] = {}
        one, other = self._parts
        parts = np.zeros(2, record("hybrid_part"))
        parts["next"] = NEVER
        parts["loop"] = [part.entry for part in self._parts]
        self._pair = HybridPair(core0=one.core, core1=other.core, reported=Reported(), parts=parts)
        self._pair.state["step"], self._pair.state["over"] = _ALL_STEPS, _NONE

    @staticmethod
    def _open_mark(part: CompiledNetwork) -> None:
        _, path = part.bind(_MARK.table, _MARK.endpoints, _MARK.job)
        part.store.open(_MARK, path, part.traits(_MARK))
        part.store.columns.groups["left"][_MARK.handle] = NEVER  # it is used again and again

    @property
    def columns(self) -> Columns:
        """See :class:`~cosim.network.compiled.CompiledNetwork`."""
        self._pair.parts["columns"] = [part.columns.address for part in self._parts]
        return self._pair

    # -- flows in ------------------------------------------------------------------------------------

    def traits(self, group: FlowGroup) -> int:
        """See :class:`~cosim.network.compiled.CompiledNetwork`: both parts' numbers."""
        both = tuple(part.traits(group) for part in self._parts)
        number = self._traits.setdefault(both, len(self._traits))
        self._pair.lengthen("traits", number + 1)["number"][number] = both
        return number

    def _bind_rows(self, table: FlowTable, job: int, src: I32, dst: I32, channel: I32) -> int:
        carrier = carriers_together(self._topology, self._scale_up, src, dst, channel)
        first = self._add_rows(len(src))
        number = self.store.table(table).number
        tables = self._pair.lengthen("tables", number + 1)["number"]
        repeats = np.repeat(table.block_repeat, np.diff(table.block_row))
        for which, part in enumerate(self._parts):
            mine = carrier == which
            if mine.any():
                known = part.store.table(self._inner(table))
                tables[number, which] = known.number
                self._pair.rows["flows"][first, which] = repeats[mine].sum()
                self._add_paths_of(which, first, mine, (job, src, dst, channel))
        return first

    def bind_messages(self, job: int, src: I32, dst: I32, size_bytes: I64, channel: I32) -> tuple[int, int]:
        """See :class:`~cosim.network.compiled.CompiledNetwork`."""
        carrier, _ = carriers(self._topology, self._scale_up, src, dst, channel)
        number, row0 = self.store.single_flows(size_bytes)
        first = self._add_rows(len(src))
        tables = self._pair.lengthen("tables", number + len(src))["number"]
        tables[number : number + len(src)] = _NONE
        self._pair.rows["flows"][first : first + len(src)] = 1
        for which, part in enumerate(self._parts):
            mine = carrier == which
            if mine.any():
                inner, _ = part.store.single_flows(size_bytes)
                tables[number : number + len(src), which][mine] = inner + np.flatnonzero(mine)
                self._add_paths_of(which, first, mine, (job, src, dst, channel))
        return number, first - row0

    def resize_message(self, number: int, size_bytes: int) -> None:
        """See :class:`~cosim.network.compiled.CompiledNetwork`."""
        super().resize_message(number, size_bytes)
        for which, part in enumerate(self._parts):
            inner = int(self._pair.tables["number"][number, which])
            if inner != _NONE:
                part.resize_message(inner, size_bytes)

    def _add_rows(self, count: int) -> int:
        first = self._rows
        self._rows += count
        self._pair.lengthen("rows", self._rows)["path"][first : self._rows] = _NONE
        return first

    def _add_paths_of(self, which: int, first: int, mine: Any, rows: tuple[int, I32, I32, I32]) -> None:
        """Find a part's paths; what it doesn't carry is a message of an endpoint to itself there."""
        job, src, dst, channel = rows
        at = self._parts[which].add_paths(job, src, np.where(mine, dst, src), channel)
        places = np.where(mine, at + np.arange(len(src)), _NONE)
        self._pair.rows["path"][first : first + len(src), which] = places

    def _inner(self, table: FlowTable) -> FlowTable:
        """A table as parts know it: the same one each time, for networks keep what they saw."""
        if not len(table.dep_distance):
            return table
        known = self._tables.get(id(table))
        if known is None:
            known = self._tables[id(table)] = table, without_dependencies(table)
        return known[1]

    # -- between two calls of the loop ---------------------------------------------------------------

    def _answer_model(self, what: int) -> None:
        if what == kernel.PART_ASKS:
            state = self._pair.state[0]
            self._parts[int(state["which"])].answer(int(state["status"]))
        else:
            assert what == kernel.GIVEN_TOO_LATE
            raise NetworkError(f"{self.name}: a flow was to start before what had been granted")

    def _next_instant(self) -> int:
        # It may have stopped to report, and has not done what comes next.
        state = self.core.state[0]
        early = int(state["num_pending"]) >= int(state["report_at"])
        return int(state["next"]) - 1 if early else NEVER

    def look_ahead(self) -> int | None:
        """See :class:`~cosim.network.compiled.CompiledNetwork`: of what each was given by now."""
        state = self.core.state[0]
        self._run(int(state["grant"]))
        pending = self.core.pending["time"][: int(state["num_pending"])].tolist()
        coming = [part.look_ahead() for part in self._parts]
        return min([*pending, *(time for time in coming if time is not None)], default=None)

    # -- what else is asked --------------------------------------------------------------------------

    def change(self, changes: Sequence[LinkChange | RouteChange]) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`: each part is told of its own links."""
        if not self.live_changes or self._topology.changes is None:
            NetworkSimulator.change(self, changes)  # refuses
        super().change(changes)
        # What either does next may come sooner now; a part that has nothing to do then just says so.
        self._comes_sooner(min(one.time_ps for one in changes))

    def tune(self, values: Mapping[str, Any], now_ps: int) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`: of each part that has a control."""
        super().tune(values, now_ps)
        self._comes_sooner(now_ps)

    def _comes_sooner(self, time_ps: int) -> None:
        self._pair.parts["next"] = np.minimum(self._pair.parts["next"], time_ps)
        self._knows_next = False

    def has_work(self) -> bool:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        return super().has_work() or any(part.has_work() for part in self._parts)

    def _own_flows(self) -> Sequence[int]:
        return [int(marks) for marks in self._pair.parts["marks"]]
