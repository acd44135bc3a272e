"""What the compiled networks share: state, the way in, the way out, and growing arrays.

A model adds its state and one compiled loop over instants. The loop returns when it reaches its limit
(the horizon, or the first time at which a completion's reaction could matter), or when an array is full:
arrays only grow in Python, between two calls of the loop, which goes on where it left off.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from cosim.errors import CausalityError, NetworkError
from cosim.network.calendar import HEAP_N, Calendar, Records, grown, make_calendar, push, room
from cosim.network.flows import I32, I64, Completions, FlowBatch, FlowGroup
from cosim.network.jit import compiled, inlined
from cosim.network.simulator import Advance, Capabilities, NetworkStatistics
from cosim.network.store import (
    COMPLETED,
    DRAINED,
    NEED_OUT,
    NEED_POOL,
    NEED_WORK,
    OUT_N,
    STARTED,
    FlowStore,
    Store,
    drain,
    note,
)
from cosim.topology.graph import Topology
from cosim.units import NEVER

GRANT, BOUND, PENDING_N, REPORT_N, CURSOR, INSTANT_N, INSTANT, SERIAL = range(8)
STARTED_N, COMPLETED_N, EVENTS_N, BIN_PS, MODEL = range(8, 13)
"""Scalars in ``Core.meta``; a model's own start at MODEL. REPORT_N: pending completions to stop at."""

DONE, NEED_CALENDAR, NEED_PENDING, NEED_MORE = 0, 10, 11, 12
REPORT_LIMIT = 1 << 20
"""Completions after which an advance returns (or twice as many as stayed), so that reports stay small."""

_FIRST_BIN_PS = 1 << 16
_BIN_CELLS = 1 << 22

PENDING = np.dtype([("time", "i8"), ("react", "i8"), ("start", "i8"), ("index", "i8"), ("handle", "i8")])
"""A completion that is certain, but not reported; ``react``: the earliest that the caller may react."""


class Core(NamedTuple):
    """State that every compiled model has. A row's links are ``links[ptr[p]:ptr[p + 1]]`` with p =
    ``groups[handle].path + row``; ``link_busy`` is [bins, links].
    """

    meta: I64
    calendar: Calendar
    store: Store
    pending: Records
    path_ptr: I64
    path_link: I32
    link_bytes: I64
    link_busy: I64


@compiled
def give(core: Core, handle: I32, rep: I32, row: I32, start: I64, cause: I64) -> None:
    """Put given starts into the calendar; there is room for them."""
    cal_meta, events, buckets, hashes, heap = core.calendar
    count, rows, _, _, groups, _, _, _, work, _ = core.store
    for k in range(len(handle)):
        push(
            cal_meta,
            events,
            buckets,
            hashes,
            heap,
            start[k],
            cause[k],
            start[k],
            handle[k],
            rep[k],
            row[k],
            0,
        )
        if groups[handle[k]].release and rows[row[k]].middle < rows[row[k]].last:
            note(count, work, handle[k], rep[k], row[k], start[k], STARTED)


@inlined
def release(
    cal_meta: I64,
    events: Records,
    buckets: Records,
    hashes: I32,
    heap: Records,
    count: I64,
    rows: Records,
    successors: Records,
    reps: Records,
    groups: Records,
    pages: Records,
    cells: Records,
    unused: I64,
    work: Records,
    out: Records,
) -> int:
    """Let dependents follow what is known; :data:`DONE`, or what must grow."""
    while True:
        status = drain(count, rows, successors, reps, groups, pages, cells, unused, work, out)
        released = count[OUT_N]
        if released > 0:
            if not room(cal_meta, events, released):
                return NEED_CALENDAR
            for k in range(released):
                o = out[k]
                push(
                    cal_meta,
                    events,
                    buckets,
                    hashes,
                    heap,
                    o.start,
                    o.cause,
                    o.start,
                    o.handle,
                    o.rep,
                    o.row,
                    0,
                )
            count[OUT_N] = 0
        if status == DRAINED:
            return DONE
        if status != NEED_OUT or released == 0:
            return status


@inlined
def complete(
    meta: I64,
    pending: Records,
    count: I64,
    rows: Records,
    reps: Records,
    groups: Records,
    work: Records,
    handle: int,
    rep: int,
    row: int,
    start: int,
    time: int,
) -> None:
    """A flow's completion at ``time`` is certain: report it when the grant gets there, tell dependents."""
    n = meta[PENDING_N]
    meta[PENDING_N] = n + 1
    pending[n].handle = handle
    pending[n].index = reps[rep].base + row - reps[rep].row
    pending[n].start = start
    pending[n].time = time
    reaction = rows[row].reaction
    react = time + reaction if reaction < NEVER - time else NEVER
    pending[n].react = react
    meta[BOUND] = min(meta[BOUND], react)
    if groups[handle].release and rows[row].first < rows[row].middle:
        note(count, work, handle, rep, row, time, COMPLETED)


