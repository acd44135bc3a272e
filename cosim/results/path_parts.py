"""What limits an iteration, in one sentence, and what its critical path is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.results.critical_path import COMPUTE, MEMORY, WAIT
from cosim.units import format_time


@dataclass(frozen=True)
class PathPart:
    """What the path has of one sort: ``time_ps`` is at most what an iteration gains if it took no time."""

    kind: str
    what: str
    time_ps: int
    steps: int


def path_parts(columns: Mapping[str, NDArray[Any]], job: int) -> list[PathPart]:
    """Of the critical path of a job's last iteration, the largest first; of a run with such columns."""
    if "path_job" not in columns:
        return []
    mine = np.flatnonzero(columns["path_job"] == job)
    times: dict[tuple[str, str], list[int]] = {}
    kinds, whats = columns["path_kind"][mine].tolist(), columns["path_what"][mine].tolist()
    lengths = (columns["path_end_ps"] - columns["path_start_ps"])[mine].tolist()
    for kind, what, length in zip(kinds, whats, lengths, strict=True):
        times.setdefault((kind, what), []).append(length)
    parts = [PathPart(kind, what, sum(each), len(each)) for (kind, what), each in times.items()]
    return sorted(parts, key=lambda part: (-part.time_ps, part.kind, part.what))


def sentence(parts: list[PathPart]) -> str:
    """What limits the iteration; empty where there is no path."""
    total = sum(part.time_ps for part in parts)
    if not total:
        return ""
    computing = sum(part.time_ps for part in parts if part.kind in (COMPUTE, MEMORY))
    unknown = sum(part.time_ps for part in parts if part.kind == WAIT)
    talking = total - computing - unknown
    if 2 * unknown > total:
        return "What the iteration waited for was not recorded."
    limited, largest = (
        ("Computation", [part for part in parts if part.kind in (COMPUTE, MEMORY)])
        if computing >= talking
        else ("Communication", [part for part in parts if part.kind not in (COMPUTE, MEMORY, WAIT)])
    )
    most = largest[0]
    share = f"{max(computing, talking) / total:.0%}"
    other = "communication" if limited == "Computation" else "computation"
    rest = min(computing, talking)
    return (
        f"{limited} limits it: {share} of the critical path, most of it {most.what} "
        f"({format_time(most.time_ps)} of {format_time(total)}); {other} is {format_time(rest)} of it."
    )
