"""Parameter servers: workers compute and push; servers wait for all of them and send back."""

import numpy as np
from pydantic import Field

from cosim.plugins import (
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


class ParameterServer(WorkloadSpec):
    """One server and its workers: compute, push, pull"""

    workers: int = Field(gt=0, description="how many")
    compute: TimePs = Field(ge=0, description="of a worker, in an iteration")
    size: SizeBytes = Field(ge=0, description="of gradients, and of parameters")

    def build(self, context):
        def message(name, kind, rank, *deps):
            return Operation(name, kind, deps=deps, size_bytes=self.size, peer=Peer(rank=rank))

        everyone = range(1, self.workers + 1)
        receives = tuple(message(f"gradients {w}", OpKind.RECV, w) for w in everyone)
        answers = tuple(message(f"parameters {w}", OpKind.SEND, w, *range(self.workers)) for w in everyone)
        worker = (
            Operation("step", OpKind.COMPUTE, duration_ps=self.compute),
            message("push", OpKind.SEND, 0, 0),
            message("pull", OpKind.RECV, 0, 1),
        )
        programs = (Program("server", receives + answers), Program("worker", worker))
        program_of = np.array([0] + [1] * self.workers, np.int32)
        return Workload("parameter server", DeviceMesh({"rank": self.workers + 1}), programs, program_of)
