"""``congestion_unaware``: ASTRA-sim's congestion-unaware analytical model, on any routed topology.

A message of m bytes arrives ``int(latency + m / B)`` ns after its start, whatever else is on its way:
``latency`` is the sum over its path (ns), B the smallest bandwidth on it (bytes per ns); ``int``
truncates a double. So the serialization is paid once (cut-through), and nothing ever waits. A mark
(source = destination) takes no time.

Links are never really occupied. Statistics still count, on each link of the path, the bytes and ``m / B``
of that link's own B as busy time from the message's start on, so that a link may be busy for longer than
time went by: that is how much too much it was given.

Source: ASTRA-sim, ``astra-network-analytical`` (congestion_unaware/basic-topology/BasicTopology.cpp).
Not modelled: queueing, sharing, order of messages between two endpoints.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cosim.network.calendar import HEAP_N, free, take_instant
from cosim.network.compiled import CompiledNetwork
from cosim.network.core import (
    BOUND,
    CURSOR,
    DONE,
    EVENTS_N,
    INSTANT,
    NEED_PENDING,
    PENDING_N,
    REPORT_N,
    STARTED_N,
    Core,
    add_busy,
    complete,
    release,
)
from cosim.network.flows import F64
from cosim.network.jit import compiled
from cosim.network.simulator import NetworkSimulator
from cosim.spec import Spec
from cosim.topology.graph import Topology
from cosim.units import PS_PER_NS


@compiled
def run_unaware(core: Core, rate: F64, latency: F64, horizon: int) -> int:
    """Run every instant before the horizon and before any completion's reaction could matter.

    ``meta[CURSOR]`` is the event that comes next in the instant under way, plus one; 0: none is.
    """
    meta = core.meta
    cal_meta, events, buckets, hashes, heap = core.calendar
    count, rows, successors, reps, groups, pages, cells, unused, work, out = core.store
    pending = core.pending
    path_ptr = core.path_ptr
    path_link = core.path_link
    link_bytes = core.link_bytes
    link_busy = core.link_busy
    while True:
        status = release(
            cal_meta,
            events,
            buckets,
            hashes,
            heap,
            count,
            rows,
            successors,
            reps,
            groups,
            pages,
            cells,
            unused,
            work,
            out,
        )
        if status != DONE:
            return status
        if meta[CURSOR] == 0:
            if cal_meta[HEAP_N] == 0 or heap[0].time >= min(horizon, meta[BOUND]):
                return DONE
            if meta[PENDING_N] >= meta[REPORT_N] and heap[0].time > meta[INSTANT]:
                return DONE
            meta[INSTANT] = heap[0].time
            meta[CURSOR] = take_instant(cal_meta, buckets, hashes, heap) + 1
        if meta[PENDING_N] == len(pending):
            return NEED_PENDING
        at = meta[CURSOR] - 1
        meta[CURSOR] = events[at].next + 1
        meta[EVENTS_N] += 1
        meta[STARTED_N] += 1
        time = meta[INSTANT]
        handle = events[at].handle
        rep = events[at].rep
        row = events[at].row
        cause = events[at].cause
        free(cal_meta, events, at)
        arrival = time
        path = groups[handle].path + row
        if path_ptr[path] != path_ptr[path + 1]:  # neither a mark nor two participants on one endpoint
            size = rows[row].size
            slowest = np.inf
            wait = 0.0
            for k in range(path_ptr[path], path_ptr[path + 1]):
                link = path_link[k]
                slowest = min(slowest, rate[link])
                wait += latency[link]
                link_bytes[link] += size
                add_busy(meta, link_busy, link, time, int(size / rate[link]) * PS_PER_NS)
            # Whole picoseconds add up exactly, in any order; the division by 1000 comes last.
            cause = time
            arrival = time + int(wait / PS_PER_NS + size / slowest) * PS_PER_NS
        complete(meta, pending, count, rows, reps, groups, work, handle, rep, row, time, arrival, cause)


class CongestionUnawareNetwork(CompiledNetwork):
    """The model of the module's text."""

    name = "congestion_unaware"
    quantum_ps = PS_PER_NS

    def _open_model(self, topology: Topology, seed: int) -> None:
        del seed
        self._rate = topology.link_rate_bps / 8.0 / 1e9
        self._latency = topology.link_latency_ps.astype(np.float64)

    def _run(self, core: Core, horizon_ps: int) -> int:
        return int(run_unaware(core, self._rate, self._latency, horizon_ps))


class CongestionUnaware(Spec):
    """ASTRA-sim's congestion-unaware analytical model: latency plus size over the slowest link, no queues."""

    shares_by_weight: ClassVar[bool] = False

    def build(self) -> NetworkSimulator:
        """A fresh network."""
        return CongestionUnawareNetwork()
