"""What the compiled networks share: the seam around a loop, and arrays that grow.

A model adds its state and one compiled loop over instants. The loop returns when it reaches its limit
(the horizon, or the first time at which a completion's reaction could matter), or when an array is full:
arrays only grow in Python, between two calls of the loop, which goes on where it left off.
"""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from operator import is_
from typing import Any, cast

import numpy as np
from numba import int64
from numpy.typing import NDArray

from cosim import units
from cosim.errors import CausalityError, NetworkError, SimulationError
from cosim.network.addresses import Addresses
from cosim.network.arrays import Arrays
from cosim.network.calendar import Calendar, grown, make_calendar
from cosim.network.changes import ChangeTable
from cosim.network.core import (
    DONE,
    NEED_CALENDAR,
    NEED_COMPILER,
    NEED_PENDING,
    PENDING,
    REPORT_LIMIT,
    STATE,
    TOO_LATE,
    Core,
    columns_for_reports,
    give,
    report,
)
from cosim.network.detours import Detours
from cosim.network.flows import I32, I64, Completions, FlowBatch, FlowGroup, FlowTable
from cosim.network.growing import GrowingArrays
from cosim.network.jit import begins_interpreted, is_ours
from cosim.network.simulator import Advance, Capabilities, NetworkSimulator, NetworkStatistics
from cosim.network.store import NEED_GROUPS, NEED_OUT, NEED_PAGES, NEED_POOL, NEED_WORK, FlowStore
from cosim.network.tiers import interpret, is_spent
from cosim.topology.graph import Topology
from cosim.units import NEVER

# Bins double when a run outgrows them: a first one of 65 ns wastes nothing on runs of a microsecond.
_FIRST_BIN_BITS = 16
_BIN_CELLS = 1 << 22  # of 8 bytes, all links together
_MOST_EXPECTED = 1 << 22  # flows that room is made for ahead
_FIRST_ROOM = 1 << 12  # the same, before a run: single messages are rarely under way all at once
FIRST_PATHS = 1 << 10
"""Of rows, that there is room for before any are bound."""
ONE_BIN_BITS = 61
"""Two bins of 2^61 ps hold all of time: for the statistics of a copy, which nobody reads."""


def live(array: NDArray[Any], used: int) -> NDArray[Any]:
    """A copy with the same room, of which only the first ``used`` entries are touched."""
    copy = np.zeros_like(array)
    copy[:used] = array[:used]
    return copy


@cache
def no_core() -> Core:
    """The core of no network, for compiled code that may do without one: it is only looked past."""
    room_for_none = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64)
    arrays = np.zeros(1, STATE), make_calendar(1), FlowStore().view(), np.zeros(0, PENDING), *room_for_none
    return Core(*arrays, np.zeros((0, 0), np.int64))


@cache
def _signature(core: Any, columns: Any) -> Any:
    """Numba's types of a loop on such a core and columns: for all runs the same object."""
    return int64(core, columns, int64)


_entries: dict[tuple[int, int, int], int] = {}
"""Where compiled loops are, by themselves and the types of what they take, all of which are kept for good:
numba works out in Python what such types hash to.
"""


@cache
def _loop_at(address: int) -> Callable[[int, int, int], int]:
    """A loop, called at :meth:`CompiledNetwork.entry` as other compiled loops call it."""
    call = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    return cast("Callable[[int, int, int], int]", call(address))


