"""Kind ``operations``: programs written by hand in the scenario, operation by operation."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from cosim.context import Context
from cosim.errors import WorkloadError
from cosim.spec import SizeBytes, Spec, TimePs
from cosim.workload.check import MOST_LAG, check
from cosim.workload.contract import WorkloadSpec
from cosim.workload.operation import LOAD
from cosim.workload.program import (
    COMM_STREAM,
    COMPUTE_STREAM,
    MEMORY_STREAM,
    NO_STREAM,
    DeviceMesh,
    Operation,
    OpKind,
    Peer,
    Program,
    Workload,
)
from cosim.workload.synthetic import CollectiveName

_STREAMS = {
    OpKind.COMPUTE: COMPUTE_STREAM,
    OpKind.MEMORY: COMM_STREAM,
    OpKind.COLLECTIVE: COMM_STREAM,
    OpKind.SEND: COMM_STREAM,
    OpKind.RECV: NO_STREAM,
}
_FIELDS = {
    OpKind.COMPUTE: ("duration",),
    OpKind.MEMORY: ("duration", "size", "access"),
    OpKind.COLLECTIVE: ("collective", "size", "axes", "ranks", "root"),
    OpKind.SEND: ("peer", "size", "tag", "channel"),
    OpKind.RECV: ("peer", "size", "tag"),
}
_NEEDED = {
    OpKind.COMPUTE: ("duration",),
    OpKind.MEMORY: (),
    OpKind.COLLECTIVE: ("collective",),
    OpKind.SEND: ("peer", "size"),
    OpKind.RECV: ("peer", "size"),
}


class Offset(Spec):
    """A peer by its place: ``{axis: pp, offset: 1}`` is the next rank along pp."""

    axis: str = Field(description="mesh axis")
    offset: int = Field(description="steps along it; no wrap-around")


class WrittenOperation(Spec):
    """One operation; which fields it takes follows from ``kind``."""

    name: str = Field(description="unique in the program; others depend on it by this name")
    kind: OpKind = Field(description="compute, memory, collective, send or recv")
    deps: list[str] = Field(default=[], description="names of operations that must have ended")
    lagged: dict[str, Annotated[int, Field(ge=1, le=MOST_LAG)]] = Field(
        default={},
        description="names of operations of earlier iterations that must have ended, and of how many before: "
        "{update: 1}",
    )
    stream: str | None = Field(
        default=None,
        description="one operation at a time runs on it ('': no limit); default: compute, comm, '' (recv) or "
        "memory (of a size)",
    )
    duration: TimePs | None = Field(default=None, ge=0, description="compute; memory that is timed by it")
    collective: CollectiveName | None = Field(default=None, description="collective: which")
    size: SizeBytes | None = Field(
        default=None, ge=0, description="collective, send, recv; memory that the scenario's memory times"
    )
    access: Literal["load", "store"] | None = Field(
        default=None, description="memory of a size: what it does; default: load"
    )
    axes: list[str] | None = Field(default=None, description="collective: the group, as mesh axes")
    ranks: list[NonNegativeInt] | None = Field(default=None, description="collective: the group, as ranks")
    root: NonNegativeInt | None = Field(default=None, description="broadcast: position in the group")
    peer: NonNegativeInt | Offset | None = Field(default=None, description="send, recv: a rank or an offset")
    tag: NonNegativeInt | None = Field(default=None, description="send, recv: pairs them up")
    channel: NonNegativeInt | None = Field(
        default=None, description="send: messages to a rank keep their order within a channel"
    )
    phase: str = Field(default="", description="forward, backward ...: for reports")

    @model_validator(mode="after")
    def _fits_kind(self) -> WrittenOperation:
        kind = self.kind
        for name in sorted({name for names in _FIELDS.values() for name in names}):
            given = getattr(self, name) is not None
            if given and name not in _FIELDS[kind]:
                raise ValueError(f"{kind.value} {self.name!r} takes no {name!r}")
            if not given and name in _NEEDED[kind]:
                raise ValueError(f"{kind.value} {self.name!r} needs {name!r}")
        if kind is OpKind.MEMORY and (self.duration is None) == (self.size is None):
            raise ValueError(
                f"memory {self.name!r} needs either 'size', for the scenario's `memory:`, or 'duration'"
            )
        if self.access is not None and self.size is None:
            raise ValueError(f"memory {self.name!r} takes no 'access' without 'size'")
        if kind is OpKind.COLLECTIVE:
            barrier = self.collective == "barrier"
            if self.size is None and not barrier:
                raise ValueError(f"{self.collective} {self.name!r} needs 'size'")
            if self.size is not None and barrier:
                raise ValueError(f"barrier {self.name!r} takes no 'size'")
            if self.root is not None and self.collective != "broadcast":
                raise ValueError(f"{self.collective} {self.name!r} takes no 'root'")
        return self

    def operation(self, number_of: dict[str, int]) -> Operation:
        """The operation, dependencies by number."""
        peer: Peer | None = None
        if isinstance(self.peer, Offset):
            peer = Peer(axis=self.peer.axis, offset=self.peer.offset)
        elif self.peer is not None:
            peer = Peer(rank=self.peer)
        accesses = self.kind is OpKind.MEMORY and self.size is not None
        stream = MEMORY_STREAM if accesses else _STREAMS[self.kind]
        return Operation(
            self.name,
            self.kind,
            stream if self.stream is None else self.stream,
            tuple(sorted({number_of[name] for name in self.deps})),
            duration_ps=self.duration or 0,
            collective=self.collective or "",
            axes=tuple(self.axes or ()),
            ranks=None if self.ranks is None else tuple(self.ranks),
            size_bytes=self.size or 0,
            root=self.root or 0,
            peer=peer,
            tag=self.tag or 0,
            channel=self.channel or 0,
            phase=self.phase,
            lagged=tuple(sorted((number_of[name], lag) for name, lag in self.lagged.items())),
            access=(self.access or LOAD) if accesses else "",
        )


class WrittenProgram(Spec):
    """Operations of some ranks; of several that could start on a stream, the first in the list does."""

    name: str | None = Field(default=None, description="for reports")
    ranks: list[NonNegativeInt] | Literal["all"] = Field(default="all", description="who runs it")
    operations: list[WrittenOperation] = Field(min_length=1, description="in order of preference")

    @model_validator(mode="after")
    def _names(self) -> WrittenProgram:
        seen: set[str] = set()
        for operation in self.operations:
            if operation.name in seen:
                raise ValueError(f"two operations are called {operation.name!r}")
            seen.add(operation.name)
        for operation in self.operations:
            for name in (*operation.deps, *operation.lagged):
                if name not in seen:
                    raise ValueError(
                        f"{operation.name!r} depends on {name!r}; there are: {', '.join(sorted(seen))}"
                    )
        return self

    def program(self, number: int) -> Program:
        """The program."""
        number_of = {operation.name: place for place, operation in enumerate(self.operations)}
        operations = tuple(operation.operation(number_of) for operation in self.operations)
        return Program(self.name or f"program {number}", operations)


class Operations(WorkloadSpec):
    """Programs written in the scenario: operations with dependencies, for each class of ranks."""

    mesh: dict[str, PositiveInt] | None = Field(
        default=None, description="axes and sizes, the last varying fastest: {dp: 4, tp: 8}"
    )
    world_size: PositiveInt | None = Field(default=None, description="ranks, where no mesh is needed")
    programs: list[WrittenProgram] = Field(min_length=1, description="together they cover every rank once")
    rendezvous: bool = Field(default=False, description="a receiver asks for each message first, with 8 KiB")

    @model_validator(mode="after")
    def _one_size(self) -> Operations:
        if (self.mesh is None) == (self.world_size is None):
            raise ValueError("give either `world_size: 4` or `mesh: {dp: 2, tp: 2}`")
        return self

    def idle_settings(self) -> list[tuple[str, str]]:
        """A rendezvous of no messages."""
        kinds = {operation.kind for program in self.programs for operation in program.operations}
        if self.rendezvous and OpKind.SEND not in kinds:
            return [("rendezvous", "no operation is a send")]
        return []

    def size_about(self) -> int:
        """See :class:`~cosim.workload.contract.WorkloadSpec`; most of it is ranks, the rest was read."""
        return self.world_size or math.prod((self.mesh or {}).values())

    def build(self, context: Context) -> Workload:  # noqa: ARG002 - nothing is read or drawn
        """Programs as they are written; checked.

        Raises
        ------
        WorkloadError, MismatchError, StallError
            As :func:`cosim.workload.check.check`; also a rank with no program, or with two.
        """
        mesh = DeviceMesh({"rank": self.world_size} if self.world_size else dict(self.mesh or {}))
        program_of = np.full(mesh.world_size, -1, np.int32)
        for number, program in enumerate(self.programs):
            for rank in range(mesh.world_size) if program.ranks == "all" else program.ranks:
                if rank >= mesh.world_size:
                    raise WorkloadError(f"program {number} is for rank {rank} of {mesh.world_size}")
                if program_of[rank] >= 0:
                    raise WorkloadError(f"rank {rank} has two programs: {program_of[rank]} and {number}")
                program_of[rank] = number
        without = np.flatnonzero(program_of < 0)
        if len(without):
            raise WorkloadError(
                f"rank {without[0]} has no program ({len(without)} of {mesh.world_size} ranks have none)",
                hint="a rank that does nothing can run a compute of 0ps",
            )
        programs = tuple(program.program(number) for number, program in enumerate(self.programs))
        workload = Workload("operations", mesh, programs, program_of, rendezvous=self.rendezvous)
        check(workload)
        return workload
