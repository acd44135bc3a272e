"""What the tests of the ns-3 adapter share: where it is, topologies, flows, a session without a server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim.network.flows import FlowBatch, FlowGroup, flat_table
from cosim.protocol import adapters
from cosim.protocol.client import RemoteNetwork, launch
from cosim.protocol.replay_log import LogReader
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.topology.graph import Topology
from cosim.topology.routing import EcmpPaths
from cosim.units import NEVER

US = 10**6
HEADERS = 42
"""IPv4, TCP and PPP, bytes of each packet."""


@cache
def _built() -> str:
    absent = adapters.missing_packages("ns3")
    if absent and os.environ.get("CI") != "true":
        return ""
    return str(adapters.build("ns3", lambda text: print(text, file=sys.stderr)))


def ns3() -> str:
    """The adapter's executable; skips where it can't be built, but never in CI."""
    path = _built()
    if not path:
        absent = ", ".join(adapters.missing_packages("ns3"))
        pytest.skip(f"ns-3 is not here: apt-get install -y {absent}")
    return path


def network(**wanted: Any) -> RemoteNetwork:
    """A session on a server of its own."""
    return launch([ns3()], **wanted)


def graph(
    num_endpoints: int, links: Sequence[tuple[int, int, float, int]], *, num_nodes: int | None = None
) -> Topology:
    """Directed links as (from, to, Gb/s, ps)."""
    src, dst, rate, latency = zip(*links, strict=True)
    nodes = num_nodes or 1 + max(*src, *dst)
    return Topology(
        name="test",
        num_endpoints=num_endpoints,
        node_names=tuple(f"n{k}" for k in range(nodes)),
        link_src=np.array(src, np.int32),
        link_dst=np.array(dst, np.int32),
        link_rate_bps=np.array(rate, np.float64) * 1e9,
        link_latency_ps=np.array(latency, np.int64),
        routing=EcmpPaths(),
    )


def star(num_endpoints: int, gbps: float = 100.0, latency_ps: int = US) -> Topology:
    """Endpoints around one switch: link 2 k goes up from k, link 2 k + 1 down to k."""
    hub = num_endpoints
    links = []
    for k in range(num_endpoints):
        links += [(k, hub, gbps, latency_ps), (hub, k, gbps, latency_ps)]
    return graph(num_endpoints, links)


@dataclass(frozen=True)
class Sent:
    """What came of flows that all started at 0: ends by flow, and the network's statistics."""

    end_ps: list[int]
    statistics: Any


def send(
    topology: Topology,
    flows: Sequence[tuple[int, int, int]],
    *,
    start_ps: Sequence[int] | None = None,
    jobs: Sequence[tuple[int, int]] | None = None,
    **wanted: Any,
) -> Sent:
    """Run (source, destination, bytes) to their ends; ``jobs`` are (job, coflow bytes) of each flow."""
    one = network(**wanted)
    try:
        one.open(topology, seed=1)
        groups = []
        for k, (src, dst, size) in enumerate(flows):
            job, coflow_bytes = jobs[k] if jobs else (0, 0)
            table = flat_table([0], [1], [size], reaction_ps=NEVER)
            pair = np.array([src, dst], np.int32)
            groups.append(FlowGroup(k, table, pair, (job, k), job=job, coflow=1, coflow_bytes=coflow_bytes))
        n = len(flows)
        start = np.array(start_ps if start_ps is not None else [0] * n, np.int64)
        batch = FlowBatch(groups, np.arange(n, dtype=np.int32), np.zeros(n, np.int64), start, start)
        ends = [0] * n
        granted = 0
        while granted < NEVER:
            granted, done = one.advance(batch, NEVER)
            batch = FlowBatch()
            for handle, time in zip(done.handle.tolist(), done.time_ps.tolist(), strict=True):
                ends[handle] = time
        return Sent(ends, one.statistics())
    finally:
        one.close()


def alone_text(log: Path, settings: dict[str, Any]) -> str:
    """The session of an injection log, as ``cosim-ns3-alone`` reads it; everything given at once."""
    found = LogReader(log)
    opened = pb.SessionRequest.FromString(found.opened).open
    lines = [f"set {key} {value}" for key, value in settings.items()]
    lines.append(f"nodes {opened.topology.num_endpoints} {len(opened.topology.node_names)}")
    world = opened.topology
    for src, dst, rate, latency in zip(
        world.link_src, world.link_dst, world.link_rate_bps, world.link_latency_ps, strict=True
    ):
        lines.append(f"link {src} {dst} {round(rate)} {latency}")
    lines.append("open")
    flows: dict[int, list[Any]] = {}
    for exchange in found.exchanges():
        for request in exchange.requests:
            _take(pb.SessionRequest.FromString(request).advance, lines, flows)
    lines.extend("flow " + " ".join(str(part) for part in flow) for flow in flows.values())
    return "\n".join(lines) + "\n"


def _take(advance: pb.Advance, lines: list[str], flows: dict[int, list[Any]]) -> None:
    begin = 0
    for k, end in enumerate(advance.paths.end):
        links = " ".join(str(link) for link in advance.paths.link[begin:end])
        paths = advance.paths
        lines.append(f"path {paths.src[k]} {paths.dst[k]} {paths.channel[k]} {links}")
        begin = end
    given = advance.flows

    def column(name: str, missing: int, k: int) -> int:
        values = getattr(given, name)
        return int(values[k] if len(values) > 1 else values[0]) if len(values) else missing

    begin = 0
    for k in range(given.count):
        names = ("key_high", "key_low", "src", "dst", "size_bytes", "channel")
        row: list[Any] = [column(name, 0, k) for name in names]
        row += [column("start_ps", -1, k), column("delay_ps", 0, k)]
        if given.dependency_end:
            for at in range(begin, given.dependency_end[k]):
                kinds = given.dependency_kind
                start = len(kinds) > 0 and kinds[at] == pb.DEPENDENCY_KIND_START
                row.append(f"{'s' if start else 'c'}{given.dependency_id[at]}")
            begin = given.dependency_end[k]
        flows[given.first_id + k] = row
    for k, number in enumerate(advance.starts.id):
        flows[number][6] = advance.starts.start_ps[k]


def run_alone(text: str) -> dict[str, Any]:
    """What ``cosim-ns3-alone`` says of a session."""
    program = Path(ns3()).with_name("cosim-ns3-alone")
    done = subprocess.run([str(program)], input=text, capture_output=True, text=True, check=True)
    words = done.stdout.split()
    said: dict[str, Any] = dict(zip(words[::2], words[1::2], strict=True))
    return {key: value if key == "digest" else int(value) for key, value in said.items()}
