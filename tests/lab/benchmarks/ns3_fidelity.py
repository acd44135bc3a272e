"""Fidelity: what ``fair_share`` says against ns-3 under DCTCP, by pattern, size and oversubscription."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np

from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowBatch, FlowGroup, flat_table
from cosim.network.simulator import NetworkSimulator
from cosim.protocol import adapters
from cosim.protocol.client import launch
from cosim.topology.graph import Topology
from cosim.units import NEVER, format_size

SCENARIO = """
topology:
  kind: leaf_spine
  leaves: 4
  spines: 4
  endpoints_per_leaf: 4
  rate: 100Gbps
  latency: 1us
  oversubscription: OVER
network: fair_share
jobs:
  - workload: {kind: collective, collective: KIND, size: SIZE, ranks: 16}
collectives: {all_reduce: ALGORITHM, all_to_all: direct}
"""
COLLECTIVES = {"ring": "all_reduce", "halving_doubling": "all_reduce", "all_to_all": "all_to_all"}
PATTERNS = ("ring", "halving_doubling", "all_to_all", "incast 8:1", "permutation")
SIZES = (64_000, 256_000, 1_000_000, 4_000_000, 16_000_000, 64_000_000)
_RANKS = 16
_PERMUTATION_SEED = 7

PACKETS, YOUNG, UNKNOWN = "packets", "young connections", "not explained"
WHY = (
    f"{PACKETS}: messages of up to 64 KB. A packet is stored and sent on whole at each hop, 0.72 us for",
    "  9,000 bytes, and the first window is ten packets; a fluid arrives at all links at once.",
    f"{YOUNG}: they are used once or twice in all. They start slowly while their acknowledgements",
    "  wait in queues that the partner's data keeps at the marking threshold; and where hashed paths collide",
    "  they share unequally: DCTCP evens windows out by a packet a round trip, which takes longer than the",
    "  messages do.",
)


@dataclass(frozen=True)
class Point:
    """One pattern at one size: picoseconds by either network."""

    pattern: str
    oversubscription: int
    size_bytes: int
    fair_ps: int
    ns3_ps: int

    @property
    def error(self) -> float:
        """What fair_share says too much, relative to ns-3."""
        return self.fair_ps / self.ns3_ps - 1


def why(point: Point) -> str:
    """Which of :data:`WHY` an error above 10 % is put down to."""
    if point.pattern in ("ring", "halving_doubling") and point.size_bytes <= _RANKS * 64_000:
        return PACKETS
    return YOUNG if point.pattern in ("halving_doubling", "permutation") else UNKNOWN


def traffic_bytes(pattern: str, size: int) -> int:
    """Bytes that all ranks together send."""
    if pattern in ("ring", "halving_doubling"):
        return 2 * (_RANKS - 1) * size
    return {"all_to_all": (_RANKS - 1) * size, "incast 8:1": 8 * size, "permutation": _RANKS * size}[pattern]


def _messages(pattern: str, size: int) -> list[tuple[int, int, int]]:
    if pattern == "incast 8:1":  # from two other leaves to one endpoint
        return [(src, 0, size) for src in range(4, 12)]
    to = np.random.default_rng(_PERMUTATION_SEED).permutation(_RANKS)
    return [(src, int(dst), size) for src, dst in enumerate(to) if src != dst]


def _time_messages(
    network: NetworkSimulator, topology: Topology, messages: list[tuple[int, int, int]]
) -> int:
    src, dst, size = (list(column) for column in zip(*messages, strict=True))
    table = flat_table(src, dst, size, num_participants=_RANKS, reaction_ps=NEVER)
    count = len(messages)
    zero = np.zeros(count, np.int64)
    group = FlowGroup(0, table, np.arange(_RANKS, dtype=np.int32), (0, 0))
    batch = FlowBatch([group], np.zeros(count, np.int32), np.arange(count, dtype=np.int64), zero, zero)
    network.open(topology, 0)
    last, granted = 0, -1
    while granted < NEVER:
        granted, done = network.advance(batch, NEVER)
        batch = FlowBatch()
        last = max([last, *done.time_ps.tolist()])
    network.close()
    return last


def point(pattern: str, oversubscription: int, size: int) -> Point:
    """Both networks' answers."""
    from cosim.engine.replay import replay

    kind = COLLECTIVES.get(pattern, "all_reduce")
    algorithm = pattern if kind == "all_reduce" and pattern in COLLECTIVES else "ring"
    text = SCENARIO.replace("OVER", str(oversubscription)).replace("KIND", kind)
    built = build(loads(text.replace("SIZE", f"{size}B").replace("ALGORITHM", algorithm)))
    times = []
    for network in (FairShareNetwork(), launch(adapters.command("ns3"), transport="dctcp", mtu_bytes=9000)):
        if pattern in COLLECTIVES:
            times.append(replay(built.topology, network, built.jobs, built.planner).end_ps)
        else:
            times.append(_time_messages(network, built.topology, _messages(pattern, size)))
    return Point(pattern, oversubscription, size, *times)


def section(budget_s: float = 240.0) -> str:
    """The table. Sizes whose packets would not fit the time left are left out, and said to be."""
    began = time.perf_counter()
    cost_per_byte = 12e-9  # seconds of wall time; measured on the way
    lines = [
        "error of fair_share against ns-3 (DCTCP, MTU 9000), 16 endpoints, leaf-spine 4x4 at 100 Gb/s",
        "",
        f"{'':<27}" + "".join(f"{format_size(size):>10}" for size in SIZES),
    ]
    points: list[Point] = []
    for oversubscription in (1, 4):
        for pattern in PATTERNS:
            cells = []
            for size in SIZES:
                need = cost_per_byte * traffic_bytes(pattern, size)
                if time.perf_counter() - began + need > budget_s:
                    cells.append("-")
                    continue
                start = time.perf_counter()
                one = point(pattern, oversubscription, size)
                took = time.perf_counter() - start
                if traffic_bytes(pattern, size) > 50_000_000:
                    cost_per_byte = max(cost_per_byte, took / traffic_bytes(pattern, size))
                points.append(one)
                cells.append(f"{one.error:+.1%}")
                print(one, file=sys.stderr, flush=True)
            name = f"{pattern}, {oversubscription}:1"
            lines.append(f"{name:<27}" + "".join(f"{cell:>10}" for cell in cells))
    large = [point for point in points if point.size_bytes >= 1_000_000]
    if large:
        errors = [abs(point.error) for point in large]
        worst = max(large, key=lambda point: abs(point.error))
        lines += [
            "",
            f"1 MB and above: mean {np.mean(errors):.1%} (aim: 5 %), worst {worst.error:+.1%} "
            f"({worst.pattern}, {worst.oversubscription}:1, {format_size(worst.size_bytes)}); "
            f"{len(points)} of {2 * len(PATTERNS) * len(SIZES)} points within {budget_s:g} s",
        ]
    lines += ["", "above 10 % at 1 MB and more:"]
    for one in (point for point in large if abs(point.error) > 0.1):
        what = f"{one.pattern}, {one.oversubscription}:1, {format_size(one.size_bytes)}"
        lines.append(f"  {what}: {one.error:+.1%}, {why(one)}")
    return "\n".join([*lines, "", *WHY])
