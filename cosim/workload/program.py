"""A workload: a mesh of ranks and a few programs, whose size does not grow with the world size.

A program is the operations of one class of ranks. An operation is started when its dependencies have
ended and its stream is free; of several that could start, the lowest-numbered goes first (Chakra's
feeder issues so). One operation runs at a time on a stream of a rank; ``stream=""`` has no limit (RECV).
To have a stream in strict program order, as CUDA has it, chain its operations by dependencies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cosim.errors import WorkloadError
from cosim.files.import_report import ImportReport

COMPUTE_STREAM = "compute"
COMM_STREAM = "comm"
CPU_STREAM = "cpu"
NO_STREAM = ""


class OpKind(Enum):
    """What an operation is. MEMORY is timed like compute, but counted apart.

    Examples
    --------
    >>> import cosim
    >>> [kind.value for kind in cosim.OpKind]
    ['compute', 'memory', 'collective', 'send', 'recv']
    """

    COMPUTE = "compute"
    MEMORY = "memory"
    COLLECTIVE = "collective"
    SEND = "send"
    RECV = "recv"


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a send or receive: a rank, or an offset along a mesh axis (no wrap-around).

    Examples
    --------
    >>> import cosim
    >>> next_stage = cosim.Peer(axis="pp", offset=1)
    >>> cosim.Operation("activations", cosim.OpKind.SEND, size_bytes=1 << 20, peer=next_stage).peer.offset
    1
    """

    rank: int | None = None
    axis: str | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a program; which fields matter follows from ``kind``.

    Attributes
    ----------
    deps
        Numbers of operations of the same program that must have ended.
    duration_ps
        COMPUTE, MEMORY: the time it takes, measured or worked out by a compute model.
    flops, bytes_moved
        COMPUTE: what ``duration_ps`` was worked out from, where it was; shown, never timed again.
    collective
        COLLECTIVE: the name of a ``Collective`` (``all_reduce`` ...).
    axes, ranks
        COLLECTIVE: the group as mesh axes (all ranks that differ in these only), or as explicit
        ranks in group order. Neither: all ranks of the job.
    size_bytes
        COLLECTIVE (as ``Collective`` counts it), SEND, RECV.
    root
        COLLECTIVE broadcast: position in the group.
    peer, tag
        SEND, RECV. The n-th SEND to a rank with a tag meets the n-th RECV from there with it.
    channel
        SEND: messages of one (source, destination, channel) go in order; a routing may choose by it.
    phase
        ``forward``, ``backward``, ``optimizer`` ...: for reports only.

    Examples
    --------
    >>> import cosim
    >>> forward = cosim.Operation("forward", cosim.OpKind.COMPUTE, duration_ps=5 * 10**9)
    >>> reduce = cosim.Operation("gradients", cosim.OpKind.COLLECTIVE, stream="comm", deps=(0,),
    ...                          collective="all_reduce", axes=("dp",), size_bytes=64 << 20)
    >>> reduce.kind.value
    'collective'
    """

    name: str
    kind: OpKind
    stream: str = COMPUTE_STREAM
    deps: tuple[int, ...] = ()
    duration_ps: int = 0
    flops: float = 0.0
    bytes_moved: float = 0.0
    collective: str = ""
    axes: tuple[str, ...] = ()
    ranks: tuple[int, ...] | None = None
    size_bytes: int = 0
    root: int = 0
    peer: Peer | None = None
    tag: int = 0
    channel: int = 0
    phase: str = ""


@dataclass(frozen=True, eq=False)
class Program:
    """The operations of one class of ranks; of those that could start, the first in the tuple does.

    Examples
    --------
    >>> import cosim
    >>> step = cosim.Operation("step", cosim.OpKind.COMPUTE, duration_ps=10**9)
    >>> len(cosim.Program("all ranks", (step,)).operations)
    1
    """

    name: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class DeviceMesh:
    """Named axes, the *last* varying fastest: ``DeviceMesh({"dp": 4, "tp": 8})`` has tp peers adjacent.

    Raises
    ------
    WorkloadError
        An axis without a rank.

    Examples
    --------
    >>> import cosim
    >>> mesh = cosim.DeviceMesh({"dp": 2, "tp": 4})
    >>> mesh.world_size, mesh.coordinates(5)
    (8, {'dp': 1, 'tp': 1})
    >>> mesh.group(5, ("tp",))
    (4, 5, 6, 7)
    """

    axes: Mapping[str, int]

    def __post_init__(self) -> None:
        for name, size in self.axes.items():
            if size < 1:
                raise WorkloadError(f"mesh axis {name!r} has size {size}; it needs at least 1")

    @cached_property
    def world_size(self) -> int:
        """Ranks in all."""
        return math.prod(self.axes.values())

    def coordinates(self, rank: int) -> dict[str, int]:
        """Where a rank sits, one number for each axis."""
        where: dict[str, int] = {}
        for name, size in reversed(list(self.axes.items())):
            rank, where[name] = divmod(rank, size)
        return {name: where[name] for name in self.axes}

    def rank(self, where: Mapping[str, int]) -> int:
        """The rank at coordinates."""
        rank = 0
        for name, size in self.axes.items():
            rank = rank * size + where[name]
        return rank

    def group(self, rank: int, axes: tuple[str, ...]) -> tuple[int, ...]:
        """Ranks that differ from ``rank`` in ``axes`` only, ascending; no axes: every rank.

        Raises
        ------
        WorkloadError
            An axis that the mesh doesn't have.
        """
        if not axes:
            return tuple(range(self.world_size))
        for axis in axes:
            if axis not in self.axes:
                raise WorkloadError(f"the mesh has no axis {axis!r}; it has {', '.join(self.axes)}")
        where = self.coordinates(rank)
        ranks = np.zeros(1, np.int64)
        for name, size in self.axes.items():
            steps = np.arange(size) if name in axes else np.array([where[name]])
            ranks = (ranks[:, None] * size + steps[None, :]).reshape(-1)
        return tuple(ranks.tolist())

    def groups(self, ranks: NDArray[np.int64], axes: tuple[str, ...]) -> NDArray[np.int64]:
        """The groups along ``axes`` that any of ``ranks`` is in, each once, as :meth:`group` has them:
        int64[groups, ranks of one], by their first rank.
        """
        where = np.array(np.unravel_index(ranks, tuple(self.axes.values())))
        where[[not axes or name in axes for name in self.axes]] = 0
        first = np.unique(np.ravel_multi_index(tuple(where), tuple(self.axes.values())))
        return np.asarray(first[:, None] + np.array(self.group(0, axes)), np.int64)


@dataclass(frozen=True, eq=False)
class Workload:
    """One job's work: ``program_of[r]`` is the number of rank r's program. One pass is one iteration.

    Attributes
    ----------
    name
        What kind of job it is.
    mesh
        The ranks.
    programs
        One for each class of ranks.
    program_of
        int32[ranks].
    report
        What was read, ignored and invented to make it.
    error
        Relative error of an iteration time, one sigma, where computation was worked out by a compute model:
        common to jobs of its GPU, and the job's own; None: durations are what they are.
    rendezvous
        A receiver first asks for each message with 8 KiB, as ASTRA-sim's option does.

    Examples
    --------
    >>> import numpy as np
    >>> import cosim
    >>> step = cosim.Operation("step", cosim.OpKind.COMPUTE, duration_ps=10**9)
    >>> sync = cosim.Operation("sync", cosim.OpKind.COLLECTIVE, deps=(0,),
    ...                        collective="all_reduce", size_bytes=4 * 10**6)
    >>> program = cosim.Program("all ranks", (step, sync))
    >>> work = cosim.Workload("mine", cosim.DeviceMesh({"dp": 4}), (program,), np.zeros(4, np.int32))
    >>> ring = {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "0ns"}
    >>> cosim.run({"topology": ring, "network": "fair_share", "jobs": [{"workload": work}]}).records.end_ps
    1600000000
    """

    name: str
    mesh: DeviceMesh
    programs: tuple[Program, ...]
    program_of: NDArray[np.int32]
    report: ImportReport = field(default_factory=ImportReport)
    rendezvous: bool = False
    error: tuple[float, float] | None = None

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return len(self.program_of)

    def program(self, rank: int) -> Program:
        """The program that ``rank`` runs."""
        return self.programs[int(self.program_of[rank])]
