"""Each SEND must have its RECV: the n-th with the n-th of the same source, destination and tag."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.errors import MismatchError, StallError, WorkloadError
from cosim.units import format_size
from cosim.workload.program import OpKind, Peer, Workload
from cosim.workload.table import OperationTable

I64 = NDArray[np.int64]

_Row = tuple[int, int, int, int]  # source, destination, tag, bytes


def check_messages(workload: Workload) -> None:
    """Count SENDs and RECVs against each other.

    Raises
    ------
    WorkloadError
        A peer beyond the edge of the mesh, or the rank itself.
    StallError
        More SENDs than RECVs of a source, destination and tag, or the reverse; a line for each who waits.
    MismatchError
        Equally many, but of unequal sizes.
    """
    # Micro-batch after micro-batch sends the same: alike ones are looked at once, unless something is wrong.
    if _all_meet(workload, _alike(workload, OpKind.SEND), _alike(workload, OpKind.RECV)):
        return
    (sends, send_ops), (receives, receive_ops) = (
        _sorted(workload, _messages(workload, kind, _rows(workload.table, kind)))
        for kind in (OpKind.SEND, OpKind.RECV)
    )
    if np.array_equal(sends, receives):
        return
    waits = _unmatched(workload, sends, send_ops, receives, receive_ops)
    if waits:
        raise StallError(f"workload {workload.name!r} can't end: {len(waits)} without the other side", waits)
    sent, received = (Counter(tuple(int(v) for v in row) for row in table) for table in (sends, receives))
    different = min((sent - received) + (received - sent))
    source, destination, tag, _ = different
    raise MismatchError(
        f"rank {source} sends {_sizes(sent, different)} to rank {destination} with tag {tag},"
        f" which receives {_sizes(received, different)}"
    )


def peers(workload: Workload, ranks: I64, peer: Peer) -> I64:
    """Ranks at the other end for each of ``ranks``; -1 beyond the edge of the mesh."""
    if peer.rank is not None:
        return np.full(len(ranks), peer.rank, np.int64)
    stride = 1
    for name, size in reversed(list(workload.mesh.axes.items())):
        if name == peer.axis:
            place = ranks // stride % size + peer.offset
            return np.where((place >= 0) & (place < size), ranks + peer.offset * stride, -1)
        stride *= size
    return np.full(len(ranks), -1, np.int64)


class _Messages(NamedTuple):
    """Columns of SENDs or RECVs of ranks: int64[messages] all."""

    source: I64
    destination: I64
    row: I64
    """In the workload's table."""
    number: I64
    """In the rank's program."""


def _rows(table: OperationTable, kind: OpKind) -> I64:
    """The rows of SENDs or RECVs that name a peer, ascending."""
    said = np.array([one.peer is not None for one in table.prototypes], np.bool_)
    return np.flatnonzero(table.is_kind(kind) & ((table.peer >= 0) | said[table.like]))


def _peers_said(table: OperationTable) -> tuple[list[Peer | None], I64]:
    """The peers that prototypes name, each once; and which of them each does."""
    place = {one.peer: at for at, one in enumerate({one.peer: one for one in table.prototypes}.values())}
    return [*place], np.array([place[one.peer] for one in table.prototypes], np.int64)


def _alike(workload: Workload, kind: OpKind) -> tuple[_Messages, I64]:
    """The first of the messages of a rank to one peer with one tag and size; and how many they are."""
    table, mine = workload.table, _rows(workload.table, kind)
    said, of_prototype = _peers_said(table)
    named = table.peer[mine]
    peer = np.where(named >= 0, named + len(said), of_prototype[table.like[mine]])
    (tags, tag), (sizes, size) = (
        np.unique(column[mine], return_inverse=True) for column in (table.tag, table.size_bytes)
    )
    spans = (table.num_programs, int(peer.max(initial=0)) + 1, len(tags), len(sizes))
    if not len(mine) or math.prod(spans) >= 1 << 63:
        return _messages(workload, kind, mine), np.ones(1, np.int64)
    _, first, times = np.unique(
        np.ravel_multi_index((table.program[mine], peer, tag, size), spans),
        return_index=True,
        return_counts=True,
    )
    order = np.argsort(first)
    found = _messages(workload, kind, mine[first[order]])
    return found, times[order][np.searchsorted(first[order], np.searchsorted(mine, found.row))]


