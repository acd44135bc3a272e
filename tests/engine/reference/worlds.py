"""Random worlds for both engines: fabrics, jobs and what happens to links and ranks, from a seed.

``python -m tests.engine.reference.worlds 1000`` runs as many on both, and says which of them differ;
``--first 500`` begins there. Sizes, rates and durations come from small sets, so that ties are the rule.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.context import Context
from cosim.engine.directing import Director
from cosim.engine.records import JobInfo, MemoryNodes, Records, Slowdown
from cosim.errors import CosimError
from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.planner import Planner
from cosim.topology.graph import Topology
from cosim.topology.grid import Dimension, grid_topology
from cosim.topology.leaf_spine import LeafSpine
from cosim.units import PS_PER_NS, PS_PER_US
from cosim.workload.program import (
    COMPUTE_STREAM,
    NO_STREAM,
    DeviceMesh,
    Operation,
    OpKind,
    Peer,
    Program,
    Workload,
)

I64 = NDArray[np.int64]

NETWORKS = "congestion_unaware", "congestion_aware", "fair_share", "fair_share"
RATES = 400e9, 400e9, 8e9
LATENCIES = 0, 500 * PS_PER_NS, PS_PER_US, 1_234
DURATIONS = 0, 0, 1, PS_PER_NS, PS_PER_US, PS_PER_US, 3 * PS_PER_US
SIZES = 0, 1, 7, 4096, 65536, 65536, 1 << 20
ALGORITHMS = "ring", "ring", "direct", "halving_doubling"
KINDS = "all_reduce", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "barrier"


@dataclass(frozen=True)
class Varying:
    """A pace by which each rank, iteration and operation takes its own time."""

    seed: int

    def durations_ps(self, rank: int, iteration: int, operation: I64, duration_ps: I64) -> I64:  # noqa: ARG002
        """See :class:`~cosim.engine.records.Pace`."""
        drawn = random.Random(f"{self.seed} {rank} {iteration}")
        return np.array([one + drawn.choice((0, 0, 5, PS_PER_NS)) for one in duration_ps.tolist()], np.int64)


@dataclass(frozen=True)
class World:
    """What a replay needs: ``network`` is a model's name."""

    topology: Topology
    jobs: tuple[JobInfo, ...]
    collectives: CollectiveConfig
    network: str
    release: Any


def world(seed: int) -> World:
    """The world of a seed."""
    draw = random.Random(seed)
    topology = _fabric(draw)
    if draw.random() < 0.4:
        changes = sorted(_changes(draw, topology))
        topology = replace(topology, changes=LinkChanges(changes, draw.choice((0, 1000, PS_PER_US))))
    jobs = tuple(job(draw, topology, number) for number in range(draw.choice((1, 1, 2, 3))))
    release = draw.choice(("network", "network", "engine"))
    return World(topology, jobs, collectives(draw), draw.choice(NETWORKS), release)


def _fabric(draw: random.Random) -> Topology:
    """8 endpoints: a ring, a switch, a grid of 4 x 2, a leaf-spine, two hosts of 4 GPUs behind one."""
    rate, latency = draw.choice(RATES), draw.choice(LATENCIES)
    kind = draw.choice(("Ring", "Switch", "leaf_spine", "leaf_spine", "grid", "hosts"))
    if kind == "hosts":
        nics = draw.choice((1, 4))
        hosts = {"gpus": 4, "nvlink_rate": "1600Gbps", "nvlink_latency": "500ns", "nics": nics}
        tree: dict[str, Any] = {"leaves": 2, "spines": 2, "endpoints_per_leaf": 4, "latency": f"{latency}ps"}
        tree["hosts"] = {**hosts, "nic_rate": f"{rate} bps"}
        return LeafSpine.model_validate(tree).build(Context(seed=draw.randrange(4)))
    if kind == "leaf_spine":
        settings = {
            "leaves": 4, "spines": 2, "endpoints_per_leaf": 2, "rate": f"{rate} bps",
            "latency": f"{latency}ps", "oversubscription": draw.choice((1, 2)),
            "routing": draw.choice(("ecmp", "shortest")),
        }  # fmt: skip
        return LeafSpine.model_validate(settings).build(Context(seed=draw.randrange(4)))
    if kind == "grid":
        return grid_topology([Dimension("Ring", 4, rate, latency), Dimension("Switch", 2, rate / 2, latency)])
    return grid_topology([Dimension(kind, 8, rate, latency)])  # type: ignore[arg-type]


