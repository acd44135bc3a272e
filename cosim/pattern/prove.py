"""The prover: a template is replayed on chunk values before it is ever timed.

Every rank starts with values that tell whose they are; messages copy and add them; at the end each rank must
hold what the collective promises. Groups of up to 63 ranks carry contributor sets, exactly; larger ones
random 64-bit fingerprints that add up modulo 2^64, so that a wrong result passes with probability about
2^-64 a chunk. What a rank has not received yet is garbage, never zero.

Scratch is garbage at first, and nobody looks at it in the end: what is received there is added to a chunk by
a row of the rank to itself, as with recursive doubling by whole buffers.

What is checked, and why it is enough
-------------------------------------
*Dependencies.* Each points back in flow number (else a cycle is looked for), every flow but the entries has
one, and each names only what its sender can see: messages that arrived there, its own messages. So numbers
are an order in which all can run: nothing deadlocks.

*Values, in two orders.* A message reads at its start and writes at its completion. A dependency on
completion orders write before read; two accesses to one cell that no chain of dependencies orders can happen
either way. The eager order writes at once, the lazy order only when a dependency needs the completion: a
flow that reads what it doesn't wait for finds it in the one and not in the other, and so does an exit that
doesn't wait for the last data.

*Races.* Up to 4,096 flows the happens-before relation is computed in full: any two accesses of a cell, not
both reads and not both reductions, that it doesn't order, are refused; then all orders give what these two
gave. Larger templates rest on the two orders; the planner proves the same algorithm on a small group first.
Order within a channel is not relied on. Reductions are taken to be commutative and associative.

All-to-all over more than 256 ranks follows, for each piece, its source's copy and the copy that arrived
last: exact for algorithms that hand a piece along one path, as all do; others would be refused.

*Exits.* Up to 65,536 flows each rank's exit must happen after its own entry, or the engine would let a rank
go that never came; a barrier's exits, of any size, after all entries.

A template without chunks (a barrier; a custom algorithm) is checked for its dependencies and exits; those of
an MSCCL file for their data too, on the program (:mod:`cosim.formats.msccl.prove`).
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from cosim.errors import AlgorithmError
from cosim.kernel import Columns, kernel, record
from cosim.pattern.happens_before import EXIT_LIMIT, RACE_LIMIT, check_exits, check_races
from cosim.pattern.template import I64, NO_DATA, Collective, FlowNames, Template

U64 = NDArray[np.uint64]

DENSE_LIMIT = 1 << 24
"""Cells up to which all-to-all state is kept for every rank and piece."""
_GARBAGE = np.uint64(1 << 63)


def prove(template: Template) -> None:
    """Refuse a template that doesn't do what its collective promises.

    Raises
    ------
    AlgorithmError
        Names rank, chunk and step of the first thing wrong.
    """
    tell = FlowNames(template)
    _check_columns(template, tell)
    # The lazy order looks at dependencies too; the eager one, where it is wrong, says it more simply.
    late = _run(template, True, tell)
    early = _run(template, False, tell)
    if early is not None:
        _refuse_value(template, False, *early, tell)
    if late is not None:
        _refuse_value(template, True, *late, tell)
    if template.collective is Collective.BARRIER or template.num_flows <= EXIT_LIMIT:
        check_exits(template, tell)
    if template.num_chunks and template.num_flows <= RACE_LIMIT:
        check_races(template, tell)


def _run(template: Template, lazy: bool, tell: FlowNames) -> tuple[int, int] | None:
    """Replay in one order; the first (rank, chunk) that ends wrong, or None."""
    state = _ChunkState(template)
    state.run(lazy, tell)
    return state.first_wrong()


def _check_columns(template: Template, tell: FlowNames) -> None:
    """What the replay relies on: entries, exits, ranges, dependencies that point back."""
    t, n = template, template.num_ranks
    _check_lengths(t, tell)
    ranks = np.arange(n)
    for block, what in ((0, "entries"), (len(t.block_repeat) - 1, "exits")):
        rows = slice(int(t.block_row[block]), int(t.block_row[block + 1]))
        marks = np.array_equal(t.src[rows], ranks) and np.array_equal(t.dst[rows], ranks)
        if not marks or t.block_repeat[block] != 1 or t.action[rows].any():
            raise AlgorithmError(
                f"{tell.name}: block {block} must be the {what}, one mark for each rank in order"
            )
    if t.dep_ptr[n] != 0:
        raise AlgorithmError(f"{tell.name}: an entry waits for something; entries are the ranks' arrivals")
    for column, least, limit, what in (
        (t.src, 0, n, "a source"),
        (t.dst, 0, n, "a destination"),
        (t.bytes, 0, None, "a size"),
        (t.delay_ps, 0, None, "a delay"),
        (t.chunk_count, 0, t.num_places + 1, "a number of chunks"),
        (t.shift, 0, t.num_places or 1, "a shift"),
        (t.action, 0, 3, "an action"),
        (t.owner, 0, n, "an owner"),
    ):
        bad = column < least if limit is None else (column < least) | (column >= limit)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise AlgorithmError(f"{tell.name}: row {row} has {what} out of range: {column[row]}")
    if len(t.dep_distance) and t.dep_distance.min() < 1:
        tell.refuse_cycle()


def _check_lengths(t: Template, tell: FlowNames) -> None:
    """Columns of rows, dependencies and blocks that belong together."""
    rows = len(t.src)
    columns = (t.dst, t.bytes, t.channel, t.delay_ps, t.chunk, t.chunk_step, t.chunk_count, t.action)
    if t.num_ranks < 1 or t.num_chunks < 0:
        raise AlgorithmError(f"{tell.name}: has {t.num_ranks} ranks and {t.num_chunks} chunks")
    if any(column.shape != (rows,) for column in columns) or len(t.owner) != t.num_chunks:
        raise AlgorithmError(f"{tell.name}: its columns are not of {rows} rows, or its owners not of chunks")
    for steps, end, what in (
        (t.block_row, rows, "block_row"),
        (t.dep_ptr, len(t.dep_distance), "dep_ptr"),
    ):
        if not len(steps) or steps[0] != 0 or steps[-1] != end or (np.diff(steps) < 0).any():
            raise AlgorithmError(f"{tell.name}: {what} should ascend from 0 to {end}")
    if len(t.dep_ptr) != rows + 1 or len(t.dep_kind) != len(t.dep_distance) or (t.block_repeat < 1).any():
        raise AlgorithmError(f"{tell.name}: its dependencies or repeats don't belong to its rows")


class _ChunkReplay(Columns):
    """A template's messages, and the chunk values that a replay moves."""

    container = "chunk_replay"


