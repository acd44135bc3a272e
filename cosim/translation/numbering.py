"""Which number a rank has in the target: its own, or its endpoint's where several jobs share a fabric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cosim.network.flows import I32
from cosim.translation.loss_report import LossReport, TranslationError
from cosim.translation.source import Source

By = Literal["auto", "ranks", "endpoints"]


@dataclass(frozen=True, eq=False)
class Numbering:
    """``of[job][rank]`` is the target's number below ``count``; ``seat[number]`` is (job, rank) or None."""

    count: int
    of: tuple[I32, ...]
    seat: tuple[tuple[int, int] | None, ...]
    by_rank: bool


def number(source: Source, by: By = "auto") -> Numbering:
    """Number the ranks: by rank where there is one job and nothing else is asked for, else by endpoint.

    Raises
    ------
    TranslationError
        By rank, but there are several jobs; or two ranks sit on one endpoint.
    """
    by_rank = by == "ranks" or (by == "auto" and len(source.jobs) == 1)
    if by_rank and len(source.jobs) > 1:
        raise TranslationError(
            f"{len(source.jobs)} jobs can't be numbered by rank", hint="leave numbering out, or say endpoints"
        )
    if by_rank:
        count = source.jobs[0].workload.world_size
        return Numbering(
            count, (np.arange(count, dtype=np.int32),), tuple((0, r) for r in range(count)), True
        )
    seat: list[tuple[int, int] | None] = [None] * source.topology.num_endpoints
    for job, info in enumerate(source.jobs):
        for rank, endpoint in enumerate(info.endpoints.tolist()):
            other = seat[endpoint]
            if other is not None:
                raise TranslationError(
                    f"endpoint {endpoint} has rank {other[1]} of job {source.jobs[other[0]].name!r} and rank "
                    f"{rank} of job {info.name!r}; the target has one rank on each",
                    hint="place the jobs apart, or translate them one at a time",
                )
            seat[endpoint] = (job, rank)
    return Numbering(
        len(seat), tuple(np.asarray(j.endpoints, np.int32) for j in source.jobs), tuple(seat), False
    )


def report_idle(numbers: Numbering, report: LossReport, how: str) -> None:
    """Say how endpoints without a rank are told."""
    report.assumed("endpoints without a rank", sum(seat is None for seat in numbers.seat), how)
