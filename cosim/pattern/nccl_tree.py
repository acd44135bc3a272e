"""NCCL's double binary tree: two trees over hosts, a chain inside each, half the data on each tree.

Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
Computing 35(12), 2009, doi:10.1016/j.parco.2009.09.001, in NCCL's form (Hu et al., arXiv 2507.04786): the
second tree is the first mirrored (an even number of hosts) or shifted by one (odd), so that no host is inside
both but for one; pieces follow each other up, and down again as soon as the root has them. Any number of
hosts.
"""

from __future__ import annotations

import numpy as np

from cosim.pattern.assemble import assemble
from cosim.pattern.costs import Costs
from cosim.pattern.pieces import Pieces
from cosim.pattern.template import COPY, REDUCE, Collective, Template


def tree_parent(host: int, hosts: int) -> int:
    """The host above in the first tree; -1 at the root, which is host 0."""
    if host == 0:
        return -1
    # Without its lowest one bit, and with the next one set: hosts at equal height hang below one above them.
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
    num_ranks: int, size_bytes: int, hosts: int, nics: int, pieces: int, costs: Costs
) -> Template:
    """An all-reduce over pairs of trees; one block is one piece on its way up and down all of them."""
    local = num_ranks // hosts
    pairs = nics if hosts > 1 else 1
    trees = [
        rank_parents(hosts, local, tree, pair * local // pairs) for pair in range(pairs) for tree in (0, 1)
    ]
    chunks = len(trees) * pieces
    message = costs.share(size_bytes, chunks)
    piece = Pieces(num_ranks)
    for number, parents in enumerate(trees):
        _add_tree(piece, number, parents, costs.receive_ps(message, reduced=True))
    return assemble(
        "nccl tree",
        Collective.ALL_REDUCE,
        num_ranks,
        size_bytes,
        piece.blocks(message, len(trees), pieces),
        num_chunks=chunks,
        owner=np.zeros(chunks, np.int32),
    )


def _add_tree(piece: Pieces, number: int, parents: list[int], delay_ps: int) -> None:
    """Up from the deepest, then down from the root."""
    ranks = range(len(parents))
    depth = [_depth(parents, rank) for rank in ranks]
    below: list[list[int]] = [[] for _ in ranks]
    for rank, parent in enumerate(parents):
        if parent >= 0:
            below[parent].append(rank)
    up: dict[int, int] = {}
    down: dict[int, int] = {}
    # Dependencies of a template point back: who is waited for gets the lower row.
    for rank in sorted(ranks, key=lambda one: (-depth[one], one)):
        if parents[rank] >= 0:
            waits = [up[child] for child in below[rank]]
            up[rank] = piece.add(rank, parents[rank], number, REDUCE, waits, delay_ps=delay_ps)
    for rank in sorted(ranks, key=lambda one: (depth[one], one)):
        parent = parents[rank]
        if parent >= 0:
            waits = [down[parent]] if parent in down else [up[child] for child in below[parent]]
            down[rank] = piece.add(parent, rank, number, COPY, waits, delay_ps=delay_ps)
    for rank in ranks:
        piece.had[rank] += [down[rank]] if rank in down else [up[child] for child in below[rank]]
        piece.sends[rank] += [down[child] for child in below[rank]]


def _depth(parents: list[int], rank: int) -> int:
    steps = 0
    while parents[rank] >= 0:
        rank, steps = parents[rank], steps + 1
    return steps
