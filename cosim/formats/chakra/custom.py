"""Custom algorithms: SEND, RECV and COMP nodes of every rank, with dependencies, as a template.

The form is that of ASTRA-sim's ``CustomAlgorithm.cc``, which reads a collective from Chakra files: a SEND
leaves when its dependencies have ended and ends when it has arrived; a RECV ends when its message has
arrived and its own dependencies have ended; a COMP (a reduction) takes its duration, any number of them at
once. There is no endpoint delay. The n-th SEND of a rank to another with a tag meets the n-th RECV there, in
ascending node number.

What data a message carries isn't known, so what the collective promises can't be proved: checked are that
every SEND and RECV is matched with the same size, and that nothing waits for itself. ``size_bytes`` and
splits don't change a custom algorithm; its messages are as its nodes say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.errors import AlgorithmError
from cosim.pattern.assemble import COMPLETION, Block, assemble, entries, exits
from cosim.pattern.template import I8, I32, I64, Collective, Template

SEND, RECV, COMP = 0, 1, 2
_KIND = ("SEND", "RECV", "COMP")


@dataclass(frozen=True, eq=False)
class RankNodes:
    """One rank's nodes, as columns.

    int64 ``node`` (unique numbers), int8 ``kind`` (:data:`SEND`, :data:`RECV`, :data:`COMP`), int32 ``peer``,
    int64 ``tag``, ``size_bytes``, ``duration_ps`` (COMP), and the node numbers ``deps[i]`` that node i
    waits for.
    """

    node: I64
    kind: I8
    peer: I32
    tag: I64
    size_bytes: I64
    duration_ps: I64
    deps: Sequence[Sequence[int]]

    @classmethod
    def from_columns(cls, columns: Mapping[str, Sequence[Any]]) -> RankNodes:
        """From columns ``id, kind, peer, tag, bytes, duration_ps, deps``; kinds "send", "recv", "comp"."""
        return cls(
            node=np.asarray(columns["id"], np.int64),
            kind=np.array([_KIND.index(kind.upper()) for kind in columns["kind"]], np.int8),
            peer=np.asarray(columns["peer"], np.int32),
            tag=np.asarray(columns["tag"], np.int64),
            size_bytes=np.asarray(columns["bytes"], np.int64),
            duration_ps=np.asarray(columns["duration_ps"], np.int64),
            deps=columns["deps"],
        )


@dataclass(frozen=True, slots=True)
class _CollectiveNode:
    rank: int
    number: int
    kind: int
    peer: int
    tag: int
    size_bytes: int
    duration_ps: int

    def __str__(self) -> str:
        what = _KIND[self.kind]
        to = {SEND: f" to rank {self.peer}, tag {self.tag}", RECV: f" from rank {self.peer}, tag {self.tag}"}
        return f"rank {self.rank}, node {self.number} ({what}{to.get(self.kind, '')})"


def custom_template(
    name: str, collective: Collective, size_bytes: int, ranks: Sequence[RankNodes]
) -> Template:
    """A template of the nodes of all ranks, one row for each, in an order in which they can run.

    Raises
    ------
    AlgorithmError
        Unknown dependency or peer, unmatched SEND or RECV, sizes that differ, or nodes that wait for each
        other; names rank and node.
    """
    nodes, waits = _read(name, ranks)
    for receive, send in _matched(name, nodes):
        waits[receive].append(send)
    level = _levels(name, nodes, waits)
    order = sorted(range(len(nodes)), key=lambda i: (level[i], nodes[i].rank, nodes[i].number))
    n = len(ranks)
    row_of = {index: n + row for row, index in enumerate(order)}
    blocks = [entries(n)]
    start = 0
    while start < len(order):
        stop = start
        while stop < len(order) and level[order[stop]] == level[order[start]]:
            stop += 1
        blocks.append(_block(nodes, waits, order[start:stop], row_of, n + start))
        start = stop
    end = n + len(order)
    mine: list[list[int]] = [[rank] for rank in range(n)]
    for index, row in row_of.items():
        mine[nodes[index].rank].append(row)
    distance = np.zeros((n, max(len(rows) for rows in mine)), np.int64)
    for rank, rows in enumerate(mine):
        distance[rank, : len(rows)] = end + rank - np.array(rows)
    blocks.append(exits(n, distance, (COMPLETION,) * distance.shape[1]))
    return assemble(name, collective, n, size_bytes, blocks, num_chunks=0, owner=np.empty(0, np.int32))


def _block(
    nodes: list[_CollectiveNode], waits: list[list[int]], level: list[int], row_of: dict[int, int], base: int
) -> Block:
    """The nodes of one level: nobody in it waits for another."""
    those = [nodes[index] for index in level]
    distance = np.zeros((len(level), max(1, *(len(waits[index]) for index in level))), np.int64)
    for offset, index in enumerate(level):
        before = [row_of[wait] for wait in waits[index]] or [nodes[index].rank]
        distance[offset, : len(before)] = base + offset - np.array(before)
    return Block(
        len(level),
        [node.rank for node in those],
        [node.peer if node.kind == SEND else node.rank for node in those],
        distance,
        (COMPLETION,) * distance.shape[1],
        size_bytes=[node.size_bytes if node.kind == SEND else 0 for node in those],
        delay_ps=[node.duration_ps if node.kind == COMP else 0 for node in those],
    )


def _read(name: str, ranks: Sequence[RankNodes]) -> tuple[list[_CollectiveNode], list[list[int]]]:
    """All nodes by rank and number, and for each the positions that it waits for."""
    nodes: list[_CollectiveNode] = []
    waits: list[list[int]] = []
    for rank, columns in enumerate(ranks):
        base = len(nodes)
        at: dict[int, int] = {}
        order = np.argsort(columns.node, kind="stable")
        for index in order.tolist():
            node = _CollectiveNode(
                rank,
                int(columns.node[index]),
                int(columns.kind[index]),
                int(columns.peer[index]),
                int(columns.tag[index]),
                int(columns.size_bytes[index]),
                int(columns.duration_ps[index]),
            )
            if node.number in at:
                raise AlgorithmError(f"{name}: rank {rank} has two nodes of number {node.number}")
            if node.kind != COMP and (not 0 <= node.peer < len(ranks) or node.peer == rank):
                raise AlgorithmError(f"{name}: {node}: there is no such other rank; there are {len(ranks)}")
            at[node.number] = len(nodes)
            nodes.append(node)
        for offset, index in enumerate(order.tolist()):
            unknown = [dep for dep in columns.deps[index] if dep not in at]
            if unknown:
                raise AlgorithmError(
                    f"{name}: {nodes[base + offset]} waits for node {unknown[0]}, which the rank lacks"
                )
            waits.append([at[dep] for dep in columns.deps[index]])
    return nodes, waits


def _matched(name: str, nodes: list[_CollectiveNode]) -> list[tuple[int, int]]:
    """(RECV, SEND) pairs: the n-th with the n-th of the same source, destination and tag."""
    sends: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    receives: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    for index, node in enumerate(nodes):
        if node.kind == SEND:
            sends[node.rank, node.peer, node.tag].append(index)
        elif node.kind == RECV:
            receives[node.peer, node.rank, node.tag].append(index)
    pairs = []
    for key in sorted({*sends, *receives}):
        out, into = sends[key], receives[key]
        if len(out) != len(into):
            alone = out[len(into)] if len(out) > len(into) else into[len(out)]
            raise AlgorithmError(
                f"{name}: {nodes[alone]} has no {'RECV' if len(out) > len(into) else 'SEND'} to match: "
                f"{len(out)} SEND and {len(into)} RECV from rank {key[0]} to rank {key[1]} with tag {key[2]}"
            )
        for send, receive in zip(out, into, strict=True):
            if nodes[send].size_bytes != nodes[receive].size_bytes:
                raise AlgorithmError(
                    f"{name}: {nodes[send]} sends {nodes[send].size_bytes} bytes, but {nodes[receive]} "
                    f"expects {nodes[receive].size_bytes}"
                )
            pairs.append((receive, send))
    return pairs


def _levels(name: str, nodes: list[_CollectiveNode], waits: list[list[int]]) -> list[int]:
    """How many nodes stand before each, along the longest way."""
    level = [0] * len(nodes)
    left = [len(wait) for wait in waits]
    followers: list[list[int]] = [[] for _ in nodes]
    for index, wait in enumerate(waits):
        for before in wait:
            followers[before].append(index)
    ready = [index for index, count in enumerate(left) if count == 0]
    for index in ready:
        for follower in followers[index]:
            level[follower] = max(level[follower], level[index] + 1)
            left[follower] -= 1
            if left[follower] == 0:
                ready.append(follower)
    if len(ready) < len(nodes):
        stuck = [index for index, count in enumerate(left) if count]
        shown = "".join(
            f"\n  {nodes[index]} waits for "
            + ", ".join(str(nodes[before]) for before in waits[index] if left[before])
            for index in stuck[:4]
        )
        raise AlgorithmError(f"{name} deadlocks: {len(stuck)} nodes wait for each other for ever{shown}")
    return level
