"""PAT, parallel aggregated trees: the farthest ranks first, so that long ways carry one chunk only.

In an all-gather over N ranks each sends to the rank N/2 further on what it has, one chunk, then N/4 further
two, ... and N/2 chunks to its neighbour; a reduce-scatter is that backwards. Source: S. Jeaugey, "PAT: a new
algorithm for all-gather and reduce-scatter operations at scale", 2025, arXiv 2506.20252 (NCCL 2.23), all
chunks of a step in one message. Not modelled: its linear part, where buffers are too small for a step's
chunks, and groups that aren't a power of two.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cosim.pattern.doubling import Doubling
from cosim.pattern.halving_doubling import bit_reversed
from cosim.pattern.template import I64, Collective


class Pat(Doubling):
    """One chunk to the farthest rank, then two half as far, ... (NCCL's PAT); powers of two only"""

    name: ClassVar[str] = "pat"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_GATHER, Collective.REDUCE_SCATTER})

    def partners(self, num_ranks: int) -> list[I64]:
        """N/2, N/4, ... 1 further on."""
        far = num_ranks >> np.arange(1, num_ranks.bit_length())
        return [(np.arange(num_ranks) + step) % num_ranks for step in far]

    def order(self, num_ranks: int) -> I64:
        """By bits turned round: ranks that agree in their low bits are side by side."""
        return bit_reversed(np.arange(num_ranks), num_ranks.bit_length() - 1)