_COLUMNS = (
    "src", "dst", "dep_ptr", "dep_distance", "dep_kind", "block_row", "block_repeat", "chunk_count", "action"
)  # fmt: skip
"""Columns of a template that a replay takes as they are."""


class _ChunkState:
    """Chunk values of every rank, before and after a replay."""

    def __init__(self, template: Template, weights: U64 | None = None) -> None:
        t = self.template = template
        n, chunks, places = t.num_ranks, t.num_chunks, max(t.num_places, 1)
        self.bits = weights is None and n <= 63
        if weights is not None:
            self.weights, self.garbage = weights, np.uint64(0)
        elif self.bits:
            self.weights, self.garbage = np.uint64(1) << np.arange(n, dtype=np.uint64), _GARBAGE
        else:
            self.weights, self.garbage = _splitmix(np.arange(n)), _splitmix(np.array([-1]))[0]
        self.total = np.bitwise_or.reduce(self.weights) if self.bits else self.weights.sum(dtype=np.uint64)
        sparse = t.collective is Collective.ALL_TO_ALL and n * chunks > DENSE_LIMIT and not t.num_scratch
        self.per_rank = chunks // n if sparse else 0
        self.tag = np.full(chunks, -1, np.int32) if self.per_rank else None
        self.stride = places
        if self.per_rank:
            self.values = np.empty(2 * chunks + 1, np.uint64)
            self.values[:chunks] = self.weights.repeat(self.per_rank)
            self.values[chunks:] = self.garbage
        elif t.collective in (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER):
            # An odd number of cache lines a rank, so that ranks don't fall on the same sets of a cache.
            self.stride = places if places < 512 else (places // 8 | 1) * 8 + 16
            self.values = self.weights.repeat(self.stride)
            self.values.reshape(n, self.stride)[:, chunks:places] = self.garbage
        else:
            self.values = np.full(n * places, self.garbage, np.uint64)
            if chunks:
                at = np.arange(chunks)
                holder = at // (chunks // n) if t.collective is Collective.ALL_TO_ALL else t.owner
                self.values[holder * np.int64(places) + at] = self.weights[holder]

    def run(self, lazy: bool, tell: FlowNames, watch: tuple[int, int] = (-1, -1)) -> int:
        """Replay; the flow that wrote the watched (rank, chunk) last, or -1."""
        t = self.template
        places = max(t.num_places, 1)
        replay = _ChunkReplay(
            **{name: np.ascontiguousarray(getattr(t, name)) for name in _COLUMNS},
            chunk=t.chunk.astype(np.int64) % places,
            chunk_step=t.chunk_step.astype(np.int64) % places,
            shift=t.shift.astype(np.int64),
            values=self.values,
            stride=self.stride,
            places=places,
            per_rank=self.per_rank,
            bits=self.bits,
            watch_rank=watch[0],
            watch_chunk=watch[1],
            writer=-1,
        )
        if kernel.why_not() is not None:
            return self._run_plainly(replay, lazy, tell)
        if self.tag is not None:
            replay.put(tag=self.tag)
        if not lazy:
            kernel.replay_early(replay)
            return int(replay.writer)
        longest = int(t.dep_distance.max()) if len(t.dep_distance) else 1
        replay.put(
            window=np.zeros(1 << longest.bit_length(), record("carried")),
            payload=np.zeros(_payload_words(t, longest), np.uint64),
        )
        fault = kernel.replay_late(replay)
        if fault != kernel.DONE:
            tell.refuse_flow(fault, replay.flow, replay.dependency)
        return int(replay.writer)

    def _run_plainly(self, replay: _ChunkReplay, lazy: bool, tell: FlowNames) -> int:
        from cosim.pattern.plain_replay import PlainReplay

        plain = PlainReplay(replay, self.tag)
        if not lazy:
            plain.early()
        elif (fault := plain.late()) != kernel.DONE:
            tell.refuse_flow(fault, plain.flow, plain.dependency)
        return plain.writer

    def first_wrong(self) -> tuple[int, int] | None:
        """The first (rank, chunk) that isn't as promised."""
        t = self.template
        n, chunks = t.num_ranks, t.num_chunks
        if not chunks:
            return None
        at = np.arange(chunks)
        if self.per_rank:
            source = at // self.per_rank
            stays = t.owner == source
            held = np.where(stays, self.values[:chunks], self.values[chunks:-1])
            wrong = (held != self.weights[source]) | (~stays & (self.tag != t.owner))
            where = np.flatnonzero(wrong)
            return (int(t.owner[where[0]]), int(where[0])) if len(where) else None
        table = self.values.reshape(n, self.stride)[:, :chunks]
        if t.collective is Collective.ALL_REDUCE:
            bad = table != self.total
        elif t.collective in (Collective.ALL_GATHER, Collective.BROADCAST, Collective.SEND_RECV):
            bad = table != self.weights[t.owner][None, :]
        else:
            source = at // (chunks // n)
            due = self.weights[source] if t.collective is Collective.ALL_TO_ALL else self.total
            where = np.flatnonzero(table[t.owner, at] != due)
            return (int(t.owner[where[0]]), int(where[0])) if len(where) else None
        if not bad.any():
            return None
        rank, chunk = divmod(int(bad.argmax()), chunks)
        return rank, chunk


def _splitmix(number: I64) -> U64:
    """uint64, as splitmix64 draws them (Steele, Lea and Flood, doi:10.1145/2714064.2660195)."""
    with np.errstate(over="ignore"):
        z = (number.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _payload_words(template: Template, longest: int) -> int:
    """Words that messages of any ``longest`` + 1 flows in a row can take, at most."""
    rows = np.diff(template.block_row)
    carried = np.where(template.action != NO_DATA, template.chunk_count, 0).astype(np.int64)
    words = np.add.reduceat(carried, template.block_row[:-1])
    times = np.minimum(template.block_repeat, (longest + 1) // rows + 2)
    return int((words * times).sum()) + 1


def _refuse_value(template: Template, lazy: bool, rank: int, chunk: int, tell: FlowNames) -> NoReturn:
    """Say what a cell has and should have, and which message wrote it last."""
    t, n = template, template.num_ranks
    counts: list[int] = []
    writer = -1
    # Sixteen contributors at a time, four bits of a word for each count: exact up to 15.
    affordable = max(1, 200_000_000 // t.num_flows) * 16
    for low in range(0, min(n, affordable), 16):
        number = np.arange(n) - low
        weights = np.zeros(n, np.uint64)
        within = (number >= 0) & (number < 16)
        weights[within] = np.uint64(1) << (4 * number[within]).astype(np.uint64)
        state = _ChunkState(t, weights)
        writer = state.run(lazy, tell, (rank, chunk))
        value = int(_get_cell(state, rank, chunk))
        counts += [(value >> (4 * i)) & 15 for i in range(min(16, n - low))]
    if t.collective in (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER):
        due = dict.fromkeys(range(len(counts)), 1)
    elif t.collective is Collective.ALL_TO_ALL:
        due = {chunk // (t.num_chunks // n): 1}
    else:
        due = {int(t.owner[chunk]): 1}
    missing = [r for r in range(len(counts)) if counts[r] < due.get(r, 0)]
    doubled = [r for r in range(len(counts)) if counts[r] > max(due.get(r, 0), 1)]
    foreign = [r for r in range(len(counts)) if counts[r] and r not in due]
    said = [
        f"{what} {_listed(ranks)}"
        for what, ranks in (
            ("lacks what comes from", missing),
            ("counts twice what comes from", doubled),
            ("has what comes from", foreign),
        )
        if ranks
    ] or ["has what was never written"]
    order = "when messages arrive as late as dependencies allow, " if lazy else ""
    last = f"last written by {tell.flow(writer)}" if writer >= 0 else "never written"
    raise AlgorithmError(
        f"{tell.name}: {order}rank {rank} ends with a wrong chunk {chunk}: it {' and '.join(said)}; {last}"
    )


def _get_cell(state: _ChunkState, rank: int, chunk: int) -> np.uint64:
    t = state.template
    if state.tag is None:
        return np.uint64(state.values[rank * state.stride + chunk])
    if chunk // state.per_rank == rank:
        return np.uint64(state.values[chunk])
    return np.uint64(state.values[t.num_chunks + chunk] if state.tag[chunk] == rank else 0)


def _listed(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:8]))
    more = f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}{more}"
