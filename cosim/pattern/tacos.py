"""Algorithms made for the links that a group has (TACOS).

An all-gather is synthesised (:mod:`cosim.pattern.synthesis`); a reduce-scatter is an all-gather over the
links turned round, played backwards; an all-reduce is one after the other. Each link sends one chunk at a
time: the next one begins when the one before has arrived and the sender has it. Endpoints on switches get a
ring through them (:mod:`cosim.pattern.group_links`). Not modelled: links that change, other traffic.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from cosim.errors import AlgorithmError
from cosim.pattern.assemble import COMPLETION, START, Block, assemble, entries, exits
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.group_links import GroupLinks, Link
from cosim.pattern.synthesis import SendSchedule, synthesise
from cosim.pattern.template import COPY, REDUCE, Collective, Template

_MOST_SENDS = 1 << 20


class Tacos(Algorithm):
    """Made for the links of the group: each idle link takes a chunk that its end lacks (TACOS)"""

    name: ClassVar[str] = "tacos"
    carries: ClassVar[frozenset[Collective]] = frozenset(
        {Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE}
    )
    splits: ClassVar[bool] = False

    chunks: int = Field(1, ge=1, le=64, description="of each rank's part, each on a way of its own")
    tries: int = Field(8, ge=1, le=1000, description="schedules drawn, of which the quickest is taken")

    def by_links(self) -> bool:
        """Always."""
        return True

    def on_links(self, links: GroupLinks, collective: Collective, size_bytes: int) -> Algorithm:
        """With its schedules for these links."""
        n = links.num_ranks
        if n * (n - 1) * self.chunks > _MOST_SENDS:
            raise AlgorithmError(
                f"tacos: {n} ranks of {self.chunks} chunks take more than {_MOST_SENDS} sends",
                hint="fewer chunks, or a smaller group",
            )
        part = size_bytes if collective is Collective.ALL_GATHER else -(-size_bytes // n)
        size = -(-part // self.chunks)
        forward: tuple[Link, ...] = links.all
        back = tuple((dst, src, rate, latency) for src, dst, rate, latency in forward)
        gather = reduce = None
        if collective is not Collective.REDUCE_SCATTER:
            gather = synthesise(forward, n, self.chunks, size, self.tries)
        if collective is not Collective.ALL_GATHER:
            reduce = synthesise(back, n, self.chunks, size, self.tries)
        return Synthesised(chunks=self.chunks, tries=self.tries, gather=gather, reduce=reduce)

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
        """Refused: there are no links yet."""
        del size_bytes, costs, reverse, chunk, root
        self.check(collective, num_ranks)
        raise AlgorithmError(
            "tacos is made for the links of a group, and there is no topology",
            hint="it is proved where a scenario runs it; see docs/howto/algorithms.md",
        )


class Synthesised(Tacos):
    """Schedules for the links of a group"""

    gather: SendSchedule | None = None
    reduce: SendSchedule | None = None

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
        """See :meth:`Algorithm.build`; rows are sends in the order in which they begin."""
        del reverse, chunk, root
        self.check(collective, num_ranks)
        parts = self.chunks * (1 if collective is Collective.ALL_GATHER else num_ranks)
        sends = _Sends(num_ranks, costs, costs.share(size_bytes, parts))
        if self.reduce is not None:
            back = self.reduce
            for send in np.lexsort((np.arange(len(back.src)), -back.begin_ps)).tolist():
                sends.add(int(back.dst[send]), int(back.src[send]), int(back.chunk[send]), REDUCE)
        if self.gather is not None:
            ahead = self.gather
            for src, dst, one in zip(
                ahead.src.tolist(), ahead.dst.tolist(), ahead.chunk.tolist(), strict=True
            ):
                sends.add(src, dst, one, COPY)
        owner = np.arange(num_ranks * self.chunks) // self.chunks
        return sends.template(self.name, collective, size_bytes, owner)


class _Brought(NamedTuple):
    row: int
    delay_ps: int


class _Sends:
    """Rows of sends, each after what brought the chunk, and after the one before it on its link."""

    def __init__(self, num_ranks: int, costs: Costs, chunk_bytes: int) -> None:
        self.num_ranks, self.costs, self.chunk_bytes = num_ranks, costs, chunk_bytes
        self.rows: list[tuple[int, int, int, int]] = []
        self.waits: list[list[int]] = []
        self.delay_ps: list[int] = []
        self._came: dict[tuple[int, int], list[_Brought]] = {}
        self._last: dict[tuple[int, int], int] = {}

    def add(self, src: int, dst: int, chunk: int, action: int) -> None:
        """The next send of a link."""
        row = len(self.rows)
        came = self._came.get((src, chunk), [])
        waits = [one.row for one in came]
        if (src, dst) in self._last:
            waits.append(self._last[src, dst])
        self.rows.append((src, dst, chunk, action))
        self.waits.append(sorted(set(waits)))
        self.delay_ps.append(max([self.costs.endpoint_delay_ps, *(one.delay_ps for one in came)]))
        self._last[src, dst] = row
        delay = self.costs.receive_ps(self.chunk_bytes, reduced=action == REDUCE)
        kept = self._came.get((dst, chunk), [])
        # A copy replaces what was there; what is reduced adds to it.
        self._came[dst, chunk] = [*kept, _Brought(row, delay)] if action == REDUCE else [_Brought(row, delay)]

    def template(self, name: str, collective: Collective, size_bytes: int, owner: Any) -> Template:
        """The sends in one block; a rank ends with the last arrival on each link, having begun its sends."""
        n, rows = self.num_ranks, len(self.rows)
        src, dst, chunk, action = np.array(self.rows, np.int64).T
        width = max(map(len, self.waits), default=0)
        inner = np.zeros((rows, width), np.int64)
        for row, each in enumerate(self.waits):
            inner[row, : len(each)] = [row - other for other in each]
        entry = (n + np.arange(rows) - src)[:, None]
        block = Block(
            rows,
            src,
            dst,
            np.concatenate([inner, entry], axis=1),
            (COMPLETION,) * (width + 1),
            size_bytes=self.chunk_bytes,
            delay_ps=self.delay_ps,
            chunk=chunk,
            chunk_count=1,
            action=action,
        )
        ends: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        for (a, b), row in self._last.items():
            ends[b].append((row, COMPLETION))
            ends[a].append((row, START))
        most = max(map(len, ends), default=0)
        had, begun = np.zeros((n, most), np.int64), np.zeros((n, most), np.int64)
        for rank, waits in enumerate(ends):
            for place, (row, kind) in enumerate(waits):
                (had if kind == COMPLETION else begun)[rank, place] = rows + rank - row
        last_reduced = bool((action == REDUCE).any() and (action != COPY).all())
        after = exits(
            n,
            np.concatenate([had, begun], axis=1),
            (COMPLETION,) * most + (START,) * most,
            self.costs.receive_ps(self.chunk_bytes, reduced=last_reduced),
        )
        return assemble(
            name,
            collective,
            n,
            size_bytes,
            [entries(n), block, after],
            num_chunks=len(owner),
            owner=owner,
        )
