"""A template: the messages of one collective, with dependencies, before ranks are bound.

Flow numbering, blocks, repeats and dependency distances are those of a flow table (see
``cosim.network.flows``); two conventions are added:

- block 0 is the *entries*: P zero-byte rows r -> r without dependencies; rank r's arrival;
- the last block is the *exits*: P zero-byte rows r -> r; rank r is done when its exit completes.

Beside the timing columns stand the *data* columns, which the prover replays on chunk sets: which chunks a
row carries, and whether the receiver reduces or replaces. Chunk ``c`` of a row in repetition k is
``(chunk + k * chunk_step) mod num_places``; a row carries ``chunk_count`` consecutive chunks (mod
num_places), and the receiver has them ``shift`` places further on (mod num_places). Places are the chunks,
then ``num_scratch`` that nothing is promised of: a buffer to receive into, for instance, from which a row of
the rank to itself adds to a chunk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from cosim.errors import AlgorithmError
from cosim.kernel import kernel

I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

NO_DATA = 0
"""Row carries no data that the collective is about (entry, exit, request)."""
COPY = 1
"""The receiver keeps what it gets in place of what it had."""
REDUCE = 2
"""The receiver adds what it gets to what it had."""


class Collective(Enum):
    """What a collective promises, as MPI and NCCL define it; ``size_bytes`` as ASTRA-sim counts it.

    ``size_bytes`` D over N ranks: all-reduce, broadcast: D is each rank's buffer. reduce-scatter: D is each
    rank's input, D/N its output. all-gather: D is each rank's *input*, N D its output. all-to-all: D is
    each rank's buffer, D/N goes to each peer. barrier: no data.
    """

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    BROADCAST = "broadcast"
    BARRIER = "barrier"
    SEND_RECV = "send_recv"


@dataclass(frozen=True, eq=False)
class Template:
    """Messages of ``collective`` over ``num_ranks`` ranks; columns as in the module's text.

    ``owner[c]`` is the rank that chunk position c belongs to, where the collective scatters or
    gathers (chunk positions need not be in rank order), or a broadcast's root. For all-to-all the first
    ``num_chunks / N`` positions are what rank 0 has for others, the next what rank 1 has, and so on;
    ``owner[c]`` is whom position c is for. ``num_chunks`` is 0 where no data is known (barrier, custom).

    ``num_participants`` is above ``num_ranks`` in a folded template: those beyond have no entry and no exit,
    and only receive what stands for messages among ranks that were left out.
    """

    name: str
    collective: Collective
    num_ranks: int
    size_bytes: int
    num_chunks: int
    owner: I32
    src: I32
    dst: I32
    bytes: I64
    channel: I32
    delay_ps: I64
    dep_ptr: I64
    dep_distance: I64
    dep_kind: I8
    block_row: I64
    block_repeat: I64
    chunk: I32
    chunk_step: I32
    chunk_count: I32
    action: I8
    shift: I32
    num_scratch: int = 0
    num_participants: int = 0
    block_base: I64 = field(init=False)

    def __post_init__(self) -> None:
        if not self.num_participants:
            object.__setattr__(self, "num_participants", self.num_ranks)
        base = np.zeros(len(self.block_repeat) + 1, np.int64)
        np.cumsum(np.diff(self.block_row) * self.block_repeat, out=base[1:])
        object.__setattr__(self, "block_base", base)

    @property
    def num_places(self) -> int:
        """Places that each rank has for chunks: those of the collective, then scratch."""
        return self.num_chunks + self.num_scratch

    @property
    def num_flows(self) -> int:
        """Flows, entries and exits included, each repetition counted."""
        return int(self.block_base[-1])

    @cached_property
    def num_messages(self) -> int:
        """Flows between two different ranks."""
        between = (self.src != self.dst).astype(np.int64)
        per_block = np.add.reduceat(between, self.block_row[:-1])
        return int((per_block * self.block_repeat).sum())

    @cached_property
    def total_bytes(self) -> int:
        """Bytes of all messages between two different ranks."""
        between = np.where(self.src != self.dst, self.bytes, 0)
        per_block = np.add.reduceat(between, self.block_row[:-1])
        return int((per_block * self.block_repeat).sum())

    @property
    def exit_base(self) -> int:
        """Flow number of rank 0's exit; rank r's is ``exit_base + r``."""
        return int(self.block_base[-2])


def has_data(template: Template) -> bool:
    """Whether its messages carry chunks, so that a proof covers what ranks end with; a barrier's needn't."""
    return template.num_chunks > 0 or template.collective is Collective.BARRIER


class FlowNames:
    """Names flows by rank, chunk and step; steps count blocks' repetitions, the entries being step 0."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self.name = f"{template.name} {template.collective.value} over {template.num_ranks} ranks"

    def place(self, flow: int) -> tuple[int, int, int]:
        """(block, repetition, row) of a flow."""
        t = self.template
        block = int(np.searchsorted(t.block_base, flow, side="right")) - 1
        count = int(t.block_row[block + 1] - t.block_row[block])
        repetition, offset = divmod(flow - int(t.block_base[block]), count)
        return block, repetition, int(t.block_row[block]) + offset

    def flow(self, flow: int) -> str:
        """``the message 2 -> 3 with chunk 5 in step 4 (block 2, repetition 2)``."""
        t = self.template
        if not 0 <= flow < t.num_flows:
            return f"a flow that doesn't exist (number {flow})"
        block, repetition, row = self.place(flow)
        src, dst = int(t.src[row]), int(t.dst[row])
        if block == 0:
            return f"rank {src}'s arrival"
        if block == len(t.block_repeat) - 1:
            return f"rank {src}'s exit"
        step = int(t.block_repeat[:block].sum()) + repetition
        where = f"in step {step} (block {block}, repetition {repetition})"
        what = f"rank {src}'s mark" if src == dst else f"the message {src} -> {dst}"
        if t.action[row] == NO_DATA or not t.num_chunks:
            return f"{what} {where}"
        first = (int(t.chunk[row]) + repetition * int(t.chunk_step[row])) % t.num_places
        count = int(t.chunk_count[row])
        chunks = self.chunk(first)
        if count > 1:
            chunks = f"chunks {first}..{(first + count - 1) % t.num_places}"
        to = (first + int(t.shift[row])) % t.num_places
        into = f" into {self.chunk(to)}" if to != first else ""
        return f"{what} with {chunks}{into} {where}"

    def chunk(self, place: int) -> str:
        """``chunk 5``, or ``scratch 0`` for the first place after the chunks."""
        first = self.template.num_chunks
        return f"chunk {place}" if place < first else f"scratch {place - first}"

    def refuse_flow(self, code: int, flow: int, before: int) -> NoReturn:
        """Raise for what the replay found at a flow."""
        rank = int(self.template.src[self.place(flow)[2]])
        if code == kernel.NEVER_RELEASED:
            raise AlgorithmError(
                f"{self.name} deadlocks: {self.flow(flow)} waits for nothing, so nothing ever starts it"
            )
        if code == kernel.BEFORE_FIRST:
            raise AlgorithmError(f"{self.name} deadlocks: {self.flow(flow)} waits for {self.flow(before)}")
        raise AlgorithmError(
            f"{self.name}: {self.flow(flow)} waits for {self.flow(before)}, which rank {rank} can't see: "
            "a rank sees what arrives at it, and its own messages"
        )

    def refuse_cycle(self) -> NoReturn:
        """Raise for dependencies that point forward: a deadlock, or rows in an order that can't be used."""
        t = self.template
        if t.num_flows > 1 << 20:
            row = int(np.searchsorted(t.dep_ptr, np.flatnonzero(t.dep_distance < 1)[0], side="right")) - 1
            raise AlgorithmError(f"{self.name}: row {row} waits for itself or a later flow")
        left = []
        followers: dict[int, list[int]] = {}
        for flow in range(t.num_flows):
            row = self.place(flow)[2]
            waits = flow - t.dep_distance[t.dep_ptr[row] : t.dep_ptr[row + 1]]
            left.append(len(waits))
            for wait in waits.tolist():
                followers.setdefault(wait, []).append(flow)
        ready = [flow for flow in range(t.num_flows) if left[flow] == 0]
        for flow in ready:
            for follower in followers.get(flow, ()):
                left[follower] -= 1
                if left[follower] == 0:
                    ready.append(follower)
        stuck = [flow for flow in range(t.num_flows) if left[flow]]
        if not stuck:
            row = int(np.searchsorted(t.dep_ptr, np.flatnonzero(t.dep_distance < 1)[0], side="right")) - 1
            raise AlgorithmError(
                f"{self.name}: row {row} waits for a later flow; rows must come after what they wait for"
            )
        shown = "\n".join(f"  {self.flow(flow)}" for flow in stuck[:4])
        more = f"\n  and {len(stuck) - 4} more" if len(stuck) > 4 else ""
        raise AlgorithmError(f"{self.name} deadlocks: these wait for each other for ever\n{shown}{more}")
