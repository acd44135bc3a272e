"""From the seam's batches to flat flows with ids, and from ids back: the client's books."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cosim.errors import OverloadError, ProtocolError
from cosim.network.flows import I32, I64, FlowBatch
from cosim.protocol.catalogue import Catalogue, Grown
from cosim.protocol.columns import DEFAULTS, LATER, FlatFlows, join
from cosim.protocol.digest import Digest
from cosim.protocol.window import Window
from cosim.units import NEVER

WINDOW = 1 << 16
"""Flows of one group that are given ahead, where the server has room."""

_FLOW = np.dtype([("index", "i8"), ("reaction", "i8"), ("start", "i8"), ("handle", "i4"), ("done", "i4")])
_NO_STARTS = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(eq=False)
class Parcel:
    """What one advance brings: new (source, destination, channel) triples, flows, and (id, start, cause)."""

    triples: tuple[I32, I32, I32] | None = None
    flows: FlatFlows | None = None
    starts: tuple[I64, I64, I64] = field(default=_NO_STARTS)


class Injector:
    """Numbers flows, keeps large groups within the server's credit, and checks what comes back."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._catalogue = Catalogue()
        self._windows: dict[int, Window] = {}
        self._held: dict[int, Window] = {}
        self._book = Grown(_FLOW)
        self._base = 0
        self._done = 0
        self.next_id = 0
        self.open_flows = 0
        self.credit = 0
        self.granted_ps = 0
        self.digest = Digest()

    # -- flows out -----------------------------------------------------------------------------------

    def take(self, batch: FlowBatch) -> Parcel:
        """Number what a batch brings.

        Raises
        ------
        NetworkError
            An unknown handle, or one in use.
        OverloadError
            The server takes fewer flows at once than must be open.
        """
        for group in batch.groups:
            self._catalogue.open(group)
            if group.release == "network" and len(group.table.dep_distance):
                self._windows[group.handle] = self._held[group.handle] = Window(group)
        triples = self._catalogue.new_triples()
        handle, index, start, cause = (
            batch.start_handle,
            batch.start_index,
            batch.start_ps,
            batch.cause_ps,
        )
        if len(handle) and self._windows:
            within = np.isin(handle, list(self._windows))
            ours = (handle[within], index[within], start[within], cause[within])
            rest = ~within
            handle, index, start, cause = handle[rest], index[rest], start[rest], cause[rest]
        else:
            ours = (handle[:0], index[:0], start[:0], cause[:0])
        room = self.credit - len(handle)
        parts, starts = self._extend(ours, room) if self._held or len(ours[0]) else ([], _NO_STARTS)
        if len(handle):
            if room < 0:
                raise self._overload(len(handle))
            order = np.lexsort((index, handle))
            handle, index, start, cause = handle[order], index[order], start[order], cause[order]
            columns = self._catalogue.columns(handle, index)
            columns["start_ps"], columns["cause_ps"] = start, cause
            parts.append(self._number(handle, index, columns))
        return Parcel(triples, join(parts) if parts else None, starts)

    def _overload(self, count: int) -> OverloadError:
        return OverloadError(
            f"{self._name} takes {self.credit} more flows now, but {count} must be given together; "
            "a network with more room, smaller groups or release: engine would help"
        )

    def _number(self, handle: I32, index: I64, columns: dict[str, NDArray[np.generic]]) -> FlatFlows:
        count = len(handle)
        first, rows = self._book.take(count)
        rows["handle"], rows["index"] = handle, index
        rows["reaction"], rows["start"] = columns["reaction_delay_ps"], columns["start_ps"]
        rows["done"] = 0
        assert self._base + first == self.next_id
        self.next_id += count
        self.open_flows += count
        self.credit -= count
        return FlatFlows(self.next_id - count, count, columns)

    def _extend(
        self, given: tuple[I32, I64, I64, I64], room: int
    ) -> tuple[list[FlatFlows], tuple[I64, I64, I64]]:
        """Prefixes of the groups that the network releases, and starts of what it knew before."""
        handle, index, start, cause = given
        started: dict[int, tuple[I64, I64, I64]] = {}
        for one in np.unique(handle).tolist():
            mine = handle == one
            started[one] = index[mine], start[mine], cause[mine]
        needs: dict[int, int] = {}
        for number, window in self._held.items():
            first = int(started[number][0].max()) + 1 if number in started else 0
            needs[number] = max(first, window.needed())
        spare = room - sum(max(0, need - self._held[n].sent) for n, need in needs.items())
        if spare < 0:
            raise self._overload(self.credit - spare)
        # Half of the room is kept for what must be given: the starts of other groups, and of those to come.
        spare = max(0, spare - (self.credit + self.open_flows) // 2)
        parts: list[FlatFlows] = []
        later: list[tuple[I64, I64, I64]] = []
        for number, need in needs.items():
            window = self._held[number]
            low = window.sent
            wish = window.completed + WINDOW if low - window.completed < WINDOW // 2 else 0
            more = min(max(0, min(window.group.table.num_flows, wish) - max(need, low)), spare)
            to = max(need, low) + more
            spare -= more
            if to > low:
                parts.append(self._prefix(window, low, to, started.get(number)))
        for number, (which, when, why) in started.items():
            window = self._windows[number]
            before = self._old(number, which, parts)
            if before.any():
                later.append((window.ids(which[before]), when[before], why[before]))
        self._held = {n: w for n, w in self._held.items() if w.left}
        starts = _NO_STARTS
        if later:
            ids, when, why = (np.concatenate([part[c] for part in later]) for c in range(3))
            starts = ids, when, why
            self._book.array["start"][ids - self._base] = when
        return parts, starts

    def _old(self, handle: int, index: I64, parts: list[FlatFlows]) -> NDArray[np.bool_]:
        """Which of a group's flows were given before this batch."""
        first = parts[0].first_id if parts else self.next_id
        return np.asarray(self._windows[handle].ids(index) < first)

    def _prefix(self, window: Window, low: int, to: int, started: tuple[I64, I64, I64] | None) -> FlatFlows:
        index = np.arange(low, to, dtype=np.int64)
        handle = np.full(to - low, window.group.handle, np.int32)
        columns = self._catalogue.columns(handle, index)
        for name in ("start_ps", "cause_ps"):
            columns[name] = np.full(to - low, DEFAULTS[name][1], np.int64)
        if started is not None:
            which, when, why = started
            new = which >= low
            columns["start_ps"][which[new] - low] = when[new]
            columns["cause_ps"][which[new] - low] = why[new]
        ptr, ids, kind = window.extend(to, self.next_id)
        columns["reaction_delay_ps"] = window.reactions(columns["reaction_delay_ps"], low)
        flows = self._number(handle, index, columns)
        flows.dependency_ptr, flows.dependency_id, flows.dependency_kind = ptr, ids, kind
        return flows

    # -- completions in ------------------------------------------------------------------------------

    def finish(
        self, horizon_ps: int, granted_ps: int, ids: I64, start_ps: I64, time_ps: I64
    ) -> tuple[I32, I64]:
        """Check an answer and enter it; (handle, index) of its completions.

        Raises
        ------
        ProtocolError
            Time goes back, a flow that isn't open completes, a completion lies outside of what was granted
            ...
        """
        before = self.granted_ps
        if not before <= granted_ps <= horizon_ps:
            raise self._lie(f"granted {granted_ps} ps; it may grant {before} to {horizon_ps} ps")
        self.granted_ps = granted_ps
        count = len(ids)
        if not count:
            return np.empty(0, np.int32), np.empty(0, np.int64)
        if not len(start_ps) == len(time_ps) == count:
            raise self._lie("reported completions in columns of different lengths")
        if int(ids.min()) < self._base or int(ids.max()) >= self.next_id:
            bad = ids[(ids < self._base) | (ids >= self.next_id)][0]
            raise self._lie(f"completed flow {bad}, which is not open")
        rows = self._book.array[ids - self._base]
        if rows["done"].any() or (count > 1 and len(np.unique(ids)) < count):
            raise self._lie("completed a flow twice")
        low, high = int(time_ps.min()), int(time_ps.max())
        if low < before or high > granted_ps:
            raise self._lie(
                f"reported a completion at {low if low < before else high} ps with a grant of {granted_ps} "
                f"after one of {before}"
            )
        if (start_ps > time_ps).any() or ((rows["start"] != LATER) & (rows["start"] > start_ps)).any():
            raise self._lie("started a flow before its time, or after its completion")
        react = np.minimum(rows["reaction"], NEVER - time_ps) + time_ps
        if int(react.min()) < granted_ps:
            raise self._lie(f"ran to {granted_ps} ps past a reaction that could come at {react.min()} ps")
        handle, index = rows["handle"].astype(np.int32), rows["index"].astype(np.int64)
        self.digest.add(*self._catalogue.keys(handle, index), time_ps)
        self._book.array["done"][ids - self._base] = 1
        self.open_flows -= count
        if self._held:
            for number, window in self._held.items():
                window.note_completed(index[handle == number])
        for ended in self._catalogue.completed(handle):
            self._windows.pop(ended, None)
        self._compact()
        return handle, index

    def check_digest(self, digest: Digest) -> None:
        """Compare with the server's.

        Raises
        ------
        ProtocolError
            It has another one.
        """
        if digest != self.digest:
            raise self._lie(f"has the digest {digest} of the completions whose digest is {self.digest}")

    def _lie(self, what: str) -> ProtocolError:
        return ProtocolError(f"{self._name} breaks the protocol: it {what}")

    def _compact(self) -> None:
        """Forget flows up to the first that is open, once they are most of what is kept."""
        used = self._book.used
        if used < 4096 or self.open_flows > used // 4:
            return
        rows = self._book.array[:used]
        waiting = np.flatnonzero(rows["done"] == 0)
        keep = int(waiting[0]) if len(waiting) else used
        if keep > used // 2:
            self._book.array[: used - keep] = rows[keep:].copy()
            self._book.used = used - keep
            self._base += keep
