"""What the networks that run in the kernel share: the seam around a loop.

A model adds its state and the name of its loop over instants (``cosim/kernel/src``). The loop returns when it
reaches its limit (the horizon, or the first time at which a completion's reaction could matter), or has a
question that only Python can answer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosim import units
from cosim.errors import CausalityError, NetworkError, SimulationError
from cosim.fabric.changes import LinkChange, RouteChange
from cosim.fabric.detours import ChangeList, ChangeTable, RowPaths
from cosim.kernel import Columns, kernel
from cosim.network.core import Core, DrainHeap, Reported, make_calendar
from cosim.network.flows import F64, I32, I64, Completions, FlowBatch, FlowGroup, FlowTable
from cosim.network.simulator import Advance, Capabilities, NetworkSimulator, NetworkStatistics
from cosim.network.store import FlowStore
from cosim.topology.graph import Topology
from cosim.units import NEVER

if TYPE_CHECKING:
    from cosim.network.balancing.contract import Balancer
    from cosim.network.balancing.session import Balancing

# Bins double when a run outgrows them: a first one of 65 ns wastes nothing on runs of a microsecond.
_FIRST_BIN_BITS = 16
_BIN_CELLS = 1 << 22  # of 8 bytes, all links together
_REPORT_LIMIT = 1 << 14
"""Completions after which a loop stops, so that reports stay small."""
_ONE_BIN_BITS = 61
"""Two bins of 2^61 ps hold all of time: for the statistics of a copy, which nobody reads."""

LinkNumber = tuple[str, str]
"""A column of a network's, and the field of its records; no field: the column is of numbers."""


