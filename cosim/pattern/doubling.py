"""What algorithms share whose ranks hold twice as many chunks after each step of an all-gather.

In step i of an all-gather rank r sends the 2^i chunks that it holds to ``to[i][r]``; a reduce-scatter is the
same backwards, and an all-reduce is one after the other. Chunks have positions such that what a rank holds is
always a range. A step waits for what the step before brought.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from cosim.pattern.assemble import COMPLETION, START, Block, assemble, entries, exits
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.template import COPY, I64, REDUCE, Collective, Template


class Doubling(Algorithm):
    """Base of algorithms over 2, 4, 8, ... ranks, in log2 of that many steps for a gather."""

    power_of_two: ClassVar[bool] = True

    @abstractmethod
    def partners(self, num_ranks: int) -> list[I64]:
        """Whom each rank sends to in each step of an all-gather."""

    @abstractmethod
    def order(self, num_ranks: int) -> I64:
        """The rank whose chunk is at each position: after i steps a rank has an aligned range of 2^i."""

    def sizes(self, collective: Collective, num_ranks: int, size_bytes: int, costs: Costs) -> list[int]:
        """Bytes of each step's message."""
        steps = num_ranks.bit_length() - 1
        if collective is Collective.ALL_GATHER:
            return [size_bytes << i for i in range(steps)]
        down = [costs.share(size_bytes, 1 << i) for i in range(1, steps + 1)]
        return down if collective is Collective.REDUCE_SCATTER else down + down[::-1]

    def delays(self, sizes: list[int], reduces: list[bool], costs: Costs) -> list[int]:
        """Picoseconds before each step, and before the end: a rank takes what the last step brought."""
        taken = [costs.receive_ps(size, reduced=each) for size, each in zip(sizes, reduces, strict=True)]
        return [costs.endpoint_delay_ps, *taken]

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
        n, to = num_ranks, self.partners(num_ranks)
        owner = self.order(n)
        place = np.argsort(owner)
        steps: list[tuple[I64, I64, int, int]] = []  # whom to, first chunk, how many, action
        if collective is not Collective.ALL_GATHER:
            for i in range(len(to) - 1, -1, -1):
                back = np.argsort(to[i])
                steps.append((back, place[back] >> i << i, 1 << i, REDUCE))
        if collective is not Collective.REDUCE_SCATTER:
            steps += [(each, place >> i << i, 1 << i, COPY) for i, each in enumerate(to)]
        sizes = self.sizes(collective, n, size_bytes, costs)
        delays = self.delays(sizes, [action == REDUCE for *_, action in steps], costs)
        blocks = [entries(n)]
        waits = np.full((n, 1), n)
        for number, (there, first, count, action) in enumerate(steps):
            blocks.append(
                Block(
                    n,
                    np.arange(n),
                    there,
                    waits,
                    (COMPLETION, START)[: waits.shape[1]],
                    size_bytes=sizes[number],
                    delay_ps=delays[number],
                    chunk=first,
                    chunk_count=count,
                    action=action,
                )
            )
            waits = np.stack([n + np.arange(n) - np.argsort(there), np.full(n, n)], axis=1)
        blocks.append(exits(n, waits, (COMPLETION, START), delays[-1]))
        return assemble(self.name, collective, n, size_bytes, blocks, num_chunks=n, owner=owner)
