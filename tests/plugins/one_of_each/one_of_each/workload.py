"""A message that goes from rank to rank."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from cosim.plugins import (
    Context,
    Count,
    DeviceMesh,
    Operation,
    OpKind,
    Peer,
    Program,
    SizeBytes,
    TimePs,
    Workload,
    WorkloadSpec,
)


class Relay(WorkloadSpec):
    """A message handed from rank to rank, each of which works on it for a while"""

    ranks: Count = Field(description="how many")
    size: SizeBytes = Field(gt=0, description="of the message")
    work: TimePs = Field(0, ge=0, description="of each rank")

    def build(self, context: Context) -> Workload:
        programs = []
        for rank in range(self.ranks):
            operations = []
            if rank > 0:
                peer = Peer(rank=rank - 1)
                operations.append(Operation("take", OpKind.RECV, "", size_bytes=self.size, peer=peer))
            waits = tuple(range(len(operations)))
            operations.append(Operation("work", OpKind.COMPUTE, deps=waits, duration_ps=self.work))
            if rank < self.ranks - 1:
                peer, waits = Peer(rank=rank + 1), (len(operations) - 1,)
                operations.append(Operation("hand", OpKind.SEND, "", waits, size_bytes=self.size, peer=peer))
            programs.append(Program(f"rank {rank}", tuple(operations)))
        mesh = DeviceMesh({"rank": self.ranks})
        return Workload("relay", mesh, tuple(programs), np.arange(self.ranks, dtype=np.int32))
