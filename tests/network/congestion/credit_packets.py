"""Credits of links packet by packet: what the fluid network is held against.

Room for each class at the far end of each link; a sender takes some when a packet begins to leave, and has it
back a latency after the packet begins to leave the far end, or is at its host. A port serves a class in the
order in which its packets came, and packets of all classes that have room in turn; a host's flows take turns.
Nothing here is shared with the model. Times in ps, rates in bits/s.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cosim.topology.graph import Topology


@dataclass(eq=False)
class Packet:
    flow: int
    size: int
    hop: int = 0


@dataclass(eq=False)
class Port:
    rate: float
    latency: int
    room: int
    waiting: deque[Packet] = field(default_factory=deque)
    flows: deque[int] = field(default_factory=deque)
    busy: bool = False


def completions(topology: Topology, flows: Sequence[tuple[int, int, int]], room: int, mtu: int) -> list[int]:
    """When the last byte of each flow (source, destination, bytes) of one class is there, ps."""
    ports = [
        Port(rate, latency, room)
        for rate, latency in zip(
            topology.link_rate_bps.tolist(), topology.link_latency_ps.tolist(), strict=True
        )
    ]
    src, dst = np.array([pair[:2] for pair in flows], np.int32).T
    ptr, links = topology.paths(src, dst, np.zeros_like(src))
    paths = [part.tolist() for part in np.split(links, ptr[1:-1].tolist())]
    left = [size for *_, size in flows]
    due = list(left)
    done = [0] * len(flows)
    events: list[tuple[int, int, Callable[[], None]]] = []
    now = count = 0

    def at(time: float, what: Callable[[], None]) -> None:
        nonlocal count
        count += 1
        heapq.heappush(events, (round(time), count, what))

    def give_back(number: int, size: int) -> None:
        ports[number].room += size
        kick(number)

    def kick(number: int) -> None:
        port = ports[number]
        if port.busy:
            return
        if port.flows:
            flow = port.flows[0]
            packet = Packet(flow, min(mtu, left[flow]))
        elif port.waiting:
            packet = port.waiting[0]
        else:
            return
        if port.room < packet.size:
            return
        if port.flows:
            port.flows.popleft()
            left[packet.flow] -= packet.size
            if left[packet.flow]:
                port.flows.append(packet.flow)
        else:
            port.waiting.popleft()
            before = paths[packet.flow][packet.hop - 1]
            at(now + ports[before].latency, lambda: give_back(before, packet.size))
        port.room -= packet.size
        port.busy = True
        took = packet.size * 8e12 / port.rate
        at(now + took, lambda: free(number))
        at(now + took + port.latency, lambda: arrive(number, packet))

    def free(number: int) -> None:
        ports[number].busy = False
        kick(number)

    def arrive(number: int, packet: Packet) -> None:
        path = paths[packet.flow]
        if packet.hop + 1 == len(path):
            due[packet.flow] -= packet.size
            if due[packet.flow] == 0:
                done[packet.flow] = now
            at(now + ports[number].latency, lambda: give_back(number, packet.size))
            return
        packet.hop += 1
        ports[path[packet.hop]].waiting.append(packet)
        kick(path[packet.hop])

    for flow, path in enumerate(paths):
        ports[path[0]].flows.append(flow)
    for path in paths:
        kick(path[0])
    while events:
        now, _, what = heapq.heappop(events)
        what()
    return done
