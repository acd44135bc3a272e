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

from cosim.pattern.assemble import COMPLETION, START, Block, assemble, entries, exits
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.template import COPY, I64, REDUCE, Collective, Template


class HalvingDoubling(Algorithm):
    """Partners 1, 2, 4, ... apart; log2 N steps, powers of two only"""

    name: ClassVar[str] = "halving_doubling"
    carries: ClassVar[frozenset[Collective]] = frozenset(
        {Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER}
    )
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
        rank = np.arange(n, dtype=np.int64)
        place = bit_reversed(rank, steps)
        halving = collective in (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER)
        sizes = _sizes(collective, n, size_bytes, costs)
        blocks = [entries(n)]
        partner = rank
        for number, size in enumerate(sizes):
            turned = number - steps if halving else number
            bit = number if halving and number < steps else steps - 1 - turned
            reduces = halving and number < steps
            waits = _after(rank, partner) if number else np.full((n, 1), n)
            partner = rank ^ (1 << bit)
            # Positions are ranks with their bits turned round, so that what is left is always a range: of
            # those that agree with the sender in the bits done, the partner's half, or one's own.
            count = n >> (bit + 1)
            holder = place[partner] if reduces else place
            blocks.append(
                Block(
                    n,
                    rank,
                    partner,
                    waits,
                    (COMPLETION, START)[: waits.shape[1]],
                    size_bytes=size,
                    delay_ps=costs.receive_ps(size, reduced=reduces and number > 0),
                    chunk=holder // count * count,
                    chunk_count=count,
                    action=REDUCE if reduces else COPY,
                )
            )
        blocks.append(exits(n, _after(rank, partner), (COMPLETION, START), costs.endpoint_delay_ps))
        # Turning bits round is its own inverse, so the owner of a position is the position of that rank.
        return assemble(self.name, collective, n, size_bytes, blocks, num_chunks=n, owner=place)


def _after(rank: I64, partner: I64) -> I64:
    """Distances to what the step before brought from ``partner``, and to the rank's own send of it."""
    n = len(rank)
    return np.stack([n + rank - partner, np.full(n, n)], axis=1)


def bit_reversed(rank: I64, bits: int) -> I64:
    """Numbers of so many bits, their bits turned round."""
    out = np.zeros_like(rank)
    for bit in range(bits):
        out |= ((rank >> bit) & 1) << (bits - 1 - bit)
    return out


def _sizes(collective: Collective, num_ranks: int, size_bytes: int, costs: Costs) -> list[int]:
    """Bytes of each step's message."""
    steps = num_ranks.bit_length() - 1
    down = [costs.share(size_bytes, 1 << i) for i in range(1, steps + 1)]
    if collective is Collective.REDUCE_SCATTER:
        return down
    if collective is Collective.ALL_GATHER:
        return [size_bytes << i for i in range(steps)]
    if not costs.floor:
        return down + down[::-1]
    # ASTRA-sim halves once more at the turn and doubles from there, which loses an odd byte.
    turn = size_bytes >> (steps + 1)
    return down + [turn << i for i in range(1, steps + 1)]
