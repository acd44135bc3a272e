"""A workload: a mesh of ranks and a few programs, whose size does not grow with the world size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cosim.errors import WorkloadError
from cosim.files.import_report import ImportReport
from cosim.workload.operation import (
    COMM_STREAM,
    COMMUNICATION,
    COMPUTE_STREAM,
    CPU_STREAM,
    MEMORY_STREAM,
    NO_STREAM,
    Operation,
    OpKind,
    Peer,
    Program,
)
from cosim.workload.table import OperationTable, table_of


@dataclass(frozen=True)
class IterationWork:
    """What all ranks do together; memory is the fullest one's.

    Attributes
    ----------
    flops
        Forward and backward; see ``counted``.
    peak_flops
        That all GPUs could do in a second, dense, in the type of weights; None: not known.
    samples, tokens
        That it takes in; no tokens where samples are no sequences, neither where that isn't known.
    memory_bytes, memory_of_bytes
        Of the fullest GPU, and what such a GPU has; None: not said.
    counted
        ``model``: what the model needs, without what is computed again; attention is over the whole
        sequence, as Megatron-LM counts it (Narayanan et al., SC 2021, equation 3, less recomputation).
        ``kernels``: what its operations say that they compute, again or not.
    """

    flops: float
    peak_flops: float | None
    samples: int = 0
    tokens: int = 0
    memory_bytes: int | None = None
    memory_of_bytes: int | None = None
    counted: Literal["model", "kernels"] = "model"


PREFILL = "prefill"
"""Phase of the operations up to a request's first token."""


@dataclass(frozen=True)
class RequestWork:
    """What an iteration answers that doesn't train: ``sequences`` at once, of all ranks, with ``tokens`` in
    all, the longest of ``longest``. What comes before the first token is of phase ``prefill``.
    """

    sequences: int
    tokens: int
    longest: int


__all__ = [
    "COMMUNICATION",
    "COMM_STREAM",
    "COMPUTE_STREAM",
    "CPU_STREAM",
    "MEMORY_STREAM",
    "NO_STREAM",
    "DeviceMesh",
    "OpKind",
    "Operation",
    "Peer",
    "Program",
    "Workload",
]


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
        One for each class of ranks: a tuple, or ``OperationTable.programs()``, which makes them when asked.
    program_of
        int32[ranks].
    report
        What was read, ignored and assumed to make it.
    error
        Relative error of an iteration time, one sigma, where a compute model timed computations:
        common to jobs of its GPU, and the job's own; None: durations are what they are.
    rendezvous
        A receiver first asks for each message with 8 KiB, as ASTRA-sim's option does.
    minibatches
        That an iteration takes in: where several, results say what one of them takes.
    remote_bytes
        That a rank keeps in remote memory.
    work
        What an iteration gets done; None: not known, but for the FLOPs of operations.
    request
        What an iteration answers, where it does.
    peak_flops
        That one of its GPUs could do in a second, dense, in the type that most is computed in; None: not
        known.

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
    programs: Sequence[Program]
    program_of: NDArray[np.int32]
    report: ImportReport = field(default_factory=ImportReport)
    rendezvous: bool = False
    error: tuple[float, float] | None = None
    minibatches: int = 1
    remote_bytes: int = 0
    work: IterationWork | None = None
    peak_flops: float | None = None
    request: RequestWork | None = None

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return len(self.program_of)

    @cached_property
    def table(self) -> OperationTable:
        """The operations of all programs as columns."""
        return table_of(self.programs)

    def on_ranks(self, mesh: DeviceMesh, program_of: NDArray[np.int32]) -> Workload:
        """The same programs on other ranks."""
        made = replace(self, mesh=mesh, program_of=program_of)
        vars(made)["table"] = self.table
        return made

    def program(self, rank: int) -> Program:
        """The program that ``rank`` runs."""
        return self.programs[int(self.program_of[rank])]