@compiled
def _widen(meta: I64, busy: I64) -> None:
    half = len(busy) // 2
    for b in range(half):
        for link in range(busy.shape[1]):
            busy[b, link] = busy[2 * b, link] + busy[2 * b + 1, link]
    busy[half:, :] = 0
    meta[BIN_PS] *= 2


@inlined
def add_busy(meta: I64, busy: I64, link: int, start: int, duration: int) -> None:
    """Count a link as busy in [start, start + duration)."""
    while start + duration > len(busy) * meta[BIN_PS]:
        _widen(meta, busy)
    width = meta[BIN_PS]
    b = start // width
    while duration > 0:
        part = min(duration, (b + 1) * width - start)
        busy[b, link] += part
        start += part
        duration -= part
        b += 1


@inlined
def add_share(meta: I64, busy: I64, link: int, start: int, end: int, fraction: float) -> None:
    """Count a fraction of a link as busy in [start, end), to the nearest picosecond at each bin's end."""
    while end > len(busy) * meta[BIN_PS]:
        _widen(meta, busy)
    width = meta[BIN_PS]
    b = start // width
    counted = 0
    stop = start
    while stop < end:
        stop = min(end, (b + 1) * width)
        total = int((stop - start) * fraction + 0.5)
        busy[b, link] += total - counted
        counted = total
        b += 1


@compiled
def report(
    meta: I64,
    pending: Records,
    groups: Records,
    grant: int,
    handle: I32,
    index: I64,
    start: I64,
    time: I64,
    closed: I32,
) -> tuple[int, int]:
    """Move completions up to ``grant`` out of the pending ones; (how many, how many groups ended)."""
    kept = 0
    out = 0
    num_closed = 0
    bound = NEVER
    for k in range(meta[PENDING_N]):
        if pending[k].time <= grant:
            one = pending[k].handle
            handle[out] = one
            index[out] = pending[k].index
            start[out] = pending[k].start
            time[out] = pending[k].time
            out += 1
            groups[one].left -= 1
            if groups[one].left == 0:
                closed[num_closed] = one
                num_closed += 1
        else:
            pending[kept].handle = pending[k].handle
            pending[kept].index = pending[k].index
            pending[kept].start = pending[k].start
            pending[kept].time = pending[k].time
            pending[kept].react = pending[k].react
            bound = min(bound, pending[k].react)
            kept += 1
    meta[PENDING_N] = kept
    meta[REPORT_N] = max(REPORT_LIMIT, 2 * kept)
    meta[BOUND] = bound
    meta[GRANT] = grant
    meta[COMPLETED_N] += out
    return out, num_closed


