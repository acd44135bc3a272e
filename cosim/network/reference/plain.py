"""The seam around a model in plain Python: flows are given and released, completions are reported.

A model says what happens when a flow starts or comes to a link (``_take``), when it has *drained*, its last
byte having left (``_drained``), and when a link changes (``_change_rate``). It calls ``_complete`` as soon
as it is certain when a flow completes. The loop over instants is :meth:`PlainNetwork._run`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, ClassVar

import numpy as np

from cosim import units
from cosim.errors import CausalityError, NetworkError, SimulationError
from cosim.fabric.changes import LinkChange, RouteChange
from cosim.network.flows import ON_COMPLETION, ON_START, Completions, FlowBatch, FlowGroup
from cosim.network.reference.dependencies import Followed, KnownTables, TableRows
from cosim.network.reference.drains import Drains
from cosim.network.reference.links import LinkUse
from cosim.network.simulator import Advance, Capabilities, NetworkSimulator, NetworkStatistics
from cosim.topology.graph import Topology
from cosim.units import NEVER

MOST_IN_VAIN = 100_000
"""So many changes in a row with nothing to do between them: nothing will ever come of it."""

Ends = tuple[int, int, int]
"""Source, destination, channel: what a routing goes by."""


@dataclass(eq=False)
class Transfer:
    """A message under way. ``links`` is its path; ``cause_ps``: when it became certain that it starts."""

    group: FlowGroup
    index: int
    key: tuple[int, int]
    ends: Ends
    size: int
    reaction_ps: int
    start_ps: int
    cause_ps: int
    links: tuple[int, ...]
    end_ps: int = NEVER
    end_cause_ps: int = NEVER
    # Only where a flow has a rate: bytes at ``touched_ps``, and bytes per ps or ns since.
    remaining: float = 0.0
    rate: float = 0.0
    touched_ps: int = 0
    counted: int = 0
    """Bytes of it that links' statistics have."""


@dataclass(eq=False, slots=True)
class GivenGroup:
    """A group that was given: ``left`` flows have yet to be reported."""

    followed: Followed
    left: int


@dataclass(order=True, slots=True)
class FlowEvent:
    """A flow starts, or comes to the link number ``hop`` of its path. Those of one instant go by cause,
    then by the endpoint that they come from, then by key.
    """

    time_ps: int
    cause_ps: int
    source: int
    key: tuple[int, int]
    hop: int
    flow: Transfer = field(compare=False)


