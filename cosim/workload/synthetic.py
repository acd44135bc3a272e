"""Small workloads whose answers can be computed by hand: kinds ``periodic`` and ``collective``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from cosim.context import Context
from cosim.spec import SizeBytes, TimePs
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import (
    COMM_STREAM,
    NO_STREAM,
    DeviceMesh,
    Operation,
    OpKind,
    Peer,
    Program,
    Workload,
)

CollectiveName = Literal[
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "barrier", "send_recv"
]


class Periodic(WorkloadSpec):
    """Compute for a while, then communicate; an iteration ends when the communication does.

    With ``send``, ranks 0, 2, ... send to ranks 1, 3, ...: one flow per pair and iteration. The traffic of
    Rajasekaran et al., "Congestion Control in Machine Learning Clusters", HotNets 2022,
    doi:10.1145/3563766.3564115. With ``incast``, all others send to rank 0; with ``permutation``, ranks of
    either half send to those of the other, each to one.
    """

    compute: TimePs = Field(ge=0, description="computation before the communication")
    size: SizeBytes = Field(ge=0, description="bytes of the message or collective")
    communication: Literal["send", "incast", "permutation"] | CollectiveName = Field(
        default="send",
        description="send: rank 2k to rank 2k + 1; incast: all to rank 0; permutation: rank r to rank "
        "r + n/2 modulo n; or a collective over all ranks",
    )
    ranks: PositiveInt = Field(default=2, description="ranks; an even number for send and permutation")
    steps: PositiveInt = Field(default=1, description="compute and communicate so often per iteration")

    def idle_settings(self) -> list[tuple[str, str]]:
        """A size for a barrier."""
        return (
            [("size", "a barrier carries no data")] if self.communication == "barrier" and self.size else []
        )

    @model_validator(mode="after")
    def _pairs(self) -> Periodic:
        if self.communication in ("send", "permutation") and self.ranks % 2:
            raise ValueError(f"{self.communication} pairs ranks, but {self.ranks} is odd")
        if self.communication == "incast" and self.ranks < 2:
            raise ValueError("incast needs a sender and a receiver: at least 2 ranks")
        return self

    def size_about(self) -> int:
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        each = 2 + (self.ranks if self.communication == "incast" else 0)
        return self.ranks + self.steps * each

    def build(self, context: Context) -> Workload:  # noqa: ARG002 - every workload's signature
        """Two programs for ``send`` and ``incast`` (senders, receivers) and ``permutation`` (halves), else
        one.
        """
        ranks, half = self.ranks, self.ranks // 2
        if self.communication == "incast":
            from_all = tuple(Peer(rank=r) for r in range(1, ranks))
            programs = [self._program("receiver", (), from_all), self._program("sender", (Peer(rank=0),), ())]
            program_of = np.minimum(np.arange(ranks), 1, dtype=np.int32)
            return Workload("incast", DeviceMesh({"rank": ranks}), tuple(programs), program_of)
        if self.communication == "permutation":
            halves = {
                "first half": (Peer(axis="half", offset=1),),
                "second half": (Peer(axis="half", offset=-1),),
            }
            programs = [self._program(name, peers, peers) for name, peers in halves.items()]
            program_of = np.repeat(np.arange(2, dtype=np.int32), half)
            return Workload("permutation", DeviceMesh({"half": 2, "rank": half}), tuple(programs), program_of)
        if self.communication == "send":
            programs = [
                Program("sender", self._alternating(self._send)),
                Program("receiver", self._receives()),
            ]
            program_of = np.tile(np.array([0, 1], np.int32), half)
            return Workload("periodic", DeviceMesh({"pair": half, "end": 2}), tuple(programs), program_of)
        kind = self.communication
        operations = self._alternating(
            lambda step, deps: _collective(f"{kind} {step}", kind, self.size, deps)
        )
        program = Program("every rank", operations)
        return Workload("periodic", DeviceMesh({"rank": ranks}), (program,), np.zeros(ranks, np.int32))

    def _alternating(self, communicate: Callable[[int, tuple[int, ...]], Operation]) -> tuple[Operation, ...]:
        """Compute, communicate, compute, ...: ``communicate`` is given the step and what to wait for."""
        operations: list[Operation] = []
        for step in range(self.steps):
            last = (len(operations) - 1,) if operations else ()
            operations.append(
                Operation(f"compute {step}", OpKind.COMPUTE, deps=last, duration_ps=self.compute)
            )
            operations.append(communicate(step, (len(operations) - 1,)))
        return tuple(operations)

    def _send(self, step: int, deps: tuple[int, ...]) -> Operation:
        peer = Peer(axis="end", offset=1)
        return Operation(f"send {step}", OpKind.SEND, COMM_STREAM, deps, size_bytes=self.size, peer=peer)

    def _receives(self) -> tuple[Operation, ...]:
        peer = Peer(axis="end", offset=-1)
        return tuple(
            Operation(
                f"receive {step}", OpKind.RECV, NO_STREAM, (step - 1,) if step else (), size_bytes=self.size,
                peer=peer,
            )
            for step in range(self.steps)
        )  # fmt: skip

    def _program(self, name: str, sends: tuple[Peer, ...], receives: tuple[Peer, ...]) -> Program:
        """Each step: compute, then send to some and receive from some, until all is there."""
        operations: list[Operation] = []
        last: tuple[int, ...] = ()
        for step in range(self.steps):
            operations.append(
                Operation(f"compute {step}", OpKind.COMPUTE, deps=last, duration_ps=self.compute)
            )
            begun = (len(operations) - 1,)
            last = ()
            for kind, peers, deps in ((OpKind.SEND, sends, begun), (OpKind.RECV, receives, ())):
                for peer in peers:
                    said = f"{kind.value} {step} {'' if peer.rank is None else peer.rank}".rstrip()
                    last = (*last, len(operations))
                    operations.append(
                        Operation(said, kind, NO_STREAM, deps, size_bytes=self.size, peer=peer, tag=step)
                    )
        return Program(name, tuple(operations))


class Repeated(WorkloadSpec):
    """One collective over all ranks, one after another ``repeat`` times."""

    collective: CollectiveName = Field(description="what is done")
    size: SizeBytes = Field(
        default=0, ge=0, description="bytes, as nccl-tests' buffer of one rank; all_gather: each rank's input"
    )
    ranks: PositiveInt = Field(description="ranks")
    repeat: PositiveInt = Field(default=1, description="how often")
    root: NonNegativeInt = Field(default=0, description="broadcast: the rank that has the data")

    @model_validator(mode="after")
    def _sensible(self) -> Repeated:
        if self.root >= self.ranks:
            raise ValueError(f"root is {self.root}, but there are {self.ranks} ranks")
        if self.collective != "barrier" and self.size == 0:
            raise ValueError(f"{self.collective} needs a size, as in `size: 64MiB`")
        return self

    def idle_settings(self) -> list[tuple[str, str]]:
        """A size for a barrier, a root for what has none."""
        idle = []
        if self.collective == "barrier" and "size" in self.model_fields_set:
            idle.append(("size", "a barrier carries no data"))
        if self.collective != "broadcast" and "root" in self.model_fields_set:
            idle.append(("root", f"{self.collective} has no root"))
        return idle

    def size_about(self) -> int:
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        return self.ranks + self.repeat

    def build(self, context: Context) -> Workload:  # noqa: ARG002 - nothing is read or drawn
        """One program."""
        size = 0 if self.collective == "barrier" else self.size
        operations = tuple(
            _collective(
                f"{self.collective} {number}",
                self.collective,
                size,
                (number - 1,) if number else (),
                self.root if self.collective == "broadcast" else 0,
            )
            for number in range(self.repeat)
        )
        return Workload(
            self.collective,
            DeviceMesh({"rank": self.ranks}),
            (Program("every rank", operations),),
            np.zeros(self.ranks, np.int32),
        )


def _collective(name: str, collective: str, size: int, deps: tuple[int, ...], root: int = 0) -> Operation:
    return Operation(
        name, OpKind.COLLECTIVE, COMM_STREAM, deps, collective=collective, size_bytes=size, root=root
    )