class CompiledNetwork(NetworkSimulator):
    """Base of the in-process models: implements the seam but for the loop itself."""

    name = ""
    quantum_ps = 1
    symmetric = False
    peeks = True
    link_changes = False
    has_queues = False
    has_rates = False
    by_cause = True
    """Whether what lets flows start, and when that was known, may matter to those that start at once."""

    def __init__(self) -> None:
        self._opened = False
        self._closed = False
        self._core: Core | None = None
        self._core_of: tuple[object, ...] = ()

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
        ours = all(map(is_ours, self._kernels()))
        self._addresses = Addresses(interpreted=ours and begins_interpreted(self.loop))
        self.store = FlowStore()
        links = topology.num_links
        bins = 8
        while bins < 512 and 2 * bins * max(links, 1) <= _BIN_CELLS:
            bins *= 2
        state = np.zeros(1, STATE)
        # No reaction is awaited yet, and a loop gives control back to report once this many have completed.
        state["bound"] = NEVER
        state["report_at"] = REPORT_LIMIT
        state["bin_bits"] = _FIRST_BIN_BITS
        self._arrays = GrowingArrays(
            {
                "state": state,
                "calendar": make_calendar(_FIRST_ROOM),
                "pending": np.empty(_FIRST_ROOM, PENDING),
                "path_ptr": np.zeros(FIRST_PATHS, np.int64),
                "path_link": np.zeros(4 * FIRST_PATHS, np.int32),
                "path_source": np.zeros(FIRST_PATHS, np.int32),
                "link_bytes": np.zeros(links, np.int64),
                "link_busy": np.zeros((bins, links), np.int64),
            }
        )
        # By table, endpoints, channel and job: an iteration binds what the one before did, and finds no paths
        # anew.
        self._bindings: dict[tuple[int, bytes, int, int], int] = {}
        self._ptr_used = 0
        self._link_used = 0
        self._changes = ChangeTable(topology.changes)
        self._detours = Detours(topology)
        self._groups: dict[int, FlowGroup] = {}
        self._open_rows = 0
        self._expected = (0, 0)
        self._peeked: int | None = None
        self._knows_next = True
        self._open_model(topology, seed)

    @abstractmethod
    def _open_model(self, topology: Topology, seed: int) -> None:
        """Make the model's own state."""

    @property
    @abstractmethod
    def loop(self) -> Callable[[Core, Any, int], int]:
        """The model's loop, to be compiled by :func:`~cosim.network.jit.compiled_for`: takes the core,
        :meth:`columns` and a horizon; returns :data:`DONE`, or what must grow.
        """

    @abstractmethod
    def columns(self) -> Arrays:
        """The model's own state as it is now."""

    def _run(self, core: Core, horizon_ps: int) -> int:
        columns = self.columns()  # held while its address is used
        # Between two calls nothing is half done: the loop may change its tier here, on the same arrays.
        if self.interpreted and is_spent():
            self.compile()
        if self.interpreted:
            return int(interpret(self.loop, core, columns, horizon_ps))
        return _loop_at(self.entry)(core.address, columns.address, horizon_ps)

    def _kernels(self) -> tuple[Callable[..., None] | None, ...]:
        """What the model's loop calls that may be a plug-in's: that may be anything that numba compiles."""
        return ()

    @property
    def interpreted(self) -> bool:
        """Whether the model's loop is interpreted so far."""
        return self._addresses.interpreted

    def compile(self) -> None:
        """Have the model's loop compiled from now on."""
        self._addresses.compile()
        # The address that was kept is that of the interpreted twin.
        vars(self).pop("entry", None)

    @cached_property
    def entry(self) -> int:
        """Where the model's loop is: called with addresses of the core and of :meth:`columns`, and a horizon;
        with those themselves where it is interpreted.
        """
        key = id(self.loop), id(self.core()._numba_type_), id(self.columns()._numba_type_)
        found = None if self.interpreted else _entries.get(key)
        if found is None:
            found = self._addresses.of(self.loop, self.signature())
            if not self.interpreted:
                _entries[key] = found
        return found

    def signature(self) -> Any:
        """Numba's types of what the model's loop takes and returns."""
        return _signature(self.core()._numba_type_, self.columns()._numba_type_)

    def _grow_model(self, what: int) -> None:
        """Grow what the model's loop found too small."""
        raise AssertionError(f"no model array {what}")  # pragma: no cover

    def traits(self, group: FlowGroup) -> int:
        """The model's number of what a group says of its job: weight, priority, coflow."""
        del group
        return 0

    def _bind_model(self, first: int, job: int, src: I32, dst: I32, channel: I32) -> None:
        """Tell the model about rows that got a path, the first of them at ``path_ptr[first]``."""

    def core(self) -> Core:
        """The state as it is now."""
        arrays, store = self._arrays, self.store.view()
        seen = arrays, arrays.stamp, store
        if self._core is None or not all(map(is_, seen, self._core_of)):
            self._core, self._core_of = Core.of(self._core, **arrays, store=store), seen
        return self._core

    def bind(self, table: FlowTable, endpoints: I32, job: int, channel: int = 0) -> tuple[int, int]:
        """(Number of a table, where its rows on these endpoints find their links): worked out once.

        Raises
        ------
        NetworkError
            The table has another number of participants.
        """
        key = (id(table), endpoints.tobytes(), channel, job)
        known = self.store.table(table)
        first = self._bindings.get(key)
        if first is None:
            nodes = np.asarray(endpoints, np.int32)
            if len(nodes) != table.num_participants:
                raise NetworkError(
                    f"a table of {table.num_participants} participants was bound to {len(nodes)} endpoints"
                )
            ends = nodes[table.src], nodes[table.dst], table.channel + np.int32(channel)
            first = self._bindings[key] = self._bind_rows(table, job, *ends)
            # Growing in the middle of a loop copies what is there: room is made while there is little.
            self.expect(min(table.num_rows, _MOST_EXPECTED))
        return known.number, first - known.row0

    def bind_messages(self, job: int, src: I32, dst: I32, size_bytes: I64, channel: I32) -> tuple[int, int]:
        """The same for single flows, given as columns: (number of the first one's table, where it finds its
        links); those that follow are at the numbers that follow, and find their links there too.
        """
        number, row0 = self.store.single_flows(size_bytes)
        first = self.add_paths(job, src, dst, channel)
        self.expect(min(len(src), _FIRST_ROOM))
        return number, first - row0

    def _bind_rows(self, table: FlowTable, job: int, src: I32, dst: I32, channel: I32) -> int:  # noqa: ARG002
        """Find the paths of a table's rows; where the first one's is."""
        return self.add_paths(job, src, dst, channel)

    def add_paths(self, job: int, src: I32, dst: I32, channel: I32) -> int:
        """Find the paths of rows; where the first one's is."""
        first = self._append_paths(*self._topology.paths(src, dst, channel))
        self._arrays["path_source"][first : first + len(src)] = src
        if self._topology.changes is not None:
            self._detours.add(first, src, dst, channel)
        self._bind_model(first, job, src, dst, channel)
        return first

    def _append_paths(self, ptr: I64, links: I32) -> int:
        """Keep paths; where the first one's is."""
        first, rows = self._ptr_used, len(ptr)
        used = {"path_ptr": first + rows, "path_source": first + rows}
        self._arrays.reserve_all(used | {"path_link": self._link_used + len(links)})
        self._arrays["path_ptr"][first : first + rows] = ptr + self._link_used
        self._arrays["path_link"][self._link_used : self._link_used + len(links)] = links
        self._ptr_used += rows
        self._link_used += len(links)
        return first

    def _take(self, flows: FlowBatch) -> None:
        for group in flows.groups:
            _, path = self.bind(group.table, group.endpoints, group.job, group.channel)
            self.store.open(group, path, self.traits(group))
            self._groups[group.handle] = group
            self._open_rows += group.table.num_rows
        if flows.groups:
            self.expect(min(self._open_rows, _MOST_EXPECTED))
        count = len(flows.start_handle)
        if not count:
            return
        # Columns as they are compiled for: a strided one would be compiled for once more.
        index, start, cause = map(np.ascontiguousarray, (flows.start_index, flows.start_ps, flows.cause_ps))
        rep, row = self.store.locate(flows.start_handle, index)
        calendar: Calendar = self._arrays["calendar"]
        # `give` is compiled and can't grow what it writes to.
        while int(calendar.state["num_events"][0]) + count > len(calendar.events):
            self.grow(NEED_CALENDAR)
            calendar = self._arrays["calendar"]
        self.store.reserve_work(count)
        wrong = give(self.core(), flows.start_handle, rep, row, start, cause)
        if wrong >= 0:
            grant = int(self._arrays["state"]["grant"][0])
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

    def expect(self, rows: int) -> None:
        """Make room for as many flows at once as rows are open: a guess, and more than is touched."""
        if (rows, self._link_used) == self._expected:
            return
        self._expected = rows, self._link_used
        self._arrays.reserve("pending", rows)
        have = len(self._arrays["calendar"].events)
        if rows > have:
            self._grow_calendar(1 << (rows - 1).bit_length())
        self._expect_model(rows)

    def _expect_model(self, rows: int) -> None:
        """Make the model's own room for ``rows`` flows at once."""

    def _grow_calendar(self, size: int) -> None:
        self._arrays["calendar"] = grown(self._arrays["calendar"], size)

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        if not self._opened or self._closed:
            raise NetworkError(f"{self.name}: advance needs an open network")
        state = self._arrays["state"][0]
        if horizon_ps < state["grant"]:
            grant = state["grant"]
            raise CausalityError(f"{self.name}: horizon {horizon_ps} ps is before the grant {grant} ps")
        # A flow that starts may complete before the one that peek found.
        self._knows_next &= not len(flows.start_handle)
        self._take(flows)
        # The core is made anew each time: arrays that grew are other arrays, and the loop has their
        # addresses.
        while (status := self._run(self.core(), horizon_ps)) != DONE:
            self.grow(status)
        grant = self._may_grant(horizon_ps)
        self._knows_next &= self._peeked is None or self._peeked > grant
        return Advance(grant, self._report(grant))

    def stopped(self, horizon_ps: int) -> Advance:
        """What another loop takes after :attr:`loop` was done."""
        grant = self._may_grant(horizon_ps)
        return Advance(grant, self._report(grant))

    def _may_grant(self, horizon_ps: int) -> int:
        state = self._arrays["state"][0]
        # Not past the first completion that may be reacted to, nor past what a loop left undone that stopped
        # to report; and never back.
        return min(horizon_ps, int(state["bound"]), max(self._next_instant(), int(state["grant"])))

    def _next_instant(self) -> int:
        """Earliest time at which something is left to do after a loop that stopped early, else NEVER."""
        state = self._arrays["state"][0]
        # A loop that didn't stop to report has done all up to the horizon.
        if int(state["num_pending"]) < int(state["report_at"]):
            return NEVER
        calendar: Calendar = self._arrays["calendar"]
        return int(calendar.heap[0]["time"]) if calendar.state["num_instants"][0] else NEVER

    def _report(self, grant: int) -> Completions:
        most = int(self._arrays["state"]["num_pending"][0])
        found = columns_for_reports(most)
        handle, _, _, number, start, time, cause, closed = found
        count, num_closed = report(self.core(), grant, *found)
        # Groups all of whose flows are reported: their handles may be given again from now on.
        for one in closed[:num_closed].tolist():
            self.store.close(one)
            if one in self._groups:
                self._open_rows -= self._groups.pop(one).table.num_rows
        columns: list[Any] = [column[:count] for column in (handle, number, start, time, cause)]
        if count < most // 2:  # do not keep a large buffer alive for a few rows
            columns = [column.copy() for column in columns]
        return Completions(*columns)

    def grow(self, what: int) -> None:
        """Make what the loop stopped for.

        Raises
        ------
        SimulationError
            A message would arrive later than times go.
        """
        if what == TOO_LATE:
            raise SimulationError(f"{self.name}: {units.TOO_LATE}")
        if what == NEED_CALENDAR:
            self._grow_calendar(2 * len(self._arrays["calendar"].events))
        elif what == NEED_COMPILER:
            pass  # it is seen to before the loop goes on
        elif what == NEED_PENDING:
            self._arrays.reserve("pending", 2 * len(self._arrays["pending"]))
        elif what in (NEED_WORK, NEED_OUT, NEED_POOL, NEED_PAGES, NEED_GROUPS):
            self.store.grow(what)
        else:
            self._grow_model(what)

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
        arrays = self._arrays
        state = arrays["state"].copy()
        pending = arrays["pending"][: int(state["num_pending"][0])]
        # The copy counts nothing: bins, bytes of links and what is pending belong to the run itself.
        state["looking"], state["num_pending"], state["bin_bits"] = 1, 0, ONE_BIN_BITS
        state["bound"] = int(pending["time"].min()) if len(pending) else NEVER
        links = self._topology.num_links
        ahead = {
            "_arrays": GrowingArrays(
                arrays
                | {
                    "state": state,
                    "calendar": grown(arrays["calendar"], len(arrays["calendar"].events)),
                    "link_bytes": np.zeros(links, np.int64),
                    "link_busy": np.zeros((2, links), np.int64),
                }
            ),
            "_ptr_used": self._ptr_used,
            "_link_used": self._link_used,
            "_detours": self._detours.copy(),
            **self._copy_model(),
        }
        # The loop reads its arrays from the network's attributes: they are the copy's while it runs, and put
        # back even where it fails.
        kept = {name: getattr(self, name) for name in ahead}
        vars(self).update(ahead)
        try:
            while (status := self._run(self.core(), NEVER)) != DONE:
                self.grow(status)
        finally:
            vars(self).update(kept)
        return int(state["bound"][0]) if state["bound"][0] < NEVER else None

    def _copy_model(self) -> dict[str, Any]:
        """The attributes that hold what the model's loop writes, copied; for models that peek."""
        raise AssertionError(f"{self.name} says that it peeks, but copies nothing")  # pragma: no cover

    def has_work(self) -> bool:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        arrays = self._arrays
        return bool(arrays["calendar"].state["num_events"][0] or arrays["state"]["num_pending"][0])

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        arrays, state = self._arrays, self._arrays["state"][0]
        # Of a network that is closed nobody writes there any more, and it may be much.
        own = np.asarray if self._closed else np.array
        return NetworkStatistics(
            link_bytes=own(arrays["link_bytes"]),
            bin_ps=1 << int(state["bin_bits"]),
            busy_ps=own(arrays["link_busy"]),
            flows_started=int(state["num_started"]),
            flows_completed=int(state["num_completed"]),
            events=int(state["num_events"]),
        )

    def close(self) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self._closed = True
