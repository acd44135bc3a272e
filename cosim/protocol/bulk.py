"""A log as few large advances: what brings a fresh server to where the old one was.

All flows with their starts are given at once, and the horizon is the last grant. Flows that had completed by then
get a reaction delay of never, so that nothing stops the run; the others keep theirs. How calls were cut is no part
of a network's result, so a deterministic one comes to the same completions, and to the same digest.
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
    """The stages, and what the log says that they must come to."""

    stages: list[Stage]
    granted_ps: int
    digest: Digest


class _Collected:
    """Exchanges on their way to becoming a stage."""

    def __init__(self) -> None:
        self.paths: list[pb.Paths] = []
        self.flows: list[FlatFlows] = []
        self.starts: list[tuple[I64, I64, I64]] = []
        self.count = 0


def bulk(exchanges: Iterable[Exchange], most_open: int) -> Bulk:
    """Stages in which at most ``most_open`` flows are open at once."""
    collected = [_Collected()]
    horizons = [0]
    done: list[I64] = []
    granted, digest, open_flows, in_stage = 0, Digest(), 0, 0
    for exchange in exchanges:
        asked = [pb.SessionRequest.FromString(raw).advance for raw in exchange.requests]
        flows = [decode(part.flows) for part in asked if part.HasField("flows")]
        given = sum(part.count for part in flows)
        if in_stage + given > most_open and collected[-1].flows:
            collected.append(_Collected())
            horizons.append(granted)
            in_stage = open_flows
        one = collected[-1]
        one.flows += flows
        one.paths += [part.paths for part in asked if part.HasField("paths")]
        for part in asked:
            if part.HasField("starts"):
                start = array(part.starts.start_ps, np.int64)
                cause = array(part.starts.cause_ps, np.int64) if part.starts.cause_ps else start
                one.starts.append((array(part.starts.id, np.int64), start, cause))
        in_stage += given
        open_flows += given
        for raw in exchange.answers:
            answer = pb.SessionResponse.FromString(raw).advanced
            done.append(array(answer.id, np.int64))
            open_flows -= len(answer.id)
            if not answer.more:
                granted = answer.granted_ps
                digest = Digest(answer.digest.a, answer.digest.b)
        horizons[-1] = granted
    completed = np.concatenate([np.empty(0, np.int64), *done])
    return Bulk(
        [_stage(one, horizon, completed) for one, horizon in zip(collected, horizons, strict=True)],
        granted,
        digest,
    )


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
