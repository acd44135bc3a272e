"""What limits an iteration, in one sentence, and what its critical path is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.results.critical_path import COMPUTE, MEMORY, REMOTE, WAIT, PathStep
from cosim.results.render.text import percent
from cosim.units import format_time


@dataclass(frozen=True)
class PathPart:
    """What the path has of one sort: ``time_ps`` is at most what an iteration gains if it took no time."""

    kind: str
    what: str
    time_ps: int
    steps: int


def path_parts(columns: Mapping[str, NDArray[Any]], job: int) -> list[PathPart]:
    """Parts of the critical path of a job's last iteration, the largest first."""
    mine = np.flatnonzero(columns["path_job"] == job)
    kinds, whats = columns["path_kind"][mine].tolist(), columns["path_what"][mine].tolist()
    lengths = (columns["path_end_ps"] - columns["path_start_ps"])[mine].tolist()
    return _parts(zip(kinds, whats, lengths, strict=True))


def parts_of(steps: Iterable[PathStep]) -> list[PathPart]:
    """What steps are made of, the largest part first."""
    return _parts((step.kind, step.what, step.duration_ps) for step in steps)


def _parts(steps: Iterable[tuple[str, str, int]]) -> list[PathPart]:
    times: dict[tuple[str, str], list[int]] = {}
    for kind, what, length in steps:
        times.setdefault((kind, what), []).append(length)
    parts = [PathPart(kind, what, sum(each), len(each)) for (kind, what), each in times.items()]
    return sorted(parts, key=lambda part: (-part.time_ps, part.kind, part.what))


_REMOTELY = "remote memory"
_SORT = {COMPUTE: "computation", MEMORY: "computation", REMOTE: _REMOTELY}


def limit(parts: list[PathPart]) -> str:
    """What limits the iteration, as the end of a sentence; empty where there is no path."""
    total = sum(part.time_ps for part in parts)
    if not total:
        return ""
    sorts: dict[str, list[PathPart]] = {sort: [] for sort in ("computation", "communication", _REMOTELY)}
    for part in parts:
        if part.kind != WAIT:
            sorts[_SORT.get(part.kind, "communication")].append(part)
    unknown = sum(part.time_ps for part in parts if part.kind == WAIT)
    if 2 * unknown > total:
        share, times = percent(unknown / total), f"{format_time(unknown)} of {format_time(total)}"
        return f"waits that no computation or message explains, {share} of its critical path ({times})"
    spent = {sort: sum(part.time_ps for part in each) for sort, each in sorts.items()}
    what = max(spent, key=lambda sort: spent[sort])  # of equal ones the first
    most = sorts[what][0]
    share = percent(spent[what] / total)
    times = f"{format_time(most.time_ps)} of {format_time(total)}"
    return f"{what}, {share} of its critical path, most of it {most.what} ({times})"
