"""A timing of plans on a network without contention, written apart from cosim's networks and engine.

A message of m bytes over h hops takes ``int(h * latency + m / bandwidth)`` ns, as ASTRA-sim's
congestion-unaware backend has it. Steps are evaluated one after another with numpy, phases by an event list.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.pattern.plan import Plan
from cosim.pattern.template import Template

I64 = NDArray[np.int64]
Duration = Callable[[I64, I64, I64], I64]
"""(source position, destination position, bytes) -> ns, as columns."""


def exits_ns(template: Template, arrival_ns: I64, duration: Duration) -> I64:
    """int64[N]: when each rank ends, given when each arrives. Every time in ns."""
    start = np.zeros(template.num_flows, np.int64)
    end = np.zeros(template.num_flows, np.int64)
    start[: template.num_ranks] = end[: template.num_ranks] = arrival_ns
    assert not (template.delay_ps % 1000).any()
    for block in range(1, len(template.block_repeat)):
        rows = slice(int(template.block_row[block]), int(template.block_row[block + 1]))
        count = rows.stop - rows.start
        src, dst = template.src[rows].astype(np.int64), template.dst[rows].astype(np.int64)
        took = np.where(src == dst, 0, duration(src, dst, template.bytes[rows]))
        deps = slice(int(template.dep_ptr[rows.start]), int(template.dep_ptr[rows.stop]))
        degree = np.diff(template.dep_ptr[rows.start : rows.stop + 1])
        assert (degree > 0).all()
        first = template.dep_ptr[rows] - template.dep_ptr[rows.start]
        distance = template.dep_distance[deps]
        on_start = template.dep_kind[deps] == 1
        owner = np.repeat(np.arange(count), degree)
        inside = bool((distance <= owner).any())
        for repetition in range(int(template.block_repeat[block])):
            base = int(template.block_base[block]) + repetition * count
            if inside:  # rows wait for rows of the same step: one by one
                for row in range(count):
                    at = slice(int(first[row]), int(first[row] + degree[row]))
                    before = base + row - distance[at]
                    start[base + row] = (
                        np.where(on_start[at], start[before], end[before]).max()
                        + template.delay_ps[rows.start + row] // 1000
                    )
                    end[base + row] = start[base + row] + took[row]
                continue
            before = base + owner - distance
            ready = np.maximum.reduceat(np.where(on_start, start[before], end[before]), first)
            start[base : base + count] = ready + template.delay_ps[rows] // 1000
            end[base : base + count] = start[base : base + count] + took
    return end[template.exit_base :]


@dataclass(frozen=True)
class Network:
    """Dimensions of Ring, FullyConnected, Switch; bandwidth in ASTRA-sim's GB/s (2^30 B), latency in ns."""

    topology: tuple[str, ...]
    npus: tuple[int, ...]
    bandwidth: tuple[float, ...]
    latency: tuple[float, ...]

    def duration(self, group: I64) -> Duration:
        """How long messages between NPUs of ``group`` take, which must differ in one dimension only."""

        def took(src: I64, dst: I64, size: I64) -> I64:
            a, b = group[src], group[dst]
            out = np.zeros(len(a), np.int64)
            done = np.zeros(len(a), bool)
            for kind, count, bandwidth, latency in zip(
                self.topology, self.npus, self.bandwidth, self.latency, strict=True
            ):
                a, x = np.divmod(a, count)
                b, y = np.divmod(b, count)
                hops = {"FullyConnected": np.ones_like(x), "Switch": np.full_like(x, 2)}.get(
                    kind, np.minimum((x - y) % count, (y - x) % count)
                )
                here = ~done & (x != y)
                time = (hops * latency + size / (bandwidth * (1 << 30) / 1e9)).astype(np.int64)
                out = np.where(here, time, out)
                done |= here
            return out

        return took


def finish_ns(plan: Plan, network: Network) -> I64:
    """int64[N]: when each rank ends the operation, all arriving at 0; queues as the plan's text says."""
    n = plan.num_ranks
    left = [[0] * n for _ in plan.chunks]
    waiting: list[list[list[int]]] = [[[] for _ in range(plan.num_queues)] for _ in range(n)]
    running = np.zeros((n, plan.num_queues), np.int64)
    group_of = [
        [{int(rank): g for g, line in enumerate(phase.groups) for rank in line} for phase in chunk]
        for chunk in plan.chunks
    ]
    arrived: dict[tuple[int, int, int], dict[int, int]] = {}
    finish = np.zeros(n, np.int64)
    events: list[tuple[int, int, int, int]] = []
    serial = 0

    def start_what_can(time: int, rank: int, queue: int) -> None:
        nonlocal serial
        while waiting[rank][queue] and running[rank, queue] < plan.active:
            chunk = waiting[rank][queue].pop(0)
            running[rank, queue] += 1
            number = left[chunk][rank]
            phase = plan.chunks[chunk][number]
            group = group_of[chunk][number][rank]
            here = arrived.setdefault((chunk, number, group), {})
            here[rank] = time
            line = phase.groups[group].astype(np.int64)
            if len(here) == len(line):
                ends = exits_ns(
                    phase.template, np.array([here[int(r)] for r in line], np.int64), network.duration(line)
                )
                for member, end in zip(line, ends, strict=True):
                    serial += 1
                    heapq.heappush(events, (int(end), serial, int(member), chunk))

    for rank in range(n):
        for chunk in range(len(plan.chunks)):
            waiting[rank][plan.chunks[chunk][0].queue].append(chunk)
    for rank in range(n):
        for queue in range(plan.num_queues):
            start_what_can(0, rank, queue)
    while events:
        time, _, rank, chunk = heapq.heappop(events)
        queue = plan.chunks[chunk][left[chunk][rank]].queue
        left[chunk][rank] += 1
        running[rank, queue] -= 1
        if left[chunk][rank] < len(plan.chunks[chunk]):
            following = plan.chunks[chunk][left[chunk][rank]].queue
            waiting[rank][following].append(chunk)
            start_what_can(time, rank, following)
        else:
            finish[rank] = max(finish[rank], time)
        start_what_can(time, rank, queue)
    assert not any(any(queue) for each in waiting for queue in each)
    return finish
