"""A log as few large advances: what brings a fresh server to where the old one was.

All flows with their starts are given at once, and the horizon is the last grant. Flows that had completed by
then get a reaction delay of never, so that nothing stops the run; the others keep theirs. A grant is closed
for completions and open for starts, however it was reached, so that is where the server was when it first
granted it. What came after that at the same time, *rounds* of starts and completions within the instant, no
horizon can tell: each round that the client had a part in is a call of its own, which ends with that round's
completions (their reaction delay is zero).

How calls were cut is no part of a network's result, but for one thing: what the client gave in the second
round of an instant is taken in the first here, with the rest of that instant's starts. Where that matters the
digest tells, and :func:`one_by_one` brings the server there with the calls as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from cosim.network.flows import I64
from cosim.protocol.columns import LATER, FlatFlows, array, decode, join
from cosim.protocol.digest import Digest
from cosim.protocol.journal import Exchange
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.units import NEVER

_NONE = np.empty(0, np.int64)


@dataclass(eq=False)
class Stage:
    """One advance: paths and flows, starts of flows of earlier stages, how far to run. A round of an instant
    is done when there are as many ``completions`` in all.
    """

    paths: pb.Paths = field(default_factory=pb.Paths)
    flows: FlatFlows | None = None
    starts: tuple[I64, I64, I64] | None = None
    horizon_ps: int = 0
    is_round: bool = False
    completions: int = 0


@dataclass(eq=False)
class Bulk:
    """The stages, and what the log says that they must all come to."""

    stages: list[Stage]
    granted_ps: int
    digest: Digest


@dataclass(eq=False)
class _Given:
    """What one exchange brought, and what it came to."""

    requests: list[pb.Advance]
    granted_ps: int
    ids: I64
    digest: Digest
    count: int

    @property
    def brings(self) -> bool:
        """Whether the client had a part in it."""
        return any(r.HasField("flows") or r.HasField("starts") for r in self.requests)


def _read(exchanges: Iterable[Exchange]) -> Iterator[_Given]:
    for exchange in exchanges:
        requests = [pb.SessionRequest.FromString(raw).advance for raw in exchange.requests]
        answers = [pb.SessionResponse.FromString(raw).advanced for raw in exchange.answers]
        last = answers[-1]
        ids = np.concatenate([array(answer.id, np.int64) for answer in answers])
        count = sum(request.flows.count for request in requests)
        yield _Given(requests, last.granted_ps, ids, Digest(last.digest.a, last.digest.b), count)


class _Collected:
    """Exchanges on their way to becoming a stage."""

    def __init__(self) -> None:
        self.all: list[_Given] = []
        self.in_stage = 0

    def take(self, given: _Given) -> None:
        self.all.append(given)
        self.in_stage += given.count

    def stage(self, horizon_ps: int, before: int) -> Stage:
        """Everything at once; ``before``: completions of earlier stages."""
        paths, flows, starts = pb.Paths(), [], []
        for request in (request for given in self.all for request in given.requests):
            shift = len(paths.link)
            for name in ("src", "dst", "channel", "link"):
                getattr(paths, name).extend(getattr(request.paths, name))
            paths.end.extend(end + shift for end in request.paths.end)
            if request.flows.count:
                flows.append(decode(request.flows))
            if request.starts.id:
                start = array(request.starts.start_ps, np.int64)
                cause = array(request.starts.cause_ps, np.int64) if request.starts.cause_ps else start
                starts.append((array(request.starts.id, np.int64), start, cause))
        ids, start, cause = (np.concatenate([_NONE, *(part[c] for part in starts)]) for c in range(3))
        made = Stage(paths, join(flows) if flows else None, None, horizon_ps)
        made.completions = before + sum(len(given.ids) for given in self.all)
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


def bulk(exchanges: Iterable[Exchange], most_open: int) -> Bulk:
    """Few stages, in which at most ``most_open`` flows are open at once."""
    stages: list[Stage] = []
    collected = _Collected()
    never: list[I64] = []
    rounds: list[_Given] = []
    now: list[I64] = []
    granted = done = open_flows = 0
    digest = Digest()

    def end(horizon: int, *, is_round: bool = False) -> None:
        nonlocal collected, done
        if collected.all:
            stages.append(collected.stage(horizon, done))
            stages[-1].is_round = is_round
            done, collected = stages[-1].completions, _Collected()

    for given in _read(exchanges):
        moved = given.granted_ps > granted
        for one in [*rounds, given] if moved else []:
            if open_flows + collected.in_stage + one.count > most_open and collected.all:
                end(granted)
                open_flows = sum(stage.flows.count for stage in stages if stage.flows is not None) - done
            collected.take(one)
            never.append(one.ids)
        rounds = [] if moved else [*rounds, given]
        granted, digest = given.granted_ps, given.digest
    end(granted)
    for k, one in enumerate(rounds):
        collected.take(one)
        if not len(one.ids) or not (k + 1 == len(rounds) or rounds[k + 1].brings):
            never.append(one.ids)
            continue
        now.append(one.ids)
        end(NEVER, is_round=True)
    if any(one.brings for one in collected.all):
        end(granted)
    _react(stages, never, NEVER)
    _react(stages, now, 0)
    return Bulk(stages, granted, digest)


def one_by_one(exchanges: Iterable[Exchange]) -> Bulk:
    """The calls as they were, but for where the clock on the wall had ended them."""
    stages: list[Stage] = []
    now: list[I64] = []
    granted = done = 0
    digest = Digest()
    for given in _read(exchanges):
        collected = _Collected()
        collected.take(given)
        is_round = given.granted_ps == granted and len(given.ids) > 0
        stages.append(collected.stage(NEVER if is_round else given.granted_ps, done))
        stages[-1].is_round = is_round
        if is_round:
            now.append(given.ids)
        done, granted, digest = stages[-1].completions, given.granted_ps, given.digest
    _react(stages, now, 0)
    return Bulk(stages, granted, digest)


def _react(stages: list[Stage], parts: list[I64], reaction: int) -> None:
    """Set the reaction delay of some flows."""
    ids = np.sort(np.concatenate([_NONE, *parts]))
    for stage in stages:
        if stage.flows is not None:
            first = stage.flows.first_id
            low, high = np.searchsorted(ids, [first, first + stage.flows.count])
            mine = ids[low:high] - first
            column = stage.flows.column("reaction_delay_ps").copy()
            column[mine] = reaction
            stage.flows.columns["reaction_delay_ps"] = column
