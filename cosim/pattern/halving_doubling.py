"""Recursive halving and doubling: log2 N steps, partners 1, 2, 4, ... apart.

Reduce-scatter halves what is left at each step, all-gather doubles it, an all-reduce is one after the other
(Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA
19(1), 2005, doi:10.1177/1094342005051521). As in ASTRA-sim's ``HalvingDoubling.cc`` the largest messages go
to the nearest partner (r xor 1), and timing follows it: after step i < k = log2 N of a reduce-scatter a rank
takes the endpoint delay and the reduction of a message of the size of step i + 1's; after step k, and in an
all-gather, the delay only. (That charges half of what a reduction of the received message would take; it is
kept because it is what ASTRA-sim's published times contain.) Groups that aren't a power of two are refused.

Rounding: step i carries D/2^i bytes, rounded up in exact sizing; in floor sizing halved and doubled again as
integers, as ASTRA-sim does.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cosim.pattern.costs import Costs
from cosim.pattern.doubling import Doubling
from cosim.pattern.template import I64, Collective


class HalvingDoubling(Doubling):
    """Partners 1, 2, 4, ... apart; log2 N steps, powers of two only"""

    name: ClassVar[str] = "halving_doubling"
    carries: ClassVar[frozenset[Collective]] = frozenset(
        {Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER}
    )

    def partners(self, num_ranks: int) -> list[I64]:
        """N/2, N/4, ... 1 apart: the smallest message goes farthest."""
        far = num_ranks >> np.arange(1, num_ranks.bit_length())
        return [np.arange(num_ranks) ^ step for step in far]

    def order(self, num_ranks: int) -> I64:
        """By bits turned round: what ranks have left after a step is always a range."""
        return bit_reversed(np.arange(num_ranks), num_ranks.bit_length() - 1)

    def sizes(self, collective: Collective, num_ranks: int, size_bytes: int, costs: Costs) -> list[int]:
        """In floor sizing ASTRA-sim halves once more at the turn and doubles from there, which loses an odd
        byte.
        """
        if collective is not Collective.ALL_REDUCE or not costs.floor:
            return super().sizes(collective, num_ranks, size_bytes, costs)
        steps = num_ranks.bit_length() - 1
        turn = size_bytes >> (steps + 1)
        return [size_bytes >> i for i in range(1, steps + 1)] + [turn << i for i in range(1, steps + 1)]

    def delays(self, sizes: list[int], reduces: list[bool], costs: Costs) -> list[int]:
        """ASTRA-sim's: a step waits for the reduction of its own message, the first one for none."""
        first = [False, *reduces[1:]]
        own = [costs.receive_ps(size, reduced=each) for size, each in zip(sizes, first, strict=True)]
        return [*own, costs.endpoint_delay_ps]


def bit_reversed(rank: I64, bits: int) -> I64:
    """Numbers of so many bits, their bits turned round."""
    out = np.zeros_like(rank)
    for bit in range(bits):
        out |= ((rank >> bit) & 1) << (bits - 1 - bit)
    return out
