"""Flows: messages as a network sees them, in columns, never one Python object each.

A :class:`FlowTable` says *what* is sent: rows of (source, destination, bytes, ...) with dependencies.
A :class:`FlowGroup` says *who* sends it: one use of a table, bound to endpoints, with a key, a job and a
coflow. A :class:`FlowBatch` is what one ``advance`` brings to a network: groups it should know from now
on, and flows that start. A collective is one table, used again in each iteration by one group each.

Repeats
-------
A step that is repeated k times stays one step: rows come in *blocks*, a block is repeated, and flow
``f`` of a table is (block, repetition, row) with ``f = base[block] + repetition * rows + row``.
A dependency is a *distance* back: flow ``f`` waits for flow ``f - distance``, which is the same number in
every repetition. So a ring all-reduce over 4,096 ranks, 33.5 million messages, is a table of
twenty thousand rows.

Given flows
-----------
A flow without dependencies is *given*: the caller starts it (``FlowBatch.start_*``), at any later time.
An instance can so be opened whole at its first arrival, a rank's arrival being a given, zero-byte flow
to itself. With ``release="caller"`` every flow is given, and dependencies are the caller's own affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cosim.errors import NetworkError
from cosim.units import NEVER

I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

ON_COMPLETION = 0
"""Dependency kind: wait until that flow has completed (its last byte is at the receiver)."""
ON_START = 1
"""Dependency kind: wait until that flow has started (was handed to the network)."""

COMPUTATION = 0x7FFC0000
"""Channel of a mark that is a computation (:class:`~cosim.network.simulator.Capabilities`)."""

_JOB_BITS, _ITERATION_BITS, _OPERATION_BITS = 12, 20, 31
_GROUP_BITS, _PART_BITS, _INDEX_BITS = 19, 12, 32


def pack_key(job: int, iteration: int, operation: int, group: int, part: int = 0) -> tuple[int, int]:
    """The stable key of a group's flow 0, as two ordered int64; flow ``f`` has ``(high, low + f)``.

    Keys order as (job, iteration, operation, group, part, index): ``group`` numbers the process groups
    of one operation, ``part`` its chunks and phases.

    Raises
    ------
    ValueError
        A field is too large for its bits (12, 20, 31; 19, 12, 32).
    """
    for name, value, bits in (
        ("job", job, _JOB_BITS),
        ("iteration", iteration, _ITERATION_BITS),
        ("operation", operation, _OPERATION_BITS),
        ("group", group, _GROUP_BITS),
        ("part", part, _PART_BITS),
    ):
        if not 0 <= value < 1 << bits:
            raise ValueError(f"{name} {value} does not fit the {bits} bits it has in a flow key")
    high = (job << (_ITERATION_BITS + _OPERATION_BITS)) | (iteration << _OPERATION_BITS) | operation
    low = (group << (_PART_BITS + _INDEX_BITS)) | (part << _INDEX_BITS)
    return high, low


@dataclass(frozen=True, eq=False)
class FlowTable:
    """Rows of flows with dependencies, in repeated blocks. Immutable; compared by identity.

    Attributes
    ----------
    num_participants
        P: ``src`` and ``dst`` are participants 0..P-1, bound to endpoints by a group.
    src, dst
        int32[R]. Equal: a local mark that completes when it starts, whatever its size.
    size_bytes
        int64[R].
    channel
        int32[R]. Flows of one (source, destination, channel) keep their order and their path.
    delay_ps
        int64[R]: from the last dependency to the start.
    reaction_ps
        int64[R]: lookahead, a lower bound on when the *caller* starts anything because of this flow's
        completion; :data:`~cosim.units.NEVER` where nothing outside the network waits for it.
    dep_ptr, dep_distance, dep_kind
        CSR over rows: int64[R + 1], int64[E] (> 0), int8[E] (:data:`ON_COMPLETION` or :data:`ON_START`).
    block_row, block_repeat
        int64[B + 1] row offsets and int64[B] repeats.
    num_flows
        Flows, each repetition counted.
    is_flat
        No block repeats, so that row and flow are the same.

    A distance reaches back at most to flow 0.
    """

    num_participants: int
    src: I32
    dst: I32
    size_bytes: I64
    channel: I32
    delay_ps: I64
    reaction_ps: I64
    dep_ptr: I64
    dep_distance: I64
    dep_kind: I8
    block_row: I64
    block_repeat: I64
    block_base: I64 = field(init=False)
    num_flows: int = field(init=False)
    is_flat: bool = field(init=False)

    def __post_init__(self) -> None:
        rows = self.block_row[1:] - self.block_row[:-1]
        base = np.zeros(len(rows) + 1, np.int64)
        (rows * self.block_repeat).cumsum(out=base[1:])
        object.__setattr__(self, "block_base", base)
        object.__setattr__(self, "num_flows", int(base[-1]))
        object.__setattr__(self, "is_flat", not np.count_nonzero(self.block_repeat != 1))
        if len(self.dep_ptr) != self.num_rows + 1 or self.block_row[-1] != self.num_rows:
            raise ValueError("dep_ptr and block_row must span the rows")
        if len(self.dep_distance):
            first = np.repeat(base[:-1] - self.block_row[:-1], rows) + np.arange(self.num_rows)
            reach = self.dep_distance > np.repeat(first, np.diff(self.dep_ptr))
            if self.dep_distance.min() < 1 or reach.any():
                raise ValueError("a dependency distance is at least 1 and reaches back at most to flow 0")

    @property
    def num_rows(self) -> int:
        """R: rows, each counted once."""
        return len(self.src)

    def row_of(self, index: I64) -> I64:
        """The row of each flow."""
        block = np.searchsorted(self.block_base, index, side="right") - 1
        rows = np.diff(self.block_row)
        offset = (index - self.block_base[block]) % rows[block]
        return np.asarray(self.block_row[block] + offset, np.int64)

    def ends(self, endpoints: I32, channel: int) -> tuple[I32, I32, I32]:
        """Source, destination and channel of each row, where participants are these endpoints.

        Raises
        ------
        NetworkError
            The table has another number of participants.
        """
        nodes = np.asarray(endpoints, np.int32)
        if len(nodes) != self.num_participants:
            raise NetworkError(
                f"a table of {self.num_participants} participants was bound to {len(nodes)} endpoints"
            )
        return nodes[self.src], nodes[self.dst], self.channel + np.int32(channel)


@dataclass(eq=False, slots=True)  # not frozen: that takes twice as long to make
class FlowGroup:
    """One use of a table. ``handle`` is the caller's small number, free again when every flow completed.

    ``release`` says who starts flows that have dependencies. ``weight`` and ``priority`` (0 is served
    first) matter to networks that share links by them; ``coflow`` and ``coflow_bytes`` (the
    iteration's share of the job, in bytes) to job-aware congestion control. ``channel`` is added to the
    rows' channels.
    """

    handle: int
    table: FlowTable
    endpoints: I32
    key: tuple[int, int]
    release: Literal["network", "caller"] = "network"
    job: int = 0
    coflow: int = 0
    coflow_bytes: int = 0
    channel: int = 0
    priority: int = 0
    weight: float = 1.0


@dataclass(eq=False, slots=True)
class FlowBatch:
    """What one ``advance`` brings: new groups, and starts as columns of equal length.

    ``start_ps`` is when a flow starts; ``cause_ps`` <= ``start_ps`` is when that became certain (its last
    dependency's time), which orders flows that reach a queue at the same instant as an event list that
    serves events of one time first come, first served would. Where the start follows at once from a
    completion, that is when the completion became certain.
    """

    groups: Sequence[FlowGroup] = ()
    start_handle: I32 = field(default_factory=lambda: np.empty(0, np.int32))
    start_index: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    start_ps: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    cause_ps: I64 = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(eq=False, slots=True)
class Completions:
    """Flows that completed, as columns of equal length, in no particular order.

    ``start_ps`` is when the flow was handed to the network, ``time_ps`` when its last byte arrived:
    their difference is the flow completion time (FCT). ``cause_ps`` <= ``time_ps`` is when that became
    certain, which orders what is started because of it (see :class:`FlowBatch`); None: not known.
    """

    handle: I32
    index: I64
    start_ps: I64
    time_ps: I64
    cause_ps: I64 | None = None

    def __len__(self) -> int:
        return len(self.handle)

    def since(self) -> I64:
        """When each became certain: at the latest when it came."""
        return self.time_ps if self.cause_ps is None else self.cause_ps

    def take(self, chosen: NDArray[Any]) -> Completions:
        """Some of them: a mask, or numbers in the order wanted."""
        columns = self.handle, self.index, self.start_ps, self.time_ps, self.since()
        return Completions(*(column[chosen] for column in columns))

    @staticmethod
    def join(parts: Sequence[Completions]) -> Completions:
        """Several as one, in their order."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(*((p.handle, p.index, p.start_ps, p.time_ps, p.since()) for p in parts), strict=True)
        return Completions(*map(np.concatenate, columns))


def before_in_pair(src: I32 | I64, dst: I32 | I64, count: I64) -> I64:
    """The sum of ``count`` over flows of the same (source, destination) that come before each, int64[n]."""
    order = np.lexsort((dst, src))
    before = np.cumsum(count[order]) - count[order]
    is_first = np.append(True, (np.diff(src[order]) != 0) | (np.diff(dst[order]) != 0))[: len(order)]
    found = np.empty(len(order), np.int64)
    found[order] = before - np.maximum.accumulate(np.where(is_first, before, 0))
    return found


def flat_table(
    src: Sequence[int] | I32 | I64,
    dst: Sequence[int] | I32 | I64,
    size_bytes: Sequence[int] | I64,
    *,
    num_participants: int | None = None,
    channel: Sequence[int] | I32 | None = None,
    reaction_ps: int = 0,
) -> FlowTable:
    """A table of independent flows, each given: for tests, experiments and point-to-point messages."""
    n = len(src)
    return FlowTable(
        num_participants=num_participants or (max([*src, *dst], default=-1) + 1),
        src=np.asarray(src, np.int32),
        dst=np.asarray(dst, np.int32),
        size_bytes=np.asarray(size_bytes, np.int64),
        channel=np.zeros(n, np.int32) if channel is None else np.asarray(channel, np.int32),
        delay_ps=np.zeros(n, np.int64),
        reaction_ps=np.full(n, min(reaction_ps, NEVER), np.int64),
        dep_ptr=np.zeros(n + 1, np.int64),
        dep_distance=np.empty(0, np.int64),
        dep_kind=np.empty(0, np.int8),
        block_row=np.array([0, n], np.int64),
        block_repeat=np.array([1], np.int64),
    )
