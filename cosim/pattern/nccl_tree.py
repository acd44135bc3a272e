"""NCCL's double binary tree: two trees over hosts, a chain inside each, half the data on each tree.

Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
Computing 35(12), 2009, doi:10.1016/j.parco.2009.09.001, in NCCL's form (Hu et al., arXiv 2507.04786): the
second tree is the first mirrored (an even number of hosts) or shifted by one (odd), so that no host is inside
both but for one; pieces follow each other up, and down again as soon as the root has them. Any number of
hosts.
"""

from __future__ import annotations

import numpy as np

from cosim.pattern.build import COMPLETION, START, Block, assemble, entries, exits
from cosim.pattern.costs import Costs
from cosim.pattern.template import COPY, I64, REDUCE, Collective, Template


def tree_parent(host: int, hosts: int) -> int:
    """The host above in the first tree; -1 at the root, which is host 0."""
    if host == 0:
        return -1
    low = host & -host
    above = (host ^ low) | (low << 1)
    return above if above < hosts else host ^ low


def rank_parents(hosts: int, local: int, tree: int, leader: int) -> list[int]:
    """Each rank's parent: in a host a chain from the GPU ``leader`` round, leaders as the tree of hosts."""
    parents = [-1] * (hosts * local)
    for host in range(hosts):
        name = host if tree == 0 else (hosts - 1 - host if hosts % 2 == 0 else (host - 1) % hosts)
        above = tree_parent(name, hosts)
        if above >= 0:
            over = above if tree == 0 else (hosts - 1 - above if hosts % 2 == 0 else (above + 1) % hosts)
            parents[host * local + leader] = over * local + leader
        for step in range(1, local):
            mine = host * local + (leader + step) % local
            parents[mine] = host * local + (leader + step - 1) % local
    return parents


def tree_template(
    num_ranks: int, size_bytes: int, hosts: int, rails: int, pieces: int, costs: Costs
) -> Template:
    """An all-reduce over pairs of trees; one block is one piece on its way up and down all of them."""
    local = num_ranks // hosts
    pairs = min(rails, local) if hosts > 1 else 1
    trees = [
        rank_parents(hosts, local, tree, pair * local // pairs) for pair in range(pairs) for tree in (0, 1)
    ]
    message = costs.share(size_bytes, len(trees) * pieces)
    edges: list[tuple[int, int, int, int]] = []
    waits: list[list[int]] = []  # rows of the same piece
    last_down: list[list[int]] = [[] for _ in range(num_ranks)]  # rows by which a rank has all of a tree
    sends: list[list[int]] = [[] for _ in range(num_ranks)]
    for number, parents in enumerate(trees):
        depth = [_depth(parents, rank) for rank in range(num_ranks)]
        up: dict[int, int] = {}
        down: dict[int, int] = {}
        below: list[list[int]] = [[] for _ in range(num_ranks)]
        for rank, parent in enumerate(parents):
            if parent >= 0:
                below[parent].append(rank)
        for rank in sorted(range(num_ranks), key=lambda one: (-depth[one], one)):
            if parents[rank] >= 0:
                up[rank] = len(edges)
                edges.append((rank, parents[rank], number, REDUCE))
                waits.append([up[child] for child in below[rank]])
        for rank in sorted(range(num_ranks), key=lambda one: (depth[one], one)):
            if parents[rank] >= 0:
                parent = parents[rank]
                down[rank] = len(edges)
                edges.append((parent, rank, number, COPY))
                waits.append([down[parent]] if parent in down else [up[child] for child in below[parent]])
        for rank in range(num_ranks):
            last_down[rank] += [down[rank]] if rank in down else [up[child] for child in below[rank]]
            sends[rank] += [down[child] for child in below[rank]]
    rows = len(edges)
    src, dst, channel, action = np.array(edges, np.int32).T
    width = max(len(each) for each in waits)
    inner = np.zeros((rows, width), np.int64)
    for row, each in enumerate(waits):
        inner[row, : len(each)] = [row - other for other in each]

    def piece(repeat: int, own: I64, kind: int) -> Block:
        return Block(
            rows,
            src,
            dst,
            np.concatenate([inner, own[:, None]], axis=1),
            (COMPLETION,) * width + (kind,),
            size_bytes=message,
            delay_ps=costs.receive_ps(message, reduced=True),
            repeat=repeat,
            channel=channel,
            chunk=channel + (0 if repeat == 1 and kind == COMPLETION else len(trees)),
            chunk_step=len(trees),
            chunk_count=1,
            action=action,
        )

    arrival = num_ranks + np.arange(rows) - src
    most = max(len(each) for each in last_down)
    end = num_ranks + pieces * rows
    out = np.zeros((num_ranks, most * pieces), np.int64)
    begun = np.zeros((num_ranks, max(max(len(each) for each in sends), 1)), np.int64)
    for rank in range(num_ranks):
        for index, row in enumerate(last_down[rank]):
            for number in range(pieces):
                out[rank, index * pieces + number] = end + rank - (num_ranks + number * rows + row)
        for index, row in enumerate(sends[rank]):
            begun[rank, index] = end + rank - (end - rows + row)
    blocks = [
        entries(num_ranks),
        piece(1, arrival, COMPLETION),
        piece(pieces - 1, np.full(rows, rows, np.int64), START),
        exits(
            num_ranks,
            np.concatenate([out, begun], axis=1),
            (COMPLETION,) * out.shape[1] + (START,) * begun.shape[1],
        ),
    ]
    chunks = len(trees) * pieces
    return assemble(
        "nccl tree",
        Collective.ALL_REDUCE,
        num_ranks,
        size_bytes,
        blocks,
        num_chunks=chunks,
        owner=np.zeros(chunks, np.int32),
    )


def _depth(parents: list[int], rank: int) -> int:
    steps = 0
    while parents[rank] >= 0:
        rank, steps = parents[rank], steps + 1
    return steps
