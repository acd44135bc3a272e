"""Binomial tree broadcast: who has the data hands it on, so holders double at each step.

As in MPICH (Thakur, Rabenseifner and Gropp, doi:10.1177/1094342005051521): counted from the root, rank v <
2^i sends to v + 2^i, the farthest first, each message whole and the next one after it arrived. An endpoint
delay lies before each send and after each receive. Not modelled: segmentation.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cosim.pattern.assemble import COMPLETION, Block, assemble, entries, exits
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.template import COPY, Collective, Template


class BinomialTree(Algorithm):
    """Broadcast in log2 N steps, holders doubling"""

    name: ClassVar[str] = "binomial_tree"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.BROADCAST})

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
        """See :meth:`Algorithm.build`; rows are step by step."""
        del reverse, chunk
        self.check(collective, num_ranks)
        n = num_ranks
        received = np.full(n, -1, np.int64)
        sent = np.full(n, -1, np.int64)
        blocks = [entries(n)]
        base = n
        for step in range((n - 1).bit_length() - 1, -1, -1):
            # Holders at this step are the multiples of twice the distance.
            place = np.arange(0, n - (1 << step), 2 << step, dtype=np.int64)
            src, dst = (place + root) % n, (place + (1 << step) + root) % n
            here = base + np.arange(len(place), dtype=np.int64)
            waits = [src, received[src], sent[src]]
            distance = np.stack([np.where(wait < 0, 0, here - wait) for wait in waits], axis=1)
            blocks.append(
                Block(
                    len(place),
                    src,
                    dst,
                    distance,
                    (COMPLETION,) * 3,
                    size_bytes=size_bytes,
                    delay_ps=costs.endpoint_delay_ps,
                    chunk_count=1,
                    action=COPY,
                )
            )
            received[dst] = sent[src] = here
            base += len(place)
        here = base + np.arange(n, dtype=np.int64)
        waits = [np.arange(n, dtype=np.int64), received, sent]
        distance = np.stack([np.where(wait < 0, 0, here - wait) for wait in waits], axis=1)
        blocks.append(exits(n, distance, (COMPLETION,) * 3, costs.endpoint_delay_ps))
        return assemble(
            self.name, collective, n, size_bytes, blocks, num_chunks=1, owner=np.full(1, root, np.int32)
        )
