"""A log as few large advances: what brings a fresh server to where the old one was.

All flows with their starts are given at once, and the horizon is the last grant but one. Flows that had
completed by then get a reaction delay of never, so that nothing stops the run; the others keep theirs. How
calls were cut is no part of a network's result, so a deterministic one comes to the same completions, and to
the same digest. Only the advances that led to the last grant are repeated as they were: they may have ended
in the midst of an instant, after some of its rounds, and no horizon says which.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from cosim.network.flows import I64
from cosim.protocol.columns import LATER, FlatFlows, array, decode, join
from cosim.protocol.digest import Digest
from cosim.protocol.journal import Exchange
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.units import NEVER


@dataclass(eq=False)
class Stage:
    """One large advance: paths and flows, starts of flows of earlier stages, and how far to run."""

    paths: list[pb.Paths] = field(default_factory=list)
    flows: FlatFlows | None = None
    starts: tuple[I64, I64, I64] | None = None
    horizon_ps: int = 0


@dataclass(eq=False)
class Bulk:
    """The stages, the exchanges to repeat after them, and what the log says that it must all come to."""

    stages: list[Stage]
    repeat: list[Exchange]
    granted_ps: int
    digest: Digest


class _Collected:
    """Exchanges on their way to becoming a stage."""

    def __init__(self) -> None:
        self.paths: list[pb.Paths] = []
        self.flows: list[FlatFlows] = []
        self.starts: list[tuple[I64, I64, I64]] = []

    def take(self, exchange: Exchange) -> I64:
        """Add what an exchange brought; ids of the flows that completed in it."""
        for part in _requests(exchange):
            if part.HasField("paths"):
                self.paths.append(part.paths)
            if part.HasField("flows"):
                self.flows.append(decode(part.flows))
            if part.HasField("starts"):
                start = array(part.starts.start_ps, np.int64)
                cause = array(part.starts.cause_ps, np.int64) if part.starts.cause_ps else start
                self.starts.append((array(part.starts.id, np.int64), start, cause))
        answers = (pb.SessionResponse.FromString(raw).advanced for raw in exchange.answers)
        return np.concatenate([array(answer.id, np.int64) for answer in answers])


def bulk(exchanges: Iterable[Exchange], most_open: int) -> Bulk:
    """Stages in which at most ``most_open`` flows are open at once."""
    collected = [_Collected()]
    horizons = [0]
    done: list[I64] = []
    reached = open_flows = in_stage = 0
    granted, digest = 0, Digest()
    last: list[Exchange] = []
    for exchange in exchanges:
        answer = pb.SessionResponse.FromString(exchange.answers[-1]).advanced
        if answer.granted_ps > granted:
            ready, last = last, []
            for one in ready:
                given = sum(r.flows.count for r in _requests(one))
                if in_stage + given > most_open and collected[-1].flows:
                    collected.append(_Collected())
                    horizons.append(granted)
                    in_stage = open_flows
                ids = collected[-1].take(one)
                done.append(ids)
                in_stage += given
                open_flows += given - len(ids)
            horizons[-1] = reached = granted
        last.append(exchange)
        granted = answer.granted_ps
        digest = Digest(answer.digest.a, answer.digest.b)
    completed = np.concatenate([np.empty(0, np.int64), *done])
    stages = [_stage(one, horizon, completed) for one, horizon in zip(collected, horizons, strict=True)]
    return Bulk(stages if reached or done else [], last, granted, digest)


def _requests(exchange: Exchange) -> list[pb.Advance]:
    return [pb.SessionRequest.FromString(raw).advance for raw in exchange.requests]


def _stage(collected: _Collected, horizon_ps: int, completed: I64) -> Stage:
    starts = None
    if collected.starts:
        ids, start, cause = (np.concatenate([part[c] for part in collected.starts]) for c in range(3))
        starts = ids, start, cause
    if not collected.flows:
        return Stage(collected.paths, None, starts, horizon_ps)
    flows = join(collected.flows)
    first, last = flows.first_id, flows.first_id + flows.count
    columns = {name: flows.column(name).copy() for name in ("reaction_delay_ps", "start_ps", "cause_ps")}
    mine = completed[(completed >= first) & (completed < last)] - first
    columns["reaction_delay_ps"][mine] = NEVER
    if starts is not None:
        ids, start, cause = starts
        here = ids >= first
        columns["start_ps"][ids[here] - first] = start[here]
        columns["cause_ps"][ids[here] - first] = np.where(cause[here] == LATER, start[here], cause[here])
        starts = (ids[~here], start[~here], cause[~here]) if not here.all() else None
    flows.columns.update(columns)
    return Stage(collected.paths, flows, starts, horizon_ps)
