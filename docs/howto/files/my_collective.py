"""Broadcast from the root to every other rank at once."""

from typing import ClassVar

import numpy as np

from cosim.plugins import COMPLETION, COPY, Algorithm, Block, Collective, assemble, entries, exits


class Star(Algorithm):
    """Broadcast from the root to every other rank at once"""

    name: ClassVar[str] = "star"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.BROADCAST})

    def build(self, collective, num_ranks, size_bytes, costs, *, reverse=False, chunk=0, root=0):
        self.check(collective, num_ranks)
        ranks = np.arange(num_ranks)
        others = ranks[ranks != root]
        send = num_ranks + np.arange(num_ranks - 1)  # row numbers; before them come the ranks' arrivals
        end = 2 * num_ranks - 1 + ranks
        received = np.copy(ranks)  # what a rank's end waits for: its message; the root's, its own arrival
        received[others] = send
        sends = Block(
            rows=num_ranks - 1,
            src=root,
            dst=others,
            distance=(send - root)[:, None],  # rows back to the root's arrival
            kind=(COMPLETION,),
            size_bytes=size_bytes,
            delay_ps=costs.endpoint_delay_ps,
            chunk_count=1,
            action=COPY,
        )
        ends = exits(num_ranks, np.stack([end - ranks, end - received], axis=1), (COMPLETION, COMPLETION))
        blocks = [entries(num_ranks), sends, ends]
        return assemble(self.name, collective, num_ranks, size_bytes, blocks, num_chunks=1, owner=[root])
