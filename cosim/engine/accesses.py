"""What else is flows: accesses to memory nodes (a request and the bytes back, or the bytes and an
acknowledgement), and computations where the network takes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cosim.engine.records import JobInfo, MemoryNodes
from cosim.network.flows import COMPUTATION, I32, ON_COMPLETION, FlowTable, flat_table
from cosim.units import NEVER
from cosim.workload.operation import LOAD


class ReachedMemory(NamedTuple):
    """A run's remote memory: the device of each endpoint (see :class:`~cosim.engine.records.JobInfo`), or
    where each endpoint's memory is, and how many picoseconds an access of so many bytes holds a device.
    """

    devices: I32 | None
    nodes: MemoryNodes | None
    duration_ps: Callable[[int], int]

    def of(self, job: JobInfo) -> JobInfo:
        """A job that may reach it."""
        return replace(job, devices=self.devices, memory_nodes=self.nodes)


def access_table(access: str, size_bytes: int, nodes: MemoryNodes) -> FlowTable:
    """Two flows between a rank, participant 0, and its node, 1: there, and after the node's latency back."""
    there, back = (nodes.request_bytes, size_bytes) if access == LOAD else (size_bytes, nodes.request_bytes)
    return FlowTable(
        num_participants=2,
        src=np.array([0, 1], np.int32),
        dst=np.array([1, 0], np.int32),
        size_bytes=np.array([there, back], np.int64),
        channel=np.zeros(2, np.int32),
        delay_ps=np.array([0, nodes.latency_ps], np.int64),
        reaction_ps=np.array([NEVER, 0], np.int64),
        dep_ptr=np.array([0, 0, 1], np.int64),
        dep_distance=np.ones(1, np.int64),
        dep_kind=np.full(1, ON_COMPLETION, np.int8),
        block_row=np.array([0, 2], np.int64),
        block_repeat=np.ones(1, np.int64),
    )


def computation_table(duration_ps: int) -> FlowTable:
    """A mark that takes so long where nobody else has the GPU."""
    return flat_table([0], [0], [duration_ps], channel=[COMPUTATION])
