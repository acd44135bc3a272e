"""Messages in their normal form: one row each, with the fewest dependencies, in an order that is their own.

Steps without duration are left out, and so is a dependency that others imply. The messages of a connection
(source, destination, channel) start one after another, as a network takes them anyway; a rank's exit waits
until all that the rank sends has started. Rows stand by level (the longest way from an arrival), source,
destination and channel. Two templates that do the same in this sense have equal columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosim.errors import AlgorithmError
from cosim.pattern.assemble import COMPLETION, START, Block, assemble, entries, exits
from cosim.pattern.template import NO_DATA, Collective, Template

REDUCED_LIMIT = 1 << 14
"""Rows up to which dependencies that others imply are left out."""

Wait = tuple[int, int]
"""A row (ranks' entries first) and the kind of dependency on it."""


class Rows:
    """Rows as they are found, ranks' entries being rows 0..n-1; each with the level that it stands on."""

    def __init__(self, num_ranks: int, *, reduces: bool) -> None:
        self.num_ranks, self.reduces = num_ranks, reduces
        self.rows: list[tuple[int, int, int, int, int]] = []
        """Source, destination, bytes, delay, channel."""
        self.data: list[tuple[tuple[int, ...], int]] = []
        """Chunks and action, where they are known."""
        self.waits: list[frozenset[Wait]] = []
        self.level: list[int] = [0] * num_ranks
        self.sent: dict[int, int] = {}
        """The row of each event that sends."""
        self.last_sent: dict[tuple[int, int, int], int] = {}
        """The latest row of each connection."""
        # For each row the rows that must have started, or completed, for it to start.
        self._started: list[int] = [1 << rank for rank in range(num_ranks)]
        self._completed: list[int] = [0] * num_ranks

    def add(
        self,
        src: int,
        dst: int,
        size: int,
        delay: int,
        channel: int,
        waits: frozenset[Wait],
        data: tuple[tuple[int, ...], int] = ((), NO_DATA),
    ) -> int:
        """A row after those that it waits for; its number."""
        row = self.num_ranks + len(self.rows)
        if src != dst:
            self.last_sent[src, dst, channel] = row
        self.rows.append((src, dst, size, delay, channel))
        self.data.append(data)
        self.waits.append(waits)
        self.level.append(1 + max(self.level[wait] for wait, _ in waits))
        if self.reduces:
            started, completed = 1 << row, 0
            for wait, kind in waits:
                started |= self._started[wait]
                completed |= self._completed[wait] | (1 << wait if kind == COMPLETION else 0)
            self._started.append(started)
            self._completed.append(completed)
        return row

    def least(self, waits: set[Wait]) -> frozenset[Wait]:
        """Those of ``waits`` that no other of them implies."""
        if len(waits) < 2 or not self.reduces:
            return frozenset(waits)
        # Latest first: an earlier row can't imply a later one.
        kept: list[Wait] = []
        started = completed = 0
        for wait, kind in sorted(waits, key=lambda w: (-w[0], w[1])):
            if (completed if kind == COMPLETION else started) >> wait & 1:
                continue
            kept.append((wait, kind))
            started |= self._started[wait]
            completed |= self._completed[wait] | (1 << wait if kind == COMPLETION else 0)
        return frozenset(kept)

    def exits(self, last: Sequence[frozenset[Wait]]) -> list[frozenset[Wait]]:
        """``last``, and that all which a rank sends has started."""
        ends = [set(waits) for waits in last]
        for (src, _, _), row in self.last_sent.items():
            ends[src].add((row, START))
        return [self.least(waits) for waits in ends]

    def order(self) -> list[int]:
        """Rows by level, source, destination, channel; rows are counted from 0 here."""
        n = self.num_ranks
        return sorted(
            range(len(self.rows)),
            key=lambda row: (self.level[n + row], *self.rows[row][:2], self.rows[row][4], row),
        )

    def template(
        self,
        name: str,
        collective: Collective,
        size_bytes: int,
        last: list[frozenset[Wait]],
        exit_delay: int,
        marks: tuple[ArrayLike, ArrayLike] = (0, 0),
    ) -> Template:
        """The rows as a template without data, and exits that wait for ``last``; ``marks``: the channels of
        entries, and of exits.
        """
        n = self.num_ranks
        order = self.order()
        place = [*range(n), *([0] * len(order))]
        for position, row in enumerate(order):
            place[n + row] = n + position
        blocks = [entries(n, marks[0])]
        start = 0
        while start < len(order):
            level = self.level[n + order[start]]
            stop = start
            while stop < len(order) and self.level[n + order[stop]] == level:
                stop += 1
            those = order[start:stop]
            src, dst, size, delay, channel = zip(*(self.rows[row] for row in those), strict=True)
            distance, kind = _distances([self.waits[row] for row in those], place, n + start)
            blocks.append(Block(len(those), src, dst, distance, kind, size, delay, channel=channel))
            start = stop
        end = n + len(order)
        distance, kind = _distances(last, place, end)
        blocks.append(exits(n, distance, kind, exit_delay, marks[1]))
        return assemble(name, collective, n, size_bytes, blocks, num_chunks=0, owner=np.empty(0, np.int32))


def _distances(
    waits: list[frozenset[Wait]], place: list[int], base: int
) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Distances back for rows ``base``, ``base + 1`` ...: completions first, each kind padded with 0."""
    kinds = (COMPLETION, START)
    each = [[sorted(place[row] for row, its in wait if its == kind) for kind in kinds] for wait in waits]
    widths = [max(len(those[kind]) for those in each) for kind in kinds]
    distance = np.zeros((len(waits), sum(widths)), np.int64)
    for offset, those in enumerate(each):
        for kind in kinds:
            first = kind * widths[COMPLETION]
            distance[offset, first : first + len(those[kind])] = (
                base + offset - np.array(those[kind], np.int64)
            )
    return distance, (COMPLETION,) * widths[COMPLETION] + (START,) * widths[START]


def add_template(
    rows: Rows,
    template: Template,
    ranks: Sequence[int],
    entry: Sequence[frozenset[Wait]],
    cells: Sequence[tuple[int, ...]] = (),
) -> list[frozenset[Wait]]:
    """Put the messages of a template into ``rows``, without their delays; what each rank's exit waits for.

    Parameters
    ----------
    rows, template
        Where to, and what; delays are left out.
    ranks
        Whose the template's ranks are, in ``rows``.
    entry
        What the arrival of each of the template's ranks waits for.
    cells
        Chunks that each of the template's chunks is, in ``rows``; empty where data doesn't matter.

    Raises
    ------
    AlgorithmError
        More than :data:`REDUCED_LIMIT` messages, or data that a rank moves within itself.
    """
    t, n = template, template.num_ranks
    if t.num_flows + len(rows.rows) > REDUCED_LIMIT:
        raise AlgorithmError(f"{t.name}: more than the {REDUCED_LIMIT} messages that can be said so")
    ptr, distance, kinds = t.dep_ptr.tolist(), t.dep_distance.tolist(), t.dep_kind.tolist()
    # Of each flow its row, or what it waits for where it is an entry, an exit or a rank's word to itself.
    done: list[frozenset[Wait] | int] = [frozenset(waits) for waits in entry]
    for row, repetition in _flows(t):
        before: set[Wait] = set()
        for d in range(ptr[row], ptr[row + 1]):
            its = done[len(done) - distance[d]]
            before |= {(its, kinds[d])} if isinstance(its, int) else its
        src, dst, channel = int(t.src[row]), int(t.dst[row]), int(t.channel[row])
        if (ranks[src], ranks[dst], channel) in rows.last_sent:
            before.add((rows.last_sent[ranks[src], ranks[dst], channel], START))
        waits = rows.least(before)
        if src != dst:
            moved = _moved(t, row, repetition, cells), int(t.action[row])
            done.append(rows.add(ranks[src], ranks[dst], int(t.bytes[row]), 0, channel, waits, moved))
        elif t.action[row] == NO_DATA:
            done.append(waits)
        else:
            raise AlgorithmError(f"{t.name}: rank {src} moves data within itself")
    ends = done[-n:]
    assert all(isinstance(end, frozenset) for end in ends)
    return [end for end in ends if isinstance(end, frozenset)]


def _flows(template: Template) -> Iterator[tuple[int, int]]:
    """Row and repetition of each flow after the entries."""
    for block in range(1, len(template.block_repeat)):
        for repetition in range(int(template.block_repeat[block])):
            for row in range(int(template.block_row[block]), int(template.block_row[block + 1])):
                yield row, repetition


def _moved(
    template: Template, row: int, repetition: int, cells: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """What a row moves, as ``cells`` has its chunks."""
    first = int(template.chunk[row]) + repetition * int(template.chunk_step[row])
    chunks = range(first, first + int(template.chunk_count[row])) if cells else ()
    return tuple(cell for chunk in chunks for cell in cells[chunk % template.num_chunks])


def normal(template: Template) -> Template:
    """The template in its normal form, without delays and data.

    Raises
    ------
    AlgorithmError
        As :func:`add_template`.
    """
    n = template.num_ranks
    rows = Rows(n, reduces=True)
    entry = [frozenset({(rank, COMPLETION)}) for rank in range(n)]
    last = rows.exits(add_template(rows, template, range(n), entry))
    return rows.template(template.name, template.collective, template.size_bytes, last, 0)
