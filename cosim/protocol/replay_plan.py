"""A log as few large advances: what brings a fresh server to where the old one was.

All flows with their starts are given at once, and the horizon is the last grant. Flows that had completed by
then get a reaction delay of never, so that nothing stops the run; the others keep theirs. A grant is closed
for completions and open for starts, so that is where the server was, unless flows had already started *and*
completed at that very time: *rounds* of the instant, which no horizon can tell. Their reaction delay becomes
zero, so that the server stops after each, and it is asked again until as much has completed as had; what the
client gave between two rounds comes in between.

How calls were cut is no part of a network's result, but for one thing: what the client gave in the second
round of an instant is taken in the first here, with the rest of that instant's starts. Where that matters the
digest tells, and :func:`as_recorded` brings the server there with the calls as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from cosim.network.flows import I64
from cosim.protocol.digest import Digest
from cosim.protocol.flat_flows import LATER, FlatFlows, array, decode, join
from cosim.protocol.replay_log import LoggedAdvance
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.units import NEVER

_NONE = np.empty(0, np.int64)


@dataclass(eq=False)
class PlannedAdvance:
    """One advance: paths and flows, starts of flows of earlier ones, how far to run. A round of an instant
    is done when there are as many ``completions`` in all.
    """

    paths: pb.Paths = field(default_factory=pb.Paths)
    flows: FlatFlows | None = None
    starts: tuple[I64, I64, I64] | None = None
    horizon_ps: int = 0
    is_round: bool = False
    completions: int = 0


@dataclass(eq=False)
class ReplayPlan:
    """The advances in order, and what the log says that they must all come to."""

    advances: list[PlannedAdvance]
    granted_ps: int
    digest: Digest


@dataclass(eq=False)
class _AdvanceEffect:
    """What one exchange brought, and what it came to: ``at_once`` started and completed at its grant."""

    requests: list[pb.Advance]
    granted_ps: int
    ids: I64
    at_once: I64
    digest: Digest
    count: int

    @property
    def brings(self) -> bool:
        """Whether the client had a part in it."""
        return any(r.HasField("flows") or r.HasField("starts") for r in self.requests)


def _read(exchanges: Iterable[LoggedAdvance]) -> Iterator[_AdvanceEffect]:
    for exchange in exchanges:
        requests = [pb.SessionRequest.FromString(raw).advance for raw in exchange.requests]
        answers = [pb.SessionResponse.FromString(raw).advanced for raw in exchange.answers]
        last = answers[-1]
        ids, start, time = (
            np.concatenate([array(getattr(answer, name), np.int64) for answer in answers])
            for name in ("id", "start_ps", "time_ps")
        )
        # Only these tell rounds of an instant apart: anything else a horizon brings back.
        at_once = ids[(start == last.granted_ps) & (time == last.granted_ps)]
        count = sum(request.flows.count for request in requests)
        yield _AdvanceEffect(
            requests, last.granted_ps, ids, at_once, Digest(last.digest.a, last.digest.b), count
        )


class _Collected:
    """Exchanges on their way to becoming one advance."""

    def __init__(self) -> None:
        self.all: list[_AdvanceEffect] = []
        self.flow_count = 0

    def take(self, given: _AdvanceEffect) -> None:
        self.all.append(given)
        self.flow_count += given.count

    def planned(self, horizon_ps: int, before: list[PlannedAdvance], *, is_round: bool) -> PlannedAdvance:
        """Everything at once, after the advances ``before``."""
        paths, flows, starts = pb.Paths(), [], []
        for request in (request for given in self.all for request in given.requests):
            # Ends of paths count from the beginning of their own message.
            shift = len(paths.link)
            for name in ("src", "dst", "channel", "link", "dead_set"):
                getattr(paths, name).extend(getattr(request.paths, name))
            paths.end.extend(end + shift for end in request.paths.end)
            if request.flows.count:
                flows.append(decode(request.flows))
            if request.starts.id:
                start = array(request.starts.start_ps, np.int64)
                cause = array(request.starts.cause_ps, np.int64) if request.starts.cause_ps else start
                starts.append((array(request.starts.id, np.int64), start, cause))
        ids, start, cause = (np.concatenate([_NONE, *(part[c] for part in starts)]) for c in range(3))
        made = PlannedAdvance(paths, join(flows) if flows else None, None, horizon_ps, is_round)
        made.completions = sum(len(given.ids) for given in self.all)
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
    collected = _Collected()
    done: list[I64] = []
    last: list[_AdvanceEffect] = []
    granted = open_flows = 0
    digest = Digest()

    def end(horizon: int, *, is_round: bool = False) -> None:
        nonlocal collected
        if collected.all:
            advances.append(collected.planned(horizon, advances, is_round=is_round))
            collected = _Collected()

    for given in _read(exchanges):
        if given.granted_ps > granted:
            # Time has moved on: the instant before holds no rounds that matter, and may join the others.
            for one in last:
                # As many as would have been open at once, had none completed: more than there can be, so it
                # always fits.
                if open_flows + collected.flow_count + one.count > most_open and collected.all:
                    end(collected.all[-1].granted_ps)
                    given_before = sum(one.flows.count for one in advances if one.flows is not None)
                    open_flows = given_before - advances[-1].completions
                collected.take(one)
                done.append(one.ids)
            last = []
        last.append(given)
        granted, digest = given.granted_ps, given.digest
    # What was granted the last instant, in rounds: those that the client had no part in may be joined.
    at_once: list[I64] = []
    is_round = False
    for k, one in enumerate(last):
        collected.take(one)
        done.append(one.ids)
        at_once.append(one.at_once)
        is_round = is_round or len(one.at_once) > 0
        if k + 1 == len(last) or last[k + 1].brings:
            end(NEVER if is_round else granted, is_round=is_round)
            is_round = False
    # What had completed by the last grant stops nothing any more; what did so within its instant stops each
    # round.
    _react(advances, done, NEVER)
    _react(advances, at_once, 0)
    return ReplayPlan(advances, granted, digest)


def as_recorded(exchanges: Iterable[LoggedAdvance]) -> ReplayPlan:
    """The calls as they were, but for where the clock on the wall had ended them."""
    advances: list[PlannedAdvance] = []
    at_once: list[I64] = []
    granted, digest = 0, Digest()
    for given in _read(exchanges):
        collected = _Collected()
        collected.take(given)
        is_round = len(given.at_once) > 0
        advances.append(
            collected.planned(NEVER if is_round else given.granted_ps, advances[-1:], is_round=is_round)
        )
        at_once.append(given.at_once)
        granted, digest = given.granted_ps, given.digest
    _react(advances, at_once, 0)
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
