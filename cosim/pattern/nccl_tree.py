"""NCCL's double binary tree: two trees over hosts, a chain inside each, half the data on each tree.

Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
Computing 35(12), 2009, doi:10.1016/j.parco.2009.09.001, in NCCL's form (Hu et al., arXiv 2507.04786): the
second tree is the first mirrored (an even number of hosts) or shifted by one (odd), so that no host is inside
both but for one; pieces follow each other up, and down again as soon as the root has them. Any number of
hosts.
"""

from __future__ import annotations

import numpy as np

from cosim.pattern.assemble import COMPLETION, START, Block, assemble, entries, exits
from cosim.pattern.costs import Costs
from cosim.pattern.template import COPY, I64, REDUCE, Collective, Template


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
    num_ranks: int, size_bytes: int, hosts: int, rails: int, pieces: int, costs: Costs
) -> Template:
    """An all-reduce over pairs of trees; one block is one piece on its way up and down all of them."""
    local = num_ranks // hosts
    pairs = min(rails, local) if hosts > 1 else 1
    trees = [
        rank_parents(hosts, local, tree, pair * local // pairs) for pair in range(pairs) for tree in (0, 1)
    ]
    piece = _TreeMessages(num_ranks)
    for number, parents in enumerate(trees):
        piece.add_tree(number, parents)
    chunks = len(trees) * pieces
    message = costs.share(size_bytes, chunks)
    delay = costs.receive_ps(message, reduced=True)
    blocks = [
        entries(num_ranks),
        piece.first(message, delay, len(trees)),
        piece.later(message, delay, len(trees), pieces - 1),
        piece.exits(pieces),
    ]
    return assemble(
        "nccl tree",
        Collective.ALL_REDUCE,
        num_ranks,
        size_bytes,
        blocks,
        num_chunks=chunks,
        owner=np.zeros(chunks, np.int32),
    )


class _TreeMessages:
    """The messages of one piece on all trees, each a row; ``waits`` are rows of the same piece."""

    def __init__(self, num_ranks: int) -> None:
        self.num_ranks = num_ranks
        self.rows: list[tuple[int, int, int, int]] = []
        """Source, destination, tree, action."""
        self.waits: list[list[int]] = []
        self.last_down: list[list[int]] = [[] for _ in range(num_ranks)]
        """Rows by which a rank has all of a tree."""
        self.sends: list[list[int]] = [[] for _ in range(num_ranks)]

    def add_tree(self, number: int, parents: list[int]) -> None:
        """Up from the deepest, then down from the root."""
        ranks = range(self.num_ranks)
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
                up[rank] = len(self.rows)
                self.rows.append((rank, parents[rank], number, REDUCE))
                self.waits.append([up[child] for child in below[rank]])
        for rank in sorted(ranks, key=lambda one: (depth[one], one)):
            parent = parents[rank]
            if parent >= 0:
                down[rank] = len(self.rows)
                self.rows.append((parent, rank, number, COPY))
                self.waits.append(
                    [down[parent]] if parent in down else [up[child] for child in below[parent]]
                )
        for rank in ranks:
            self.last_down[rank] += [down[rank]] if rank in down else [up[child] for child in below[rank]]
            self.sends[rank] += [down[child] for child in below[rank]]

    def first(self, message: int, delay: int, trees: int) -> Block:
        """The first piece, after arrivals."""
        src = np.array([row[0] for row in self.rows], np.int64)
        arrival = self.num_ranks + np.arange(len(self.rows)) - src
        return self._block(message, delay, trees, 1, arrival, COMPLETION)

    def later(self, message: int, delay: int, trees: int, repeat: int) -> Block:
        """The others, each row after its own send of the piece before."""
        own = np.full(len(self.rows), len(self.rows), np.int64)
        return self._block(message, delay, trees, repeat, own, START)

    def _block(self, message: int, delay: int, trees: int, repeat: int, own: I64, kind: int) -> Block:
        src, dst, channel, action = np.array(self.rows, np.int32).T
        width = max(len(each) for each in self.waits)
        # A distance of 0 is no dependency: rows that wait for fewer are filled up.
        inner = np.zeros((len(self.rows), width), np.int64)
        for row, each in enumerate(self.waits):
            inner[row, : len(each)] = [row - other for other in each]
        return Block(
            len(self.rows),
            src,
            dst,
            np.concatenate([inner, own[:, None]], axis=1),
            (COMPLETION,) * width + (kind,),
            size_bytes=message,
            delay_ps=delay,
            repeat=repeat,
            channel=channel,
            chunk=channel + (0 if kind == COMPLETION else trees),
            chunk_step=trees,
            chunk_count=1,
            action=action,
        )

    def exits(self, pieces: int) -> Block:
        """A rank ends when it has all pieces of all trees, and has issued its last messages down."""
        n, rows = self.num_ranks, len(self.rows)
        end = n + pieces * rows
        had = np.zeros((n, max(map(len, self.last_down)) * pieces), np.int64)
        begun = np.zeros((n, max(1, *map(len, self.sends))), np.int64)
        for rank in range(n):
            for index, row in enumerate(self.last_down[rank]):
                for number in range(pieces):
                    had[rank, index * pieces + number] = end + rank - (n + number * rows + row)
            for index, row in enumerate(self.sends[rank]):
                begun[rank, index] = end + rank - (end - rows + row)
        kinds = (COMPLETION,) * had.shape[1] + (START,) * begun.shape[1]
        return exits(n, np.concatenate([had, begun], axis=1), kinds)


def _depth(parents: list[int], rank: int) -> int:
    steps = 0
    while parents[rank] >= 0:
        rank, steps = parents[rank], steps + 1
    return steps
