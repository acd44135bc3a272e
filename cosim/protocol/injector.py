"""From the seam's batches to flat flows with ids, and back: the flows under way, as the client knows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import OverloadError, ProtocolError
from cosim.kernel import kernel, record
from cosim.network.flows import I32, I64, Completions, FlowBatch
from cosim.protocol.advance_answer import AdvanceAnswer
from cosim.protocol.advance_parts import AdvanceRequest
from cosim.protocol.digest import Digest
from cosim.protocol.flat_flows import DEFAULTS
from cosim.protocol.open_groups import OpenGroups
from cosim.protocol.pages import Pages
from cosim.protocol.partial_group import Dependencies, PartialGroup
from cosim.units import NEVER

MOST_AHEAD = 1 << 16
"""Flows of one group that are given ahead, where the server has room."""

_FLOW = record("given_flow")
_NONE = np.empty(0, np.int64)
_NO_KINDS = np.empty(0, np.int8)
_NO_FLOWS = (np.empty(0, np.int32), _NONE, _NONE, _NONE)
_NO_STARTS = (_NONE, _NONE, _NONE)
FlowColumns = tuple[NDArray[Any], ...]
"""Columns of starts: handle, index, start, cause."""


@dataclass(eq=False)
class Injection:
    """What one advance brings: new (source, destination, channel) triples, flows, and (id, start, cause).

    ``oldest_id``: nothing given later waits for a lower one.
    """

    triples: tuple[I32, I32, I32] | None = None
    flows: AdvanceRequest | None = None
    starts: tuple[I64, I64, I64] = field(default=_NO_STARTS)
    oldest_id: int = 0
    horizon_ps: int = NEVER
    """Where flows that there is no room for yet would start."""


class Injector:
    """Numbers flows, keeps large groups within the server's credit, and checks what comes back."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._groups = OpenGroups()
        self._digest = memoryview(self._groups.state["digest"].reshape(-1))
        self._request = AdvanceRequest()
        self._released: dict[int, PartialGroup] = {}
        self._held_back: dict[int, PartialGroup] = {}
        self._flows = Pages(_FLOW)
        self._postponed: list[FlowColumns] = []
        self._most_at_once = 0
        self.open_flows = 0
        self.credit = 0
        self.granted_ps = 0

    @property
    def next_id(self) -> int:
        """Flows given so far."""
        return self._flows.count

    @property
    def held(self) -> int:
        """Flows that there is room for in the columns."""
        return self._flows.held

    @property
    def digest(self) -> Digest:
        """The digest of all completions so far."""
        return Digest(*self._digest)

    # -- flows out -----------------------------------------------------------------------------------

    def take(self, batch: FlowBatch) -> Injection:
        """Number what a batch brings.

        Raises
        ------
        NetworkError
            An unknown handle, or one in use.
        OverloadError
            The server takes fewer flows at once than must be open.
        """
        for group in batch.groups:
            self._groups.open(group)
            # In any other group the network has nothing to release: its flows are given one by one, when they
            # start.
            if group.release == "network" and len(group.table.dep_distance):
                self._released[group.handle] = self._held_back[group.handle] = PartialGroup(group)
        triples = self._groups.new_triples()
        given: FlowColumns = batch.start_handle, batch.start_index, batch.start_ps, batch.cause_ps
        ours: FlowColumns = _NO_FLOWS
        if len(given[0]) and self._released:
            # Starts within such groups need their flow to be there; others bring their flow with them.
            within = np.isin(given[0], list(self._released))
            ours, given = (tuple(column[some] for column in given) for some in (within, ~within))
        needs = self._needs(ours)
        required = sum(map(len, needs.values()))
        # Room is given in the order of what can't wait: what must be known now, starts, and only then flows
        # ahead.
        given, horizon = self._within_credit(given, self.credit - required)
        count = len(given[0])
        self._most_at_once = max(self._most_at_once, count + required)
        request, already, starts = self._request, 0, _NO_STARTS
        if len(request.dependency_ptr):
            request.wait(_NONE, _NONE, _NO_KINDS)
        if needs or len(ours[0]):
            already, starts = self._extend(ours, needs, self.credit - count, count)
        if count:
            self._give(already, *given)
        flows = request if already + count else None
        return Injection(triples, flows, starts, self._oldest(), horizon)

    def _needs(self, ours: FlowColumns) -> dict[int, I64]:
        """What must be given now of groups that the network releases.

        Raises
        ------
        OverloadError
            There is no room for it.
        """
        if not self._held_back:
            return {}
        starts = {n: ours[1][ours[0] == n] for n in np.unique(ours[0]).tolist()}
        needs = {n: w.required(starts.get(n, _NONE)) for n, w in self._held_back.items()}
        count = sum(map(len, needs.values()))
        if count > self.credit:
            raise self._overload(count)
        return needs

    def _within_credit(self, given: FlowColumns, room: int) -> tuple[FlowColumns, int]:
        """The flows to be started that there is room for; when the others start.

        Whole instants are postponed, the latest first, until something has completed.
        """
        if self._postponed:
            both = [given, *self._postponed]
            given = tuple(np.concatenate([part[c] for part in both]) for c in range(4))
            self._postponed = []
        start = given[2]
        if len(start) <= room:
            return given, NEVER
        # The room-th start in time order, without sorting the rest.
        first_out = int(np.partition(start, room)[room])
        # They start now: there is no later call that could bring them in time.
        if first_out <= self.granted_ps:
            raise self._overload(int((start <= self.granted_ps).sum()))
        # A whole instant goes together: the simulator would otherwise see its starts in two calls, and order
        # them so.
        later = start >= first_out
        self._postponed = [tuple(column[later] for column in given)]
        return tuple(column[~later] for column in given), first_out

    def _oldest(self) -> int:
        """The lowest id that a flow given from now on may wait for."""
        if not self._held_back:
            return self.next_id
        return min([self.next_id, *(o for w in self._held_back.values() if (o := w.oldest()) is not None)])

    def _overload(self, count: int) -> OverloadError:
        most = self.credit + self.open_flows
        return OverloadError(
            f"{self._name} takes {most} flows at once (max_open_flows): {self.open_flows} are open, and "
            f"{count} more start at {self.granted_ps} ps or might soon after; a server with room for "
            f"{self.open_flows + count} at least, or smaller groups and fewer channels, would be right"
        )

    def _give(self, already: int, handle: I32, index: I64, start: I64, cause: I64) -> None:
        """Number flows, and put them behind those that the request has already."""
        pages, groups = self._flows, self._groups
        count = len(handle)
        first = pages.extend(count)
        if pages.rows is not groups.flows or pages.place is not groups.place:
            groups.put(flows=pages.rows, place=pages.place, left=pages.left)
        handle = np.ascontiguousarray(handle, np.int32)
        index, start, cause = (np.ascontiguousarray(one, np.int64) for one in (index, start, cause))
        columns = handle, index, groups.rows_of(handle, index), start, cause
        wrong = kernel.give_flows(groups, self._request, already, first, count, *columns)
        if wrong != kernel.NONE:
            raise groups.refusal(int(handle[wrong]))
        self.open_flows += count
        # Until the answer says again: the server grants room again as flows complete.
        self.credit -= count

    def _extend(
        self, given: FlowColumns, needs: dict[int, I64], room: int, others: int
    ) -> tuple[int, tuple[I64, I64, I64]]:
        """More of the groups that the network releases, how many flows; and starts of what it knew before.

        ``others`` follow in the request, which wait for nothing.
        """
        handle, index, start, cause = given
        started = {
            one: (index[mine], start[mine], cause[mine])
            for one in np.unique(handle).tolist()
            for mine in [handle == one]
        }
        spare = room - sum(map(len, needs.values()))
        # Half of the room, or as much as ever had to be given at once, is kept for what must be given next.
        spare = max(0, spare - max((self.credit + self.open_flows) // 2, self._most_at_once))
        parts: list[Dependencies] = []
        count = 0
        later: list[tuple[I64, I64, I64]] = []
        first_new = self.next_id
        for number, need in needs.items():
            group = self._held_back[number]
            ahead = group.sent - group.completed
            # Nothing more until half of it has completed: few large pieces cost less than many small ones.
            wish = MOST_AHEAD - ahead - len(need) if ahead < MOST_AHEAD // 2 else 0
            more = min(max(0, min(wish, group.left - len(need))), spare)
            spare -= more
            if len(need) or more:
                which = group.ahead(need, more)
                parts.append(self._give_piece(count, group, which, started.get(number)))
                count += len(which)
        for number, (which, when, why) in started.items():
            ids = self._released[number].ids(which)
            # New flows carry their starts themselves.
            before = ids < first_new
            later.append((ids[before], when[before], why[before]))
        self._held_back = {n: w for n, w in self._held_back.items() if w.left}
        ids, when, why = (np.concatenate([_NONE, *(part[c] for part in later)]) for c in range(3))
        self._flows.rows["start"][self._flows.slots(ids)] = when
        if sum(len(other) for _, other, _ in parts):
            degree = [*(np.diff(ptr) for ptr, _, _ in parts), np.zeros(others, np.int64)]
            ptr = np.concatenate([[0], np.cumsum(np.concatenate(degree))])
            self._request.wait(ptr, *(np.concatenate([part[c] for part in parts]) for c in (1, 2)))
        return count, (ids, when, why)

    def _give_piece(
        self, already: int, group: PartialGroup, index: I64, started: tuple[I64, I64, I64] | None
    ) -> Dependencies:
        """Give flows of a group that the network releases; what they wait for."""
        first, count = self.next_id, len(index)
        start, cause = (np.full(count, DEFAULTS[name][1], np.int64) for name in ("start_ps", "cause_ps"))
        if started is not None:
            which, when, why = started
            new = ~group.knows(which)
            place = np.searchsorted(index, which[new])
            start[place], cause[place] = when[new], why[new]
        waits = group.give(index, first)
        self._give(already, np.full(count, group.group.handle, np.int32), index, start, cause)
        reaction = self._request.flows["reaction_delay_ps"][already : already + count]
        reaction[:] = group.reactions(reaction, index)
        self._flows.rows["reaction"][self._flows.slots(np.arange(first, first + count))] = reaction
        return waits

    # -- completions in ------------------------------------------------------------------------------

    def finish(self, horizon_ps: int, answer: AdvanceAnswer) -> Completions:
        """Check an answer and enter it; its completions.

        Raises
        ------
        ProtocolError
            Time goes back, a flow that isn't open completes, a completion lies outside of what was granted
            ...
        """
        before, granted = self.granted_ps, answer.granted_ps
        if not before <= granted <= horizon_ps:
            raise self._violation(f"granted {granted} ps; it may grant {before} to {horizon_ps} ps")
        self.granted_ps = granted
        if answer.is_uneven:
            raise self._violation("reported completions in columns of different lengths")
        count = answer.count
        if not count:
            return Completions(np.empty(0, np.int32), _NONE, _NONE, _NONE, _NONE)
        pages, groups = self._flows, self._groups
        handle, columns = np.empty(count, np.int32), np.empty((4, count), np.int64)
        ended = kernel.complete_given(groups, pages.count, before, answer, handle, columns)
        if ended < 0:
            at, what = divmod(kernel.NONE - ended, kernel.UNTRUES)
            raise self._untrue(
                what, before, *(int(column[at]) for column in (answer.id, answer.start, answer.time))
            )
        self.open_flows -= count
        index, start_ps, time_ps, cause_ps = columns[0], columns[1], columns[2], columns[3]
        for number, group in self._held_back.items():
            group.note_completed(index[handle == number])
        for one in groups.ended[:ended].tolist() if ended else ():
            groups.close(one)
            self._released.pop(one, None)
        if groups.pages_done:
            pages.drop(answer.id[:count])
        pages.forget(self.next_id)
        return Completions(handle, index, start_ps, time_ps, cause_ps)

    def _untrue(self, what: int, before: int, one: int, start_ps: int, time_ps: int) -> ProtocolError:
        """Which rule a completion breaks, with its times."""
        granted = self.granted_ps
        if what == kernel.NOT_OPEN:
            return self._violation(f"completed flow {one}, which is not open")
        if what == kernel.DONE_TWICE:
            return self._violation("completed a flow twice")
        if what == kernel.OUT_OF_GRANT:
            return self._violation(
                f"reported a completion at {time_ps} ps with a grant of {granted} after one of {before}"
            )
        if what == kernel.OUT_OF_ORDER:
            return self._violation("started a flow before its time, or after its completion")
        if what == kernel.BEFORE_BEGIN:
            return self._violation(f"started a flow at {start_ps} ps, before the run began")
        if what == kernel.CERTAIN_AFTER:
            return self._violation("was certain of a completion only after it")
        react = time_ps + int(self._flows.rows["reaction"][self._flows.slots(np.array([one]))][0])
        return self._violation(f"ran to {granted} ps past a reaction that could come at {react} ps")

    def check_digest(self, answer: AdvanceAnswer) -> None:
        """Compare with the server's.

        Raises
        ------
        ProtocolError
            It has another one.
        """
        if answer.digest_words != self._digest:
            told = answer.digest or Digest()
            raise self._violation(f"has the digest {told} of the completions whose digest is {self.digest}")

    def _violation(self, what: str) -> ProtocolError:
        return ProtocolError(f"{self._name} breaks the protocol: it {what}")
