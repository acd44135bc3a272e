"""A run written by hand, so that every answer can be worked out on paper.

Four endpoints on one switch, links of 80 Gbit/s (10 bytes a nanosecond). Job ``gpt`` has four ranks and
two iterations of: a computation, an all-reduce that overlaps with a second computation, a host operation.
Rank 3 computes for longer, so the others wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cosim.engine.records import (
    I32,
    I64,
    CollectiveRecord,
    FctHistogram,
    JobInfo,
    MessageRecords,
    OpRecords,
    Records,
    TrafficRecord,
)
from cosim.files.import_report import ImportReport
from cosim.network.simulator import NetworkStatistics
from cosim.topology.graph import Paths, Topology
from cosim.workload.program import (
    COMM_STREAM,
    CPU_STREAM,
    NO_STREAM,
    DeviceMesh,
    Operation,
    OpKind,
    Peer,
    Program,
    Workload,
)

MB = 10**6
US = 10**6
NS = 10**3

OPERATIONS = (
    Operation("forward", OpKind.COMPUTE, flops=1e9, phase="forward"),
    Operation("gradients", OpKind.COLLECTIVE, COMM_STREAM, (0,), collective="all_reduce", size_bytes=8 * MB),
    Operation("backward", OpKind.COMPUTE, deps=(0,)),
    Operation("log", OpKind.COMPUTE, CPU_STREAM, (2,)),
    Operation("get", OpKind.RECV, NO_STREAM, size_bytes=100, peer=Peer(rank=0)),
)


class NoPaths(Paths):
    """A routing that nobody asks."""

    name = "none"

    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        raise AssertionError(f"results ask {topology.name} for no path ({src}, {dst}, {channel})")


def star(endpoints: int) -> Topology:
    """Endpoints on one switch; link 2 i goes up from endpoint i, link 2 i + 1 down to it."""
    ids = np.arange(endpoints, dtype=np.int32)
    up = np.column_stack([ids, np.full(endpoints, endpoints, np.int32)])
    pairs = np.stack([up, up[:, ::-1]], axis=1).reshape(-1, 2)
    return Topology(
        name=f"Switch({endpoints})",
        num_endpoints=endpoints,
        node_names=(*(f"gpu{i}" for i in range(endpoints)), "switch"),
        link_src=pairs[:, 0].copy(),
        link_dst=pairs[:, 1].copy(),
        link_rate_bps=np.full(2 * endpoints, 80e9),
        link_latency_ps=np.full(2 * endpoints, 500 * NS, np.int64),
        routing=NoPaths(),
        dims=(endpoints,),
    )


def histogram(times: I64) -> FctHistogram:
    """As ``FctHistogram`` says: bins 1/64 wide, relative to their lower edge."""
    edges = [1]
    while edges[-1] <= int(times.max(initial=1)):
        edges.append(edges[-1] + max(1, edges[-1] // 64))
    counts, _ = np.histogram(times, np.array(edges, np.float64))
    return FctHistogram(
        np.array(edges, np.int64),
        counts.astype(np.int64),
        int(times.min()),
        int(times.max()),
        int(times.sum()),
    )


@dataclass
class Builder:
    """Collects operations; ``records()`` sorts them as the engine does."""

    operations: tuple[Operation, ...] = OPERATIONS
    ranks: int = 4
    iterations: int = 2
    start_ps: int = 0
    name: str = "gpt"
    rows: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    collectives: list[CollectiveRecord] = field(default_factory=list)

    def op(self, iteration: int, rank: int, op: int, start_ps: int, end_ps: int) -> None:
        self.rows.append((iteration, rank, op, start_ps, end_ps))

    def collective(self, iteration: int, op: int, arrivals: dict[int, int], end_ps: int) -> None:
        """All ranks done at once; each arrived at its own time."""
        for rank, at in arrivals.items():
            self.op(iteration, rank, op, at, end_ps)
        like = self.operations[op]
        n = len(arrivals)
        self.collectives.append(
            CollectiveRecord(
                job=0,
                iteration=iteration,
                op=op,
                name=like.name,
                collective=like.collective,
                algorithm="ring",
                ranks=tuple(arrivals),
                size_bytes=like.size_bytes,
                messages=2 * n * (n - 1),
                start_ps=min(arrivals.values()),
                ready_ps=max(arrivals.values()),
                end_ps=end_ps,
            )
        )

    def job(self) -> JobInfo:
        program = Program("all", self.operations)
        mesh = DeviceMesh({"dp": self.ranks})
        report = ImportReport(assumed=("peak FLOP/s",))
        workload = Workload("toy", mesh, (program,), np.zeros(self.ranks, np.int32), report)
        # Rank r sits on endpoint ranks - 1 - r, so that mixing the two up shows.
        endpoints = np.arange(self.ranks, dtype=np.int32)[::-1].copy()
        return JobInfo(self.name, workload, endpoints, self.iterations, self.start_ps)

    def records(self, *, messages: bool = False, interrupted: str = "", digest: str = "c0ffee") -> Records:
        rows = np.array(sorted(self.rows, key=lambda r: (r[4], r[1], r[2])), np.int64).reshape(-1, 5)
        iteration, rank, op, start, end = rows.T
        i32 = np.int32
        ops = OpRecords(
            np.zeros(len(rows), i32), iteration.astype(i32), rank.astype(i32), op.astype(i32), start, end
        )
        done = np.zeros((self.iterations, self.ranks), np.int64)
        np.maximum.at(done, (iteration, rank), end)
        last = int(end.max(initial=0))
        topology = star(max(self.ranks, 4))
        fct = np.array([2 * US, 3 * US, 4 * US, 100 * US], np.int64)
        return Records(
            topology=topology,
            network="fair_share",
            release="network",
            seed=0,
            jobs=(self.job(),),
            ops=ops,
            collectives=tuple(self.collectives),
            finish_ps=(done.max(axis=0, initial=0),),
            iteration_end_ps=(done,),
            fct=histogram(fct),
            traffic=traffic(self.ranks),
            links=links(topology, last),
            num_messages=len(fct),
            end_ps=last,
            digest=digest,
            wall_s=0.5,
            cpu_s=0.4,
            messages=some_messages() if messages else None,
            interrupted=interrupted,
        )


def traffic(endpoints: int) -> TrafficRecord:
    """Three bins of 10 us; endpoint e sends (e + 1) MB to its neighbour in each, and 1 MB back in bin 1."""
    src = np.arange(endpoints, dtype=np.int32)
    there = np.tile((src + 1).astype(np.int64) * MB, (3, 1))
    back = np.array([[0], [MB], [0]], np.int64)
    return TrafficRecord(
        10 * US,
        np.concatenate([src, [1]]).astype(np.int32),
        np.concatenate([(src + 1) % endpoints, [0]]).astype(np.int32),
        np.concatenate([there, back], axis=1),
    )


def links(topology: Topology, end_ps: int) -> NetworkStatistics:
    """Bins of 10 us, doubled while there are many; link 0 always busy, link 1 half of the time, link 2 in
    the first 10 us only.
    """
    bin_ps = 10 * US
    while end_ps > 64 * bin_ps:
        bin_ps *= 2
    edges = np.minimum(np.arange(-(-end_ps // bin_ps) + 1, dtype=np.int64) * bin_ps, end_ps)
    busy = np.zeros((len(edges) - 1 + 2, topology.num_links), np.int64)
    busy[:-2, 0] = np.diff(edges)
    busy[:-2, 1] = np.diff(edges) // 2
    busy[:1, 2] = 10 * US
    size = busy.sum(axis=0) // 100
    return NetworkStatistics(size, bin_ps, busy, 4, 4, 8)


def some_messages() -> MessageRecords:
    small = np.array([[0, 0], [0, 1], [1, 1], [0, 1], [1, 2]], np.int32)
    large = np.array([[100, 200], [0, 5], [10, 20]], np.int64)
    return MessageRecords(*small, *large)


def example() -> Builder:
    """Two iterations of 100 us.

    Per iteration, from its start t: forward [t, t + 20) (rank 3 until t + 30); the all-reduce from then
    until t + 80, which takes 50 us from the last arrival; backward [t + 40, t + 60); the host's log
    [t + 70, t + 90); a receive that ends with the iteration, [t + 85, t + 100), and another,
    [t + 86, t + 95).
    Per rank: compute 40 (50), communication 60 (50) + 15, of which 20 under backward: exposed 55 (45);
    host-bound [80, 85): 5; idle 0.
    """
    build = Builder()
    for i in range(2):
        t = i * 100 * US
        for rank in range(4):
            forward = 30 if rank == 3 else 20
            build.op(i, rank, 0, t, t + forward * US)
            build.op(i, rank, 2, t + 40 * US, t + 60 * US)
            build.op(i, rank, 3, t + 70 * US, t + 90 * US)
            build.op(i, rank, 4, t + 85 * US, t + 100 * US)
            build.op(i, rank, 4, t + 86 * US, t + 95 * US)
        arrivals = {rank: t + (30 if rank == 3 else 20) * US for rank in range(4)}
        build.collective(i, 1, arrivals, t + 80 * US)
    return build
