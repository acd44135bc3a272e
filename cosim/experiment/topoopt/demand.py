"""What a job sends in an iteration: round rings, whose order is free, and between pairs, who are not."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.engine.programs import COLLECTIVES, ReadyJob
from cosim.pattern.template import Collective
from cosim.workload.operation import Operation, OpKind


@dataclass(frozen=True, eq=False, slots=True)
class ServerDemand:
    """Bytes of an iteration.

    Attributes
    ----------
    servers
        Endpoints.
    rings
        Of each group of endpoints, what a rank sends round its ring.
    pairs
        float64[servers, servers]: what each endpoint sends to each other outside of rings.
    names
        Collectives that go round rings.
    """

    servers: int
    rings: dict[tuple[int, ...], float]
    pairs: NDArray[np.float64]
    names: frozenset[str]


def demand_of(job: ReadyJob, servers: int) -> ServerDemand:
    """What a job asks for: rings carry its reductions, gathers and broadcasts, and pairs the rest."""
    at = job.info.endpoints
    rings: defaultdict[tuple[int, ...], float] = defaultdict(float)
    pairs, names = np.zeros((servers, servers)), set()
    for rank in range(job.info.workload.world_size):
        for one in job.info.workload.program(rank).operations:
            if one.kind is OpKind.SEND:
                pairs[at[rank], at[_peer(job, rank, one)]] += one.size_bytes
            elif one.kind is OpKind.COLLECTIVE:
                members = job.group(rank, one).ranks
                if rank != min(members) or len(members) == 1:
                    continue
                ends = at[list(members)]
                kind = COLLECTIVES[one.collective]
                if kind is Collective.ALL_TO_ALL:
                    pairs[np.ix_(ends, ends)] += one.size_bytes / len(ends)
                elif one.size_bytes:
                    names.add(one.collective)
                    rings[tuple(ends.tolist())] += one.size_bytes * _times(kind, len(ends))
    np.fill_diagonal(pairs, 0.0)
    return ServerDemand(servers, dict(rings), pairs, frozenset(names))


def _peer(job: ReadyJob, rank: int, one: Operation) -> int:
    peer, mesh = one.peer, job.info.workload.mesh
    assert peer is not None
    if peer.rank is not None:
        return peer.rank
    assert peer.axis is not None
    there = mesh.coordinates(rank)
    return mesh.rank({**there, peer.axis: there[peer.axis] + peer.offset})


def _times(kind: Collective, ranks: int) -> float:
    """What a rank of a ring sends, of the size of its collective."""
    if kind is Collective.ALL_REDUCE:
        return 2 * (ranks - 1) / ranks
    return float(ranks - 1) if kind is Collective.ALL_GATHER else (ranks - 1) / ranks
