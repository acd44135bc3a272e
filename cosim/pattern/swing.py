"""Swing: halving and doubling whose partners are close on a ring or torus: 1, 1, 3, 5, 11 ... places apart.

In step s of the reduce-scatter an even rank's partner is (1 - (-2)^(s + 1)) / 3 places further on, an odd
rank's as far back: to and fro, where recursive halving goes 1, 2, 4, 8. Source: D. De Sensi, T. Bonato, D.
Saam and T. Hoefler, "Swing: Short-cutting Rings for Higher Bandwidth Allreduce", NSDI 2024, arXiv 2401.09356,
its bandwidth-optimal form. Not modelled: the paper's four at once on a torus of two dimensions, and groups
that aren't a power of two.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cosim.pattern.doubling import Doubling
from cosim.pattern.template import I64, Collective


class Swing(Doubling):
    """Halving and doubling with partners 1, 1, 3, 5, 11 ... apart, for rings and tori; powers of two only"""

    name: ClassVar[str] = "swing"
    carries: ClassVar[frozenset[Collective]] = frozenset(
        {Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER}
    )

    def partners(self, num_ranks: int) -> list[I64]:
        """The reduce-scatter's last step first."""
        return [_partner(num_ranks, step) for step in range(num_ranks.bit_length() - 2, -1, -1)]

    def order(self, num_ranks: int) -> I64:
        """Rank 0, and again and again its ranks' partners: those of the last step side by side."""
        order = np.zeros(1, np.int64)
        for step in range(num_ranks.bit_length() - 1):
            # Each position's range is divided: what stays, then what its partner is to have.
            order = np.stack([order, _partner(num_ranks, step)[order]], axis=1).reshape(-1)
        return order


def _partner(num_ranks: int, step: int) -> I64:
    rank = np.arange(num_ranks)
    far = (1 - (-2) ** (step + 1)) // 3
    return np.asarray(np.where(rank % 2 == 0, rank + far, rank - far) % num_ranks)
