"""Rank x rank traffic over time, dense, for the ranks and the times that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import JobInfo, TrafficRecord
from cosim.errors import InputError

I64 = NDArray[np.int64]

_MAX_CELLS = 1 << 27


@dataclass(frozen=True, eq=False)
class TrafficMatrix:
    """``size_bytes[b, i, j]`` arrived from rank ``ranks[i]`` at rank ``ranks[j]`` in [``edges_ps[b]``,
    ``edges_ps[b + 1]``).
    """

    ranks: I64
    edges_ps: I64
    size_bytes: I64

    @property
    def total_bytes(self) -> I64:
        """Over all times: int64[ranks, ranks]."""
        return np.asarray(self.size_bytes.sum(axis=0), np.int64)


def traffic_matrix(
    traffic: TrafficRecord,
    job: JobInfo,
    *,
    ranks: Sequence[int] | None = None,
    from_ps: int = 0,
    to_ps: int | None = None,
    over_time: bool = True,
) -> TrafficMatrix:
    """The matrix of a job's ranks.

    Parameters
    ----------
    traffic, job
        What the engine recorded, and the job whose ranks are meant.
    ranks
        Which ranks, in this order; all of them if not given.
    from_ps, to_ps
        Bins that overlap [from, to) are taken whole; to the last one if ``to_ps`` isn't given.
    over_time
        False adds all bins into one.

    Traffic is counted between endpoints, so where jobs take turns on an endpoint each sees all of it.

    Raises
    ------
    InputError
        A rank that the job lacks, two ranks on one endpoint, or a matrix above 1 GiB.
    """
    chosen = np.arange(len(job.endpoints)) if ranks is None else np.asarray(list(ranks), np.int64)
    where = _endpoints(job, chosen)
    last = len(traffic.size_bytes)
    if to_ps is not None:
        last = min(-(-to_ps // traffic.bin_ps), last)
    first = min(max(from_ps // traffic.bin_ps, 0), last)
    bins = last - first if over_time else 1
    if bins * len(chosen) ** 2 > _MAX_CELLS:
        raise InputError(
            f"{bins} bins x {len(chosen)} x {len(chosen)} ranks are more than 1 GiB",
            hint="ask for fewer ranks, a shorter time, or over_time=False",
        )
    highest = int(np.concatenate([where, traffic.src, traffic.dst]).max(initial=0))
    place = np.full(highest + 1, -1, np.int64)
    place[where] = np.arange(len(where))
    i, j = place[traffic.src], place[traffic.dst]
    inside = (i >= 0) & (j >= 0)
    values = traffic.size_bytes[first:last, inside]
    if not over_time:
        values = values.sum(axis=0, keepdims=True)
    out = np.zeros((bins, len(chosen), len(chosen)), np.int64)
    out[:, i[inside], j[inside]] = values
    edges = np.arange(first, last + 1, dtype=np.int64) * traffic.bin_ps
    return TrafficMatrix(chosen, edges if over_time else edges[[0, -1]], out)


def _endpoints(job: JobInfo, ranks: I64) -> I64:
    """Where ranks of a job sit, each on an endpoint of its own."""
    endpoints = np.asarray(job.endpoints, np.int64)
    wrong = ranks[(ranks < 0) | (ranks >= len(endpoints))]
    if len(wrong):
        raise InputError(f"job {job.name} has no rank {int(wrong[0])}; it has 0 to {len(endpoints) - 1}")
    where = endpoints[ranks]
    if len(np.unique(where)) != len(where):
        raise InputError(
            f"job {job.name}: two of the ranks sit on one endpoint, and their traffic can't be told apart"
        )
    return where