class PlainNetwork(NetworkSimulator):
    """Base of the models. What it has of the seam's rules is in :mod:`cosim.network.simulator`."""

    name: ClassVar[str]
    quantum_ps = 1
    link_changes = True
    has_rates = False
    _is_open: bool | None = None  # None: not yet

    def describe(self) -> Capabilities:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        what = {
            "link_changes": self.link_changes,
            "live_changes": self.link_changes,
            "rates": self.has_rates,
            "switch_ends": True,
        }
        return Capabilities(self.name, quantum_ps=self.quantum_ps, **what)

    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`. No model draws lots."""
        del seed
        if self._is_open is not None:
            raise NetworkError(f"{self.name}: a network is opened once")
        if topology.changes is not None and not self.link_changes:
            raise NetworkError(f"{self.name} has no links that fail or slow down here: see changing")
        if options:
            raise NetworkError(f"{self.name} has no options; got {', '.join(sorted(options))}")
        self._is_open = True
        self.topology = topology
        self.use = LinkUse(topology.num_links)
        self.now_ps = 0
        self.num_events = self.num_started = self.num_completed = 0
        self._granted = 0
        self._bound = NEVER
        self._tables = KnownTables()
        self._open: dict[int, GivenGroup] = {}
        self._paths: dict[Ends, tuple[int, ...]] = {}
        self._calendar: list[FlowEvent] = []
        self._certain: list[Transfer] = []
        self.drains = Drains[Transfer]()
        self.dead: tuple[int, ...] = ()
        self._detours: dict[tuple[tuple[int, ...], Ends], tuple[int, ...]] = {}
        self._changes = iter(() if topology.changes is None else topology.changes)
        self._change = next(self._changes, None)
        self._in_vain = self._progress = 0
        self._open_model()

    @abstractmethod
    def _open_model(self) -> None:
        """Make the model's own state."""

    @abstractmethod
    def _take(self, event: FlowEvent) -> None:
        """A flow starts, or comes to a link."""

    def change(self, changes: Sequence[LinkChange | RouteChange]) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`. At one time, links come first."""
        if not self.link_changes or self.topology.changes is None:
            super().change(changes)
        known = [] if self._change is None else [self._change, *self._changes]
        known += changes
        known.sort(key=lambda one: (one.time_ps, isinstance(one, RouteChange)))
        self._changes = iter(known)
        self._change = next(self._changes, None)

    # -- flows in ------------------------------------------------------------------------------------

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        if not self._is_open:
            raise NetworkError(f"{self.name}: advance needs an open network")
        if horizon_ps < self._granted:
            raise CausalityError(f"{self.name}: horizon {horizon_ps} is before the grant {self._granted} ps")
        for group in flows.groups:
            self._open_group(group)
        columns = flows.start_handle, flows.start_index, flows.start_ps, flows.cause_ps
        for handle, index, start, cause in zip(*(column.tolist() for column in columns), strict=True):
            self._give(handle, index, start, cause)
        self._run(horizon_ps)
        return self._report(min(horizon_ps, self._bound))

    def _open_group(self, group: FlowGroup) -> None:
        rows = self._tables.rows(group.table)
        if group.handle in self._open:
            raise NetworkError(f"flow group handle {group.handle} is still in use")
        self._open[group.handle] = GivenGroup(Followed(group, rows), rows.num_flows)
        # One question to the routing for all that is new: it answers in columns.
        nodes = group.endpoints.tolist()
        wanted = {self._ends(group, rows, nodes, row) for row in range(len(rows.src))} - self._paths.keys()
        if wanted:
            asked = sorted(wanted)
            ptr, links = self.topology.paths(*(np.array(one, np.int32) for one in zip(*asked, strict=True)))
            for number, ends in enumerate(asked):
                self._paths[ends] = tuple(links[ptr[number] : ptr[number + 1]].tolist())

    def _ends(self, group: FlowGroup, rows: TableRows, nodes: list[int], row: int) -> Ends:
        return nodes[rows.src[row]], nodes[rows.dst[row]], rows.channel[row] + group.channel

    def _give(self, handle: int, index: int, start_ps: int, cause_ps: int) -> None:
        """The caller starts a flow."""
        known = self._open.get(handle)
        if known is None:
            raise NetworkError(f"a flow of unknown group handle {handle}")
        rows = known.followed.rows
        if not 0 <= index < rows.num_flows:
            raise NetworkError(f"flow index beyond the {rows.num_flows} flows of group {handle}")
        if start_ps < self._granted:
            raise CausalityError(
                f"{self.name}: a flow was given for {start_ps} ps, but {self._granted} ps had been granted"
            )
        group = known.followed.group
        if group.release == "network" and rows.waits[rows.row_of(index)]:
            raise NetworkError(
                f"{self.name}: flow {index} of group {handle} was given, "
                "but has dependencies that the network follows"
            )
        self._schedule(known.followed, index, start_ps, cause_ps)
        self._release(known.followed, index, start_ps, ON_START)

    def _release(self, followed: Followed, index: int, time_ps: int, kind: int) -> None:
        """Schedule what waited for a flow, where that is the network's to do."""
        if followed.group.release == "network":
            for released in followed.tell(index, time_ps, kind):
                self._schedule(followed, *released)

    def _schedule(self, followed: Followed, index: int, start_ps: int, cause_ps: int) -> None:
        group, rows = followed.group, followed.rows
        row = rows.row_of(index)
        ends = self._ends(group, rows, group.endpoints.tolist(), row)
        key = group.key[0], group.key[1] + index
        size, reaction = rows.size[row], rows.reaction[row]
        flow = Transfer(group, index, key, ends, size, reaction, start_ps, cause_ps, self.path(ends))
        self._push(flow, start_ps, cause_ps, 0)

    def _push(self, flow: Transfer, time_ps: int, cause_ps: int, hop: int) -> None:
        heappush(
            self._calendar, FlowEvent(self._in_time(time_ps), cause_ps, flow.ends[0], flow.key, hop, flow)
        )

    # -- time ----------------------------------------------------------------------------------------

    def _run(self, horizon_ps: int) -> None:
        """Go from instant to instant, before the horizon and before the caller may react to anything.

        At an instant, first what has drained by then, then what changes, then what starts.
        """
        while True:
            limit = min(horizon_ps, self._bound)
            start = self._calendar[0].time_ps if self._calendar else NEVER
            drain, change = self.drains.next_ps, self._next_change_ps()
            coming = min(start, change)
            if self._is_unsettled() and min(coming, drain) > self.now_ps:
                if limit <= self.now_ps:  # the caller may still give starts here
                    return
                self._settle()  # time leaves the instant
            elif drain < NEVER and drain <= min(coming, limit):
                # It follows from the past, so it may lie at the limit.
                self.now_ps = drain
                self.num_events += 1
                self._drained(self.drains.pop())
            elif coming >= limit or (limit == NEVER and self._is_in_vain(min(start, drain))):
                return
            elif change <= start:
                self._take_change()
            else:
                self._take_turn()

    def _take_turn(self) -> None:
        """All that is known of the next instant, in its order. What that brings about at this very instant
        is a turn of its own, as in an event list that is served first come, first served.
        """
        self.now_ps = self._calendar[0].time_ps
        turn = []
        while self._calendar and self._calendar[0].time_ps == self.now_ps:
            turn.append(heappop(self._calendar))
        for event in turn:
            self.num_events += 1
            self.num_started += event.hop == 0
            self._take(event)

    def _complete(self, flow: Transfer, time_ps: int, cause_ps: int) -> None:
        """It is certain, since ``cause_ps``, when a flow completes."""
        flow.end_ps, flow.end_cause_ps = self._in_time(time_ps), cause_ps
        self._certain.append(flow)
        # Beyond it, the caller may have something to say before what would happen here next.
        self._bound = min(self._bound, time_ps + flow.reaction_ps)
        self._release(self._open[flow.group.handle].followed, flow.index, time_ps, ON_COMPLETION)

    def _in_time(self, time_ps: int) -> int:
        if time_ps >= NEVER:
            raise SimulationError(f"{self.name}: {units.TOO_LATE}")
        return time_ps

    # -- links that change ---------------------------------------------------------------------------

    def _is_idle(self) -> bool:
        """Whether no flow is under way to which it could matter."""
        return True

    def _next_change_ps(self) -> int:
        if self._change is None or (self._is_idle() and not self._calendar):
            return NEVER
        return self._change.time_ps

    def _is_in_vain(self, else_ps: int) -> bool:
        """Whether nothing will ever come of the changes that are left; ``else_ps``: when anything else
        comes.
        """
        return else_ps == NEVER and self._in_vain > MOST_IN_VAIN

    def _take_change(self) -> None:
        """The next change: of a link's rate, or, later than that, of the routes that have heard of it."""
        assert self._change is not None
        change, self._change = self._change, next(self._changes, None)
        self.now_ps = change.time_ps
        self._in_vain = self._in_vain + 1 if self._progress == self.num_events else 0
        self._progress = self.num_events
        if isinstance(change, LinkChange):
            self._change_rate(change.link, change.rate_bps)
        else:
            self.dead = change.dead
            self._reroute()

    def path(self, ends: Ends) -> tuple[int, ...]:
        """The links that a flow takes now: its own, or others around links that routing knows to be dead."""
        own = self._paths[ends]
        if not self.dead or not {*own} & {*self.dead}:
            return own
        if (self.dead, ends) not in self._detours:
            is_dead = np.zeros(self.topology.num_links, np.bool_)
            is_dead[[*self.dead]] = True
            columns = (np.array([one], np.int32) for one in ends)
            _, links = self.topology.routing.around(self.topology, is_dead, *columns)
            self._detours[self.dead, ends] = tuple(links.tolist()) or own
        return self._detours[self.dead, ends]

    def _drained(self, flow: Transfer) -> None:
        """The last byte of a flow has left."""

    def _change_rate(self, link: int, rate_bps: float) -> None:
        """A link has another rate from now on; 0: it is dead."""

    def _reroute(self) -> None:
        """Flows may have another :meth:`path` from now on."""

    def _is_unsettled(self) -> bool:
        """Whether there is something to settle when time leaves the instant."""
        return False

    def _settle(self) -> None:
        """Settle it."""

    # -- completions out -----------------------------------------------------------------------------

    def _report(self, grant_ps: int) -> Advance:
        done = [flow for flow in self._certain if flow.end_ps <= grant_ps]
        self._certain = [flow for flow in self._certain if flow.end_ps > grant_ps]
        self._bound = min((flow.end_ps + flow.reaction_ps for flow in self._certain), default=NEVER)
        self._granted = grant_ps
        self.num_completed += len(done)
        for flow in done:
            known = self._open[flow.group.handle]
            known.left -= 1
            if not known.left:
                del self._open[flow.group.handle]
        columns = [
            np.array([getattr(flow, name) for flow in done], np.int64)
            for name in ("index", "start_ps", "end_ps", "end_cause_ps")
        ]
        handle = np.array([flow.group.handle for flow in done], np.int32)
        return Advance(grant_ps, Completions(handle, *columns))

    def has_work(self) -> bool:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        changes = not self._is_idle() and self._change is not None and self._in_vain <= MOST_IN_VAIN
        some = bool(self._calendar or self._certain or self._is_unsettled() or changes)
        return some or self.drains.next_ps < NEVER

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        counts = self.num_started, self.num_completed, self.num_events
        return NetworkStatistics(self.use.sent_bytes, 1 << self.use.bin_bits, self.use.busy_ps, *counts)

    def close(self) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self._is_open = False