class CompiledNetwork(NetworkSimulator):
    """Base of the in-process models: implements the seam but for the loop itself."""

    name = ""
    quantum_ps = 1
    symmetric = False
    peeks = True
    link_changes = False
    live_changes = False
    live_control = False
    has_queues = False
    has_rates = False
    by_cause = True
    """Whether what lets flows start, and when that was known, may matter to those that start at once."""

    def __init__(self, balancer: Balancer | None = None) -> None:
        self._balancer = balancer
        self._opened = False
        self._closed = False

    def describe(self) -> Capabilities:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        return Capabilities(
            name=self.name,
            peek=self.peeks,
            quantum_ps=self.quantum_ps,
            symmetric=self.symmetric,
            link_changes=self.link_changes,
            queues=self.has_queues,
            rates=self.has_rates,
            live_changes=self.live_changes,
            switch_ends=True,
            live_control=self.live_control,
        )

    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        if self._opened:
            raise NetworkError(f"{self.name}: a network is opened once")
        if options:
            raise NetworkError(f"{self.name} has no options; got {', '.join(sorted(options))}")
        if topology.changes is not None and not self.link_changes:
            raise NetworkError(f"{self.name} has no links that fail or slow down")
        self._opened = True
        self._topology = topology
        links = topology.num_links
        bins = 8
        while bins < 512 and 2 * bins * max(links, 1) <= _BIN_CELLS:
            bins *= 2
        self.store = FlowStore()
        self.core = Core(
            calendar=make_calendar(),
            store=self.store.columns,
            path_ptr=np.zeros(1, np.int64),
            link_bytes=np.zeros(links, np.int64),
            link_busy=np.zeros((bins, links), np.int64),
        )
        state = self.core.state
        # No reaction is awaited yet, and a loop gives control back to report once this many have completed.
        state["bound"] = NEVER
        state["report_at"] = _REPORT_LIMIT
        state["near_end"], state["far_bound"] = kernel.NONE, NEVER  # nothing is pending
        state["bin_bits"] = _FIRST_BIN_BITS
        self._reported = Reported()
        # By table, endpoints, channel and job: an iteration binds what the one before did, and finds no paths
        # again.
        self._bindings: dict[tuple[int, bytes, int, int], int] = {}
        self._changes = ChangeTable(topology.changes)
        self._paths = RowPaths(topology, self.core)
        self._balancing: Balancing | None = None
        if self._balancer is not None and self._balancer.chooses:
            from cosim.network.balancing.session import Balancing

            self._balancing = Balancing(self._balancer, topology, seed)
        self._groups: dict[int, FlowGroup] = {}
        self._peeked: int | None = None
        self._knows_next = True
        self._open_model(topology, seed)

    @abstractmethod
    def _open_model(self, topology: Topology, seed: int) -> None:
        """Make the model's own state."""

    @property
    @abstractmethod
    def loop(self) -> str:
        """The name of the model's loop in the kernel, which takes the core, :attr:`columns` and a horizon."""

    @property
    @abstractmethod
    def columns(self) -> Columns:
        """The model's own state; the same object as long as it is open, but for a look ahead."""

    @cached_property
    def entry(self) -> int:
        """Where the model's loop is, for the engine's."""
        return kernel.address(self.loop)

    @property
    def repeated(self) -> int:
        """As what the engine's loop repeats intervals of it (``enum repeated_network``); NONE: it can't."""
        return int(kernel.NONE)

    @property
    def _at_hand(self) -> ChangeList:
        """The changes of links that the model's loop has; of models with ``live_changes``."""
        found: ChangeList = self.columns.changes
        return found

    def change(self, changes: Sequence[LinkChange | RouteChange]) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        if not self.live_changes or self._topology.changes is None:
            super().change(changes)
        self._changes.add(self._at_hand, changes)
        self._knows_next = False

    def numbers_of_links(self, rate_bps: F64, latency_ps: I64) -> dict[LinkNumber, NDArray[Any]] | None:
        """What :attr:`columns` has of links, and of nothing else, by where it is: float64 or int64 [..., L].

        ``rate_bps`` and ``latency_ps`` are [..., L]. None: more of it depends on them.
        """
        del rate_bps, latency_ps
        return None

    def parameters_with(self, values: Mapping[str, Any]) -> F64:
        """The column ``parameters`` where the congestion control has these values of its settings.

        Raises
        ------
        NetworkError
            It has no such settings, no such values, or more than senders' parameters depends on them.
        """
        del values
        raise NetworkError(f"{self.name} has no congestion control")

    def _run(self, horizon_ps: int) -> None:
        """Run the loop up to its limit, and answer what it asks."""
        while status := kernel.run_network(self.entry, self.core, self.columns.address, horizon_ps):
            self.answer(status)

    def _answer_model(self, what: int) -> None:
        """Answer what the model's loop asks."""
        if what == kernel.MORE_CHANGES:
            self._changes.fill(self._at_hand)
        elif what == kernel.NEW_ROUTES:
            self._take_routes()
        else:
            assert self._balancing is not None, f"{self.name} has no answer to {what}"
            self._balancing.answer(what)

    def _take_routes(self) -> None:
        """See to the change of routes that the loop has just taken."""
        at_hand = self._at_hand
        dead = self._changes.dead(int(at_hand.state["next"][0]) - 1)
        if self._balancing is not None:
            self._balancing.avoid(dead)
        self._reroute(self._paths.avoid(dead))
        if at_hand.state["next"][0] == len(at_hand.changes):
            self._changes.fill(at_hand)

    def _reroute(self, so_far: I64) -> None:
        """Have flows under way go where rows go now, which went as ``so_far`` says; of models with
        ``link_changes``.
        """

    @property
    def takes_paths(self) -> bool:
        """See :class:`~cosim.network.simulator.NetworkSimulator`: but for a balancer that chooses."""
        return self._balancing is None

    def traits(self, group: FlowGroup) -> int:
        """The model's number of what a group says of its job: weight, priority, coflow."""
        del group
        return 0

    def _bind_model(self, first: int, job: int, src: I32, dst: I32, channel: I32) -> None:
        """Tell the model about rows that got a path, the first of them at ``path_ptr[first]``."""

    def bind(self, table: FlowTable, endpoints: I32, job: int, channel: int = 0) -> tuple[int, int]:
        """(Number of a table, where its rows on these endpoints find their links): computed once.

        Raises
        ------
        NetworkError
            The table has another number of participants.
        """
        key = (id(table), endpoints.tobytes(), channel, job)
        known = self.store.table(table)
        first = self._bindings.get(key)
        if first is None:
            ends = table.ends(endpoints, channel)
            first = self._bindings[key] = self._bind_rows(table, job, *ends)
        return known.number, first - known.row0

    def bind_messages(self, job: int, src: I32, dst: I32, size_bytes: I64, channel: I32) -> tuple[int, int]:
        """The same for single flows, given as columns: (number of the first one's table, where it finds its
        links); those that follow are at the numbers that follow, and find their links there too.
        """
        number, row0 = self.store.single_flows(size_bytes)
        first = self.add_paths(job, src, dst, channel)
        return number, first - row0

    def resize_message(self, number: int, size_bytes: int) -> None:
        """Have the flow of a table of one, which is not under way, be of another size."""
        self.store.columns.rows["size"][self.store.columns.tables["row"][number]] = size_bytes

    def _bind_rows(self, table: FlowTable, job: int, src: I32, dst: I32, channel: I32) -> int:  # noqa: ARG002
        """Find the paths of a table's rows; where the first one's is."""
        return self.add_paths(job, src, dst, channel)

    def add_paths(self, job: int, src: I32, dst: I32, channel: I32) -> int:
        """Find the paths of rows; where the first one's is."""
        first = self._paths.bind(src, dst, channel)
        self._bind_model(first, job, src, dst, channel)
        return first

    def _take(self, flows: FlowBatch) -> None:
        for group in flows.groups:
            _, path = self.bind(group.table, group.endpoints, group.job, group.channel)
            self.store.open(group, path, self.traits(group))
            self._groups[group.handle] = group
        count = len(flows.start_handle)
        if not count:
            return
        index, start, cause = map(np.ascontiguousarray, (flows.start_index, flows.start_ps, flows.cause_ps))
        handle = np.ascontiguousarray(flows.start_handle)
        rep, row = self.store.locate(handle, index)
        wrong = kernel.give(self.core, count, handle, rep, row, start, cause)
        if wrong >= 0:
            grant = int(self.core.state["grant"][0])
            # What was wrong is looked for only now: `give` itself just says where it stopped.
            if flows.start_ps[wrong] < grant:
                raise CausalityError(
                    f"{self.name}: a flow was given for {flows.start_ps[wrong]} ps, "
                    f"but {grant} ps had been granted"
                )
            raise NetworkError(
                f"{self.name}: flow {flows.start_index[wrong]} of group {flows.start_handle[wrong]} was "
                "given, but has dependencies that the network follows"
            )

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        if not self._opened or self._closed:
            raise NetworkError(f"{self.name}: advance needs an open network")
        state = self.core.state[0]
        if horizon_ps < state["grant"]:
            grant = state["grant"]
            raise CausalityError(f"{self.name}: horizon {horizon_ps} ps is before the grant {grant} ps")
        # A flow that starts may complete before the one that peek found.
        self._knows_next &= not len(flows.start_handle)
        self._take(flows)
        self._run(horizon_ps)
        grant = self._may_grant(horizon_ps)
        self._knows_next &= self._peeked is None or self._peeked > grant
        return Advance(grant, self._report(grant))

    def stopped(self, horizon_ps: int) -> Advance:
        """What another loop takes after :attr:`loop` was done."""
        grant = self._may_grant(horizon_ps)
        return Advance(grant, self._report(grant))

    def _may_grant(self, horizon_ps: int) -> int:
        state = self.core.state[0]
        # Not past the first completion that may be reacted to, nor past what a loop left undone that stopped
        # to report; and never back.
        return min(horizon_ps, int(state["bound"]), max(self._next_instant(), int(state["grant"])))

    def _next_instant(self) -> int:
        """Earliest time at which something is left to do after a loop that stopped early, else NEVER."""
        state = self.core.state[0]
        # A grant is closed for completions, so it has to end before a drain that was not taken yet.
        drains: DrainHeap | None = getattr(self.columns, "drains", None)  # of models where flows drain
        drain = None if drains is None else drains.next_ps()
        before = NEVER if drain is None else drain - 1
        # A loop that didn't stop to report has done all up to the horizon.
        if int(state["num_pending"]) < int(state["report_at"]):
            return before
        calendar = self.core.calendar
        return min(before, int(calendar.heap[0]["time"])) if calendar.state["num_instants"][0] else before

    def _report(self, grant: int) -> Completions:
        found = self._reported
        kernel.report(self.core, grant, found)
        # Groups all of whose flows are reported: their handles may be given again from now on.
        for one in found.closed[: found.num_closed].tolist():
            self.store.close(one)
            self._groups.pop(one, None)
        columns = found.handle, found.number, found.start, found.time, found.cause
        return Completions(*[column[: found.count].copy() for column in columns])

    def answer(self, what: int) -> None:
        """Answer what the loop asks.

        Raises
        ------
        SimulationError
            A message would arrive later than times go.
        """
        if what == kernel.PAUSED:  # Python looks after signals between two calls
            return
        if what == kernel.TOO_LATE:
            raise SimulationError(f"{self.name}: {units.TOO_LATE}")
        self._answer_model(what)

    def peek(self) -> int | None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`.

        Runs the loop on a copy of what it writes, up to the first completion; known until a flow starts, or
        that completion comes.
        """
        if not self.peeks:
            raise NetworkError(f"{self.name} can't peek")
        if not self._opened or self._closed:
            raise NetworkError(f"{self.name}: peek needs an open network")
        if not self._knows_next:
            self._peeked = self.look_ahead()
            self._knows_next = True
        return self._peeked

    def look_ahead(self) -> int | None:
        """When it completes something next, found on a copy; None where nothing is to come."""
        state = self.core.state.copy()
        coming = self.core.pending["time"][: int(state["num_pending"][0])]
        # The copy counts nothing: bins, bytes of links and what is pending belong to the run itself.
        state["looking"], state["num_pending"], state["bin_bits"] = 1, 0, _ONE_BIN_BITS
        state["bound"] = int(coming.min()) if len(coming) else NEVER
        links = self._topology.num_links
        core = self.core.copy(
            {"pending": 0},
            state=state,
            calendar=self.core.calendar.copied(),
            link_bytes=np.zeros(links, np.int64),
            link_busy=np.zeros((2, links), np.int64),
        )
        ahead = {"core": core, "_paths": self._paths.copy(core), **self._copy_model()}
        # The network's attributes are the copy's while the loop runs, and put back even where it fails.
        kept = {name: getattr(self, name) for name in ahead}
        vars(self).update(ahead)
        try:
            self._run(NEVER)
        finally:
            vars(self).update(kept)
        bound = int(core.state["bound"][0])
        return bound if bound < NEVER else None

    def _copy_model(self) -> dict[str, Any]:
        """The attributes that hold what the model's loop writes, copied; for models that peek."""
        raise AssertionError(f"{self.name} says that it peeks, but copies nothing")  # pragma: no cover

    def has_work(self) -> bool:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        core = self.core
        return bool(core.calendar.state["num_events"][0] or core.state["num_pending"][0])

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        core, state = self.core, self.core.state[0]
        # Of a network that is closed nobody writes there any more, and it may be much.
        own = np.asarray if self._closed else np.array
        return NetworkStatistics(
            link_bytes=own(core.link_bytes),
            bin_ps=1 << int(state["bin_bits"]),
            busy_ps=own(core.link_busy),
            flows_started=int(state["num_started"]),
            flows_completed=int(state["num_completed"]),
            events=int(state["num_events"]),
            balancing=None if self._balancing is None else self._balancing.used(),
        )

    def close(self) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self._closed = True
