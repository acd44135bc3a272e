"""Advances as messages that fit: flows, paths and starts are split over parts where they must be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cosim.errors import OverloadError
from cosim.network.flows import I32, I64
from cosim.protocol.flat_flows import FlatFlows, batches, encode
from cosim.protocol.v1 import network_simulator_pb2 as pb

_ROOM = 64
"""For what a message holds besides, bytes."""


def numbered(body: bytes, sequence: int) -> bytes:
    """An advance's bytes with its sequence number: messages that are put one after the other are merged."""
    return body + pb.SessionRequest(advance=pb.Advance(sequence=sequence)).SerializeToString()


def advance_parts(
    paths: pb.Paths | None,
    flows: FlatFlows | None,
    starts: tuple[I64, I64, I64] | None,
    horizon_ps: int,
    wall_budget_us: int,
    most_bytes: int,
    *,
    oldest_id: int = 0,
    changes: pb.Changes | None = None,
) -> list[bytes]:
    """Serialized ``SessionRequest`` of one advance, without sequence numbers; all but the last say ``more``.

    ``oldest_id``: no flow of a later advance waits for one of a lower id. ``changes`` come before all else.

    Raises
    ------
    OverloadError
        A single flow doesn't fit a message.
    """
    parts: list[pb.Advance] = []
    if changes is not None:
        parts.append(pb.Advance(changes=changes))
    if paths is not None:
        parts += [pb.Advance(paths=part) for part in _paths(paths, most_bytes)]
    if flows is not None and flows.count:
        parts += [pb.Advance(flows=part) for part in _flows(flows, most_bytes)]
    if starts is not None and len(starts[0]):
        parts += [pb.Advance(starts=part) for part in _starts(starts, most_bytes)]
    packed: list[pb.Advance] = []
    for part in parts:  # one message for all of it, where that fits
        if (
            packed
            and packed[-1].ByteSize() + part.ByteSize() + _ROOM <= most_bytes
            and _mergeable(packed[-1], part)
        ):
            packed[-1].MergeFrom(part)
        else:
            packed.append(part)
    packed = packed or [pb.Advance()]
    for part in packed[:-1]:
        part.more = True
    packed[-1].horizon_ps = horizon_ps
    packed[-1].wall_budget_us = wall_budget_us
    packed[-1].oldest_id = oldest_id
    return [pb.SessionRequest(advance=part).SerializeToString() for part in packed]


def _mergeable(one: pb.Advance, other: pb.Advance) -> bool:
    """They hold different things, in the order in which a server takes them."""
    order = ("changes", "paths", "flows", "starts")
    have = max(k for k, name in enumerate(order) if one.HasField(name))
    return not any(other.HasField(name) for name in order[: have + 1])


def _flows(flows: FlatFlows, most_bytes: int) -> Iterator[pb.Flows]:
    message = pb.Flows()
    if flows.count * 64 <= 16 * most_bytes:  # else it can't fit, and is not worth trying
        encode(flows, message)
        if message.ByteSize() + _ROOM <= most_bytes:
            yield message
            return
    if flows.count == 1:
        raise OverloadError(f"a flow of {message.ByteSize()} bytes does not fit messages of {most_bytes}")
    half = flows.count // 2
    yield from _flows(flows.part(0, half), most_bytes)
    yield from _flows(flows.part(half, flows.count), most_bytes)


def _starts(starts: tuple[I64, I64, I64], most_bytes: int) -> Iterator[pb.Starts]:
    ids, start, cause = starts
    for low, high in batches(len(ids), max(1, (most_bytes - _ROOM) // 24)):
        part = pb.Starts()
        _put(part.id, ids[low:high])
        _put(part.start_ps, start[low:high])
        if not np.array_equal(start[low:high], cause[low:high]):
            _put(part.cause_ps, cause[low:high])
        yield part


def _put(field: Any, values: Any) -> None:
    field.extend(values.tolist())


def make_paths(triples: Sequence[tuple[int, int, int]], ptr: I64, links: I32) -> pb.Paths:
    """Links of triples, in CSR form."""
    message = pb.Paths()
    columns = np.array(triples, np.int64).reshape(-1, 3)
    for field, values in zip(
        (message.src, message.dst, message.channel, message.end, message.link),
        (columns[:, 0], columns[:, 1], columns[:, 2], ptr[1:], links),
        strict=True,
    ):
        _put(field, values)
    return message


def _paths(paths: pb.Paths, most_bytes: int) -> Iterator[pb.Paths]:
    if paths.ByteSize() + _ROOM <= most_bytes:
        yield paths
        return
    count = len(paths.end)
    if count == 1:
        raise OverloadError(f"a path of {paths.ByteSize()} bytes does not fit messages of {most_bytes}")
    half = count // 2
    for low, high in ((0, half), (half, count)):
        part = pb.Paths(src=paths.src[low:high], dst=paths.dst[low:high], channel=paths.channel[low:high])
        before = paths.end[low - 1] if low else 0
        part.end.extend(end - before for end in paths.end[low:high])
        part.link.extend(paths.link[before : paths.end[high - 1]])
        part.dead_set.extend(paths.dead_set[low:high])
        yield from _paths(part, most_bytes)