class CompiledNetwork(ABC):
    """Base of the in-process models: implements the seam but for the loop itself."""

    name = ""
    quantum_ps = 1

    def __init__(self) -> None:
        self._opened = False
        self._closed = False

    def describe(self) -> Capabilities:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        return Capabilities(name=self.name, quantum_ps=self.quantum_ps)

    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        if self._opened:
            raise NetworkError(f"{self.name}: a network is opened once")
        if options:
            raise NetworkError(f"{self.name} has no options; got {', '.join(sorted(options))}")
        self._opened = True
        self._topology = topology
        self._store = FlowStore()
        links = topology.num_links
        bins = 8
        while bins < 512 and 2 * bins * max(links, 1) <= _BIN_CELLS:
            bins *= 2
        meta = np.zeros(32, np.int64)
        meta[BOUND] = NEVER
        meta[REPORT_N] = REPORT_LIMIT
        meta[BIN_PS] = _FIRST_BIN_PS
        self._arrays: dict[str, Any] = {
            "meta": meta,
            "calendar": make_calendar(1 << 12),
            "pending": np.zeros(1 << 12, PENDING),
            "path_ptr": np.zeros(64, np.int64),
            "path_link": np.zeros(64, np.int32),
            "link_bytes": np.zeros(links, np.int64),
            "link_busy": np.zeros((bins, links), np.int64),
        }
        self._bindings: dict[tuple[int, bytes, int, int], int] = {}
        self._ptr_used = 0
        self._link_used = 0
        self._groups: dict[int, FlowGroup] = {}
        self._open_model(topology, seed)

    @abstractmethod
    def _open_model(self, topology: Topology, seed: int) -> None:
        """Make the model's own state."""

    @abstractmethod
    def _run(self, core: Core, horizon_ps: int) -> int:
        """Run the model's loop once; :data:`DONE`, or what must grow."""

    def _grow_model(self, what: int) -> None:
        """Grow what the model's loop found too small."""
        raise AssertionError(f"no model array {what}")  # pragma: no cover

    def _open_group(self, group: FlowGroup) -> None:  # noqa: B027 - most models need nothing
        """Tell the model about a new group, after the store knows it."""

    def _bind_model(  # noqa: B027 - most models need nothing
        self, first: int, job: int, src: I32, dst: I32, channel: I32
    ) -> None:
        """Tell the model about rows that got a path, the first of them at ``path_ptr[first]``."""

    def core(self) -> Core:
        """The state as it is now."""
        return Core(store=self._store.view(), **self._arrays)

    def _reserve(self, name: str, need: int) -> None:
        old = self._arrays[name]
        if need > len(old):
            new = np.zeros(max(need, 2 * len(old)), old.dtype)
            new[: len(old)] = old
            self._arrays[name] = new

    def _bind(self, group: FlowGroup) -> int:
        table = group.table
        key = (id(table), group.endpoints.tobytes(), group.channel, group.job)
        known = self._bindings.get(key)
        if known is not None:
            return known
        nodes = np.asarray(group.endpoints, np.int32)
        if len(nodes) != table.num_participants:
            raise NetworkError(
                f"a table of {table.num_participants} participants was bound to {len(nodes)} endpoints"
            )
        src, dst, channel = nodes[table.src], nodes[table.dst], table.channel + np.int32(group.channel)
        ptr, links = self._topology.paths(src, dst, channel)
        first, rows = self._ptr_used, table.num_rows
        self._reserve("path_ptr", first + rows + 1)
        self._reserve("path_link", self._link_used + len(links))
        self._arrays["path_ptr"][first : first + rows + 1] = ptr + self._link_used
        self._arrays["path_link"][self._link_used : self._link_used + len(links)] = links
        self._ptr_used += rows + 1
        self._link_used += len(links)
        self._bind_model(first, group.job, src, dst, channel)
        self._bindings[key] = first
        return first

    def _take(self, flows: FlowBatch) -> None:
        for group in flows.groups:
            first = self._bind(group)
            table = self._store.open(group)
            self._store.set_path(group.handle, first - table.row0)
            self._groups[group.handle] = group
            self._open_group(group)
        count = len(flows.start_handle)
        if not count:
            return
        grant = int(self._arrays["meta"][GRANT])
        if int(flows.start_ps.min()) < grant:
            raise CausalityError(
                f"{self.name}: a flow was given for {int(flows.start_ps.min())} ps, "
                f"but {grant} ps had been granted"
            )
        rep, row = self._store.locate(flows.start_handle, flows.start_index)
        calendar: Calendar = self._arrays["calendar"]
        while not room(calendar.meta, calendar.events, count):
            self._grow(NEED_CALENDAR)
            calendar = self._arrays["calendar"]
        self._store.reserve_work(count)
        give(self.core(), flows.start_handle, rep, row, flows.start_ps, flows.cause_ps)

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        if not self._opened or self._closed:
            raise NetworkError(f"{self.name}: advance needs an open network")
        meta = self._arrays["meta"]
        if horizon_ps < meta[GRANT]:
            raise CausalityError(f"{self.name}: horizon {horizon_ps} ps is before the grant {meta[GRANT]} ps")
        self._take(flows)
        while (status := self._run(self.core(), horizon_ps)) != DONE:
            self._grow(status)
        grant = min(horizon_ps, int(meta[BOUND]), max(self._next_instant(), int(meta[GRANT])))
        return Advance(grant, self._report(grant))

    def _next_instant(self) -> int:
        """Earliest time at which something is left to do after a loop that stopped early, else NEVER."""
        meta = self._arrays["meta"]
        if int(meta[PENDING_N]) < int(meta[REPORT_N]):
            return NEVER
        calendar: Calendar = self._arrays["calendar"]
        return int(calendar.heap[0]["time"]) if calendar.meta[HEAP_N] else NEVER

    def _report(self, grant: int) -> Completions:
        most = int(self._arrays["meta"][PENDING_N])
        handle, closed = np.empty(most, np.int32), np.empty(most, np.int32)
        index, start, time = (np.empty(most, np.int64) for _ in range(3))
        count, num_closed = report(
            self._arrays["meta"],
            self._arrays["pending"],
            self._store.view().groups,
            grant,
            handle,
            index,
            start,
            time,
            closed,
        )
        for one in closed[:num_closed].tolist():
            self._store.close(one)
            del self._groups[one]
        if count < most // 2:  # do not keep a large buffer alive for a few rows
            return Completions(
                handle[:count].copy(), index[:count].copy(), start[:count].copy(), time[:count].copy()
            )
        return Completions(handle[:count], index[:count], start[:count], time[:count])

    def _grow(self, what: int) -> None:
        if what == NEED_CALENDAR:
            self._arrays["calendar"] = grown(self._arrays["calendar"])
        elif what == NEED_PENDING:
            self._reserve("pending", 2 * len(self._arrays["pending"]))
        elif what in (NEED_WORK, NEED_OUT, NEED_POOL):
            self._store.grow(what)
        else:
            self._grow_model(what)

    def peek(self) -> int | None:
        """Not among the capabilities.

        Raises
        ------
        NetworkError
            Always.
        """
        raise NetworkError(f"{self.name} does not peek")

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        arrays, meta = self._arrays, self._arrays["meta"]
        return NetworkStatistics(
            link_bytes=arrays["link_bytes"].copy(),
            bin_ps=int(meta[BIN_PS]),
            busy_ps=arrays["link_busy"].copy(),
            flows_started=int(meta[STARTED_N]),
            flows_completed=int(meta[COMPLETED_N]),
            events=int(meta[EVENTS_N]),
        )

    def close(self) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self._closed = True
