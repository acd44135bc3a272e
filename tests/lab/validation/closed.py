"""A workload's iteration by hand: each collective takes its closed form, nothing is contended.

Where a job is alone, its ranks alike and its fabric without oversubscription, that is the full path's answer
(``tests/lab/validation/test_closed.py``), and takes milliseconds where thousands of GPUs take minutes: one
rank of each program is followed. An operation starts once its dependencies have ended and its stream is free;
of several that could, the first in the program goes first. A message between stages takes the link's time and
latency.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cosim.pattern.nccl import Nccl
from cosim.pattern.nccl_fit import host_s
from cosim.pattern.nccl_tuning import network_us, nvlink_us
from cosim.pattern.template import Collective
from cosim.units import PS_PER_S
from cosim.workload.program import Operation, OpKind, Workload


@dataclass(frozen=True)
class Cluster:
    """Hosts of ``gpus``, each GPU with a scale-up link and a NIC of its own; bytes a second, seconds."""

    gpus: int
    link_rate: float
    nic_rate: float
    nccl: Nccl
    latency_s: float = 2e-6
    host_rate: float = 0.0
    """Of a GPU's accesses to its host's memory, each way."""


@dataclass
class _Stage:
    """A program under way: what each operation still waits for, and each stream's ready ones."""

    operations: tuple[Operation, ...]
    waits: list[int]
    followers: list[list[int]]
    ready: dict[str, list[int]]
    free: dict[str, bool]


def iteration_s(work: Workload, cluster: Cluster) -> float:
    """Seconds until the last stage has ended."""
    return max(timeline(work, cluster))


def timeline(work: Workload, cluster: Cluster) -> list[float]:
    """Seconds at which each program ends."""
    stages = [_stage(program.operations) for program in work.programs]
    took = _Durations(work, cluster)
    sent: dict[tuple[int, int, int, int], tuple[float, list[int]]] = {}
    met: dict[tuple[int, int, int, bool], int] = {}
    events: list[tuple[float, int, int, int]] = []  # time, order, stage, operation
    ended = [0.0] * len(stages)
    count = 0

    def start(number: int, op: int, now: float) -> None:
        nonlocal count
        stage, one = stages[number], stages[number].operations[op]
        count += 1
        if one.kind is OpKind.RECV:
            key = _pair(one, number, met)
            if key in sent and sent[key][0] >= 0:
                heapq.heappush(events, (max(now, sent[key][0]), count, number, op))
            else:
                sent[key] = (-1.0, [number, op])
            return
        done = now + took.of(one)
        if one.kind is OpKind.SEND:
            key = _pair(one, number, met)
            waiting = sent.get(key)
            arrival = done + cluster.latency_s
            sent[key] = (arrival, [])
            if waiting is not None:
                heapq.heappush(events, (arrival, count, waiting[1][0], waiting[1][1]))
        stage.free[one.stream] = False
        heapq.heappush(events, (done, count, number, op))

    def serve(number: int, now: float) -> None:
        stage = stages[number]
        for stream, ready in stage.ready.items():
            while ready and (not stream or stage.free.get(stream, True)):
                start(number, heapq.heappop(ready), now)

    for number in range(len(stages)):
        serve(number, 0.0)
    while events:
        now, _, number, op = heapq.heappop(events)
        stage, one = stages[number], stages[number].operations[op]
        if one.kind is not OpKind.RECV:
            stage.free[one.stream] = True
        ended[number] = now
        for other in stage.followers[op]:
            stage.waits[other] -= 1
            if not stage.waits[other]:
                stream = stage.operations[other].stream
                heapq.heappush(stage.ready.setdefault(stream, []), other)
        serve(number, now)
    assert not any(any(waits > 0 for waits in stage.waits) for stage in stages), "a deadlock"
    return ended


def _stage(operations: tuple[Operation, ...]) -> _Stage:
    followers: list[list[int]] = [[] for _ in operations]
    ready: dict[str, list[int]] = {}
    for number, one in enumerate(operations):
        for dep in one.deps:
            followers[dep].append(number)
        if not one.deps:
            heapq.heappush(ready.setdefault(one.stream, []), number)
    return _Stage(operations, [len(one.deps) for one in operations], followers, ready, {})


def _pair(
    one: Operation, stage: int, met: dict[tuple[int, int, int, bool], int]
) -> tuple[int, int, int, int]:
    """Source, destination, tag, and which message of these it is."""
    assert one.peer is not None
    other = stage + one.peer.offset
    sends = one.kind is OpKind.SEND
    source, target = (stage, other) if sends else (other, stage)
    number = met.get((source, target, one.tag, sends), 0)
    met[source, target, one.tag, sends] = number + 1
    return source, target, one.tag, number


