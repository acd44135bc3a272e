"""An all-gather in which everybody sends to everybody, all at once."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cosim.plugins import (
    COMPLETION,
    COPY,
    START,
    Algorithm,
    Block,
    Collective,
    Costs,
    Template,
    assemble,
    entries,
    exits,
)


class GatherOnce(Algorithm):
    """All-gather in one step: each rank sends its shard to every other"""

    name: ClassVar[str] = "gather_once"
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
        self.check(collective, num_ranks)
        n = num_ranks
        src = np.repeat(np.arange(n), n - 1)
        dst = (src + np.tile(np.arange(1, n), n)) % n
        flow = n + np.arange(len(src))  # after the n entries
        sends = Block(
            len(src), src, dst, (flow - src)[:, None], (COMPLETION,),
            size_bytes=size_bytes, chunk=src, chunk_count=1, action=COPY,
        )  # fmt: skip
        end = n + len(src) + np.arange(n)
        arrived = np.stack([end[rank] - flow[dst == rank] for rank in range(n)])
        after = np.column_stack([arrived, end - np.arange(n)])
        blocks = [entries(n), sends, exits(n, after, [COMPLETION] * (n - 1) + [START])]
        return assemble(self.name, collective, n, size_bytes, blocks, num_chunks=n, owner=np.arange(n))
