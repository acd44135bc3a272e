"""Direct: every rank sends to every other one itself, without forwarding.

All-to-all, all-gather and reduce-scatter are one round of N - 1 messages a rank, an all-reduce is a
reduce-scatter and an all-gather. Timing follows ASTRA-sim's ``AllToAll.cc``: all of a rank's messages leave
together an endpoint delay after it arrives, to ranks r + 1, r + 2, ... in that order, each receive takes an
endpoint delay (and its reduction), and the rank is done after the last. With ``window`` w only w messages of
a rank are out at once: its k-th leaves an endpoint delay (and a reduction) after message k - w of the rank
that far before it arrived.

Where it differs from ASTRA-sim: there the second round of an all-reduce is let go piece by piece, by
whichever reductions end after the last arrival; here all of it is let go by the last arrival's. The two are
the same where a rank's messages arrive together, or farther apart than a reduction takes. In ASTRA-sim a
windowed reduce-scatter reduces only every other window's messages; here all are reduced.

Rounding: a message carries D/N bytes (all-gather: D), rounded up in exact sizing, down in floor sizing.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from cosim.pattern.assemble import COMPLETION, START, Block, assemble, entries, exits, rank_column
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.template import COPY, I32, I64, REDUCE, Collective, Template


class Direct(Algorithm):
    """Everyone to everyone, nothing forwarded; fewest steps"""

    name: ClassVar[str] = "direct"
    carries: ClassVar[frozenset[Collective]] = frozenset(
        {Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_TO_ALL}
    )

    window: int | None = Field(None, ge=1, description="messages of a rank under way at once; default: all")

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
        """See :meth:`Algorithm.build`; rows are rank by rank, or step by step where there is a window."""
        del chunk, root
        self.check(collective, num_ranks)
        n = num_ranks
        gather = collective is Collective.ALL_GATHER
        message = costs.share(size_bytes, 1 if gather else n)
        window = self.window if self.window is not None and self.window < n - 1 else None
        rounds = _Rounds(n, message, costs, -1 if reverse else 1, window)
        owner, num_chunks = np.arange(n, dtype=np.int32), n
        blocks = [entries(n)]
        if collective is Collective.ALL_TO_ALL:
            owner, num_chunks = np.tile(owner, n), n * n
            blocks += rounds.round(COPY, rounds.src * np.int32(n) + rounds.dst)
        elif gather:
            blocks += rounds.round(COPY, rounds.src)
        else:
            blocks += rounds.round(REDUCE, rounds.dst)
            if collective is Collective.ALL_REDUCE:
                blocks.append(rounds.gate(reduced=True))
                blocks += rounds.round(COPY, rounds.src, gated=True)
        blocks.append(
            exits(
                n,
                rounds.all_in(),
                rounds.all_in_kind,
                costs.receive_ps(message, reduced=collective is Collective.REDUCE_SCATTER),
            )
        )
        return assemble(self.name, collective, n, size_bytes, blocks, num_chunks=num_chunks, owner=owner)


class _Rounds:
    """Rounds of N(N - 1) messages: message k of rank r goes k + 1 further round.

    Rows are in (rank, k) order, which is the order in which ASTRA-sim's ranks hand them out, or in
    (k, rank) order where there is a window, so that nobody waits for a later row. Right before a round
    stand N marks, the entries or a gate, that let it go.
    """

    def __init__(self, num_ranks: int, message: int, costs: Costs, way: int, window: int | None) -> None:
        n, steps = num_ranks, num_ranks - 1
        self.num_ranks, self.message, self.costs, self.way, self.window = n, message, costs, way, window
        self.rows = n * steps
        ranks, k = np.arange(n, dtype=np.int32), np.arange(1, n, dtype=np.int32)
        if window is None:
            self.src, far = rank_column(n, steps), np.tile(k, n)
        else:
            self.src, far = np.tile(ranks, steps), k.repeat(n)
        dst = self.src + (far if way > 0 else n - far)
        dst -= (dst >= n) * np.int32(n)
        self.dst: I32 = dst
        self.all_in_kind = (COMPLETION,) * steps + (START,) * (1 if window is None else window)

    def number(self, src: I64, k: I64) -> I64:
        """The row of message k of rank ``src`` in its round."""
        n = self.num_ranks
        return np.asarray(src * (n - 1) + k if self.window is None else k * n + src, np.int64)

    def all_in(self) -> I64:
        """int64[N, E]: from the mark of each rank right after a round back to all that it received.

        A rank has posted the receive of a message when it issued its own of the same number; those that
        it issued last come after the others.
        """
        n = self.num_ranks
        rank, k = np.arange(n, dtype=np.int64)[:, None], np.arange(n - 1, dtype=np.int64)
        arrived = self.number((rank - self.way * (k + 1)) % n, k)
        issued = self.number(rank, k[len(k) - (self.window or 1) :])
        return np.concatenate([self.rows + rank - arrived, self.rows + rank - issued], axis=1)

    def gate(self, *, reduced: bool) -> Block:
        """N marks: a rank has received, and reduced, a whole round."""
        return exits(
            self.num_ranks,
            self.all_in(),
            self.all_in_kind,
            self.costs.receive_ps(self.message, reduced=reduced),
        )

    def round(self, action: int, chunk: I32, *, gated: bool = False) -> list[Block]:
        """All messages of a round; ``gated``: the marks before it hold the endpoint delay already."""
        n, window, src = self.num_ranks, self.window, self.src
        first = self.rows if window is None else n * window
        delay = 0 if gated else self.costs.endpoint_delay_ps
        release = n + np.arange(first, dtype=np.int64) - src[:first]
        blocks = [self._block(slice(0, first), release[:, None], (COMPLETION,), delay, action, chunk)]
        if window is not None:
            rank = src[first:].astype(np.int64)
            step = np.arange(window, n - 1, dtype=np.int64).repeat(n)
            sender = (rank - self.way * (step - window + 1)) % n
            waits = np.stack([window * n + rank - sender, np.full(len(rank), window * n)], axis=1)
            delay = self.costs.receive_ps(self.message, reduced=action == REDUCE)
            blocks.append(
                self._block(slice(first, self.rows), waits, (COMPLETION, START), delay, action, chunk)
            )
        return blocks

    def _block(
        self, rows: slice, distance: I64, kind: tuple[int, ...], delay: int, action: int, chunk: I32
    ) -> Block:
        return Block(
            len(distance),
            self.src[rows],
            self.dst[rows],
            distance,
            kind,
            size_bytes=self.message,
            delay_ps=delay,
            chunk=chunk[rows],
            chunk_count=1,
            action=action,
        )