class _Durations:
    """Seconds of operations; collectives by their closed forms, each kind once."""

    def __init__(self, work: Workload, cluster: Cluster) -> None:
        self.axes: Mapping[str, int] = work.mesh.axes
        self.cluster = cluster
        self.known: dict[tuple[str, tuple[str, ...], int], float] = {}

    def of(self, one: Operation) -> float:
        """One operation alone."""
        if one.kind is OpKind.COLLECTIVE:
            key = one.collective, one.axes, one.size_bytes
            if key not in self.known:
                ranks, local = self.group(one.axes)
                self.known[key] = collective_s(
                    self.cluster, Collective(one.collective), ranks, local, one.size_bytes
                )
            return self.known[key]
        if one.kind is OpKind.SEND:
            return one.size_bytes / self.boundary_rate()
        if one.kind is OpKind.MEMORY and not one.duration_ps:
            return one.size_bytes / self.cluster.host_rate
        return one.duration_ps / PS_PER_S

    def boundary_rate(self) -> float:
        """Bytes a second from a stage to the next."""
        below = self._below("pp")
        return self.cluster.link_rate * 0.8 if below < self.cluster.gpus else self.cluster.nic_rate * 0.97

    def _below(self, axis: str) -> int:
        names = list(self.axes)
        return int(np.prod([self.axes[name] for name in names[names.index(axis) + 1 :]], dtype=np.int64))

    def group(self, axes: tuple[str, ...]) -> tuple[int, int]:
        """Ranks of a group, and how many of them share a host, packed, the last axis varying fastest."""
        places = np.zeros(1, np.int64)
        for name in axes or tuple(self.axes):
            each = np.arange(self.axes[name]) * self._below(name)
            places = (places[:, None] + each[None, :]).reshape(-1)
        return len(places), int((places < self.cluster.gpus).sum())


def collective_s(cluster: Cluster, collective: Collective, ranks: int, local: int, size_bytes: int) -> float:
    """Seconds of a collective of ``ranks``, ``local`` of them in a host."""
    nccl = cluster.nccl
    if ranks == 1:
        return 0.0
    if local == ranks:
        return host_s(nccl, collective, ranks, size_bytes, cluster.link_rate)
    hosts = -(-ranks // local)
    whole = size_bytes * (ranks if collective is Collective.ALL_GATHER else 1)
    wire = cluster.nic_rate * nccl.network_efficiency
    if collective is Collective.ALL_TO_ALL:
        away = (ranks - local) * whole / ranks
        inside = (local - 1) * whole / ranks
        start = nccl.start_ps("direct", "Simple", ranks, whole) / PS_PER_S
        return (
            start + max(away / wire, inside / (cluster.link_rate * 0.65)) + network_us("ring", "Simple") / 1e6
        )
    both = 2 if collective is Collective.ALL_REDUCE else 1
    algorithm, protocol = nccl.model_copy(update={"hosts": hosts}).choose(collective, ranks, size_bytes)
    share = {"LL": 0.5, "LL128": 0.9375, "Simple": 1.0}[protocol]
    start = nccl.start_ps(algorithm, protocol, ranks, whole) / PS_PER_S
    if algorithm == "tree":
        depth = (hosts - 1).bit_length()
        hops = 2 * (depth * network_us("tree", protocol) + (local - 1) * nvlink_us("tree", protocol)) / 1e6
        return start + hops + 2 * whole / (local * wire * share)
    if algorithm == "nvls_tree":
        assert nccl.law is not None
        hops = 2 * (hosts - 1).bit_length() * network_us(algorithm, protocol) / 1e6
        inside = (1 + 1 / local) / (cluster.link_rate * nccl.law.nvls_efficiency)
        return start + hops + whole * max(inside, (1 if hosts == 2 else 2) / (local * wire))
    if algorithm == "pat":
        sent = (ranks - 1) * whole / ranks / wire
        return start + (ranks.bit_length() - 1) * network_us("pat", protocol) / 1e6 + sent
    steps = both * (ranks - 1)
    across = both * (hosts - 1) if local > 1 else steps
    hops = (across * network_us("ring", protocol) + (steps - across) * nvlink_us("ring", protocol)) / 1e6
    return start + hops + steps * whole / ranks / (local * wire * share)