def _changes(draw: random.Random, topology: Topology) -> Iterator[LinkChange]:
    """Links that fail or slow down, all of which come back."""
    for link in draw.sample(range(topology.num_links), min(draw.randint(1, 4), topology.num_links)):
        rate, time = float(topology.link_rate_bps[link]), 0
        for _ in range(draw.randint(1, 2)):
            time += draw.choice((0, 500, PS_PER_US, 7 * PS_PER_US, 123_456_789))
            yield LinkChange(time, link, draw.choice((0.0, rate / 2, rate / 3)))
            time += draw.choice((PS_PER_US, 20 * PS_PER_US, 777_777))
            yield LinkChange(time, link, rate)
            time += 1


def collectives(draw: random.Random) -> CollectiveConfig:
    settings: dict[str, Any] = {
        "all_reduce": draw.choice(ALGORITHMS),
        "all_gather": draw.choice(ALGORITHMS),
        "reduce_scatter": draw.choice(ALGORITHMS),
        "all_to_all": draw.choice(("direct", "ring")),
        "endpoint_delay": draw.choice(("0", "10ns")),
        "splits": draw.randint(1, 4),
        "active_chunks": draw.randint(1, 3),
        "queues": draw.randint(1, 2),
        "sizing": draw.choice(("exact", "floor")),
    }
    return CollectiveConfig.model_validate(settings)


def job(draw: random.Random, topology: Topology, number: int) -> JobInfo:
    size = draw.choice((2, 4, 8))
    steps = Steps(draw, size, overlaps=draw.random() < 0.3)
    for step in range(draw.randint(1, 7)):
        what = draw.choice((steps.compute, steps.collective, steps.collective, steps.message, steps.access))
        what(step, draw.choice(("comm", "comm", "other")))
    programs = tuple(Program(f"program {rank}", tuple(ops)) for rank, ops in enumerate(steps.programs))
    workload = Workload(
        "work", steps.mesh, programs, np.arange(size, dtype=np.int32), rendezvous=draw.random() < 0.3
    )
    endpoints = np.array(draw.sample(range(8), size), np.int32)
    # One at a time: of several at the instant at which a job begins, the replay before this one missed some.
    slowdowns = tuple(
        Slowdown(time, draw.randrange(size), draw.choice((500_000, 1_000_000, 2_500_000)))
        for time in sorted(draw.sample((0, 1, PS_PER_US, 5 * PS_PER_US), draw.randint(0, 3)))
    )
    nodes = MemoryNodes(np.roll(np.arange(8, dtype=np.int32), 1), draw.choice((0, 1_000)), 64)
    over_fabric = draw.random() < 0.5
    return JobInfo(
        name=f"job {number}",
        workload=workload,
        endpoints=endpoints,
        iterations=draw.randint(1, 4),
        start_ps=draw.choice((0, 0, PS_PER_US, 17 * PS_PER_NS)),
        weight=draw.choice((1.0, 1.0, 2.0, 0.3)),
        priority=draw.randint(0, 1),
        pace=Varying(draw.randrange(9)) if slowdowns or draw.random() < 0.3 else None,
        slowdowns=slowdowns,
        devices=None if over_fabric else np.array([-1, 0, 0, 1, 1, -1, 0, 1], np.int32),
        memory_nodes=nodes if over_fabric else None,
    )


