"""A log as few large advances: what brings a fresh server to where the old one was.

All flows with their starts are given at once, as many as the server has room for, and the horizon is the
grant of the last exchange among them. Flows that had completed by then get a reaction delay of never, so that
nothing stops the run; the others keep theirs. A grant is closed for completions and open for starts, so that
is where the server was, unless that very time had more *rounds*, which no horizon can tell: flows that
started and completed then, or that stood behind others. So the reaction delays of what completed at that time
become zero, and the server is asked again, round by round, until as much has completed as had.

What the client started in a later round of an instant than the first is given where it was given then: it
stands behind what had started before. So are changes of links: at the grant at which they were made.

How calls were cut otherwise is no part of a network's result. Where it is the digest tells, and
:func:`as_recorded` brings the server there with the calls as they were.
"""

from __future__ import annotations

from array import array as array_of_numbers
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cosim.network.flows import I64
from cosim.protocol.digest import Digest
from cosim.protocol.flat_flows import LATER, FlatFlows, array, decode, join
from cosim.protocol.replay_log import LoggedAdvance
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.units import NEVER

_NONE = np.empty(0, np.int64)


@dataclass(eq=False)
class PlannedAdvance:
    """One advance: paths and flows, starts of flows of earlier ones, how far to run. It is done when there
    are as many ``completions`` in all.
    """

    paths: pb.Paths = field(default_factory=pb.Paths)
    flows: FlatFlows | None = None
    starts: tuple[I64, I64, I64] | None = None
    horizon_ps: int = 0
    completions: int = 0
    changes: pb.Changes | None = None


@dataclass(eq=False)
class ReplayPlan:
    """The advances in order, and what the log says that they must all come to."""

    advances: list[PlannedAdvance]
    granted_ps: int
    digest: Digest


@dataclass(eq=False)
class _AdvanceEffect:
    """What one exchange brought, and what it came to: ``at_end`` says what completed at its grant.

    ``starts_late``: it brought starts at a time of which the server had started flows that are open yet.
    """

    paths: list[pb.Paths]
    flows: list[FlatFlows]
    starts: list[tuple[I64, I64, I64]]
    granted_ps: int
    ids: I64
    start_ps: I64
    at_end: NDArray[np.bool_]
    digest: Digest
    changes: pb.Changes | None
    starts_late: bool = False

    @property
    def at_grant(self) -> I64:
        """What completed at the very end of it."""
        return self.ids[self.at_end]

    @property
    def count(self) -> int:
        """Flows that it brought."""
        return sum(flows.count for flows in self.flows)

    def started(self) -> tuple[I64, I64]:
        """Ids and times of the starts that it brought."""
        parts = [(ids, start) for ids, start, _ in self.starts]
        parts += [(flows.first_id + np.arange(flows.count), flows.column("start_ps")) for flows in self.flows]
        ids, start = (np.concatenate([_NONE, *(part[c] for part in parts)]) for c in range(2))
        return ids[start != LATER], start[start != LATER]


