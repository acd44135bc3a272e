"""Each SEND must have its RECV: the n-th with the n-th of the same source, destination and tag."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from cosim.errors import MismatchError, StallError, WorkloadError
from cosim.units import format_size
from cosim.workload.program import OpKind, Peer, Workload

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
    sends, send_ops = _table(workload, OpKind.SEND)
    receives, receive_ops = _table(workload, OpKind.RECV)
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


def _table(workload: Workload, kind: OpKind) -> tuple[I64, I64]:
    """int64 [messages, 4] (source, destination, tag, bytes), sorted, and each row's operation number."""
    rows: list[I64] = []
    numbers: list[I64] = []
    for index, program in enumerate(workload.programs):
        ranks = np.flatnonzero(workload.program_of == index).astype(np.int64)
        if not len(ranks):
            continue
        for number, op in enumerate(program.operations):
            if op.kind is not kind or op.peer is None:
                continue
            others = peers(workload, ranks, op.peer)
            bad = np.flatnonzero((others < 0) | (others == ranks))
            if len(bad):
                rank = int(ranks[bad[0]])
                why = "itself" if others[bad[0]] == rank else f"beyond the edge of axis {op.peer.axis!r}"
                raise WorkloadError(f"rank {rank}: {kind.value} op {number} {op.name!r} has a peer {why}")
            ends = (ranks, others) if kind is OpKind.SEND else (others, ranks)
            tags, sizes = np.full_like(ranks, op.tag), np.full_like(ranks, op.size_bytes)
            rows.append(np.stack([*ends, tags, sizes], axis=1))
            numbers.append(np.full_like(ranks, number))
    if not rows:
        return np.empty((0, 4), np.int64), np.empty(0, np.int64)
    table, ops = np.concatenate(rows), np.concatenate(numbers)
    order = np.lexsort((ops, table[:, 3], table[:, 2], table[:, 1], table[:, 0]))
    return table[order], ops[order]


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
