"""Ring algorithms: every rank sends to the next one only, in steps.

Reduce-scatter and all-gather take N - 1 steps of D/N bytes, an all-reduce is one after the other (Patarasuk
and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009,
doi:10.1016/j.jpdc.2008.09.002). All-to-all hands on each piece hop by hop, farthest first: N(N-1)/2 messages
of D/N bytes a rank, one after another. Broadcast is a chain from the root, the buffer cut into N pieces that
follow each other. Timing follows ASTRA-sim's ``Ring.cc``: a rank posts its s-th receive when it issues its
s-th send, and issues send s + 1 an endpoint delay (and a reduction) after the later of the two.

Several channels are several rings at once, each with an equal part of the data; ``bidirectional`` turns
every other one round. Not modelled: pipelining of a step's message (NCCL's slices), as in ASTRA-sim.

Rounding: one message carries D/(N channels) bytes, rounded up in exact sizing (so at most N channels bytes
more than D go round), down in floor sizing.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from cosim.pattern.assemble import COMPLETION, START, Block, assemble, entries, exits, rank_column
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.template import COPY, I32, I64, REDUCE, Collective, Template


class RingAlgorithm(Algorithm):
    """Neighbours only, in steps; least bytes for any number of ranks"""

    name: ClassVar[str] = "ring"
    carries: ClassVar[frozenset[Collective]] = frozenset(
        {
            Collective.ALL_REDUCE,
            Collective.ALL_GATHER,
            Collective.REDUCE_SCATTER,
            Collective.ALL_TO_ALL,
            Collective.BROADCAST,
        }
    )

    channels: int = Field(1, ge=1, le=256, description="rings at once, each with an equal part of the data")
    bidirectional: bool = Field(False, description="every other channel runs the other way round")

    def idle_settings(self) -> list[tuple[str, str]]:
        """``bidirectional`` needs a second channel."""
        if self.bidirectional and self.channels == 1:
            return [("bidirectional", "there is only one channel; set channels: 2 or more")]
        return []

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
        """See :meth:`Algorithm.build`; rows of a step are in (rank, channel) order."""
        del chunk
        self.check(collective, num_ranks)
        ring = Rings(num_ranks, self.channels, costs, reverse=reverse, bidirectional=self.bidirectional)
        if collective is Collective.ALL_TO_ALL:
            return ring.all_to_all(size_bytes)
        if collective is Collective.BROADCAST:
            return ring.broadcast(size_bytes, root)
        return ring.reduce_or_gather(collective, size_bytes)


class Rings:
    """Columns that the steps of c rings over N ranks share; row p * c + k is place p on channel k.

    ``order[k, p]`` is the rank at place p of channel k's ring; None: ranks in order on every channel.
    """

    def __init__(
        self,
        num_ranks: int,
        channels: int,
        costs: Costs,
        *,
        reverse: bool = False,
        bidirectional: bool = False,
        order: I32 | None = None,
        name: str = "ring",
    ) -> None:
        self.num_ranks, self.channels, self.costs, self.name = num_ranks, channels, costs, name
        self.rows = num_ranks * channels
        self.order = np.tile(np.arange(num_ranks, dtype=np.int32), (channels, 1)) if order is None else order
        self.place = rank_column(num_ranks, channels)
        self.channel: I32 = np.tile(np.arange(channels, dtype=np.int32), num_ranks)
        turned = (self.channel & 1).astype(bool) & bidirectional
        self.way: I32 = np.where(turned != reverse, -1, 1).astype(np.int32)
        self.src: I32 = self.order[self.channel, self.place]
        self.dst: I32 = self.order[self.channel, (self.place + self.way) % num_ranks]
        before = ((self.place - self.way) % num_ranks).astype(np.int64) * channels + self.channel
        row = np.arange(self.rows, dtype=np.int64)
        back = self.rows + row - before
        # What a send, or the exit, waits for: the message that arrived in the step before, and that the
        # rank had posted that receive, which it does when it issues its own send of that step.
        self.after_step = np.stack([back, np.full(self.rows, self.rows)], axis=1)
        self.after_entry = (num_ranks + row - self.src)[:, None]
        own = np.argsort(self.order, axis=1).T.astype(np.int64) * channels + np.arange(channels)
        self.own_rows = own
        """int64[N, c]: a rank's row on each channel."""
        self.before = before

    def step(
        self, size_bytes: int, repeat: int, delay_ps: int, action: int, index: I64, index_step: int
    ) -> Block:
        """``repeat`` steps: row i carries piece ``index[i]``, then each time ``index_step * way`` further."""
        return Block(
            self.rows,
            self.src,
            self.dst,
            self.after_step,
            (COMPLETION, START),
            size_bytes=size_bytes,
            delay_ps=delay_ps,
            repeat=repeat,
            channel=self.channel,
            chunk=index * self.channels + self.channel,
            chunk_step=self.way * (index_step * self.channels),
            chunk_count=1,
            action=action,
        )

    def first(self, size_bytes: int, action: int, index: I64) -> Block:
        """The first step, which waits for the rank's arrival only."""
        later = self.step(size_bytes, 1, self.costs.endpoint_delay_ps, action, index, 0)
        return Block(
            self.rows,
            self.src,
            self.dst,
            self.after_entry,
            (COMPLETION,),
            size_bytes=size_bytes,
            delay_ps=self.costs.endpoint_delay_ps,
            channel=self.channel,
            chunk=later.chunk,
            chunk_count=1,
            action=action,
        )

    def exits(self, delay_ps: int) -> Block:
        """Exits after the last step; a rank waits for all its channels."""
        rank = np.arange(self.num_ranks, dtype=np.int64)[:, None]
        waits = np.stack([self.before[self.own_rows], self.own_rows], axis=2).reshape(self.num_ranks, -1)
        return exits(self.num_ranks, self.rows + rank - waits, (COMPLETION, START) * self.channels, delay_ps)

    def piece(self, offset: int) -> I64:
        """The piece ``offset`` places further round than the sender, for each row."""
        return ((self.place + self.way.astype(np.int64) * offset) % self.num_ranks).astype(np.int64)

    def reduce_or_gather(self, collective: Collective, size_bytes: int) -> Template:
        """Reduce-scatter, all-gather, or both: in step s rank r sends piece r - 1 - s (r - s to gather)."""
        n = self.num_ranks
        gather = collective is Collective.ALL_GATHER
        parts = self.channels if gather else n * self.channels
        message = self.costs.share(size_bytes, parts)
        plain = self.costs.endpoint_delay_ps
        reduced = self.costs.receive_ps(message, reduced=True)
        if gather:
            steps = [
                self.first(message, COPY, self.piece(0)),
                self.step(message, n - 2, plain, COPY, self.piece(-1), -1),
                self.exits(plain),
            ]
        elif collective is Collective.REDUCE_SCATTER:
            steps = [
                self.first(message, REDUCE, self.piece(-1)),
                self.step(message, n - 2, reduced, REDUCE, self.piece(-2), -1),
                self.exits(reduced),
            ]
        else:
            steps = [
                self.first(message, REDUCE, self.piece(-1)),
                self.step(message, n - 2, reduced, REDUCE, self.piece(-2), -1),
                self.step(message, 1, reduced, COPY, self.piece(0), -1),
                self.step(message, n - 2, plain, COPY, self.piece(-1), -1),
                self.exits(plain),
            ]
        return self._template(collective, size_bytes, steps, self.order.T.reshape(-1).astype(np.int64))

    def all_to_all(self, size_bytes: int) -> Template:
        """The piece for the rank h further on goes round h times; farthest first."""
        n = self.num_ranks
        message = self.costs.share(size_bytes, n * self.channels)
        plain = self.costs.endpoint_delay_ps
        # Piece s * N + h is what s has for the rank h further round: a step back round the ring is then a
        # step of -N, whatever wraps.
        own = self.place.astype(np.int64) * n
        steps = [
            self.first(message, COPY, own + n - 1),
            self.step(message, n - 2, plain, COPY, self.piece(-1) * n + n - 1, -n),
        ]
        steps += [self.step(message, far, plain, COPY, own + far, -n) for far in range(n - 2, 0, -1)]
        steps.append(self.exits(plain))
        source, far = np.divmod(np.arange(n * n, dtype=np.int64), n)
        owner = (source[:, None] + far[:, None] * self.way[: self.channels].astype(np.int64)) % n
        return self._template(Collective.ALL_TO_ALL, size_bytes, steps, owner.reshape(-1))

    def broadcast(self, size_bytes: int, root: int, pieces: int = 0) -> Template:
        """Piece p goes down the chain behind piece p - 1; one block is one piece on its way.

        ``pieces``: as many as there are ranks, if not given.
        """
        n, c = self.num_ranks, self.channels
        pieces = pieces or n
        message = self.costs.share(size_bytes, pieces * c)
        plain = self.costs.endpoint_delay_ps
        hops = (n - 1) * c
        place, channel = np.divmod(np.arange(hops, dtype=np.int64), c)
        way = self.way[:c].astype(np.int64)
        places = np.argsort(self.order, axis=1)
        begin = places[:, root]
        src = self.order[channel, (begin[channel] + way[channel] * place) % n].astype(np.int64)
        dst = self.order[channel, (begin[channel] + way[channel] * (place + 1)) % n]
        received = np.where(place > 0, c, 0)
        arrival = n + np.arange(hops, dtype=np.int64) - src
        own = np.full(hops, hops, np.int64)

        def piece(repeat: int, first: int, *waits: I64, kind: tuple[int, ...]) -> Block:
            return Block(
                hops,
                src,
                dst,
                np.stack(waits, axis=1),
                kind,
                size_bytes=message,
                delay_ps=plain,
                repeat=repeat,
                channel=channel,
                chunk=first * c + channel,
                chunk_step=c,
                chunk_count=1,
                action=COPY,
            )

        waits = self._broadcast_ends(places, begin, way, pieces)
        steps = [
            piece(1, 0, received, arrival, kind=(COMPLETION, COMPLETION)),
            piece(pieces - 1, 1, received, own, kind=(COMPLETION, START)),
            exits(n, waits, (COMPLETION,) + (START,) * c + (COMPLETION,) * (pieces * c), plain),
        ]
        return self._template(Collective.BROADCAST, size_bytes, steps, np.full(pieces * c, root))

    def _broadcast_ends(self, places: I64, begin: I64, way: I64, pieces: int) -> I64:
        """What exits wait for: a rank's own arrival and its last sends; of the last rank, all that arrives.

        The last rank sends nothing that waits for it, so every exit also waits for the rank's own arrival.
        """
        n, c = self.num_ranks, self.channels
        hops = (n - 1) * c
        end = n + pieces * hops
        rank = np.arange(n, dtype=np.int64)[:, None]
        place_of = (places.T - begin) * way % n
        last_own = end + rank - (end - hops + place_of * c + np.arange(c))
        arrivals = n + np.arange(pieces)[:, None] * hops + (n - 2) * c + np.arange(c)
        arrived = end + rank - arrivals.reshape(1, -1)
        is_last = np.tile(place_of == n - 1, (1, pieces))
        return np.concatenate(
            [np.full((n, 1), end), np.where(place_of < n - 1, last_own, 0), np.where(is_last, arrived, 0)],
            axis=1,
        )

    def _template(self, collective: Collective, size_bytes: int, steps: list[Block], owner: I64) -> Template:
        return assemble(
            self.name,
            collective,
            self.num_ranks,
            size_bytes,
            [entries(self.num_ranks), *steps],
            num_chunks=len(owner),
            owner=owner,
        )
