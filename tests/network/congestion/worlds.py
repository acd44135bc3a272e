"""A few flows on small graphs, and a look at queues while they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.network.congestion.contract import Control
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.network.flows import FlowBatch, FlowGroup, flat_table
from cosim.network.simulator import NetworkStatistics
from cosim.topology.graph import Paths, Topology
from cosim.topology.routing import ShortestPaths
from cosim.units import NEVER

Link = tuple[int, int, float, int]


def graph(endpoints: int, nodes: int, links: Sequence[Link]) -> Topology:
    """Links of (source, destination, bits/s, latency ps), each also in the other direction."""
    both = [one for a, b, rate, latency in links for one in ((a, b, rate, latency), (b, a, rate, latency))]
    src, dst, rate, latency = zip(*both, strict=True)
    return Topology(
        "test",
        endpoints,
        tuple(f"n{k}" for k in range(nodes)),
        np.array(src, np.int32),
        np.array(dst, np.int32),
        np.array(rate, np.float64),
        np.array(latency, np.int64),
        ShortestPaths(),
    )


def dumbbell(pairs: int, rate: float, latency_ps: int, edge: float | None = None) -> Topology:
    """Sources 0..pairs-1, sinks after them, two switches; link 0 is the one in the middle."""
    left, right = 2 * pairs, 2 * pairs + 1
    middle = [(left, right, rate, latency_ps)]
    edges = [(k, left, edge or rate, latency_ps) for k in range(pairs)]
    edges += [(right, pairs + k, edge or rate, latency_ps) for k in range(pairs)]
    return graph(2 * pairs, 2 * pairs + 2, middle + edges)


def star(sources: int, rate: float, latency_ps: int) -> Topology:
    """Sources 0..sources-1 and sink ``sources`` around a switch; the link to the sink is link 0."""
    hub = sources + 1
    links = [(hub, sources, rate, latency_ps)] + [(k, hub, rate, latency_ps) for k in range(sources)]
    return graph(sources + 1, sources + 2, links)


def locked_ring() -> tuple[Topology, list[tuple[int, int, int]]]:
    """Four switches in a ring, each flow two links of it: the textbook deadlock."""
    ring = [(4 + k, 4 + (k + 1) % 4, 1e9, 1_000) for k in range(4)]
    hosts = [(k, 4 + k, 100e9, 1_000) for k in range(4)]
    topology = replace(graph(4, 8, ring + hosts), routing=Clockwise())
    return topology, [(k, (k + 2) % 4, 10_000_000) for k in range(4)]


class Clockwise(Paths):
    """Of :func:`locked_ring`."""

    name = "clockwise"

    def paths(self, topology: Any, src: Any, dst: Any, channel: Any) -> Any:  # noqa: ARG002
        links = []
        for one, other in zip(src.tolist(), dst.tolist(), strict=True):
            hop = [(4 + (one + j) % 4, 4 + (one + j + 1) % 4) for j in range((other - one) % 4)]
            ends = list(zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True))
            links.append([ends.index(e) for e in [(one, 4 + one), *hop, (4 + other, other)]])
        ptr = np.cumsum([0, *map(len, links)]).astype(np.int64)
        return ptr, np.array([one for path in links for one in path], np.int32)


def on_wire(control: Control, size: int, mtu: int) -> int:
    """Bytes of a message: headers are within each packet's MTU, telemetry and a frame of 18 beyond it."""
    header = control.header_bytes
    packets = -(-size // (mtu - header))
    return size + packets * (header + control.telemetry_bytes + 18)


@dataclass(frozen=True)
class Seen:
    """Completions (ps, by flow) and what was sampled: times, queues [samples, links], rates [samples,
    conns]."""

    done_ps: dict[int, int]
    queue: NDArray[np.float64]
    rate: NDArray[np.float64]
    statistics: NetworkStatistics
    updates: int


def watch(
    topology: Topology,
    control: Control,
    flows: Sequence[tuple[int, int, int]],
    ports: PortSettings | None = None,
    *,
    until_ps: int = NEVER,
    step_ps: int = 0,
    starts_ps: Sequence[int] = (),
    priorities: Sequence[int] = (),
    weights: Sequence[float] = (),
    seed: int = 0,
    network: CongestionNetwork | None = None,
) -> Seen:
    """Run flows (source, destination, bytes), each a group and a job of its own; sample where step_ps says
    so."""
    network = network or CongestionNetwork(control, ports)
    network.open(topology, seed)
    groups = [
        FlowGroup(
            k,
            flat_table([0], [1], [size], reaction_ps=NEVER),
            np.array([src, dst], np.int32),
            (k, 0),
            job=k,
            coflow=k,
            coflow_bytes=size,
            priority=priorities[k] if priorities else 0,
            weight=weights[k] if weights else 1.0,
        )
        for k, (src, dst, size) in enumerate(flows)
    ]
    count = len(flows)
    start = np.array(starts_ps or [0] * count, np.int64)
    batch = FlowBatch(groups, np.arange(count, dtype=np.int32), np.zeros(count, np.int64), start, start)
    done: dict[int, int] = {}
    queues, rates, now = [], [], 0
    while now < until_ps and (len(done) < count or not step_ps):
        step = network.advance(batch, min(now + step_ps, until_ps) if step_ps else until_ps)
        batch, now = FlowBatch(), step.granted_ps
        found = step.completions
        done |= dict(zip(found.handle.tolist(), found.time_ps.tolist(), strict=True))
        if step_ps:
            fluid = network._fluid
            queues.append(_queues(network, now))
            rates.append(fluid.conns["rate"][:count].astype(np.float64))
    statistics = network.statistics()
    return Seen(done, np.array(queues), np.array(rates), statistics, network.control_updates)


def _queues(network: CongestionNetwork, now: int) -> NDArray[np.float64]:
    """Bytes queued at each link at ``now``: the last known, and what came and went since."""
    ports, links = network._fluid.ports, network._fluid.links
    first = ports[: len(links)]
    net = (first["load"] - links["capacity"]) * 1.25e-13 * (now - links["touched"])
    return np.asarray(np.maximum(first["queue"] + net, 0.0))
