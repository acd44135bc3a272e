"""Many jobs in order onto few levels of priority: a cut of the contention graph that respects the order.

An edge (u, v) says that u is to be served before v where they meet, and what is lost if both get one level.
The best levels along one topological order are found exactly (dynamic programming); several orders are tried,
as in Crux (doi:10.1145/3651890.3672239, section 4.3), where this is the max K-cut of a directed acyclic
graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush

import numpy as np

from cosim.topology.graph import F64, I64
from cosim.workload.draws import draw

_ORDERS = 10
"""As in the paper."""

Edges = Mapping[tuple[int, int], float]


def compress(order: Sequence[int], edges: Edges, levels: int) -> dict[int, int]:
    """A level from 0 (served first) for each job of ``order``; no edge goes from a level to a lower one."""
    if len(order) <= levels:
        return {job: level for level, job in enumerate(order)}
    best: dict[int, int] = {}
    value, most = -1.0, sum(edges.values())
    for number in range(_ORDERS):
        tried = order if number == 0 else _reordered(order, edges, number)
        found = _along(tried, edges, levels)
        now = cut(found, edges)
        if now > value * (1 + 1e-12):
            best, value = found, now
        if value >= most:  # nothing is lost: no other order is better
            break
    return best


def cut(level: Mapping[int, int], edges: Edges) -> float:
    """What is not lost: weight of edges between two levels."""
    return sum(weight for (u, v), weight in edges.items() if level[u] != level[v])


def _along(order: Sequence[int], edges: Edges, levels: int) -> dict[int, int]:
    """The best levels for jobs of which each has the level of the one before, or a higher one."""
    place = {job: at for at, job in enumerate(order)}
    count = len(order)
    weight = np.zeros((count + 1, count + 1))
    for (u, v), one in edges.items():
        weight[place[u], place[v] + 1] += one
    # lost[a, b]: of edges within places a to b - 1
    lost = np.cumsum(np.cumsum(weight[::-1], axis=0)[::-1], axis=1)
    least: F64 = lost[0].copy()
    lost[np.tril_indices(count + 1, -1)] = np.inf
    came: list[I64] = []
    for _ in range(levels - 1):
        before = least[:, None] + lost
        came.append(before.argmin(axis=0))
        least = before.min(axis=0)
    found: dict[int, int] = {}
    end = count
    for level in range(levels - 1, -1, -1):
        begin = int(came[level - 1][end]) if level else 0
        found.update({order[at]: level for at in range(begin, end)})
        end = begin
    return found


@lru_cache(maxsize=1024)
def _lots(number: int, count: int) -> tuple[int, ...]:
    return tuple(draw(number, at) for at in range(count))


def _reordered(order: Sequence[int], edges: Edges, number: int) -> list[int]:
    """Another order in which every edge goes forwards, drawn."""
    waits = dict.fromkeys(order, 0)
    after: dict[int, list[int]] = {job: [] for job in order}
    for u, v in edges:
        waits[v] += 1
        after[u].append(v)
    lot = dict(zip(order, _lots(number, len(order)), strict=True))
    ready = [(lot[job], job) for job in order if not waits[job]]
    heapify(ready)
    found = []
    while ready:
        _, job = heappop(ready)
        found.append(job)
        for other in after[job]:
            waits[other] -= 1
            if not waits[other]:
                heappush(ready, (lot[other], other))
    return found
