"""Dissemination barrier: in step i rank r tells r + 2^i that it, and all it heard of, has arrived.

Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", Int. J. Parallel Programming 17(1),
1988, doi:10.1007/BF01379320. ceil(log2 N) steps of one small message a rank, an endpoint delay before each
send and after each receive.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from cosim.pattern.assemble import COMPLETION, START, Block, assemble, entries, exits
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.template import Collective, Template
from cosim.spec import SizeBytes


class Dissemination(Algorithm):
    """Barrier in log2 N steps, any number of ranks"""

    name: ClassVar[str] = "dissemination"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.BARRIER})
    splits: ClassVar[bool] = False

    message: SizeBytes = Field(8, ge=0, description="bytes of one message")

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
        """See :meth:`Algorithm.build`; ``size_bytes`` doesn't matter."""
        del chunk, root
        self.check(collective, num_ranks)
        n, way = num_ranks, -1 if reverse else 1
        rank = np.arange(n, dtype=np.int64)
        blocks = [entries(n)]
        sender = rank
        for step in range((n - 1).bit_length()):
            waits = np.full((n, 1), n) if step == 0 else np.stack([n + rank - sender, np.full(n, n)], axis=1)
            blocks.append(
                Block(
                    n,
                    rank,
                    (rank + way * (1 << step)) % n,
                    waits,
                    (COMPLETION, START)[: waits.shape[1]],
                    size_bytes=self.message,
                    delay_ps=costs.endpoint_delay_ps,
                )
            )
            sender = (rank - way * (1 << step)) % n
        last = np.stack([n + rank - sender, np.full(n, n)], axis=1)
        blocks.append(exits(n, last, (COMPLETION, START), costs.endpoint_delay_ps))
        return assemble(
            self.name, collective, n, size_bytes, blocks, num_chunks=0, owner=np.empty(0, np.int32)
        )
