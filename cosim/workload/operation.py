"""Operations, and programs of them.

A program is the operations of one class of ranks. An operation is started when its dependencies have
ended and its stream is free; of several that could start, the lowest-numbered of the earliest iteration goes
first (Chakra's feeder issues so), unless operations take turns (:attr:`Operation.ahead`). One operation runs
at a time on a stream of a rank; ``stream=""`` has no limit (RECV).
To have a stream in strict program order, as CUDA has it, chain its operations by dependencies.

An operation may also wait for one of an earlier iteration: with lag 1 for that of the iteration before, with
lag 2 for that of the one before that; those before the first iteration have ended. Where the longest lag of a
job is L, a rank begins an iteration as soon as all but the L before it have ended: without lags, when the
last one has.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

COMPUTE_STREAM = "compute"
COMM_STREAM = "comm"
CPU_STREAM = "cpu"
MEMORY_STREAM = "memory"
NO_STREAM = ""
COMMUNICATION = "communication"
"""Phase of a computation that stands for communication of a known time."""

LOAD, STORE = ACCESSES = ("load", "store")
"""What an access to remote memory does."""


class OpKind(Enum):
    """What an operation is. MEMORY is an access to remote memory, which the run's memory times, or one whose
    duration is known: that is timed like compute, but counted apart.

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
    lagged
        (Number of an operation of the same program, lag): that of so many iterations before must have ended.
    duration_ps
        COMPUTE, MEMORY without ``access``: the time it takes, measured or computed by a compute model.
    flops, bytes_moved
        COMPUTE: what ``duration_ps`` was computed from, where it was; shown, never timed again.
    collective
        COLLECTIVE: the name of a ``Collective`` (``all_reduce`` ...).
    axes, ranks
        COLLECTIVE: the group as mesh axes (all ranks that differ in these only), or as explicit
        ranks in group order. Neither: all ranks of the job.
    size_bytes
        COLLECTIVE (as ``Collective`` counts it), SEND, RECV, MEMORY with ``access``.
    root
        COLLECTIVE broadcast: position in the group.
    peer, tag
        SEND, RECV. The n-th SEND to a rank with a tag meets the n-th RECV from there with it.
    channel
        SEND: messages of one (source, destination, channel) go in order; a routing may choose by it.
    phase
        ``forward``, ``backward``, ``optimizer`` ...: for reports only. Of COMPUTE ``communication``: reports
        count it as such, with the time that it was measured to take.
    access
        MEMORY: ``load`` or ``store`` of ``size_bytes`` in the run's remote memory, which times it.
    ahead
        Above 0, it takes turns with operations of its stream that have 0: so many like it go first, over all
        iterations, then one of the others and one like it, whoever waits. When none like it is left, the
        others go one after another.

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
    lagged: tuple[tuple[int, int], ...] = ()
    access: str = ""
    ahead: int = 0


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

    @property
    def busy_ps(self) -> int:
        """How long its computation takes the GPU, one operation after another."""
        return sum(
            one.duration_ps
            for one in self.operations
            if one.kind is OpKind.COMPUTE and one.stream != CPU_STREAM
        )
