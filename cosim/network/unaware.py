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

from typing import Any, ClassVar

import numpy as np

from cosim.network.calendar import HEAP_N, free, take_instant
from cosim.network.compiled import CompiledNetwork
from cosim.network.core import (
    BIN_PS,
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
    complete,
    release,
    widen,
)
from cosim.network.flows import F64, I32, I64
from cosim.network.jit import compiled, inlined
from cosim.network.simulator import NetworkSimulator, NetworkStatistics
from cosim.spec import Spec
from cosim.topology.graph import Topology
from cosim.units import PS_PER_NS


@compiled
def spread(meta: I64, busy: I64, whole: I32) -> None:
    """Add to each bin the messages that fill it; ``whole`` says where they begin to, and where they end."""
    for b in range(len(busy)):
        for link in range(busy.shape[1]):
            busy[b, link] += whole[b, link] * meta[BIN_PS]
            whole[b + 1, link] += whole[b, link]
            whole[b, link] = 0
    whole[len(busy), :] = 0


@inlined
def _add_busy(meta: I64, busy: I64, whole: I32, link: int, start: int, duration: int) -> None:
    """Count a link as busy in [start, start + duration), in a time that does not grow with the duration."""
    end = start + duration
    while end > len(busy) * meta[BIN_PS]:
        spread(meta, busy, whole)
        widen(meta, busy)
    width = meta[BIN_PS]
    first = start // width
    last = end // width
    if first == last:
        busy[first, link] += duration
        return
    busy[first, link] += (first + 1) * width - start
    whole[first + 1, link] += 1
    whole[last, link] -= 1
    if last < len(busy):
        busy[last, link] += end - last * width


@compiled
def run_unaware(core: Core, rate: F64, latency: F64, whole: I32, horizon: int) -> int:
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
                _add_busy(meta, link_busy, whole, link, time, int(size / rate[link]) * PS_PER_NS)
            # Whole picoseconds add up exactly, in any order; the division by 1000 comes last.
            cause = time
            arrival = time + int(wait / PS_PER_NS + size / slowest) * PS_PER_NS
        complete(meta, pending, count, rows, reps, groups, work, handle, rep, row, time, arrival, cause)


class CongestionUnawareNetwork(CompiledNetwork):
    """The model of the module's text."""

    name = "congestion_unaware"
    symmetric = True
    quantum_ps = PS_PER_NS

    def _open_model(self, topology: Topology, seed: int) -> None:
        del seed
        self._rate = topology.link_rate_bps / 8.0 / 1e9
        self._latency = topology.link_latency_ps.astype(np.float64)
        bins, links = self._arrays["link_busy"].shape
        self._whole = np.zeros((bins + 1, links), np.int32)

    def _copy_model(self) -> dict[str, Any]:
        return {"_whole": np.zeros((3, self._topology.num_links), np.int32)}

    def _run(self, core: Core, horizon_ps: int) -> int:
        return int(run_unaware(core, self._rate, self._latency, self._whole, horizon_ps))

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        spread(self._arrays["meta"], self._arrays["link_busy"], self._whole)
        return super().statistics()


class CongestionUnaware(Spec):
    """ASTRA-sim's congestion-unaware analytical model: latency plus size over the slowest link, no queues."""

    shares_by_weight: ClassVar[bool] = False

    def build(self) -> NetworkSimulator:
        """A fresh network."""
        return CongestionUnawareNetwork()
