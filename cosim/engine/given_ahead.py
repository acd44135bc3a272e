"""A run of nothing but flows that start at given times: the network is given all of them at once.

Nothing waits for what arrives, so there is no loop over instants here, nor are there columns of operations:
what was done when follows from when each flow arrived. Records are those of
:class:`~cosim.engine.replay.Replay`, bit by bit, but for how often the network was asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from cosim.engine.collective_records import CollectiveRecords
from cosim.engine.counters import (
    DIGEST_A,
    DIGEST_B,
    FCT_BINS,
    GOLDEN,
    MESSAGES,
    SIZE_BITS,
    add_operation,
    count_time,
    fct_bin,
    hash_completion,
    mix,
)
from cosim.engine.flow_log import histogram, no_counts
from cosim.engine.messages import MESSAGE_PART
from cosim.engine.operation_log import OperationLog, evenly
from cosim.engine.programs import check_job
from cosim.engine.progress import ProgressInfo
from cosim.engine.records import JobInfo, Records, TrafficRecord
from cosim.engine.rows import unique_rows
from cosim.engine.state import ARRIVAL, LOG, U64
from cosim.engine.timed_flows import TimedFlows, TimedPrograms
from cosim.engine.traffic import PairTraffic
from cosim.errors import SimulationError
from cosim.network.calendar import Records as Rows
from cosim.network.compiled import CompiledNetwork
from cosim.network.flows import I32, I64, FlowBatch, FlowGroup, flat_table, pack_key
from cosim.network.held_signals import held_signals
from cosim.network.jit import compiled, inlined
from cosim.network.simulator import NetworkSimulator
from cosim.network.tiers import expect
from cosim.topology.graph import Topology
from cosim.units import NEVER, TOO_LATE, format_time

_NOT_YET = -1
_LARGE = 1 << 16  # operations
_KEY, _NO_FLOWS = pack_key(0, 0, 0, 0), FlowBatch()


def can_be_given_ahead(topology: Topology, network: NetworkSimulator, jobs: Sequence[JobInfo]) -> bool:
    """Whether jobs are one of such flows, which the network may be given all at once."""
    if len(jobs) != 1 or topology.changes is not None:
        return False
    if not isinstance(network, CompiledNetwork) or network.by_cause:
        return False
    (info,) = jobs
    workload, programs = info.workload, info.workload.programs
    if not isinstance(programs, TimedPrograms) or workload.program_of is not programs.program_of:
        return False
    if workload.rendezvous or info.iterations != 1 or info.start_ps != 0:
        return False
    if info.pace is not None or info.folding is not None:
        return False
    check_job(0, info, topology)
    if programs.most_bytes >> SIZE_BITS != 0 or programs.last_start_ps >= NEVER:
        return False
    return int(np.bincount(info.endpoints).max()) == 1  # of two on one endpoint a message takes no time


def run_given_ahead(
    topology: Topology,
    network: CompiledNetwork,
    info: JobInfo,
    seed: int,
    record_operations: int | None,
    spill: Path | None,
    progress: Callable[[ProgressInfo], None] | None,
) -> Records:
    """Run it, and close the network; the parameters are those of :func:`~cosim.engine.replay.replay`."""
    wall, cpu = time.perf_counter(), time.process_time()
    programs = info.workload.programs
    assert isinstance(programs, TimedPrograms)
    flows, world = programs.flows, info.workload.world_size
    total = 2 * len(flows) + programs.num_waits + programs.num_idle
    expect(total)
    kept = evenly(world, record_operations)
    log = OperationLog([world], [kept], total, spill)
    end = np.full(len(flows), _NOT_YET, np.int64)
    interrupted, until, asked = "", 0, 0
    try:
        network.open(topology, seed)
        columns = flows.src, flows.dst, flows.size_bytes
        table = flat_table(*columns, num_participants=world, reaction_ps=NEVER)
        own = {"weight": info.weight, "priority": info.priority}
        group = FlowGroup(0, table, info.endpoints, _KEY, **own)  # type: ignore[arg-type]
        handles, index = np.zeros(len(flows), np.int32), np.arange(len(flows))
        batch = FlowBatch([group], handles, index, flows.start_ps, flows.start_ps)
        left = len(flows)
        while left:
            # Who is interrupted keeps all that arrived; a small run is over before.
            with held_signals() if total > _LARGE else nullcontext():
                granted, done = network.advance(batch, NEVER)
                end[done.index] = done.time_ps
                left -= len(done)
                until, asked, batch = granted, asked + 1, _NO_FLOWS
            if left and until >= NEVER:
                raise SimulationError(TOO_LATE)
            if progress is not None:
                progress(ProgressInfo(until, total - 2 * left, total, len(flows) - left))
    except KeyboardInterrupt:
        interrupted = f"interrupted at {format_time(until)} of simulated time"
    except BaseException:
        log.close()
        network.close()
        raise
    network.close()
    found = _Written(info, flows, end, until, total)
    records = Records(
        topology=topology,
        network=network.name,
        release="network",
        seed=seed,
        jobs=(info,),
        ops=log.records(found.log),
        collectives=CollectiveRecords.none(),
        finish_ps=(found.finish_ps,),
        iteration_end_ps=(found.finish_ps[None, :][: len(found.log) == total].copy(),),
        fct=histogram(found.counts, found.fct),
        traffic=found.traffic,
        links=network.statistics(),
        num_messages=int(found.counts[MESSAGES]),
        end_ps=log.end_ps,
        digest="".join(f"{one:016x}" for one in found.digest.tolist()),
        wall_s=time.perf_counter() - wall,
        cpu_s=time.process_time() - cpu,
        interrupted=interrupted,
        recorded=None if len(kept) == world else (kept,),
        info={"advances": asked},
    )
    log.close()
    return records


class _Written:
    """What is written down of flows that have come by their ``end`` (:data:`_NOT_YET`: they have not), and of
    waits up to ``until``, of so many operations in ``total``.
    """

    def __init__(self, info: JobInfo, flows: TimedFlows, end: I64, until: int, total: int) -> None:
        world = info.workload.world_size
        ends = np.asarray(info.endpoints, np.int32)
        src, dst = ends[flows.src], ends[flows.dst]
        one, pair = unique_rows(src, dst)
        by_end = np.argsort(end, kind="stable")
        arrivals = np.empty(len(flows), ARRIVAL)
        rows = np.empty(total, LOG)
        self.finish_ps = np.full(world, _NOT_YET, np.int64)
        self.counts, self.fct = no_counts(), np.zeros(FCT_BINS, np.int64)
        self.digest = np.zeros(2, np.uint64)
        count, arrived = _write_down(
            flows.src,
            flows.dst,
            flows.size_bytes,
            flows.start_ps,
            end,
            pair,
            np.argsort(flows.start_ps, kind="stable"),
            by_end,
            until,
            np.empty(len(flows), np.int32),
            np.empty(len(flows), np.int32),
            rows,
            arrivals,
            self.finish_ps,
            self.counts,
            self.fct,
            self.digest,
        )
        self.log = rows[:count]
        traffic = PairTraffic()
        traffic.expect_pairs(len(one))
        traffic.put(arrivals[:arrived])
        bin_ps, size_bytes = traffic.bins(len(one))
        self.traffic = TrafficRecord(bin_ps, src[one], dst[one], size_bytes)


@inlined
def _log_one(log: Rows, count: int, rank: int, op: int, start: int, end: int, digest: U64) -> int:
    """Log an operation behind so many others; how many there are then."""
    record = log[count]
    record.rank = rank
    record.op = op
    record.iteration = 0
    record.start = start
    record.end = end
    add_operation(digest, 0, rank, record)
    return count + 1


@compiled
def _write_down(
    src: I64,
    dst: I64,
    size_bytes: I64,
    start: I64,
    end: I64,
    pair: I64,
    by_start: I64,
    by_end: I64,
    until: int,
    send: I32,
    receive: I32,
    log: Rows,
    arrivals: Rows,
    finish: I64,
    counts: I64,
    fct: I64,
    digest: U64,
) -> tuple[int, int]:
    """Log operations as they end, and count arrivals; (how many operations, how many arrivals)."""
    for flow in range(len(src)):
        if start[flow] > 0:
            finish[src[flow]] += 1
        finish[src[flow]] += 1
        send[flow] = finish[src[flow]]
        finish[dst[flow]] += 1
        receive[flow] = finish[dst[flow]]
    logged = 0
    for rank in range(len(finish)):
        if finish[rank] >= 0:
            finish[rank] = _NOT_YET
            continue
        finish[rank] = 0  # it does nothing, at once
        logged = _log_one(log, logged, rank, 0, 0, 0, digest)
    wait = 0
    arrived = 0
    come = 0
    while come < len(src) and end[by_end[come]] < 0:
        come += 1
    while wait < len(src) and start[by_start[wait]] == 0:
        wait += 1
    while True:
        next_wait = NEVER
        if wait < len(src) and start[by_start[wait]] <= until:
            next_wait = start[by_start[wait]]
        next_end = NEVER
        if come < len(src):
            next_end = end[by_end[come]]
        if next_wait == NEVER and next_end == NEVER:
            return logged, arrived
        if next_wait <= next_end:
            flow = by_start[wait]
            wait += 1
            finish[src[flow]] = next_wait
            logged = _log_one(log, logged, src[flow], send[flow] - 1, 0, next_wait, digest)
            continue
        flow = by_end[come]
        come += 1
        one = src[flow]
        other = dst[flow]
        hashed = hash_completion(send[flow], (one << 44) | (MESSAGE_PART << 32), next_end)
        digest[DIGEST_A] += hashed
        digest[DIGEST_B] += mix(hashed ^ GOLDEN)
        fct[fct_bin(next_end - start[flow])] += 1
        count_time(counts, next_end - start[flow])
        arrivals[arrived].time = next_end
        arrivals[arrived].row = (pair[flow] << SIZE_BITS) | size_bytes[flow]
        arrived += 1
        finish[one] = next_end
        finish[other] = next_end
        # By ranks, as operations of one instant are to be.
        if one < other:
            logged = _log_one(log, logged, one, send[flow], start[flow], next_end, digest)
        logged = _log_one(log, logged, other, receive[flow], 0, next_end, digest)
        if one > other:
            logged = _log_one(log, logged, one, send[flow], start[flow], next_end, digest)
