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

import numpy as np
from numpy.typing import NDArray

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
