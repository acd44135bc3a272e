"""NCCL's NVLS tree: NVSwitch adds up inside each host, trees of hosts between, NVSwitch sends to all.

Each NIC's GPU is the head of a share of the data (``connectNvls`` of NCCL's ``connect.cc``). Its switch adds
up what all GPUs of the host have of the share; heads of equal place in their hosts are two binary trees, half
of the share on each (:mod:`cosim.pattern.nccl_tree`); what comes down, the switch sends to all GPUs. Pieces
follow each other. A NIC carries twice a share, or once between two hosts, where each is the root of one tree
and the leaf of the other: a ring's carries 2 - 2/N of it.

In the template GPUs send to heads, and heads to GPUs, as if no switch added anything; what a link carries is
set right by the bytes of a message (``Nccl``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.pattern.assemble import assemble
from cosim.pattern.costs import Costs
from cosim.pattern.nccl_tree import rank_parents
from cosim.pattern.pieces import Pieces
from cosim.pattern.template import COPY, REDUCE, Collective, Template

_PIECES = 64
"""No more pieces than these."""


def nvls_tree_template(
    num_ranks: int, size_bytes: int, hosts: int, heads: int, *, step_ps: int, piece_bytes: int, costs: Costs
) -> Template:
    """An all-reduce; ``step_ps``: from a message between hosts to what follows it; ``piece_bytes``: of a
    head's piece.
    """
    pieces = min(max(size_bytes // (heads * piece_bytes), 1), _PIECES)
    chunks = 2 * heads * pieces
    message = costs.share(size_bytes, chunks)
    piece = Pieces(num_ranks, in_order=True)
    delay = costs.receive_ps(message, reduced=True)
    for head in range(heads):
        _HeadShare(piece, hosts, num_ranks // hosts, head, heads, delay, step_ps).add()
    return assemble(
        "nccl nvls tree",
        Collective.ALL_REDUCE,
        num_ranks,
        size_bytes,
        piece.blocks(message, 2 * heads, pieces),
        num_chunks=chunks,
        owner=np.zeros(chunks, np.int32),
    )


@dataclass(frozen=True)
class _HeadShare:
    """A head's share of a piece: two chunks, one for each tree."""

    piece: Pieces
    hosts: int
    local: int
    number: int
    heads: int
    delay_ps: int
    step_ps: int

    def add(self) -> None:
        """To the heads, up and down both trees, to all."""
        lead, first = self.number * self.local // self.heads, 2 * self.number
        others = [place for place in range(self.local) if place != lead]
        has: list[list[int]] = []
        """Rows by which each host's head has its host's sum; then both trees'."""
        for host in range(self.hosts):
            head = host * self.local + lead
            sent = [(host * self.local + place, head) for place in others]
            has.append([self._row(src, dst, first, REDUCE, [], 2) for src, dst in sent])
        ends = [self._tree(tree, lead, has) for tree in (0, 1)]
        for host in range(self.hosts):
            head = host * self.local + lead
            came = sorted({row for end in ends for row in end[host]})
            self.piece.had[head] += came
            for place in others:
                row = self._row(head, host * self.local + place, first, COPY, came, 2)
                self.piece.had[host * self.local + place].append(row)
                self.piece.sends[head].append(row)

    def _tree(self, tree: int, lead: int, has: list[list[int]]) -> list[list[int]]:
        """Rows by which each host's head has the sum of all."""
        parents = rank_parents(self.hosts, 1, tree, 0)
        below: list[list[int]] = [[] for _ in parents]
        for host, parent in enumerate(parents):
            if parent >= 0:
                below[parent].append(host)
        order = [host for host, parent in enumerate(parents) if parent < 0]
        for host in order:  # it grows: parents come before their children
            order += below[host]
        heads = [host * self.local + lead for host in range(self.hosts)]
        chunk = 2 * self.number + tree
        sums = [list(rows) for rows in has]
        for host in reversed(order[1:]):
            row = self._row(heads[host], heads[parents[host]], chunk, REDUCE, sums[host])
            sums[parents[host]].append(self.piece.pause(heads[parents[host]], [row], self.step_ps))
        ends = [sums[host] for host in range(self.hosts)]
        for host in order[1:]:
            above = heads[parents[host]]
            row = self._row(above, heads[host], chunk, COPY, ends[parents[host]])
            self.piece.sends[above].append(row)
            ends[host] = [self.piece.pause(heads[host], [row], self.step_ps)]
        return ends

    def _row(self, src: int, dst: int, chunk: int, action: int, waits: list[int], count: int = 1) -> int:
        return self.piece.add(src, dst, chunk, action, waits, count=count, delay_ps=self.delay_ps)