class _Dependents:
    """Who waits for whom among a server's flows."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._batches: list[tuple[I64, I64]] = []

    def add(self, flows: FlatFlows) -> None:
        """One more batch: flows wait for others of their own."""
        waiting = flows.first_id + np.repeat(np.arange(flows.count), np.diff(flows.pointers))
        order = np.argsort(flows.dependency_id, kind="stable")
        self._first.append(flows.first_id)
        self._batches.append((flows.dependency_id[order], waiting[order]))

    def of(self, ids: I64) -> set[int]:
        """Flows that wait for any of these."""
        found: set[int] = set()
        for one in ids.tolist():
            waited, waiting = self._batches[bisect_right(self._first, one) - 1]
            low, high = np.searchsorted(waited, [one, one + 1])
            found.update(waiting[low:high].tolist())
        return found


def _read(exchanges: Iterable[LoggedAdvance]) -> Iterator[_AdvanceEffect]:
    granted = 0
    has_started = releases = False
    dependents = _Dependents()
    ids, start = _NONE, _NONE  # what the client started now or later, and is open
    reactions = array_of_numbers("q")  # of all flows, by id
    for exchange in exchanges:
        requests = [pb.SessionRequest.FromString(raw).advance for raw in exchange.requests]
        given = _effect(requests, exchange.answers)
        new_ids, new_start = given.started()
        given.starts_late = has_started and granted in new_start and (releases or granted in start)
        for flows in given.flows:
            dependents.add(flows)
            reactions.frombytes(flows.column("reaction_delay_ps").astype(np.int64).tobytes())
        # It was to go beyond an instant and stopped there again: it has started that instant's flows. So it
        # has where one of them has completed, and where not all that completed there would have stopped it.
        again = given.granted_ps == granted and (has_started or requests[-1].horizon_ps > granted)
        granted = given.granted_ps
        stops = [reactions[one] == 0 for one in given.at_grant.tolist()]
        has_started = again or granted in given.start_ps[given.at_end] or (any(stops) and not all(stops))
        # Which flows the server itself has started by now, the log doesn't tell before they complete: any
        # that waited for what completed there, or, if it stopped there before, for what did so then.
        left = dependents.of(given.at_grant) - set(given.at_grant.tolist())
        releases = bool(left) or (again and releases)
        ids, start = np.concatenate([ids, new_ids]), np.concatenate([start, new_start])
        stay = (start >= granted) & ~np.isin(ids, given.at_grant)
        ids, start = ids[stay], start[stay]
        yield given


def _effect(requests: Sequence[pb.Advance], raw: Sequence[bytes]) -> _AdvanceEffect:
    answers = [pb.SessionResponse.FromString(one).advanced for one in raw]
    last = answers[-1]
    ids, start_ps, time = (
        np.concatenate([array(getattr(answer, name), np.int64) for answer in answers])
        for name in ("id", "start_ps", "time_ps")
    )
    starts = []
    for given in (request.starts for request in requests if request.starts.id):
        start = array(given.start_ps, np.int64)
        cause = array(given.cause_ps, np.int64) if given.cause_ps else start
        starts.append((array(given.id, np.int64), start, cause))
    return _AdvanceEffect(
        [request.paths for request in requests],
        [decode(request.flows) for request in requests if request.flows.count],
        starts,
        last.granted_ps,
        ids,
        start_ps,
        time == last.granted_ps,
        Digest(last.digest.a, last.digest.b),
        requests[0].changes if requests[0].HasField("changes") else None,
    )


def _planned(collected: Sequence[_AdvanceEffect], before: list[PlannedAdvance]) -> PlannedAdvance:
    """Everything at once, after the advances ``before``."""
    paths = pb.Paths()
    for given in (given for one in collected for given in one.paths):
        # Ends of paths count from the beginning of their own message.
        shift = len(paths.link)
        for name in ("src", "dst", "channel", "link", "dead_set"):
            getattr(paths, name).extend(getattr(given, name))
        paths.end.extend(end + shift for end in given.end)
    flows = [given for one in collected for given in one.flows]
    starts = [given for one in collected for given in one.starts]
    ids, start, cause = (np.concatenate([_NONE, *(part[c] for part in starts)]) for c in range(3))
    made = PlannedAdvance(paths, join(flows) if flows else None, None, collected[-1].granted_ps)
    made.changes = collected[0].changes  # no other of them has any
    made.completions = sum(len(given.ids) for given in collected)
    made.completions += before[-1].completions if before else 0
    # A start of a flow that this advance itself brings becomes the flow's own start.
    old = np.ones(len(ids), np.bool_)
    if made.flows is not None:
        old = ids < made.flows.first_id
        columns = {name: made.flows.column(name).copy() for name in ("start_ps", "cause_ps")}
        mine = ids[~old] - made.flows.first_id
        columns["start_ps"][mine] = start[~old]
        columns["cause_ps"][mine] = np.where(cause[~old] == LATER, start[~old], cause[~old])
        made.flows.columns.update(columns)
    if old.any():
        made.starts = ids[old], start[old], cause[old]
    return made


def few_advances(exchanges: Iterable[LoggedAdvance], most_open: int) -> ReplayPlan:
    """Few advances, in which at most ``most_open`` flows are open at once."""
    advances: list[PlannedAdvance] = []
    collected: list[_AdvanceEffect] = []
    done: list[I64] = []
    at_ends: list[I64] = []
    given_before = count = granted = 0
    digest = Digest()

    def bring() -> None:
        """Bring the server to where it was after what was collected, so that what it has open is known."""
        nonlocal given_before, count
        advances.append(_planned(collected, advances))
        done.extend(one.ids for one in collected)
        at_ends.extend(one.at_grant for one in collected if one.granted_ps == collected[-1].granted_ps)
        given_before, count = given_before + count, 0
        collected.clear()

    for given in _read(exchanges):
        open_before = given_before - (advances[-1].completions if advances else 0)
        # As many as would be open at once, did none complete: it had room for this exchange where it was.
        is_full = open_before + count + given.count > most_open
        if collected and (given.starts_late or given.changes is not None or is_full):
            bring()
        collected.append(given)
        count += given.count
        granted, digest = given.granted_ps, given.digest
    if collected:
        bring()
    # What had completed stops nothing any more; what did so at an advance's end stops each round there.
    _react(advances, done, NEVER)
    _react(advances, at_ends, 0)
    return ReplayPlan(advances, granted, digest)


def as_recorded(exchanges: Iterable[LoggedAdvance]) -> ReplayPlan:
    """The calls as they were, but for where the clock on the wall had ended them."""
    advances: list[PlannedAdvance] = []
    at_ends: list[I64] = []
    granted, digest = 0, Digest()
    for given in _read(exchanges):
        advances.append(_planned([given], advances))
        at_ends.append(given.at_grant)
        granted, digest = given.granted_ps, given.digest
    _react(advances, at_ends, 0)
    return ReplayPlan(advances, granted, digest)


def _react(advances: list[PlannedAdvance], parts: list[I64], reaction: int) -> None:
    """Set the reaction delay of some flows."""
    ids = np.sort(np.concatenate([_NONE, *parts]))
    for one in advances:
        if one.flows is not None:
            first = one.flows.first_id
            low, high = np.searchsorted(ids, [first, first + one.flows.count])
            mine = ids[low:high] - first
            column = one.flows.column("reaction_delay_ps").copy()
            column[mine] = reaction
            one.flows.columns["reaction_delay_ps"] = column
