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

from cosim.pattern.build import COMPLETION, START, Block, assemble, entries, exits
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
        n = num_ranks
        plain, reduced = (costs.receive_ps(size_bytes, reduced=flag) for flag in (False, True))
        levels = n.bit_length() - 1
        # Node j in 1..N stands at in-order place j, its height is the number of its trailing zeros; N is
        # the root, with one child. Tree 0 puts node j on rank j - 1, tree 1 on rank j mod N.
        rank_of = (np.arange(n + 1, dtype=np.int64) - (1 if chunk % 2 == 0 else 0)) % n
        up = np.zeros(n + 1, np.int64)
        down = np.zeros(n + 1, np.int64)
        blocks = [entries(n)]
        base = n

        def block(
            nodes: I64, peers: I64, waits: list[I64], kind: tuple[int, ...], delay: int, action: int
        ) -> None:
            nonlocal base
            here = base + np.arange(len(nodes), dtype=np.int64)
            distance = np.stack([np.where(wait < 0, 0, here - wait) for wait in waits], axis=1)
            blocks.append(
                Block(
                    len(nodes),
                    rank_of[nodes],
                    rank_of[peers],
                    distance,
                    kind,
                    size_bytes=size_bytes,
                    delay_ps=delay,
                    chunk_count=1,
                    action=action,
                )
            )
            base += len(nodes)

        for height in range(levels):
            nodes = np.arange(1 << height, n, 2 << height, dtype=np.int64)
            parents = _parent(nodes, height)
            up[nodes] = base + np.arange(len(nodes))
            arrival = rank_of[nodes]
            if height == 0:
                block(nodes, parents, [arrival], (COMPLETION,), plain, REDUCE)
            else:
                half = 1 << (height - 1)
                waits = [up[nodes - half], up[nodes + half], arrival]
                block(nodes, parents, waits, (COMPLETION,) * 3, reduced, REDUCE)
        top = np.array([n], np.int64)
        down[n // 2] = base
        block(top, top // 2, [up[top // 2], rank_of[top]], (COMPLETION,) * 2, reduced, COPY)
        for height in range(levels - 1, 0, -1):
            nodes = np.arange(1 << height, n, 2 << height, dtype=np.int64).repeat(2)
            half = 1 << (height - 1)
            children = nodes + np.tile([-half, half], len(nodes) // 2)
            down[children] = base + np.arange(len(nodes))
            block(nodes, children, [down[nodes], up[nodes]], (COMPLETION, START), reduced, COPY)

        # Leaves end a delay after the data came down, others when their last message down is issued.
        node_of = np.empty(n, np.int64)
        node_of[rank_of[1:]] = np.arange(1, n + 1)
        leaf = node_of % 2 == 1
        step = np.where(node_of == n, 0, (node_of & -node_of) // 2)
        last = np.where(node_of == n, n // 2, node_of + step)
        here = base + np.arange(n, dtype=np.int64)
        waits_for = np.stack(
            [
                np.where(leaf, here - down[node_of], 0),
                np.where(leaf, here - up[node_of], 0),
                np.where(leaf, 0, here - down[last % (n + 1)]),
            ],
            axis=1,
        )
        end = exits(n, waits_for, (COMPLETION, START, START), np.where(leaf, plain, 0))
        return assemble(
            self.name, collective, n, size_bytes, [*blocks, end], num_chunks=1, owner=np.zeros(1, np.int32)
        )


def _parent(node: I64, height: int) -> I64:
    """Of the two nodes a height's half span away, the one that is a height above."""
    step = np.int64(1 << height)
    below = node - step
    return np.where((below >> (height + 1)) & 1 == 1, below, node + step)
