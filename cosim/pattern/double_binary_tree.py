"""Double binary tree: reduce up a tree, hand down again; chunks alternate between two trees.

After Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
Parallel Computing 35(12), 2009, doi:10.1016/j.parco.2009.09.001, in the form of ASTRA-sim's
``BinaryTree.cc`` and ``DoubleBinaryTreeAllReduce.cc``: trees numbered in order, the first with its root at
rank N - 1, the second at rank 0; chunks take the two in turn, whole, on every edge. So the two
trees run side by side only with splits, and nothing is pipelined inside a chunk; both are ASTRA-sim's.
Powers of two only.

Timing: a leaf sends an endpoint delay after it arrives; a rank that has its children's data takes the delay
and the reduction of one message, then sends up; data from above costs an inner rank delay and reduction
again (ASTRA-sim charges it), a leaf the delay. An inner rank is done when it issues its messages down.

Rounding: none; every message is the chunk's D bytes.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cosim.pattern.assemble import COMPLETION, START, Block, assemble, entries, exits
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.template import COPY, I64, REDUCE, Collective, Template


class DoubleBinaryTree(Algorithm):
    """Up and down a binary tree, chunks alternating between two; log N steps, powers of two only"""

    name: ClassVar[str] = "double_binary_tree"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_REDUCE})
    power_of_two: ClassVar[bool] = True
    variants: ClassVar[int] = 2

    def build(
        self,
        collective: Collective,
        num_ranks: int,
        size_bytes: int,
        costs: Costs,
        *,
        reverse: bool = False,
        chunk: int = 0,
        root: int = 0,
    ) -> Template:
        """See :meth:`Algorithm.build`; rows are level by level, up and then down."""
        del reverse, root
        self.check(collective, num_ranks)
        tree = _BinaryTree(num_ranks, size_bytes, costs, chunk % 2)
        tree.add_up()
        tree.add_down()
        blocks = [*tree.blocks, tree.exits()]
        return assemble(
            self.name, collective, num_ranks, size_bytes, blocks, num_chunks=1, owner=np.zeros(1, np.int32)
        )


class _BinaryTree:
    """One of the two trees, level by level.

    Node j in 1..N stands at in-order place j, its height is the number of its trailing zeros; N is the root,
    with one child. Tree 0 puts node j on rank j - 1, tree 1 on rank j mod N.
    """

    def __init__(self, num_ranks: int, size_bytes: int, costs: Costs, which: int) -> None:
        n = self.num_ranks = num_ranks
        self.size_bytes = size_bytes
        self.plain, self.reduced = (costs.receive_ps(size_bytes, reduced=flag) for flag in (False, True))
        self.rank_of = (np.arange(n + 1, dtype=np.int64) - (1 - which)) % n
        self.up, self.down = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
        """Flow of each node to its parent, and from it."""
        self.blocks = [entries(n)]
        self.num_flows = n

    def _add(
        self, nodes: I64, peers: I64, waits: list[I64], kind: tuple[int, ...], delay: int, action: int
    ) -> None:
        """Messages from nodes to peers, each after flows of ``waits``."""
        here = self.num_flows + np.arange(len(nodes), dtype=np.int64)
        self.blocks.append(
            Block(
                len(nodes),
                self.rank_of[nodes],
                self.rank_of[peers],
                np.stack([here - wait for wait in waits], axis=1),
                kind,
                size_bytes=self.size_bytes,
                delay_ps=delay,
                chunk_count=1,
                action=action,
            )
        )
        self.num_flows += len(nodes)

    def add_up(self) -> None:
        """Leaves first; an inner node when it has both children's data."""
        n, up = self.num_ranks, self.up
        for height in range(n.bit_length() - 1):
            nodes = np.arange(1 << height, n, 2 << height, dtype=np.int64)
            parents, arrival = _parent(nodes, height), self.rank_of[nodes]
            up[nodes] = self.num_flows + np.arange(len(nodes))
            if height == 0:
                self._add(nodes, parents, [arrival], (COMPLETION,), self.plain, REDUCE)
            else:
                half = 1 << (height - 1)
                waits = [up[nodes - half], up[nodes + half], arrival]
                self._add(nodes, parents, waits, (COMPLETION,) * 3, self.reduced, REDUCE)

    def add_down(self) -> None:
        """The root to its child, then each inner node to both of its."""
        n, up, down = self.num_ranks, self.up, self.down
        top = np.array([n], np.int64)
        down[n // 2] = self.num_flows
        waits = [up[top // 2], self.rank_of[top]]
        self._add(top, top // 2, waits, (COMPLETION,) * 2, self.reduced, COPY)
        for height in range(n.bit_length() - 2, 0, -1):
            nodes = np.arange(1 << height, n, 2 << height, dtype=np.int64).repeat(2)
            half = 1 << (height - 1)
            children = nodes + np.tile([-half, half], len(nodes) // 2)
            down[children] = self.num_flows + np.arange(len(nodes))
            self._add(nodes, children, [down[nodes], up[nodes]], (COMPLETION, START), self.reduced, COPY)

    def exits(self) -> Block:
        """Leaves end a delay after the data came down, others when their last message down is issued."""
        n, up, down = self.num_ranks, self.up, self.down
        node_of = np.empty(n, np.int64)
        node_of[self.rank_of[1:]] = np.arange(1, n + 1)
        leaf, root = node_of % 2 == 1, node_of == n
        last = np.where(root, n // 2, node_of + (node_of & -node_of) // 2)
        here = self.num_flows + np.arange(n, dtype=np.int64)
        waits = np.stack(
            [
                np.where(leaf, here - down[node_of], 0),
                np.where(leaf, here - up[node_of], 0),
                np.where(leaf, 0, here - down[last % (n + 1)]),
            ],
            axis=1,
        )
        return exits(n, waits, (COMPLETION, START, START), np.where(leaf, self.plain, 0))


def _parent(node: I64, height: int) -> I64:
    """The one of two nodes a height's half span away that is a height above."""
    step = np.int64(1 << height)
    below = node - step
    return np.where((below >> (height + 1)) & 1 == 1, below, node + step)
