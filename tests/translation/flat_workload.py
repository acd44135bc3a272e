"""The message level as a workload of ours: one program for each rank, of computations, sends and receives.

Replayed, it gives the times of the scenario it was made from, wherever nothing had to be fixed. Messages of a
rank that start at the very same instant on one channel may go in another order than there: the engine orders
them by operation, the flat graph by node.
"""

from __future__ import annotations

import numpy as np

from cosim.translation.flat.nodes import COMPUTE, SEND, Nodes
from cosim.translation.flat.view import FlatView
from cosim.workload.program import NO_STREAM, DeviceMesh, Operation, OpKind, Peer, Program, Workload


def flat_workload(view: FlatView, job: int = 0) -> Workload:
    """All iterations of a job in one, without streams. Memory grows with all messages of the job."""
    info = view.source.jobs[job]
    programs = []
    for rank in range(info.workload.world_size):
        operations: list[Operation] = []
        for part in view.parts(job, rank):
            operations += operations_of(part.nodes, part.first)
        programs.append(Program(f"rank {rank}", tuple(operations)))
    mesh = DeviceMesh({"rank": len(programs)})
    return Workload(info.workload.name, mesh, tuple(programs), np.arange(len(programs), dtype=np.int32))


def operations_of(nodes: Nodes, first: int) -> list[Operation]:
    """Nodes as operations, named by their numbers."""
    made = []
    deps, ptr = nodes.dep.tolist(), nodes.dep_ptr.tolist()
    columns = (nodes.kind, nodes.peer, nodes.size_bytes, nodes.duration_ps, nodes.tag, nodes.channel)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for at, (kind, peer, size, duration, tag, channel) in enumerate(rows):
        waits = tuple(deps[ptr[at] : ptr[at + 1]])
        if kind == COMPUTE:
            made.append(Operation(str(first + at), OpKind.COMPUTE, NO_STREAM, waits, duration_ps=duration))
            continue
        what = OpKind.SEND if kind == SEND else OpKind.RECV
        made.append(
            Operation(
                str(first + at), what, NO_STREAM, waits, size_bytes=size, peer=Peer(rank=peer), tag=tag,
                channel=channel,
            )
        )  # fmt: skip
    return made
