"""A workload as rows of the tables, and a row as an operation again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cosim.errors import Location, WorkloadError
from cosim.workload.program import Operation, OpKind, Peer

_KINDS = {kind.value: kind for kind in OpKind}


def operation_columns(job: int, program: int, operations: Sequence[Operation]) -> dict[str, list[Any]]:
    """Cells of ``operations``, without dependencies."""
    count = len(operations)
    return {
        "job": [job] * count,
        "program": [program] * count,
        "op": list(range(count)),
        "name": [op.name for op in operations],
        "kind": [op.kind.value for op in operations],
        "stream": [op.stream for op in operations],
        "duration_ps": [op.duration_ps for op in operations],
        "flops": [float(op.flops) for op in operations],
        "bytes_moved": [float(op.bytes_moved) for op in operations],
        "collective": [op.collective for op in operations],
        "axes": [json.dumps(op.axes) if op.axes else "" for op in operations],
        "ranks": ["" if op.ranks is None else " ".join(map(str, op.ranks)) for op in operations],
        "size_bytes": [op.size_bytes for op in operations],
        "root": [op.root for op in operations],
        "peer_rank": [
            "" if op.peer is None or op.peer.rank is None else str(op.peer.rank) for op in operations
        ],
        "peer_axis": ["" if op.peer is None or op.peer.axis is None else op.peer.axis for op in operations],
        "peer_offset": [0 if op.peer is None else op.peer.offset for op in operations],
        "tag": [op.tag for op in operations],
        "channel": [op.channel for op in operations],
        "phase": [op.phase for op in operations],
        "access": [op.access for op in operations],
        "ahead": [op.ahead for op in operations],
    }


def dependency_columns(job: int, program: int, deps: Sequence[Sequence[int]]) -> dict[str, list[int]]:
    """Cells of ``dependencies``."""
    pairs = [(op, dep) for op, before in enumerate(deps) for dep in before]
    return {
        "job": [job] * len(pairs),
        "program": [program] * len(pairs),
        "op": [op for op, _ in pairs],
        "dep": [dep for _, dep in pairs],
    }


def operation_of(where: Location, row: Mapping[str, Any], deps: tuple[int, ...]) -> Operation:
    """A row as an operation.

    Raises
    ------
    WorkloadError
        A cell that can't be meant.
    """
    kind = _KINDS.get(row["kind"])
    if kind is None:
        raise _wrong(where, f"kind is {row['kind'][:60]!r}", f"one of {', '.join(_KINDS)}")
    return Operation(
        name=row["name"],
        kind=kind,
        stream=row["stream"],
        deps=deps,
        duration_ps=row["duration_ps"],
        flops=row["flops"],
        bytes_moved=row["bytes_moved"],
        collective=row["collective"],
        axes=_axes(where, row["axes"]),
        ranks=_ranks(where, row["ranks"]),
        size_bytes=row["size_bytes"],
        root=row["root"],
        peer=_peer(where, row),
        tag=row["tag"],
        channel=row["channel"],
        phase=row["phase"],
        access=row["access"],
        ahead=row["ahead"],
    )


def _axes(where: Location, text: str) -> tuple[str, ...]:
    if not text:
        return ()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise _wrong(where, f"axes are {text[:60]!r}", 'a JSON list: ["dp", "tp"]')
    return tuple(found)


def _ranks(where: Location, text: str) -> tuple[int, ...] | None:
    if not text:
        return None
    parts = text.split(" ")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise _wrong(where, f"ranks are {text[:60]!r}", "numbers with a blank between: 0 1 2 3")
    return tuple(int(part) for part in parts)


def _peer(where: Location, row: Mapping[str, Any]) -> Peer | None:
    rank, axis, offset = row["peer_rank"], row["peer_axis"], row["peer_offset"]
    if rank and (axis or offset):
        raise _wrong(where, "has a peer_rank and a peer_axis", "one of them")
    if rank:
        if not (rank.isascii() and rank.isdigit() and len(rank) < 10):
            raise _wrong(where, f"peer_rank is {rank[:60]!r}", "a rank")
        return Peer(rank=int(rank))
    return Peer(axis=axis, offset=offset) if axis else None


def _wrong(where: Location, message: str, right: str) -> WorkloadError:
    return WorkloadError(message, location=where, hint=f"it should be {right}")