class Steps:
    """Programs of ranks, to which steps are added that all of them know: nothing waits in a circle."""

    def __init__(self, draw: random.Random, world_size: int, *, overlaps: bool) -> None:
        tp = draw.choice([n for n in (1, 2, 4) if n <= world_size])
        self.mesh = DeviceMesh({"dp": world_size // tp, "tp": tp})
        self.programs: list[list[Operation]] = [[] for _ in range(world_size)]
        self._draw, self._overlaps = draw, overlaps
        self._last: list[dict[str, int]] = [{} for _ in range(world_size)]

    def _add(self, rank: int, name: str, kind: OpKind, stream: str, chained: bool, **more: Any) -> None:
        """Wait for any that the rank has, and, in a chain, for the last of the stream."""
        program = self.programs[rank]
        deps = {op for op in range(len(program)) if self._draw.random() < 0.25}
        lagged: tuple[tuple[int, int], ...] = ()
        if chained:  # all ranks have its operations in one order
            deps |= {self._last[rank][stream]} if stream in self._last[rank] else set()
            self._last[rank][stream] = len(program)
        elif self._overlaps and kind is OpKind.COMPUTE:
            lagged = ((len(program), 1),)
        program.append(Operation(name, kind, stream, tuple(sorted(deps)), lagged=lagged, **more))

    def compute(self, step: int, _: str) -> None:
        """Every rank computes, some for longer."""
        base, skew = self._draw.choice(DURATIONS), self._draw.choice((0, 0, 1, PS_PER_US))
        for rank in range(len(self.programs)):
            duration = base + skew * (rank % 3)
            self._add(rank, f"compute {step}", OpKind.COMPUTE, COMPUTE_STREAM, False, duration_ps=duration)

    def access(self, step: int, _: str) -> None:
        """Every rank asks its remote memory."""
        access, size = self._draw.choice(("load", "store")), self._draw.choice(SIZES)
        of = {"access": access, "size_bytes": size, "duration_ps": self._draw.choice(DURATIONS)}
        for rank in range(len(self.programs)):
            self._add(rank, f"{access} {step}", OpKind.MEMORY, "memory", False, **of)

    def collective(self, step: int, stream: str) -> None:
        """Every group of some axes has a collective; no axes: all ranks."""
        axes = self._draw.choice(((), ("dp",), ("tp",), ("dp", "tp")))
        kind, size = self._draw.choice(KINDS), self._draw.choice(SIZES)
        size = 0 if kind == "barrier" else max(size, 4) if kind == "all_gather" and size else size
        of = {"collective": kind, "axes": axes, "size_bytes": size}
        for rank in range(len(self.programs)):
            self._add(rank, f"{kind} {step}", OpKind.COLLECTIVE, stream, True, **of)

    def message(self, step: int, stream: str) -> None:
        """Every rank sends to the one so many places on along an axis, where there is one."""
        axis, hop = self._draw.choice(("dp", "tp")), self._draw.choice((1, -1, 2))
        of = {"size_bytes": self._draw.choice(SIZES), "tag": step % 3}
        channel = self._draw.randint(0, 1)
        for rank in range(len(self.programs)):
            there = self.mesh.coordinates(rank)
            there[axis] += hop
            if 0 <= there[axis] < self.mesh.axes[axis]:
                other = self.mesh.rank(there)
                to = Peer(other) if self._draw.random() < 0.5 else Peer(axis=axis, offset=hop)
                self._add(rank, f"send {step}", OpKind.SEND, stream, True, peer=to, channel=channel, **of)
                chained = {"peer": Peer(rank), **of}
                self._add(other, f"recv {step}", OpKind.RECV, NO_STREAM, True, **chained)


def by_kernel(one: World, director: Director | None = None) -> Records:
    """What the kernel says; jobs begin as somebody directs them, if any."""
    from cosim.engine.replay import replay
    from cosim.network.aware import CongestionAwareNetwork
    from cosim.network.fair_share import FairShareNetwork
    from cosim.network.unaware import CongestionUnawareNetwork

    networks = CongestionAwareNetwork, FairShareNetwork, CongestionUnawareNetwork
    network = next(made for made in networks if made.name == one.network)()
    planner = Planner(one.collectives)
    return replay(one.topology, network, one.jobs, planner, release=one.release, director=director)


def by_reference(one: World) -> Records:
    """What the reference says, on its own networks."""
    from cosim.engine.reference.replay import replay_reference
    from cosim.network.reference import plain_network

    network = plain_network(one.network, one.topology)
    assert network is not None
    return replay_reference(one.topology, network, one.jobs, Planner(one.collectives), release=one.release)


def said(records: Any) -> str:
    """What a run is known by; of one that can't go on, what it says."""
    return records.digest if isinstance(records, Records) else f"{type(records).__name__}: {records}"


def tried(how: Any, one: World) -> Records | CosimError:
    """What comes of it: random programs may also be wrong, or stall."""
    try:
        return how(one)  # type: ignore[no-any-return]
    except CosimError as error:
        return error


def main() -> None:
    """Run many, and say which of them differ."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    wrong = []
    for seed in range(given.first, given.first + given.count):
        one = world(seed)
        kernel, reference = said(tried(by_kernel, one)), said(tried(by_reference, one))
        if kernel != reference:
            wrong.append(seed)
            sys.stdout.write(f"{seed}: {one.network}, release {one.release}: {kernel}, not {reference}\n")
    sys.stdout.write(f"{given.count} worlds, {len(wrong)} differ\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