def _messages(workload: Workload, kind: OpKind, mine: I64) -> _Messages:
    """The messages of each rank, from rows of the table that its program has; rows ascend."""
    table = workload.table
    rows = np.bincount(table.program[mine], minlength=table.num_programs)  # of each program
    count = rows[workload.program_of]  # of each rank
    rank = np.repeat(np.arange(workload.world_size), count)
    within = np.arange(len(rank)) - np.repeat(np.cumsum(count) - count, count)
    row = mine[(np.cumsum(rows) - rows)[workload.program_of[rank]] + within]
    other = table.peer[row]
    said, of_prototype = _peers_said(table)  # far fewer than prototypes
    which = of_prototype[table.like[row]]
    for at, peer in enumerate(said):
        if peer is not None:
            along = np.flatnonzero((other < 0) & (which == at))
            other[along] = peers(workload, rank[along], peer)
    number = row - table.first[table.program[row]]
    bad = np.flatnonzero((other < 0) | (other == rank))
    if len(bad):
        at = bad[np.lexsort((rank[bad], row[bad]))[0]]
        op = workload.program(int(rank[at])).operations[number[at]]
        why = f"beyond the edge of axis {op.peer.axis!r}" if op.peer and other[at] < 0 else "itself"
        raise WorkloadError(f"rank {rank[at]}: {kind.value} op {number[at]} {op.name!r} has a peer {why}")
    source, destination = (rank, other) if kind is OpKind.SEND else (other, rank)
    return _Messages(source, destination, row, number)


def _all_meet(workload: Workload, *both: tuple[_Messages, I64]) -> bool:
    """Whether SENDs and RECVs are seen to be the same messages, so many times each: a number for each, where
    one has room for it, is sorted fastest.
    """
    table, ranks = workload.table, workload.world_size
    (tags, tag), (sizes, size) = (
        np.unique(column, return_inverse=True) for column in (table.tag, table.size_bytes)
    )
    shape, shapes = tag * len(sizes) + size, len(tags) * len(sizes)
    most = 1 + max(int(times.max(initial=0)) for _, times in both)
    if ranks * ranks * shapes * most >= 1 << 63:
        return False
    sent, received = (
        np.sort(((one.source * ranks + one.destination) * shapes + shape[one.row]) * most + times)
        for one, times in both
    )
    return np.array_equal(sent, received)


def _sorted(workload: Workload, messages: _Messages) -> tuple[I64, I64]:
    """int64 [messages, 4] (source, destination, tag, bytes), sorted, and each row's operation number."""
    table, (source, destination, row, number) = workload.table, messages
    order = np.lexsort((number, table.size_bytes[row], table.tag[row], destination, source))
    columns = np.stack([source, destination, table.tag[row], table.size_bytes[row]], axis=1)
    return columns[order], number[order]


def _unmatched(workload: Workload, sends: I64, send_ops: I64, receives: I64, receive_ops: I64) -> list[str]:
    """A line for each operation beyond those of the other side, of a source, destination and tag."""
    sent, received = _by_channel(sends, send_ops), _by_channel(receives, receive_ops)
    lines = []
    for channel in sorted(sent.keys() | received.keys()):
        source, destination, tag = channel
        here, there = sent.get(channel, []), received.get(channel, [])
        for number in here[len(there) :]:
            op = workload.program(source).operations[number]
            posted = f"posts only {len(there)} of {len(here)} RECVs" if there else "never posts the RECV"
            lines.append(
                f"rank {source}: SEND op {number} {op.name!r} {format_size(op.size_bytes)}"
                f" to rank {destination}, tag {tag}: rank {destination} {posted}"
            )
        for number in there[len(here) :]:
            op = workload.program(destination).operations[number]
            posted = f"sends only {len(here)} of {len(there)}" if here else "never sends it"
            lines.append(
                f"rank {destination}: RECV op {number} {op.name!r} {format_size(op.size_bytes)}"
                f" from rank {source}, tag {tag}: rank {source} {posted}"
            )
    return lines


def _by_channel(table: I64, ops: I64) -> dict[tuple[int, int, int], list[int]]:
    found: dict[tuple[int, int, int], list[int]] = {}
    for (source, destination, tag, _), number in zip(table.tolist(), ops.tolist(), strict=True):
        found.setdefault((source, destination, tag), []).append(number)
    for numbers in found.values():
        numbers.sort()
    return found


def _sizes(counts: Counter[tuple[int, ...]], row: tuple[int, ...]) -> str:
    of_channel = sorted(
        size for (*channel, size), n in counts.items() if tuple(channel) == row[:3] for _ in range(n)
    )
    return " and ".join(f"{size} B" for size in of_channel[:4]) + (" ..." if len(of_channel) > 4 else "")
