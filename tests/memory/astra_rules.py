"""ASTRA-sim's remote memory, written down a second time from its source, event by event, in nanoseconds.

``AnalyticalRemoteMemory::issue`` and ``call``: a device with a transaction under way queues what comes; when
it ends, the first in the queue goes on. A rank is a chain of (compute so long, then access so many bytes).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count

Chain = Sequence[tuple[int, int]]


def runtime_ns(size: int, latency_ns: int, gb_per_s: int) -> int:
    """``get_remote_mem_runtime``, in doubles as there."""
    return latency_ns + int(float(size) / (gb_per_s * 1_000_000_000) * float(1_000_000_000))


def ends_ns(
    chains: Sequence[Chain], device_of: Callable[[int], int | None], latency_ns: int, gb_per_s: int
) -> list[list[int]]:
    """When each access of each rank ends."""
    order = count()
    events: list[tuple[int, int, str, int]] = []
    ends: list[list[int]] = [[] for _ in chains]
    ongoing: set[int] = set()
    pending: dict[int, deque[int]] = {}

    def push(time: int, what: str, rank: int) -> None:
        heapq.heappush(events, (time, next(order), what, rank))

    def serve(now: int, rank: int) -> None:
        _, size = chains[rank][len(ends[rank])]
        push(now + runtime_ns(size, latency_ns, gb_per_s), "served", rank)

    for rank, chain in enumerate(chains):
        if chain:
            push(chain[0][0], "issue", rank)
    while events:
        now, _, what, rank = heapq.heappop(events)
        device = device_of(rank)
        if what == "issue":
            if device is not None and device in ongoing:
                pending.setdefault(device, deque()).append(rank)
                continue
            if device is not None:
                ongoing.add(device)
            serve(now, rank)
            continue
        ends[rank].append(now)
        if len(ends[rank]) < len(chains[rank]):
            push(now + chains[rank][len(ends[rank])][0], "issue", rank)
        if device is not None:
            ongoing.discard(device)
            if pending.get(device):
                ongoing.add(device)
                serve(now, pending[device].popleft())
    return ends
