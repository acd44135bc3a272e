"""Recursive doubling by whole buffers: log2 N steps, in each all of the data to a partner and back.

What MPI takes for short all-reduces: the fewest steps, at log2 N times the data (Thakur, Rabenseifner and
Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005,
doi:10.1177/1094342005051521). Partners 1, 2, 4, ... apart exchange what they have, at once, so that neither
may add what comes to what it is sending: it is received into scratch, a place for each step, and added when
the own message has been read. Groups that aren't a power of two are refused.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cosim.pattern.assemble import COMPLETION, START, Block, assemble, entries, exits
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.template import COPY, REDUCE, Collective, Template


class RecursiveDoubling(Algorithm):
    """All of the data to partners 1, 2, 4, ... apart; log2 N steps, for short messages, powers of two only"""

    name: ClassVar[str] = "recursive_doubling"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_REDUCE})
    power_of_two: ClassVar[bool] = True

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
        """See :meth:`Algorithm.build`; the algorithm has no direction."""
        del reverse, chunk, root
        self.check(collective, num_ranks)
        n, steps = num_ranks, num_ranks.bit_length() - 1
        rank = np.arange(n)
        own = np.full((n, 1), n)
        blocks = [entries(n)]
        for step in range(steps):
            partner = rank ^ (1 << step)
            sends = Block(
                n,
                rank,
                partner,
                own,
                (COMPLETION,),
                size_bytes=size_bytes,
                delay_ps=costs.endpoint_delay_ps,
                chunk_count=1,
                action=COPY,
                shift=1 + step,
            )
            adds = Block(
                n,
                rank,
                rank,
                np.stack([n + rank - partner, np.full(n, n)], axis=1),
                (COMPLETION, START),
                delay_ps=costs.reduction_ps(size_bytes),
                chunk=1 + step,
                chunk_count=1,
                action=REDUCE,
                shift=steps - step,
            )
            blocks += [sends, adds]
        blocks.append(exits(n, own, (COMPLETION,), costs.endpoint_delay_ps))
        owner = np.zeros(1, np.int32)
        return assemble(
            self.name, collective, n, size_bytes, blocks, num_chunks=1, owner=owner, num_scratch=steps
        )
