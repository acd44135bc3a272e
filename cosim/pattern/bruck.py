"""Bruck's all-gather: ceil(log2 N) steps for any number of ranks.

In step k rank r sends what it has, up to 2^k chunks from its own on, to rank r - 2^k; the last step sends
what is still lacking. Source: J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal and D. Weathersby, "Efficient
Algorithms for All-to-All Communications in Multiport Message-Passing Systems", IEEE TPDS 8(11), 1997,
doi:10.1109/71.642949, its concatenation on one port. Not modelled: the copy that puts chunks in order in the
end, and the paper's index operation (an all-to-all).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cosim.pattern.assemble import COMPLETION, START, Block, assemble, entries, exits
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.template import COPY, Collective, Template


class Bruck(Algorithm):
    """All-gather in log2 N steps for any number of ranks; for short messages"""

    name: ClassVar[str] = "bruck"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_GATHER})

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
        """See :meth:`Algorithm.build`; row r of a step is rank r's."""
        del chunk, root
        self.check(collective, num_ranks)
        n, way = num_ranks, -1 if reverse else 1
        rank = np.arange(n)
        blocks = [entries(n)]
        waits = np.full((n, 1), n)
        far = 1
        while far < n:
            count = min(far, n - far)
            blocks.append(
                Block(
                    n,
                    rank,
                    (rank - way * far) % n,
                    waits,
                    (COMPLETION, START)[: waits.shape[1]],
                    size_bytes=count * size_bytes,
                    delay_ps=costs.endpoint_delay_ps,
                    chunk=rank if way > 0 else (rank - count + 1) % n,
                    chunk_count=count,
                    action=COPY,
                )
            )
            waits = np.stack([n + rank - (rank + way * far) % n, np.full(n, n)], axis=1)
            far *= 2
        blocks.append(exits(n, waits, (COMPLETION, START), costs.endpoint_delay_ps))
        return assemble(self.name, collective, n, size_bytes, blocks, num_chunks=n, owner=rank)
