"""An in-process network as a server sees it: flat flows in, completions out.

The seam of :mod:`cosim.network.simulator` takes groups; the wire has flat flows. Flows in a run of successive
keys and of equal traits become one group. Dependent flows are released here, so that a network that can't do
so itself is served too; the network inside stops at every completion, and this goes on where the client need
not be asked: same times either way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.fabric.changes import LinkChange, RouteChange
from cosim.network.flows import I32, I64, FlowBatch, FlowGroup, FlowTable, flat_table
from cosim.network.simulator import NetworkSimulator, QueueSample, RateSample
from cosim.protocol.dependency_tracker import DependencyTracker
from cosim.protocol.digest import Digest
from cosim.protocol.flat_flows import LATER, TRAITS, FlatFlows
from cosim.protocol.refusal import Refusal
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.topology.graph import Topology
from cosim.units import NEVER

_MOST_REPORTED = 1 << 17  # completions in one answer, which then says that its buffer is full


class GrowingArray:
    """An array that grows."""

    def __init__(self, dtype: Any) -> None:
        self.array: NDArray[Any] = np.zeros(64, dtype)
        self.used = 0

    def room(self, need: int) -> None:
        """Make it at least that long."""
        if need > len(self.array):
            new = np.zeros(max(need, 2 * len(self.array)), self.array.dtype)
            new[: len(self.array)] = self.array
            self.array = new

    def take(self, count: int) -> tuple[int, NDArray[Any]]:
        """(First, view) of that many more."""
        first = self.used
        self.used = first + count
        self.room(self.used)
        return first, self.array[first : self.used]


@dataclass(eq=False, slots=True)
class AdvanceResult:
    """What an advance came to; ``ids`` and the times are columns of completions."""

    granted_ps: int
    stop_reason: int
    ids: I64
    start_ps: I64
    time_ps: I64
    cause_ps: I64
    simulator_ns: int


class ServedNetwork:
    """One session's network. ``digest`` is that of everything that completed."""

    def __init__(self, network: NetworkSimulator, topology: Topology) -> None:
        self._network = network
        self._topology = topology
        self._tables: dict[tuple[bytes, ...], FlowTable] = {}
        # By handle: the id of a group's first flow, and how many of its flows have not completed.
        self._first, self._left = GrowingArray(np.int64), GrowingArray(np.int64)
        self._free: list[int] = []
        self._groups: list[FlowGroup] = []
        self._starts: list[tuple[I64, I64, I64]] = []
        self._granted = 0
        self.tracker = DependencyTracker()
        self.digest = Digest()

    @property
    def open_flows(self) -> int:
        """Given, not completed."""
        return self.tracker.count - self.tracker.completed

    @property
    def granted_ps(self) -> int:
        """How far it is."""
        return self._granted

    def change(self, changes: Sequence[LinkChange | RouteChange]) -> None:
        """Have links and routes change."""
        if changes:
            self._network.change(changes)

    def tune(self, values: Mapping[str, Any]) -> None:
        """Have the congestion control use other parameters."""
        self._network.tune(values, self._granted)

    def take(self, flows: FlatFlows) -> None:
        """Take flows.

        Raises
        ------
        Refusal
            INVALID_FLOWS, CAUSALITY.
        """
        if not flows.count:
            return
        self._check(flows)
        slots, ready = self.tracker.add(flows)
        for first, last in flows.runs():
            self._open(flows.part(first, last), slots[first:last])
        start = flows.column("start_ps")
        given = np.flatnonzero(start != LATER)
        if len(given):
            cause = flows.column("cause_ps")[given]
            start = start[given]
            self._start(slots[given], start, np.where(cause == LATER, start, cause))
        self._release(ready)

    def start(self, ids: I64, start_ps: I64, cause_ps: I64) -> None:
        """Start flows that were given without a start.

        Raises
        ------
        Refusal
            INVALID_FLOWS, CAUSALITY.
        """
        if not len(ids):
            return
        if not len(ids) == len(start_ps) == len(cause_ps):
            raise Refusal("INVALID_FLOWS", "the columns of starts differ in length", field="starts")
        if not self.tracker.there(ids).all():
            raise Refusal("INVALID_FLOWS", "a start of a flow that is not open", field="id")
        slots = self.tracker.slots(ids)
        rows = self.tracker.rows[slots]
        if (rows["start"] != LATER).any() or (rows["waits"] > 0).any() or len(np.unique(ids)) < len(ids):
            raise Refusal("INVALID_FLOWS", "a flow is started once, and not where it waits", field="id")
        self._start(slots, start_ps, cause_ps)

    def run(self, horizon_ps: int, until: float | None, cancelled: Callable[[], bool]) -> AdvanceResult:
        """Run to the horizon or to where the client may react; to ``until`` (``time.monotonic``) at most."""
        if horizon_ps < self._granted:
            raise Refusal("CAUSALITY", f"the horizon {horizon_ps} ps is before the grant {self._granted} ps")
        bound, reason = NEVER, pb.STOP_REASON_UNSPECIFIED
        columns: list[tuple[I64, I64, I64, I64]] = []
        count = spent = 0
        while True:
            # The network inside stops at each completion (it was told of no lookahead); the client need
            # be asked only where its own reaction delays say so: that is the bound.
            limit = min(horizon_ps, bound)
            began = time.perf_counter_ns()
            granted, done = self._network.advance(self._batch(), limit)
            spent += time.perf_counter_ns() - began
            self._granted = granted
            if len(done):
                ids = self._completed(done.handle, done.index)
                columns.append((ids, done.start_ps, done.time_ps, done.since()))
                count += len(ids)
                slots = self.tracker.slots(ids)
                rows = self.tracker.rows
                rows["time"][slots] = done.time_ps
                react = np.minimum(rows["reaction"][slots], NEVER - done.time_ps) + done.time_ps
                bound = min(bound, int(react.min()))
                # What these completions release starts with the next turn, before time goes on.
                self._release(self.tracker.released_by(slots, done.time_ps, 0))
            if granted >= bound:
                reason = pb.STOP_REASON_REACTION
            elif granted >= horizon_ps:
                reason = pb.STOP_REASON_HORIZON
            elif count >= _MOST_REPORTED:
                reason = pb.STOP_REASON_BUFFER
            elif cancelled():
                reason = pb.STOP_REASON_CANCELLED
            elif until is not None and time.monotonic() >= until:
                reason = pb.STOP_REASON_BUDGET
            else:
                continue
            break
        # Rows are let go only now: an answer may tell of flows that completed in several turns.
        empty = np.empty(0, np.int64)
        told, start, when, why = (
            columns[0]
            if len(columns) == 1
            else [np.concatenate([empty, *(part[c] for part in columns)]) for c in range(4)]
        )
        slots = self.tracker.slots(told)
        self.digest.add(self.tracker.rows["key_high"][slots], self.tracker.rows["key_low"][slots], when)
        self.tracker.finish(told)
        return AdvanceResult(granted, reason, told, start, when, why, spent)

    def peek(self) -> int | None:
        """The time of the next completion if nothing more is given; without moving."""
        self._network.advance(self._batch(), self._granted)  # what was released since is known to it then
        return self._network.peek()

    def sample(self, links: I64, *, rates: bool) -> tuple[QueueSample | None, RateSample | None]:
        """What stands at links, and what connections send, at the grant; None where that isn't asked for."""
        queues = self._network.queues(links, self._granted) if len(links) else None
        return queues, self._network.rates() if rates else None

    def has_work(self) -> bool:
        """Whether anything will still happen if nothing more is given."""
        return bool(self._starts) or self._network.has_work()

    # -- flows in ------------------------------------------------------------------------------------

    def _check(self, flows: FlatFlows) -> None:
        tracker, columns = self.tracker, flows.columns
        if flows.first_id != tracker.count:
            raise Refusal(
                "INVALID_FLOWS", f"first_id is {flows.first_id}; {tracker.count} is next", field="first_id"
            )
        topology, anywhere = self._topology, self._network.describe().switch_ends
        ends = topology.num_nodes if anywhere else topology.num_endpoints
        for name in ("src", "dst"):
            if columns[name].min() < 0 or columns[name].max() >= ends:
                what = "nodes" if anywhere else "endpoints"
                raise Refusal("INVALID_FLOWS", f"{name} beyond the {ends} {what}", field=name)
        if min(columns[name].min() for name in ("size_bytes", "delay_ps", "reaction_delay_ps")) < 0:
            raise Refusal("INVALID_FLOWS", "sizes and delays are at least 0", field="size_bytes")
        if flows.has_dependencies:
            waiting = np.repeat(np.arange(flows.count), np.diff(flows.dependency_ptr)) + flows.first_id
            ids = flows.dependency_id
            if ids.min() < 0 or (ids >= waiting).any():
                raise Refusal("INVALID_FLOWS", "a flow waits for flows of lower ids", field="dependency_id")
            if ids.min() < tracker.oldest:
                raise Refusal(
                    "INVALID_FLOWS",
                    f"a flow waits for flow {ids.min()}; an earlier advance said {tracker.oldest} or later",
                    field="dependency_id",
                )
            if (flows.column("start_ps")[waiting - flows.first_id] != LATER).any():
                raise Refusal("INVALID_FLOWS", "a flow that waits is given no start", field="start_ps")

    def _open(self, run: FlatFlows, slots: I64) -> None:
        if not self._free:
            self._free.append(self._first.take(1)[0])
            self._left.take(1)
        handle = self._free.pop()
        endpoints, local = np.unique(
            np.concatenate([run.column("src"), run.column("dst")]), return_inverse=True
        )
        table = self._table(len(endpoints), local.astype(np.int32), run)
        traits = {name: run.columns[name][0].item() for name in TRAITS}
        key = int(run.columns["key_high"][0]), int(run.columns["key_low"][0])
        self._groups.append(
            FlowGroup(handle, table, endpoints.astype(np.int32), key, release="caller", **traits)
        )
        self._first.array[handle] = run.first_id
        self._left.array[handle] = run.count
        self.tracker.rows["handle"][slots] = handle

    def _table(self, participants: int, local: I32, run: FlatFlows) -> FlowTable:
        """A table of the run's flows; the same one for the same content, for networks keep what they saw."""
        size, channel = run.column("size_bytes"), run.column("channel")
        content = (local.tobytes(), size.tobytes(), channel.tobytes())
        known = self._tables.get(content)
        if known is None:
            known = self._tables[content] = flat_table(
                local[: run.count].copy(),
                local[run.count :].copy(),
                size.copy(),
                num_participants=participants,
                channel=channel.copy(),
            )
        return known

    def _start(self, slots: I64, start: I64, cause: I64) -> None:
        """Start flows, and those that waited for their starts."""
        rows = self.tracker.rows
        while len(slots):
            if start.min() < self._granted:
                raise Refusal(
                    "CAUSALITY",
                    f"a flow was given for {start.min()} ps, but {self._granted} ps had been granted",
                    flow=rows["id"][slots[start.argmin()]],
                )
            rows["start"][slots] = start
            self._starts.append((slots, start, cause))
            slots = self.tracker.released_by(slots, start, 1)
            cause = rows["ready"][slots]
            start = cause + rows["delay"][slots]

    def _release(self, slots: I64) -> None:
        """Start flows that wait no more."""
        cause = self.tracker.rows["ready"][slots]
        self._start(slots, cause + self.tracker.rows["delay"][slots], cause)

    def _batch(self) -> FlowBatch:
        if not self._groups and not self._starts:
            return FlowBatch()
        groups, starts = self._groups, self._starts
        self._groups, self._starts = [], []
        if not starts:
            return FlowBatch(groups)
        slots, start, cause = (np.concatenate([s[c] for s in starts]) for c in range(3))
        handle = self.tracker.rows["handle"][slots]
        base = self._first.array[handle]
        return FlowBatch(groups, handle.astype(np.int32), self.tracker.rows["id"][slots] - base, start, cause)

    # -- completions out -----------------------------------------------------------------------------

    def _completed(self, handle: I32, index: I64) -> I64:
        """Ids of completions; lets go of groups that ended."""
        ids = self._first.array[handle] + index
        left = self._left.array
        np.subtract.at(left, handle, 1)
        self._free += dict.fromkeys(handle[left[handle] == 0].tolist())
        self.tracker.completed += len(ids)
        return np.asarray(ids, np.int64)
