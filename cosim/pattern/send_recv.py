"""Send and receive: one message from rank 0 to rank 1 of a group of two.

As in ASTRA-sim's workload layer no endpoint delay is charged: the message leaves when the sender is there,
and both are done when it has arrived and the receiver is there too (the sender: when it has arrived).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cosim.errors import AlgorithmError
from cosim.pattern.assemble import COMPLETION, Block, assemble, entries, exits
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.template import COPY, Collective, Template


class SendRecv(Algorithm):
    """One message, rank 0 to rank 1"""

    name: ClassVar[str] = "send_recv"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.SEND_RECV})
    splits: ClassVar[bool] = False

    def check(self, collective: Collective, num_ranks: int) -> None:
        """Two ranks, no more.

        Raises
        ------
        AlgorithmError
            Another collective or number of ranks.
        """
        super().check(collective, num_ranks)
        if num_ranks != 2:
            raise AlgorithmError(f"send_recv is between 2 ranks, and this group has {num_ranks}")

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
        """See :meth:`Algorithm.build`; costs don't apply."""
        del costs, reverse, chunk, root
        self.check(collective, num_ranks)
        message = Block(
            1, 0, 1, np.full((1, 1), 2), (COMPLETION,), size_bytes=size_bytes, chunk_count=1, action=COPY
        )
        end = exits(2, np.array([[1, 0], [2, 3]]), (COMPLETION, COMPLETION))
        return assemble(
            self.name,
            collective,
            2,
            size_bytes,
            [entries(2), message, end],
            num_chunks=1,
            owner=np.zeros(1, np.int32),
        )
