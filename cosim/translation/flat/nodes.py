"""Nodes of one rank in columns: computations, sends and receives, waiting for each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.network.flows import I8, I32, I64

COMPUTE, SEND, RECV = 0, 1, 2

ENTRY = -1
"""In place of a node: the arrival of the rank at the operation."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Columns of equal length, in an order in which each node stands after all that it waits for.

    ``kind`` :data:`COMPUTE`, :data:`SEND` or :data:`RECV`; ``peer`` a rank of the job, -1 for COMPUTE;
    ``size_bytes``; ``duration_ps`` (COMPUTE; 0 is a join); ``tag``; ``channel`` (SEND); ``op`` the number in
    the rank's program of the operation that the node is a part of, -1 for none. ``dep_ptr``, ``dep`` are CSR.

    Any number of nodes of a rank run at once. A SEND starts when it could, and ends when its message has
    arrived; a RECV ends when its message has arrived and all it waits for has ended.
    """

    kind: I8
    peer: I32
    size_bytes: I64
    duration_ps: I64
    tag: I64
    channel: I32
    op: I32
    dep_ptr: I64
    dep: I64

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def num_messages(self) -> int:
        """Messages that this rank sends."""
        return int((self.kind == SEND).sum())


class NodeBuilder:
    """Puts a rank's nodes together: blocks of columns, and single ones."""

    def __init__(self) -> None:
        self.count = 0
        self._blocks: list[Nodes] = []
        self._rows: list[tuple[int, int, int, int, int, int, int]] = []
        self._deps: list[Sequence[int]] = []

    def one(
        self,
        kind: int,
        deps: Sequence[int],
        op: int,
        *,
        peer: int = -1,
        size_bytes: int = 0,
        duration_ps: int = 0,
        tag: int = 0,
        channel: int = 0,
    ) -> int:
        """Add a node; its number."""
        self._rows.append((kind, peer, size_bytes, duration_ps, tag, channel, op))
        self._deps.append(deps)
        self.count += 1
        return self.count - 1

    def join(self, deps: Sequence[int], op: int) -> list[int]:
        """All of ``deps`` as one event: a node that takes no time, or what they are if there is no need."""
        unique = sorted(set(deps))
        return unique if len(unique) < 2 else [self.one(COMPUTE, unique, op)]

    def block(self, nodes: Nodes) -> int:
        """Add nodes whose dependencies are numbered from the start of the rank; the first one's number."""
        self._flush()
        self._blocks.append(nodes)
        self.count += len(nodes)
        return self.count - len(nodes)

    def _flush(self) -> None:
        if not self._rows:
            return
        table = np.array(self._rows, np.int64)
        ptr = np.zeros(len(self._deps) + 1, np.int64)
        np.cumsum([len(deps) for deps in self._deps], out=ptr[1:])
        flat = np.array([dep for deps in self._deps for dep in deps], np.int64)
        kind, peer, size, duration, tag, channel, op = table.T
        small = [column.astype(np.int32) for column in (peer, channel, op)]
        self._blocks.append(
            Nodes(kind.astype(np.int8), small[0], size, duration, tag, small[1], small[2], ptr, flat)
        )
        self._rows, self._deps = [], []

    def nodes(self) -> Nodes:
        """All of them."""
        self._flush()
        return concatenated(self._blocks)


def concatenated(blocks: Sequence[Nodes]) -> Nodes:
    """Blocks one after another; their dependencies are numbered from the first already."""
    if not blocks:
        none = np.empty(0, np.int64)
        few = none.astype(np.int32)
        return Nodes(few.astype(np.int8), few, none, none, none, few, few, np.zeros(1, np.int64), none)
    if len(blocks) == 1:
        return blocks[0]
    shift = np.cumsum([0, *(len(block.dep) for block in blocks)])
    tails = [block.dep_ptr[1:] + at for block, at in zip(blocks, shift.tolist(), strict=False)]
    return Nodes(
        np.concatenate([block.kind for block in blocks]),
        np.concatenate([block.peer for block in blocks]),
        np.concatenate([block.size_bytes for block in blocks]),
        np.concatenate([block.duration_ps for block in blocks]),
        np.concatenate([block.tag for block in blocks]),
        np.concatenate([block.channel for block in blocks]),
        np.concatenate([block.op for block in blocks]),
        np.concatenate([np.zeros(1, np.int64), *tails]),
        np.concatenate([block.dep for block in blocks]),
    )
